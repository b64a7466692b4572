/* scribble.c - a target that spoils its own segment: `scribble random` fills all behind the identity with random bytes, `scribble truncate`
 * cuts it off. Then it leaves at once with 3, without a word to the shim. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/mach6.h"

int main(int argc, char **argv)
{
  char prefix[64], path[300] = "";
  static char noise[200000];
  for (int i = 0; i < 20; i++) {
    mach6_mark("honest");
    free(malloc(100));
    mach6_done();
    mach6_frame();
  }
  usleep(300000);
  snprintf(prefix, sizeof prefix, "mach6.%d.", (int)getpid());
  DIR *d = opendir("/dev/shm");
  for (struct dirent *e; d && (e = readdir(d));)
    if (!strncmp(e->d_name, prefix, strlen(prefix))) snprintf(path, sizeof path, "/dev/shm/%s", e->d_name);
  int fd = open(path, O_RDWR), bad = fd < 0 || argc < 2;
  if (getrandom(noise, sizeof noise, 0) < 0) bad = 1;
  if (bad) return 1;
  /* From here on nothing that the shim hooks: its segment is not its own any more. */
  static const char word[] = "scribbled\n";
  if (write(1, word, sizeof word - 1) < 0) _exit(2);
  if (!strcmp(argv[1], "truncate")) {
    if (ftruncate(fd, 0)) _exit(2);
  } else {
    for (off_t at = 64; at < 4600000; at += sizeof noise)
      if (pwrite(fd, noise, sizeof noise, at) < 0) _exit(2);
  }
  syscall(SYS_nanosleep, &(struct timespec){0, 300000000}, NULL);
  _exit(3);
}
