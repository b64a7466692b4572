/* save.c - see save.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"
#include "save.h"
#include "tool.h"

/* Is it something that cannot be replaced by a rename? */
static int direct(const char *path)
{
  struct stat st;
  return !strcmp(path, "-") || (!stat(path, &st) && !S_ISREG(st.st_mode));
}

int save_is_file(const char *path) { return !direct(path); }

/* A link keeps pointing: what it points to is replaced. */
static int temporary(const char *path, char *whole, char *temp)
{
  if (!realpath(path, whole)) snprintf(whole, PATH_MAX, "%s", path);
  char *slash = strrchr(whole, '/');
  int dir = slash ? (int)(slash - whole) + 1 : 0;
  if (snprintf(temp, PATH_MAX, "%.*s.mach6-XXXXXX", dir, whole) >= PATH_MAX) return errno = ENAMETOOLONG, -1;
  return mkostemp(temp, O_CLOEXEC);
}

int save_check(const char *option, const char *path)
{
  char whole[PATH_MAX], temp[PATH_MAX];
  struct stat st;
  if (!stat(path, &st) && S_ISDIR(st.st_mode))
    return say("%s %s: that is a folder; name a file in it", option, path), -1;
  if (direct(path)) {
    if (!strcmp(path, "-") || !access(path, W_OK)) return 0;
    return say("%s %s: %s", option, path, strerror(errno)), -1;
  }
  if (!*path || strlen(path) >= PATH_MAX - 16) return say("%s: '%s' is no name for a file", option, path), -1;
  int fd = temporary(path, whole, temp);
  if (fd < 0) return say("%s %s: nothing can be written there: %s", option, path, strerror(errno)), -1;
  close(fd);
  unlink(temp);
  return 0;
}

/* Where a file is, or would be made. */
static int place(const char *path, char whole[PATH_MAX])
{
  char folder[PATH_MAX], real[PATH_MAX];
  if (realpath(path, whole)) return 1;
  const char *slash = strrchr(path, '/');
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
  return realpath(folder, real) && snprintf(whole, PATH_MAX, "%s/%s", real, slash ? slash + 1 : path) < PATH_MAX;
}

int save_same(const char *a, const char *b)
{
  char whole_a[PATH_MAX], whole_b[PATH_MAX];
  struct stat st;
  if (!strcmp(a, "-") || !strcmp(b, "-")) return !strcmp(a, b);
  if (!stat(a, &st) && S_ISCHR(st.st_mode)) return 0;
  return place(a, whole_a) && place(b, whole_b) && !strcmp(whole_a, whole_b);
}

static int write_all(int fd, const char *bytes, size_t n)
{
  while (n) {
    ssize_t done = write(fd, bytes, n);
    if (done < 0 && errno == EINTR && !launch_impatient()) continue;
    if (done <= 0) return -1;
    bytes += done;
    n -= (size_t)done;
  }
  return 0;
}

int save(const char *option, const char *path, const char *bytes, size_t n)
{
  char whole[PATH_MAX], temp[PATH_MAX] = "";
  int plain = direct(path), is_out = !strcmp(path, "-");
  void (*at_limit)(int) = signal(SIGXFSZ, SIG_IGN); /* a file-size limit is an error like others */
  int fd = is_out ? STDOUT_FILENO : plain ? open(path, O_WRONLY | O_CLOEXEC) : temporary(path, whole, temp);
  int failed = fd < 0 || write_all(fd, bytes, n);
  if (!failed && !plain) {
    mode_t mask = umask(0);
    umask(mask);
    struct stat st;
    failed = fchmod(fd, stat(whole, &st) ? 0666 & ~mask : st.st_mode & 07777) || fsync(fd) || rename(temp, whole);
  }
  int error = errno;
  if (fd >= 0 && !is_out && close(fd) && !failed) failed = 1, error = errno;
  if (failed && *temp) unlink(temp);
  signal(SIGXFSZ, at_limit);
  if (failed) say("%s %s: could not be written: %s", option, path, strerror(error));
  return failed ? -1 : 0;
}
