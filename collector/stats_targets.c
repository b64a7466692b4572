/* stats_targets.c - see stats_targets.h. */
#include "stats_socket.h"
#include "stats_targets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../shm/clock.h"
#include "../shm/snapshot.h"
#include "stats_proc.h"

/* A segment of a run whose collector has not got to it yet is left alone for so long. */
#define RUN_GRACE_NS 10000000000ull
#define INITIAL_PIDNS 0xeffffffcu /* its inode, fixed by the kernel */
/* And a file that is only just being made, by whomever. */
#define FRESH_S 3

static int parse(const char *file, const char *prefix, pid_t *pid, uint64_t *load_ns)
{
  size_t n = strlen(prefix);
  if (strncmp(file, prefix, n) != 0 || file[n] < '1' || file[n] > '9' || strlen(file) >= 64) return 0;
  char *end;
  errno = 0;
  unsigned long p = strtoul(file + n, &end, 10);
  if (*end != '.' || p > INT32_MAX || errno) return 0;
  const char *hex = end + 1;
  if (strspn(hex, "0123456789abcdef") != strlen(hex) || *hex == 0) return 0;
  *load_ns = strtoull(hex, NULL, 16);
  *pid = (pid_t)p;
  return errno == 0;
}

int m6_target_parse(const char *file, pid_t *pid, uint64_t *load_ns)
{
  return parse(file, M6_SEGMENT_PREFIX, pid, load_ns);
}

static uint64_t own_pidns(void)
{
  struct stat st;
  return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

/* Is the process that a segment speaks of still the one with that pid? */
static int same_process(const struct m6_target *t, const struct m6_proc *p)
{
  return p->start_ns <= t->load_ns + m6_proc_tick_ns();
}

/* By the file's name alone. */
static int lives(const struct m6_target *t)
{
  struct m6_proc p;
  int e = m6_proc_read(t->pid, &p);
  if (e != 0) return e != ESRCH;
  return p.state != 'Z' && p.state != 'X' && same_process(t, &p);
}

/* Has its process become another program since? Where the shim noted so, and its memory is not mapped any more. */
static void judge_exec(struct m6_target *t)
{
  if (t->problem != M6_TARGET_FINE || !t->exec_inode || m6_proc_maps(t->pid, t->exec_inode) != 0) return;
  t->problem = M6_TARGET_STALE;
  t->alive = 0;
}

static void identify(struct m6_target *t, const struct m6_header *h)
{
  t->version = h->version;
  if (h->version != M6_LAYOUT_VERSION) { /* but line 0 keeps its place in all versions */
    uint64_t ours = own_pidns();
    t->problem = M6_TARGET_VERSION;
    t->alive = h->pidns == 0 || h->pidns != ours || lives(t);
    return;
  }
  t->state = h->state;
  t->pointer_bits = h->pointer_bits;
  t->unseen = h->unseen;
  t->sessions_allowed = h->sessions_allowed;
  t->sessions_started = h->sessions_started;
  t->run_token = h->run_token;
  memcpy(t->name, h->name, sizeof t->name);
  t->name[sizeof t->name - 1] = 0;
  uint64_t now = m6_monotonic_ns();
  if (h->collector_pid != 0 && h->heartbeat_ns != 0 && now - h->heartbeat_ns < M6_HEARTBEAT_LOST_MS * 1000000ull &&
      m6_proc_alive((pid_t)h->collector_pid))
    t->collector_pid = h->collector_pid;
  if (h->pid != (uint32_t)t->pid || h->load_ns != t->load_ns || h->size != M6_SEGMENT_BYTES ||
      h->header_bytes != sizeof *h || h->record_bytes != sizeof(struct m6_record)) {
    t->problem = M6_TARGET_INVALID;
    return;
  }
  uint64_t ours = own_pidns();
  if (ours != 0 && h->pidns != ours && (h->pidns != 0 || t->via != 0)) { /* elsewhere, unknown is not taken for ours */
    t->problem = M6_TARGET_NAMESPACE;
    t->pidns = h->pidns;
    return;
  }
  struct m6_proc p;
  int e = m6_proc_read(t->pid, &p);
  t->alive = e == 0 && p.state != 'Z' && p.state != 'X' && same_process(t, &p);
  if (e != 0 && e != ESRCH) { /* no /proc here: all that can be known is whether the pid is taken */
    t->alive = kill(t->pid, 0) == 0 || errno == EPERM;
    p.uid = p.euid = t->uid;
  }
  if (!t->alive) t->problem = M6_TARGET_STALE;
  else if (t->uid != p.uid && t->uid != p.euid) t->problem = M6_TARGET_INVALID;
}

void m6_target_path(const struct m6_target *t, char path[M6_TARGET_PATH])
{
  if (t->via) snprintf(path, M6_TARGET_PATH, "/proc/%d/root" M6_SEGMENT_DIR "/%s", (int)t->via, t->file);
  else snprintf(path, M6_TARGET_PATH, M6_SEGMENT_DIR "/%s", t->file);
}

void m6_target_look(const char *file, pid_t via, struct m6_target *t)
{
  memset(t, 0, sizeof *t);
  snprintf(t->file, sizeof t->file, "%s", file);
  t->via = via;
  t->problem = M6_TARGET_INVALID;
  if (!m6_target_parse(file, &t->pid, &t->load_ns)) return;
  char path[M6_TARGET_PATH];
  m6_target_path(t, path);
  struct stat st;
  int there = lstat(path, &st) == 0;
  if (there) t->uid = st.st_uid;
  t->mine = geteuid() == 0 || t->uid == geteuid();
  if (there && !S_ISREG(st.st_mode)) return; /* a link, a pipe, a folder: planted, and never opened */
  int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    t->error = errno;
    t->problem = M6_TARGET_UNREADABLE;
    t->alive = via || m6_proc_alive(t->pid); /* elsewhere the number says nothing */
    return;
  }
  struct m6_header h;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
    t->uid = st.st_uid;
    t->mine = geteuid() == 0 || t->uid == geteuid();
    ssize_t n = pread(fd, &h, sizeof h, 0);
    if (n < (ssize_t)sizeof h || h.magic == 0) {
      t->problem = M6_TARGET_UNFINISHED;
      t->alive = via || m6_proc_alive(t->pid);
    } else if (h.magic == M6_SEGMENT_MAGIC) {
      t->problem = M6_TARGET_FINE;
      identify(t, &h);
      t->exec_inode = h.exec & M6_EXEC_UNDER_WAY ? st.st_ino : 0;
      if (t->problem == M6_TARGET_FINE && st.st_size != M6_SEGMENT_BYTES) t->problem = M6_TARGET_INVALID;
    }
  }
  close(fd);
}

