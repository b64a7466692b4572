/* libdies - a preload that kills its process at a chosen file operation of a dump: DIES_AT=NAME[:N[:after]], the N-th call of pwrite, fsync,
 * linkat or renameat; before it, or right after it. A pwrite that kills writes half of its bytes first. linkat and renameat count
 * where they work in a folder that is open, as the writer of dumps does. io_uring goes past it: see no_uring. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int at(const char *name, int *after)
{
  static int calls[4];
  static const char *const names[] = {"pwrite", "fsync", "linkat", "renameat"};
  const char *want = getenv("DIES_AT");
  size_t n = strlen(name);
  if (want == NULL || strncmp(want, name, n) != 0 || (want[n] != ':' && want[n] != 0)) return 0;
  long wanted = want[n] ? strtol(want + n + 1, NULL, 10) : 1;
  *after = strstr(want, ":after") != NULL;
  for (int i = 0; i < 4; i++)
    if (strcmp(names[i], name) == 0) return ++calls[i] == wanted;
  return 0;
}
#define NEXT(result, name, ...) ((result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))
static void die(void) { kill(getpid(), SIGKILL), pause(); }

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset)
{
  int after, now = at("pwrite", &after);
  ssize_t got = NEXT(ssize_t, "pwrite", int, const void *, size_t, off_t)(fd, bytes, now ? n / 2 : n, offset);
  if (now) die();
  return got;
}
int fsync(int fd)
{
  int after, now = at("fsync", &after);
  if (now && !after) die();
  int got = NEXT(int, "fsync", int)(fd);
  if (now) die();
  return got;
}
int linkat(int from, const char *old, int to, const char *new, int flags)
{
  int after, now = to != AT_FDCWD && at("linkat", &after);
  if (now && !after) die();
  int got = NEXT(int, "linkat", int, const char *, int, const char *, int)(from, old, to, new, flags);
  if (now) die();
  return got;
}
int renameat(int from, const char *old, int to, const char *new)
{
  int after, now = to != AT_FDCWD && at("renameat", &after);
  if (now && !after) die();
  int got = NEXT(int, "renameat", int, const char *, int, const char *)(from, old, to, new);
  if (now) die();
  return got;
}
