/* dump_write.c - see dump_write.h. The steps are a table: each starts one operation, and the next begins when it is
 * done. */
#include "dump_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dump.h"
#include "dump_io.h"

enum step { WRITING, SYNCING, RENAMING, SETTLING, OVER };

struct m6_dump {
  struct m6_encoder *encoder;
  struct m6_io *io;
  enum step step;
  int fd, folder, refused, error;
  const char *tried;
  char name[NAME_MAX + 1]; /* of the target in the folder */
  char temp[NAME_MAX + 1]; /* "": it has no name yet */
  char self[64];           /* the nameless file's, by which it can be linked */
  char *object;            /* a copy of the one that is being written: the next is encoded meanwhile */
  size_t object_bytes, object_room, object_done;
  const char *ahead; /* the next one; NULL: not encoded yet */
  ssize_t ahead_bytes;
  uint64_t at, largest;
};

/* The folder and the name of what `path` is or points to; 0 or an errno. */
static int split(const char *path, char whole[PATH_MAX], char **name)
{
  struct stat st;
  if (stat(path, &st) == 0) {
    if (S_ISDIR(st.st_mode)) return EISDIR;
    if (!S_ISREG(st.st_mode)) return EINVAL;
    if (realpath(path, whole) == NULL) return errno;
  } else {
    if (errno != ENOENT) return errno;
    if (*path == 0 || path[strlen(path) - 1] == '/') return EINVAL;
    if (snprintf(whole, PATH_MAX, "%s%s", strchr(path, '/') ? "" : "./", path) >= PATH_MAX) return ENAMETOOLONG;
  }
  char *slash = strrchr(whole, '/');
  *name = slash + 1;
  if (strlen(*name) + 16 > NAME_MAX) return ENAMETOOLONG;
  return 0;
}

