/* stats.c - find a target's live stats, copy a snapshot, walk its nodes. The public face is mach6_stats.h.
 *
 * Promise: a snapshot is copied once and then checked (stats_check.c); when a refresh fails, the snapshot before it
 * stays. The file is read with pread, never mapped: a writer that truncates it costs a short read and not a SIGBUS. The
 * sequence numbers around the copy are read the same way; each pread is a copy in program order, and the fence keeps it
 * so.
 * Calls: libc, stats_check.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../shm/order.h"
#include "stats_kernel.h"

#define TRIES 60
#define TRY_PAUSE_NS 2000000 /* a publication of the largest snapshot takes less */

/* ---- finding it -------------------------------------------------------------------------------------------------- */

/* Reads /proc/<pid>/<name> into out, NUL-terminated; its length, or -1. */
static ssize_t proc_read(pid_t pid, const char *name, char *out, size_t room)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t n = read(fd, out, room - 1);
  close(fd);
  if (n >= 0) out[n] = 0;
  return n;
}

/* When the process began, in ns of CLOCK_BOOTTIME (to a clock tick); 0 when it is gone or /proc is not there. */
static uint64_t process_start(pid_t pid)
{
  char text[1024], *p;
  if (proc_read(pid, "stat", text, sizeof text) <= 0 || !(p = strrchr(text, ')'))) return 0;
  unsigned long long ticks = 0;
  if (sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks) != 1)
    return 0;
  return ticks * (1000000000ull / (unsigned long long)sysconf(_SC_CLK_TCK));
}

/* May live stats of this process be trusted when they are `owner`'s? Root's, one's own, and the process's user's. */
static int owner_ok(pid_t pid, uid_t owner)
{
  char text[2048], *p;
  unsigned effective;
  if (owner == 0 || owner == geteuid()) return 1;
  return proc_read(pid, "status", text, sizeof text) > 0 && (p = strstr(text, "\nUid:")) &&
         sscanf(p + 5, "%*u %u", &effective) == 1 && effective == owner;
}

/* The newest live-stats file of `pid` that belongs to the process which has that pid now. */
static int find_file(pid_t pid, int *out)
{
  DIR *dir = opendir(M6_SEGMENT_DIR);
  if (!dir) return errno == ENOENT ? MACH6_ENOTFOUND : MACH6_ESYSTEM;
  char prefix[64];
  size_t n = (size_t)snprintf(prefix, sizeof prefix, M6_STATS_PREFIX "%d.", (int)pid);
  uint64_t start = process_start(pid), best = 0, tick = 1000000000ull / (unsigned long long)sysconf(_SC_CLK_TCK);
  int found = -1, denied = 0;
  for (struct dirent *e; (e = readdir(dir));) {
    char *end;
    if (strncmp(e->d_name, prefix, n) != 0) continue;
    unsigned long long load = strtoull(e->d_name + n, &end, 16);
    if (end == e->d_name + n || *end || load + tick < start || (found >= 0 && load < best)) continue;
    int fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || !owner_ok(pid, st.st_uid)) {
      if (fd < 0 && (errno == EACCES || errno == EPERM)) denied = 1;
      if (fd >= 0) close(fd);
      continue;
    }
    if (found >= 0) close(found);
    found = fd;
    best = load;
  }
  closedir(dir);
  *out = found;
  return found >= 0 ? MACH6_OK : denied ? MACH6_EPERM : MACH6_ENOTFOUND;
}

/* ---- copying it -------------------------------------------------------------------------------------------------- */

int m6_stats_adopt(mach6_stats *s, struct m6_snapshot *block, size_t bytes)
{
  int error = m6_snapshot_check(block, bytes);
  if (error) {
    free(block);
    return error;
  }
  const struct m6_snap_node *raw = m6_snap_nodes(block);
  size_t room = 1;
  for (uint32_t i = 0; i < block->node_count; i++) room += raw[i].label_bytes + 1u;
  struct mach6_node *nodes = calloc(block->node_count + 1u, sizeof *nodes);
  char *labels = malloc(room), *at = labels;
  if (!nodes || !labels) {
    free(nodes);
    free(labels);
    free(block);
    return MACH6_ENOMEM;
  }
  for (uint32_t i = 0; i < block->node_count; i++) {
    nodes[i] = (struct mach6_node){s, &raw[i], at};
    if (raw[i].label_bytes) memcpy(at, m6_snap_text(block) + raw[i].label_offset, raw[i].label_bytes);
    at += raw[i].label_bytes;
    *at++ = 0;
  }
  free(s->snap);
  free(s->nodes);
  free(s->labels);
  free(s->samples);
  s->snap = block;
  s->nodes = nodes;
  s->labels = labels;
  s->samples = m6_samples_below(s); /* without memory they are not shown */
  return MACH6_OK;
}

