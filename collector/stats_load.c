/* stats_load.c - a dump as a handle of the library. See mach6_stats.h, and dump.h for what a dump is.
 *
 * The file is read, never mapped: one that is truncated meanwhile is a short file. Calls: libc, dump_read.c, stats.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump.h"

/* All of a file of at most M6_DUMP_BYTES; a pipe is read to its end. */
static int read_file(const char *path, char **out, size_t *bytes)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return MACH6_ESYSTEM;
  struct stat st;
  size_t room = 65536, n = 0;
  if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size < (off_t)M6_DUMP_BYTES) room = (size_t)st.st_size + 1;
  char *p = malloc(room);
  int error = p ? MACH6_OK : MACH6_ENOMEM;
  while (!error) {
    ssize_t got = read(fd, p + n, room - n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = MACH6_ESYSTEM;
    if (got <= 0) break;
    n += (size_t)got;
    if (n > M6_DUMP_BYTES) {
      error = MACH6_EINVALID;
      break;
    }
    if (n < room) continue;
    char *more = realloc(p, room *= 2);
    if (!more) error = MACH6_ENOMEM;
    else p = more;
  }
  int keep = errno;
  close(fd);
  errno = keep;
  if (error) free(p);
  *out = error ? NULL : p;
  *bytes = n;
  return error;
}

int m6_stats_load(const char *path, mach6_stats **out, struct mach6_dump_info *info)
{
  char *bytes;
  size_t n;
  struct m6_snapshot *block;
  *out = NULL;
  memset(info, 0, sizeof *info);
  int error = read_file(path, &bytes, &n);
  if (error == MACH6_EINVALID) info->broke_why = "it is larger than a dump can be";
  if (error) return error;
  error = m6_dump_read(bytes, n, &block, info);
  free(bytes);
  if (error) return error;
  mach6_stats *s = calloc(1, sizeof *s);
  if (!s) {
    free(block);
    return MACH6_ENOMEM;
  }
  s->fd = -1;
  s->ended = 1;
  s->pid = (pid_t)block->pid;
  s->from_dump = 1;
  s->dump = *info;
  if ((error = m6_stats_adopt(s, block, block->bytes))) mach6_stats_close(s);
  else *out = s;
  return error;
}

int mach6_stats_load(const char *path, mach6_stats **out)
{
  struct mach6_dump_info info;
  return m6_stats_load(path, out, &info);
}

const struct mach6_dump_info *mach6_stats_dump(const mach6_stats *s) { return s->from_dump ? &s->dump : NULL; }