/* A name that nobody else takes. */
static int temporary(struct m6_dump *d, int create, mode_t mode)
{
  for (int i = 0; i < 100; i++) {
    uint32_t tail;
    if (getrandom(&tail, sizeof tail, 0) != sizeof tail) tail = (uint32_t)getpid() * 100 + (uint32_t)i;
    snprintf(d->temp, sizeof d->temp, ".%.*s.mach6-%08x", NAME_MAX - 20, d->name, tail);
    if (create) d->fd = openat(d->folder, d->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (create ? d->fd >= 0 : faccessat(d->folder, d->temp, F_OK, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    if (create && errno != EEXIST) break;
  }
  int e = create ? errno : EEXIST;
  d->temp[0] = 0;
  return e;
}

/* What a collector that was killed between naming and renaming has left beside this name: a file that nobody has
 * locked. */
static void clear_away(const struct m6_dump *d)
{
  char start[NAME_MAX + 1];
  int n = snprintf(start, sizeof start, ".%.*s.mach6-", NAME_MAX - 20, d->name);
  int fd = openat(d->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  if (dir == NULL && fd >= 0) close(fd);
  for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
    struct stat st;
    if (strncmp(e->d_name, start, (size_t)n) != 0 || strspn(e->d_name + n, "0123456789abcdef") != 8 || e->d_name[n + 8])
      continue;
    int left = openat(d->folder, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (left < 0) continue;
    if (fstat(left, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && flock(left, LOCK_EX | LOCK_NB) == 0)
      unlinkat(d->folder, e->d_name, 0);
    close(left);
  }
  if (dir) closedir(dir);
}

/* Opens folder and file, which is locked as long as it is open: clear_away() leaves it. */
static int place(struct m6_dump *d, const char *path)
{
  char whole[PATH_MAX], *name = whole;
  struct stat st;
  int e = split(path, whole, &name);
  if (e) return e;
  memcpy(d->name, name, strlen(name) + 1); /* its length was checked */
  name[0] = 0;
  d->folder = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (d->folder < 0) return errno;
  clear_away(d);
  mode_t mode = fstatat(d->folder, d->name, &st, 0) == 0 ? st.st_mode & 0777 : 0666;
  d->fd = openat(d->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (d->fd >= 0) {
    flock(d->fd, LOCK_EX | LOCK_NB);
    if (mode != 0666) fchmod(d->fd, mode);
    snprintf(d->self, sizeof d->self, "/proc/self/fd/%d", d->fd);
    if (access(d->self, F_OK) == 0) return 0;
    close(d->fd); /* no /proc: it could never be named */
    d->fd = -1;
    d->self[0] = 0;
  }
  for (int i = 0;; i++) {
    if ((e = temporary(d, 1, mode)) != 0 || i == 3) return e;
    flock(d->fd, LOCK_EX | LOCK_NB);
    if (fstat(d->fd, &st) != 0 || st.st_nlink != 0) return 0;
    close(d->fd); /* another one took it for a leftover, in the moment before it was locked */
    d->fd = -1;
  }
}

static void leave(struct m6_dump *d)
{
  if (d->temp[0]) unlinkat(d->folder, d->temp, 0);
  if (d->fd >= 0) close(d->fd);
  if (d->folder >= 0) close(d->folder);
}

int m6_dump_check(const char *path)
{
  struct m6_dump d = {.fd = -1, .folder = -1};
  int e = place(&d, path);
  leave(&d);
  return e;
}

int m6_dump_begin(const struct m6_snapshot *block, const struct m6_dump_options *o, struct m6_dump **out)
{
  *out = NULL;
  struct m6_dump *d = calloc(1, sizeof *d);
  if (d == NULL) return ENOMEM;
  d->fd = d->folder = -1;
  int e = place(d, o->path);
  if (e == 0 && (d->encoder = m6_dump_encoder(block, o->most, o->object)) == NULL) e = ENOMEM;
  if (e == 0 && (d->io = m6_io_open(o->plain, &d->refused)) == NULL) e = errno ? errno : ENOMEM;
  if (e) {
    m6_dump_end(d);
    return e;
  }
  *out = d;
  return 0;
}

static enum m6_dump_state fail(struct m6_dump *d, const char *tried, int error)
{
  d->error = error;
  d->tried = tried;
  d->step = OVER;
  return M6_DUMP_FAILED;
}

static int encode_ahead(struct m6_dump *d)
{
  if (d->ahead) return 0;
  d->ahead_bytes = m6_dump_next(d->encoder, &d->ahead);
  if (d->ahead_bytes < 0) return ENOMEM;
  if (d->ahead_bytes == 0) d->ahead = "";
  return 0;
}

static void write_rest(struct m6_dump *d)
{
  m6_io_start(d->io, &(struct m6_io_op){.what = M6_IO_WRITE,
                                        .fd = d->fd,
                                        .bytes = d->object + d->object_done,
                                        .n = d->object_bytes - d->object_done,
                                        .at = (off_t)d->at});
}

/* The next object's write, or the sync when that was the last. */
static int write_next(struct m6_dump *d)
{
  int e = encode_ahead(d);
  if (e) return e;
  if (d->ahead_bytes == 0) {
    d->step = SYNCING;
    m6_io_start(d->io, &(struct m6_io_op){.what = M6_IO_SYNC, .fd = d->fd});
    return 0;
  }
  if ((size_t)d->ahead_bytes > d->object_room) {
    char *more = realloc(d->object, (size_t)d->ahead_bytes);
    if (more == NULL) return ENOMEM;
    d->object = more;
    d->object_room = (size_t)d->ahead_bytes;
  }
  memcpy(d->object, d->ahead, (size_t)d->ahead_bytes);
  d->object_bytes = (size_t)d->ahead_bytes;
  d->object_done = 0;
  if (d->object_bytes > d->largest) d->largest = d->object_bytes;
  d->ahead = NULL;
  write_rest(d);
  return 0;
}

static void rename_it(struct m6_dump *d)
{
  d->step = RENAMING;
  m6_io_start(d->io, &(struct m6_io_op){.what = d->self[0] ? M6_IO_NAME : M6_IO_RENAME,
                                        .fd = d->folder,
                                        .from = d->self,
                                        .temp = d->temp,
                                        .to = d->name});
}

/* What follows an operation that is done. */
static enum m6_dump_state advance(struct m6_dump *d, ssize_t result)
{
  static const char *const tried[] = {"write", "sync", "rename", "sync the folder"};
  int e = 0;
  if (result < 0 && !(d->step == SETTLING && (result == -EINVAL || result == -EOPNOTSUPP || result == -EBADF)))
    return fail(d, tried[d->step], (int)-result); /* some file systems cannot sync a folder; the file is in its place */
  switch (d->step) {
  case WRITING:
    if (result == 0 && d->object_bytes) return fail(d, tried[WRITING], ENOSPC);
    d->at += (uint64_t)result;
    d->object_done += (size_t)result;
    if (d->object_done < d->object_bytes) write_rest(d);
    else e = write_next(d);
    return e ? fail(d, tried[WRITING], e) : M6_DUMP_BUSY;
  case SYNCING:
    if (d->self[0] && (e = temporary(d, 0, 0)) != 0) return fail(d, "name", e);
    rename_it(d);
    return M6_DUMP_BUSY;
  case RENAMING:
    d->temp[0] = 0;
    d->step = SETTLING;
    m6_io_start(d->io, &(struct m6_io_op){.what = M6_IO_SYNC, .fd = d->folder});
    return M6_DUMP_BUSY;
  default: d->step = OVER; return M6_DUMP_DONE;
  }
}

static enum m6_dump_state turn(struct m6_dump *d, int wait)
{
  ssize_t result;
  if (d->step == OVER) return d->error ? M6_DUMP_FAILED : M6_DUMP_DONE;
  if (d->object == NULL) { /* the first turn */
    int e = write_next(d);
    return e ? fail(d, "write", e) : M6_DUMP_BUSY;
  }
  if (m6_io_poll(d->io, wait, &result)) return advance(d, result);
  int e = d->step == WRITING ? encode_ahead(d) : 0;
  return e ? fail(d, "write", e) : M6_DUMP_BUSY;
}

enum m6_dump_state m6_dump_poll(struct m6_dump *d) { return turn(d, 0); }

enum m6_dump_state m6_dump_finish(struct m6_dump *d, int (*stop)(void *), void *arg)
{
  enum m6_dump_state s;
  while ((s = turn(d, stop == NULL)) == M6_DUMP_BUSY) {
    if (stop == NULL) continue;
    if (stop(arg)) return fail(d, "finish", EINTR);
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  }
  return s;
}

int m6_dump_error(const struct m6_dump *d, const char **tried)
{
  *tried = d->tried ? d->tried : "write";
  return d->error;
}
uint64_t m6_dump_bytes(const struct m6_dump *d) { return d->at; }
uint64_t m6_dump_largest(const struct m6_dump *d) { return d->largest; }
uint64_t m6_dump_lacking(const struct m6_dump *d) { return m6_dump_left_out(d->encoder); }
int m6_dump_refused(const struct m6_dump *d) { return d->refused; }

void m6_dump_end(struct m6_dump *d)
{
  if (d == NULL) return;
  m6_io_close(d->io); /* a rename that is under way is waited for: then its temporary name is gone */
  leave(d);
  m6_dump_encoder_free(d->encoder);
  free(d->object);
  free(d);
}
