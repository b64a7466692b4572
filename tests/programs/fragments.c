/* fragments - a heap of which a known part is not in use when it is measured, five seconds after the start: 200,000 blocks of 500 bytes, of
 * which three of four are given back, and beside them 64 MiB of the program's own mapping, which is gone before the end.
 */
/* flags: -O0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
  enum { BLOCKS = 200000 };
  static void *block[BLOCKS];
  void *own = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) return 1;
  memset(own, 1, 64 << 20);
  for (int i = 0; i < BLOCKS; i++) {
    block[i] = malloc(500);
    if (!block[i]) return 1;
    memset(block[i], 1, 500);
  }
  for (int i = 0; i < BLOCKS; i++)
    if (i % 4) free(block[i]);
  sleep(7);
  munmap(own, 64 << 20);
  sleep(1);
  return 0;
}