void m6_target_resolve(struct m6_target *t)
{
  struct m6_proc p;
  pid_t here = t->pidns ? m6_proc_in_namespace(t->pidns, t->pid) : -1;
  if (here < 0) return;
  t->alive = here > 0 && m6_proc_read(here, &p) == 0 && p.state != 'Z' && p.state != 'X' && same_process(t, &p);
  if (t->alive && t->uid != p.uid && t->uid != p.euid) return; /* planted */
  t->problem = t->alive ? M6_TARGET_FINE : M6_TARGET_STALE;
  if (t->alive) t->pid = here;
}

static int by_pid_then_newest(const void *a, const void *b)
{
  const struct m6_target *x = a, *y = b;
  if (x->pid != y->pid) return x->pid < y->pid ? -1 : 1;
  return x->load_ns < y->load_ns ? 1 : x->load_ns > y->load_ns ? -1 : 0;
}

struct gathered {
  struct m6_target *list;
  size_t count, room;
  int error;
};

static void gather(void *arg, const char *file, pid_t via)
{
  struct gathered *g = arg;
  pid_t pid;
  uint64_t load;
  if (g->error || !m6_target_parse(file, &pid, &load)) return;
  if (g->count == g->room) {
    size_t room = g->room ? 2 * g->room : 16;
    struct m6_target *more = realloc(g->list, room * sizeof *more);
    if (more == NULL) {
      g->error = ENOMEM;
      return;
    }
    g->list = more;
    g->room = room;
  }
  struct m6_target *t = &g->list[g->count++], inside;
  m6_target_look(file, via, t);
  inside = *t;
  if (t->problem == M6_TARGET_NAMESPACE) m6_target_resolve(&inside);
  if (inside.problem == M6_TARGET_FINE) *t = inside; /* of a container on this machine: it goes by its number here */
  judge_exec(t);
}

static int list_them(struct m6_target **list, size_t *count, int elsewhere)
{
  *list = NULL;
  *count = 0;
  DIR *d = opendir(M6_SEGMENT_DIR);
  if (d == NULL) return errno;
  struct gathered g = {NULL, 0, 0, 0};
  for (struct dirent *e; (e = readdir(d)) != NULL;) gather(&g, e->d_name, 0);
  closedir(d);
  if (elsewhere) m6_targets_elsewhere(gather, &g);
  if (g.error) {
    free(g.list);
    return g.error;
  }
  *list = g.list;
  *count = g.count;
  if (*count > 1) qsort(*list, *count, sizeof **list, by_pid_then_newest);
  for (size_t i = 0, newest = 0; i < *count; i++) { /* exec replaced these images; their pid lives on in the newest */
    struct m6_target *t = &(*list)[i], *n = &(*list)[newest];
    if (t->problem != M6_TARGET_FINE) continue;
    if (i > newest && n->problem == M6_TARGET_FINE && n->pid == t->pid) {
      t->problem = M6_TARGET_STALE;
      t->alive = 0;
    } else {
      newest = i;
    }
  }
  return 0;
}

