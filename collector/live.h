/* live.h - a snapshot to whoever reads it: the live-stats file (shm/snapshot.h has its layout), and any descriptor.
 *
 * The file is made by m6_live_open, belongs to the target's user, and is removed by m6_live_close.
 * Promise: a full /dev/shm is an error code and a missed publication, never a SIGBUS; a reader never sees a
 * half-written snapshot; a collector that is killed while it makes the file leaves none. Callers: outlets.c. One
 * thread.
 */
#ifndef M6_LIVE_H
#define M6_LIVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../shm/snapshot.h"

struct m6_live {
  char file[64]; /* its name below M6_SEGMENT_DIR */
  int fd;        /* -1: none */
  struct m6_stats_head *head;
  uint32_t current, published;
  size_t reserved[2]; /* bytes of each place that have memory */
};
/* 0 or an errno; ENOSPC: /dev/shm is full. `load_ns`: when the target loaded the shim, as in its segment's header. */
int m6_live_open(struct m6_live *l, pid_t pid, uint64_t load_ns, uint32_t uid);
/* 0 or an errno: E2BIG when it is more than M6_SNAPSHOT_LIVE_MAX, ENOSPC, EFAULT when somebody cut the file, EBADF when
 * there is none. After an error readers keep what was published before. `ended`: nothing comes after this one. */
int m6_live_publish(struct m6_live *l, const void *block, size_t bytes, int ended);
int m6_live_watched(const struct m6_live *l); /* does somebody look more than once? */
void m6_live_close(struct m6_live *l);

/* All of it, to a pipe, file or memfd: 0 or an errno. */
int m6_write_all(int fd, const void *data, size_t bytes);

#endif