static int read_exactly(int fd, void *to, size_t n, off_t at)
{
  size_t done = 0;
  while (done < n) {
    ssize_t r = pread(fd, (char *)to + done, n - done, at + (off_t)done);
    if (r < 0 && errno == EINTR) continue;
    if (r < 0) return MACH6_ESYSTEM;
    if (r == 0) return MACH6_EINVALID;
    done += (size_t)r;
  }
  return MACH6_OK;
}

/* One try: MACH6_EBUSY when the writer was at it. A fault in the bytes counts only when they were at rest. */
static int try_refresh(mach6_stats *s)
{
  struct m6_stats_head head, after;
  uint64_t first[3]; /* magic, version and head_bytes, bytes */
  _Static_assert(offsetof(struct m6_snapshot, bytes) == 16, "the third word");
  int error = read_exactly(s->fd, &head, sizeof head, 0);
  if (error) return error;
  if (head.magic != M6_STATS_MAGIC) return head.magic ? MACH6_EINVALID : MACH6_EBUSY;
  if (head.version != M6_SNAPSHOT_VERSION) return MACH6_EVERSION;
  if (head.current > 1 || head.place_bytes > M6_SNAPSHOT_BYTES_MAX || head.place_bytes < sizeof first)
    return MACH6_EINVALID;
  uint64_t seq = head.seq[head.current];
  if (seq == 0 || seq & 1) return MACH6_EBUSY;
  off_t place = (off_t)(M6_STATS_PLACES_OFFSET + head.current * head.place_bytes);
  struct m6_snapshot *block = NULL;
  if (!(error = read_exactly(s->fd, first, sizeof first, place))) {
    if (first[2] < sizeof first || first[2] > head.place_bytes) error = MACH6_EINVALID;
    else if (!(block = malloc(first[2]))) return MACH6_ENOMEM;
    else error = read_exactly(s->fd, block, first[2], place);
  }
  m6_fence_acquire();
  int again = read_exactly(s->fd, &after, sizeof after, 0);
  if (error || again || after.seq[head.current] != seq) {
    free(block);
    return again ? again : after.seq[head.current] != seq ? MACH6_EBUSY : error;
  }
  if (!(error = m6_stats_adopt(s, block, first[2]))) s->ended = after.ended != 0;
  return error;
}

/* The collector need not know of us; the lock goes with the descriptor. */
static void say_we_look(mach6_stats *s)
{
  struct flock first = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
  if (s->snap && !s->said && fcntl(s->fd, F_OFD_SETLK, &first) == 0) s->said = 1;
}

int mach6_stats_refresh(mach6_stats *s)
{
  if (s->fd < 0) return MACH6_OK;
  say_we_look(s);
  int error = MACH6_EBUSY;
  for (int i = 0; i < TRIES && error == MACH6_EBUSY; i++) {
    if (i > 2) nanosleep(&(struct timespec){0, TRY_PAUSE_NS}, NULL);
    error = try_refresh(s);
  }
  return error;
}

/* ---- the handle -------------------------------------------------------------------------------------------------- */

static int open_with(mach6_stats *s, int error, mach6_stats **out)
{
  if (error) {
    int keep = errno;
    mach6_stats_close(s);
    errno = keep;
    return error;
  }
  *out = s;
  return MACH6_OK;
}

int mach6_stats_open(pid_t pid, mach6_stats **out)
{
  *out = NULL;
  mach6_stats *s = calloc(1, sizeof *s);
  if (!s) return MACH6_ENOMEM;
  s->fd = -1;
  s->pid = pid;
  int error = find_file(pid, &s->fd);
  return open_with(s, error ? error : mach6_stats_refresh(s), out);
}

int mach6_stats_open_fd(int fd, mach6_stats **out)
{
  *out = NULL;
  struct stat st;
  if (fstat(fd, &st)) return MACH6_ESYSTEM;
  if (st.st_size == 0) return MACH6_ENOTFOUND;
  if (st.st_size > M6_SNAPSHOT_BYTES_MAX) return MACH6_EINVALID;
  mach6_stats *s = calloc(1, sizeof *s);
  struct m6_snapshot *block = malloc((size_t)st.st_size);
  if (!s || !block) {
    free(s);
    free(block);
    return MACH6_ENOMEM;
  }
  s->fd = -1;
  s->ended = 1;
  int error = read_exactly(fd, block, (size_t)st.st_size, 0);
  if (error) free(block);
  else if (!(error = m6_stats_adopt(s, block, (size_t)st.st_size))) s->pid = (pid_t)s->snap->pid;
  return open_with(s, error, out);
}