int m6_targets_list(struct m6_target **list, size_t *count) { return list_them(list, count, 1); }
int m6_targets_list_here(struct m6_target **list, size_t *count) { return list_them(list, count, 0); }

/* Unlinks a file of ours that nobody holds a lock on. */
static int unlink_free(const struct m6_target *t, int young_is_kept)
{
  char path[M6_TARGET_PATH];
  struct stat st;
  m6_target_path(t, path);
  int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), gone = 0;
  if (fd < 0) return 0;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_uid == geteuid() || geteuid() == 0) &&
      (!young_is_kept || time(NULL) - st.st_mtime > FRESH_S) && flock(fd, LOCK_EX | LOCK_NB) == 0)
    gone = unlink(path) == 0;
  close(fd);
  return gone;
}

/* Whose live stats are these? 0: nobody's, or not told yet; -1 when that cannot be known. A collector puts its pid
 * there before anything is published, and so before the magic. */
static pid_t stats_collector(const char *file)
{
  char path[320];
  struct m6_stats_head h;
  snprintf(path, sizeof path, M6_SEGMENT_DIR "/%s", file);
  int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -1;
  ssize_t n = pread(fd, &h, sizeof h, 0);
  close(fd);
  if (n < (ssize_t)sizeof h || (h.magic != M6_STATS_MAGIC && h.magic != 0)) return 0;
  return h.collector_pid > INT32_MAX ? 0 : (pid_t)h.collector_pid;
}

/* Live stats are of use while their collector lives. The files of one collector, or (0) of all that are gone. */
static size_t reap_stats(pid_t collector)
{
  size_t gone = 0;
  DIR *d = opendir(M6_SEGMENT_DIR);
  struct dirent *e;
  while (d && (e = readdir(d)) != NULL) {
    pid_t pid;
    uint64_t load;
    if (!parse(e->d_name, M6_STATS_PREFIX, &pid, &load)) continue;
    pid_t of = stats_collector(e->d_name);
    struct m6_target stats = {.via = 0};
    snprintf(stats.file, sizeof stats.file, "%.63s", e->d_name);
    if (collector ? of == collector : of == 0 || (of > 0 && !m6_proc_alive(of)))
      gone += (size_t)unlink_free(&stats, of == 0); /* one without a name may be being made just now */
  }
  if (d) closedir(d);
  return gone;
}

size_t m6_reap_run(uint64_t token, pid_t collector)
{
  size_t gone = 0, count;
  struct m6_target *list;
  if (m6_targets_list(&list, &count) == 0) {
    for (size_t i = 0; i < count; i++) {
      const struct m6_target *t = &list[i];
      int known = t->problem == M6_TARGET_FINE || t->problem == M6_TARGET_STALE || t->problem == M6_TARGET_NAMESPACE;
      if (known && t->mine && t->run_token == token) gone += (size_t)unlink_free(t, 0);
    }
    free(list);
  }
  return gone + (collector > 0 ? reap_stats(collector) : 0);
}

size_t m6_reap(void)
{
  size_t gone = 0, count;
  struct m6_target *list;
  if (m6_targets_list(&list, &count) != 0) return 0;
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  uint64_t boot_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  int all_seen = own_pidns() == INITIAL_PIDNS; /* every process there is, so a namespace without one is gone */
  for (size_t i = 0; i < count; i++) {
    const struct m6_target *t = &list[i];
    int stale = t->problem == M6_TARGET_STALE ||
                ((t->problem == M6_TARGET_UNFINISHED || t->problem == M6_TARGET_VERSION) && !t->alive) ||
                (t->problem == M6_TARGET_NAMESPACE && t->pidns && all_seen && m6_proc_in_namespace(t->pidns, 0) == 0);
    if (!stale || !t->mine) continue;
    if (t->run_token != 0 && boot_ns < t->load_ns + RUN_GRACE_NS) continue;
    gone += (size_t)unlink_free(t, t->problem == M6_TARGET_UNFINISHED);
  }
  free(list);
  return gone + reap_stats(0) + m6_socket_reap();
}
