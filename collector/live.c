/* live.c - the live-stats file and the final descriptor. See live.h. */
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../shm/layout.h"
#include "../shm/seqlock.h"
#include "guard.h"

#define FILE_BYTES (M6_STATS_PLACES_OFFSET + 2u * (size_t)M6_SNAPSHOT_LIVE_MAX)
#define RESERVE_STEP 65536u /* tmpfs pages are reserved so many bytes at a time */

static int make(struct m6_live *l, pid_t pid, uint64_t load_ns, uint32_t uid, int nameless)
{
  char path[128];
  memset(l, 0, sizeof *l);
  snprintf(l->file, sizeof l->file, M6_STATS_PREFIX "%d.%llx", (int)pid, (unsigned long long)load_ns);
  snprintf(path, sizeof path, M6_SEGMENT_DIR "/%s", l->file);
  unlink(path); /* a former collector's; if it is somebody else's this fails, and so does the next */
  /* Without a name at first: killed half-way, nothing is left. */
  l->fd = nameless ? open(M6_SEGMENT_DIR, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600)
                   : open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (l->fd < 0) return errno;
  int e = 0;
  flock(l->fd, LOCK_EX | LOCK_NB); /* says to m6_reap that it is in use */
  void *p = MAP_FAILED;
  if (fchmod(l->fd, 0600) != 0 || (geteuid() != uid && fchown(l->fd, uid, (gid_t)-1) != 0) ||
      ftruncate(l->fd, FILE_BYTES) != 0)
    e = errno;
  if (e == 0) e = posix_fallocate(l->fd, 0, M6_STATS_PLACES_OFFSET);
  if (e == 0) {
    p = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
    if (p == MAP_FAILED) e = errno;
  }
  if (e == 0) {
    l->head = p;
    l->head->version = M6_SNAPSHOT_VERSION;
    l->head->place_bytes = M6_SNAPSHOT_LIVE_MAX;
    l->head->collector_pid = (uint32_t)getpid();
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", l->fd);
    if (!nameless || linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) return 0;
    e = errno;
    munmap(p, FILE_BYTES);
    l->head = NULL;
  }
  if (!nameless) unlink(path);
  close(l->fd);
  l->fd = -1;
  return e;
}

int m6_live_open(struct m6_live *l, pid_t pid, uint64_t load_ns, uint32_t uid)
{
  int e = make(l, pid, load_ns, uid, 1);
  return e == 0 || e == ENOSPC ? e : make(l, pid, load_ns, uid, 0); /* no O_TMPFILE, or no /proc to name it by */
}

struct write {
  struct m6_live *l;
  uint32_t place;
  const void *block;
  size_t bytes;
  int ended;
};
static void write_place(void *arg)
{
  struct write *w = arg;
  struct m6_stats_head *h = w->l->head;
  uint64_t *to = (uint64_t *)((char *)h + M6_STATS_PLACES_OFFSET + w->place * (size_t)M6_SNAPSHOT_LIVE_MAX);
  m6_seqlock_write(&h->seq[w->place], to, w->block, w->bytes);
  if (w->ended) m6_poke(&h->ended, 1);
  m6_publish(&h->current, w->place);
  m6_publish(&h->magic, M6_STATS_MAGIC);
}

int m6_live_publish(struct m6_live *l, const void *block, size_t bytes, int ended)
{
  if (l->fd < 0 || l->head == NULL) return EBADF;
  if (bytes > M6_SNAPSHOT_LIVE_MAX) return E2BIG;
  struct write w = {l, l->published ? !l->current : 0, block, bytes, ended};
  size_t from = l->reserved[w.place];
  if (bytes > from) {
    size_t to = (bytes + RESERVE_STEP - 1) / RESERVE_STEP * RESERVE_STEP;
    if (to > M6_SNAPSHOT_LIVE_MAX) to = M6_SNAPSHOT_LIVE_MAX;
    int e = posix_fallocate(l->fd, (off_t)(M6_STATS_PLACES_OFFSET + w.place * (size_t)M6_SNAPSHOT_LIVE_MAX + from),
                            (off_t)(to - from));
    if (e) return e;
    l->reserved[w.place] = to;
  }
  /* The target's user may truncate the file under our feet. */
  if (m6_guarded(write_place, &w, l->head, FILE_BYTES) != 0) return EFAULT;
  l->current = w.place;
  l->published = 1;
  return 0;
}

int m6_live_watched(const struct m6_live *l)
{
  struct flock first = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  return l->fd >= 0 && fcntl(l->fd, F_OFD_GETLK, &first) == 0 && first.l_type != F_UNLCK;
}

void m6_live_close(struct m6_live *l)
{
  if (l->fd < 0 || l->head == NULL) return;
  char path[128];
  snprintf(path, sizeof path, M6_SEGMENT_DIR "/%s", l->file);
  unlink(path);
  munmap(l->head, FILE_BYTES);
  close(l->fd);
  l->head = NULL;
  l->fd = -1;
}

int m6_write_all(int fd, const void *data, size_t bytes)
{
  const char *p = data;
  while (bytes > 0) {
    ssize_t n = write(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    p += n;
    bytes -= (size_t)n;
  }
  return 0;
}