int mach6_stats_ended(const mach6_stats *s)
{
  struct stat st;
  return s->ended || (s->fd >= 0 && (fstat(s->fd, &st) || st.st_nlink == 0));
}

void mach6_stats_close(mach6_stats *s)
{
  if (!s) return;
  if (s->fd >= 0) close(s->fd);
  free(s->snap);
  free(s->nodes);
  free(s->labels);
  free(s->samples);
  free(s);
}

const char *mach6_stats_strerror(int error)
{
  static const char *const text[] = {
    [-MACH6_OK] = "no error",
    [-MACH6_ENOTFOUND] = "no live stats: nobody captures this process",
    [-MACH6_EPERM] = "the live stats are another user's",
    [-MACH6_EVERSION] = "the live stats were written by another version of mach6",
    [-MACH6_EINVALID] = "the live stats are damaged: no collector wrote them like that",
    [-MACH6_EBUSY] = "the live stats are not readable yet: their writer is at it, or died at it",
    [-MACH6_ENOMEM] = "out of memory",
    [-MACH6_ESYSTEM] = "the system refused a call (see errno)",
  };
  return error <= 0 && error >= MACH6_ESYSTEM ? text[-error] : "unknown error";
}

/* Here, not in stats_load.c: what shows a snapshot need not be able to read dumps. */
int m6_stats_not_whole(const mach6_stats *s, char *out, size_t room)
{
  const struct mach6_dump_info *d = &s->dump;
  uint64_t overwritten = s->snap->frames_overwritten;
  size_t n = 0;
  *out = 0;
  if (s->from_dump ? d->whole : !overwritten) return 0;
#define SAY(...) n += n < room ? (size_t)snprintf(out + n, room - n, __VA_ARGS__) : 0
  SAY("This is not the whole recording: ");
  if (overwritten) SAY("the oldest %" PRIu64 " frame records were overwritten by later ones; ", overwritten);
  if (d->left_out) SAY("%" PRIu64 " rows did not fit into the dump; ", d->left_out);
  if (d->broke_why)
    SAY("the dump is damaged at byte %" PRIu64 " (%s), what comes before is shown; ", d->broke_at, d->broke_why);
#undef SAY
  n = strlen(out);
  if (n > 2) strcpy(out + n - 2, ".");
  return 1;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static const mach6_node *node_at(const mach6_node *n, uint32_t index) { return index ? &n->of->nodes[index] : NULL; }

const mach6_node *mach6_stats_root(const mach6_stats *s) { return s->nodes; }
const struct m6_snapshot *mach6_stats_snapshot(const mach6_stats *s) { return s->snap; }
const mach6_node *mach6_node_first_child(const mach6_node *n) { return node_at(n, n->raw->first_child); }
const mach6_node *mach6_node_next_sibling(const mach6_node *n) { return node_at(n, n->raw->next_sibling); }
const char *mach6_node_label(const mach6_node *n) { return n->label; }

const mach6_node *mach6_node_find(const mach6_node *n, const char *label)
{
  for (const mach6_node *c = mach6_node_first_child(n); c; c = mach6_node_next_sibling(c))
    if (!strcmp(c->label, label)) return c;
  return NULL;
}

struct mach6_node_stats mach6_node_stats(const mach6_node *n)
{
  const struct m6_snap_node *r = n->raw;
  int64_t net;
  if (__builtin_add_overflow(r->d_sum, r->i_sum, &net)) net = r->d_sum < 0 ? INT64_MIN : INT64_MAX;
  int sampled = r->count && r->reservoir;
  double count = r->count ? (double)r->count : NAN;
  return (struct mach6_node_stats){
    .count = r->count,
    .time_avg = (double)r->time_sum / 1e9 / count,
    .time_p10 = sampled ? (double)r->time_p10 / 1e9 : NAN,
    .time_p50 = sampled ? (double)r->time_p50 / 1e9 : NAN,
    .time_p90 = sampled ? (double)r->time_p90 / 1e9 : NAN,
    .time_max = r->count ? (double)r->time_max / 1e9 : NAN,
    .mem_delta_avg = (double)r->d_sum / 1024 / count,
    .mem_delta_total = (double)r->d_sum / 1024,
    .inverse_mem_total = (double)r->i_sum / 1024,
    .mem_net = (double)net / 1024,
    .inverse_is_measure = r->kind == M6_NODE_FRAME || r->kind == M6_NODE_STARTUP,
    .allocs = r->allocs,
    .abandoned = r->abandoned,
    .lost = r->lost,
  };
}
