/* patch - writes numbers into a file, for tests that damage or forge one: patch FILE OFFSET u32|u64 VALUE ... */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  int fd = argc > 1 ? open(argv[1], O_WRONLY) : -1;
  if (fd < 0) return 1;
  for (int i = 2; i + 2 < argc; i += 3) {
    uint64_t value = strtoull(argv[i + 2], NULL, 0);
    size_t n = strcmp(argv[i + 1], "u32") == 0 ? 4 : 8;
    if (pwrite(fd, &value, n, (off_t)strtoull(argv[i], NULL, 0)) != (ssize_t)n) return 1;
  }
  return 0;
}
