/* libslowsync - a disk on which the first fsync takes four seconds: preloaded, it writes "begin" and "end" to the file $SLOW_SYNC. What
 * io_uring does is out of its reach. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void note(const char *line)
{
  const char *path = getenv("SLOW_SYNC");
  int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (fd < 0 || write(fd, line, strlen(line)) < 0) return;
  close(fd);
}

int fsync(int fd)
{
  static atomic_int calls;
  if (atomic_fetch_add(&calls, 1) == 0) {
    note("begin\n");
    nanosleep(&(struct timespec){4, 0}, NULL);
    note("end\n");
  }
  return (int)syscall(SYS_fsync, fd);
}
