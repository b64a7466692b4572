/* kernel_samples.c - the sampler's common part: threads and their events, known stacks, the choice of a tier.
 *
 * Promise: every thread that existed when the sampler was opened, and every one created since, is sampled once,
 * whatever was created while the events were being opened (see m6_samples_attach). Whatever could not be opened is
 * named with its errno. May call its two tiers, the kernel, and nothing else of the collector.
 */
#include "kernel_samples_parts.h"
#include "hash_free.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define ATTACH_TRIES 5

const char *m6_samples_tier_name(enum m6_samples_tier tier)
{
  static const char *const names[] = {"off", "in the kernel (BPF)", "perf ring buffers"};
  return names[tier];
}

void m6_samples_refuse(struct m6_samples *s, const char *what, enum m6_area area, int error, uint32_t tid)
{
  struct m6_samples_status *st = &s->st;
  for (uint32_t i = 0; i < st->refusals; i++) {
    if (st->refused[i].what == what && st->refused[i].error == error) {
      st->refused[i].times++;
      return;
    }
  }
  if (st->refusals < M6_REFUSALS)
    st->refused[st->refusals++] = (struct m6_refusal){
      .what = what, .area = area, .error = error, .tid = tid, .times = 1};
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

int m6_perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu, int group)
{
  return (int)syscall(SYS_perf_event_open, attr, tid, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

/* cpu-clock is a timer of the kernel's, which runs while the thread does: it is there on every machine. */
void m6_samples_attr(const struct m6_samples *s, struct perf_event_attr *attr)
{
  *attr = (struct perf_event_attr){
    .type = PERF_TYPE_SOFTWARE,
    .size = sizeof *attr,
    .config = PERF_COUNT_SW_CPU_CLOCK,
    .sample_period = s->o.period_us * 1000ull,
    .disabled = 1,
    .inherit = 1,
    .inherit_thread = 1,
  };
}

int m6_samples_add_event(struct m6_samples *s, int fd)
{
  struct m6_events *v = &s->events;
  if (v->n == v->room) {
    uint32_t room = v->room ? v->room * 2 : 64;
    int *more = realloc(v->fd, room * sizeof *more);
    if (!more) {
      close(fd);
      return ENOMEM;
    }
    v->fd = more, v->room = room;
  }
  v->fd[v->n++] = fd;
  return 0;
}

void m6_samples_detach(struct m6_samples *s)
{
  for (uint32_t i = 0; i < s->events.n; i++) close(s->events.fd[i]);
  free(s->events.fd);
  s->events = (struct m6_events){0};
}

static int by_value(const void *a, const void *b)
{
  pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
  return (x > y) - (x < y);
}

/* The target's threads, sorted; the caller frees. A leader that has ended still lists the others. */
static int list_threads(pid_t pid, pid_t **out, uint32_t *count)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *d = opendir(path);
  if (!d) return errno == ENOENT ? ESRCH : errno;
  pid_t *tids = NULL;
  uint32_t n = 0, room = 0;
  int e = 0;
  for (struct dirent *entry; (entry = readdir(d));) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    if (n == room) {
      room = room ? room * 2 : 64;
      pid_t *more = realloc(tids, room * sizeof *more);
      if (!more) {
        e = ENOMEM;
        break;
      }
      tids = more;
    }
    tids[n++] = (pid_t)strtol(entry->d_name, NULL, 10);
  }
  closedir(d);
  if (!e && !n) e = ESRCH;
  if (e) {
    free(tids);
    return e;
  }
  qsort(tids, n, sizeof *tids, by_value);
  *out = tids, *count = n;
  return 0;
}

static int any_new(const pid_t *before, uint32_t nb, const pid_t *after, uint32_t na)
{
  for (uint32_t i = 0; nb && i < na; i++)
    if (!bsearch(&after[i], before, nb, sizeof *before, by_value)) return 1;
  return 0;
}

static void raise_descriptors(void)
{
  struct rlimit l;
  if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= 8192) return;
  l.rlim_cur = l.rlim_max < 8192 ? l.rlim_max : 8192;
  setrlimit(RLIMIT_NOFILE, &l);
}

/* A thread that appears while the events are opened either inherited one (its creator had one already) or has none, and
 * from outside one cannot tell: an event for it would sample some twice, none would miss some. So when the list has
 * grown, everything is closed and done again. With threads coming faster than that for ATTACH_TRIES rounds, those that
 * came during the last are taken to have inherited, and it is said. */
int m6_samples_attach(struct m6_samples *s, int (*open_one)(struct m6_samples *s, pid_t tid))
{
  raise_descriptors();
  for (int try = 1;; try++) {
    pid_t *before = NULL, *after = NULL;
    uint32_t nb = 0, na = 0;
    int e = list_threads(s->o.pid, &before, &nb);
    if (e) {
      m6_samples_refuse(s, "list the threads", M6_AREA_PROC, e, (uint32_t)s->o.pid);
      return e;
    }
    int first = 0;
    s->st.threads = 0;
    for (uint32_t i = 0; i < nb; i++) {
      e = open_one(s, before[i]);
      if (!e) s->st.threads++;
      else if (!first || first == ESRCH) first = e;
      if (e && e != ESRCH)
        m6_samples_refuse(s, s->st.kernel_mode ? "open a cpu-clock event, kernel included" : "open a cpu-clock event",
                          s->st.kernel_mode ? M6_AREA_PERF_KERNEL : M6_AREA_PERF_SELF, e, (uint32_t)before[i]);
      if (e == EMFILE || e == ENFILE || e == EACCES || e == EPERM) break; /* so it will be for the others */
    }
    e = list_threads(s->o.pid, &after, &na);
    int grown = !e && any_new(before, nb, after, na);
    free(before);
    free(after);
    if (!s->st.threads) {
      m6_samples_detach(s);
      return first ? first : ESRCH;
    }
    if (!grown) return 0;
    if (try == ATTACH_TRIES) {
      m6_samples_refuse(s, "see every thread (they come too fast)", M6_AREA_NONE, EAGAIN, 0);
      return 0;
    }
    m6_samples_detach(s);
  }
}

static uint64_t cpu_time(const struct m6_samples *s)
{
  struct timespec t;
  return clock_gettime(s->clock, &t) ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void enable(struct m6_samples *s)
{
  s->cpu_begun = clock_getcpuclockid(s->o.pid, &s->clock) ? 0 : cpu_time(s);
  for (uint32_t i = 0; i < s->events.n; i++) ioctl(s->events.fd[i], PERF_EVENT_IOC_ENABLE, 0);
}

/* ---- stacks and threads ------------------------------------------------------------------------------------------ */

struct m6_known_stack *m6_samples_keep(struct m6_samples *s, uint64_t id, const uint64_t *ip, uint32_t frames)
{
  struct m6_known_stack *k = malloc(sizeof *k + frames * sizeof *ip);
  if (!k) return NULL;
  k->id = id, k->frames = frames;
  memcpy(k->ip, ip, frames * sizeof *ip);
  HASH_ADD(hh, s->stacks, id, sizeof k->id, k);
  return k;
}

const uint64_t *m6_samples_stack(struct m6_samples *s, uint64_t id, uint32_t *frames)
{
  *frames = 0;
  static const uint64_t not_kept[1] = {M6_STACK_LOST};
  if (id == M6_STACK_NONE) return NULL;
  if (id == M6_STACK_LOST) {
    *frames = 1;
    return not_kept;
  }
  struct m6_known_stack *k;
  HASH_FIND(hh, s->stacks, &id, sizeof id, k);
  if (!k && s->st.tier == M6_SAMPLES_BPF) k = m6_samples_bpf_stack(s, id);
  if (!k) return NULL;
  *frames = k->frames;
  return k->ip;
}

const char *m6_samples_thread(struct m6_samples *s, uint32_t tid)
{
  char *name = s->name;
  struct m6_known_thread *t;
  name[0] = 0;
  if (s->st.tier == M6_SAMPLES_BPF) {
    m6_samples_bpf_thread(s, tid, name);
  } else {
    HASH_FIND(hh, s->threads, &tid, sizeof tid, t);
    if (t) memcpy(name, t->name, sizeof t->name);
  }
  name[sizeof s->name - 1] = 0;
  return name;
}

/* The target's pid namespace as the kernel program asks for it; inode 0 when it cannot be told: then numbers are
 * global. */
void m6_samples_pidns(pid_t pid, uint64_t *dev, uint64_t *ino)
{
  char path[64];
  struct stat st;
  *dev = *ino = 0;
  snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
  if (stat(path, &st)) return;
  /* The kernel's own encoding of a device number, with 20 bits for the minor. */
  *dev = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev);
  *ino = st.st_ino;
}

/* ---- the interface ------------------------------------------------------------------------------------------------
 * */

static int open_in_kernel(struct m6_samples *s)
{
  if (s->o.flags & M6_SAMPLES_WITHOUT_BPF) return ENOTSUP;
  int e = m6_samples_bpf_open(s);
  if (e) m6_samples_bpf_close(s);
  return e;
}

int m6_samples_open(const struct m6_samples_options *o, struct m6_samples **out, struct m6_samples_status *why)
{
  *out = NULL;
  struct m6_samples *s = calloc(1, sizeof *s);
  if (!s) return ENOMEM;
  s->o = *o;
  uint32_t least = M6_SAMPLES_PERIOD_MIN_MS * 1000u, most = M6_SAMPLES_PERIOD_MAX_MS * 1000u;
  if (s->o.period_us < least) s->o.period_us = least;
  if (s->o.period_us > most) s->o.period_us = most;
  s->st.period_us = s->o.period_us;
  if (!s->o.retained || s->o.retained > M6_SAMPLES_RETAINED) s->o.retained = M6_SAMPLES_RETAINED;
  s->program = -1;
  int e = ENOTSUP;
#if !defined(__x86_64__)
  if (s->o.unwind) m6_samples_refuse(s, "unwind stacks on this architecture", M6_AREA_NONE, ENOTSUP, 0);
  s->o.unwind = NULL;
#endif
  /* The kernel cannot unwind: with `unwind` its tier is the second choice. A target that is gone is gone for the other
   * tier, too. */
  if (!s->o.unwind) e = open_in_kernel(s);
  if (e && e != ESRCH) {
    e = m6_samples_perf_open(s);
    if (e) m6_samples_perf_close(s);
    else s->st.unwound = s->o.unwind != NULL;
  }
  if (e && e != ESRCH && s->o.unwind) {
    s->o.unwind = NULL;
    e = open_in_kernel(s);
  }
  if (!e) enable(s);
  if (why) *why = s->st;
  if (e) {
    m6_samples_close(s);
    return e;
  }
  *out = s;
  return 0;
}

/* Until the sampler was stopped, or the process was last seen. */
static void note_cpu_time(struct m6_samples *s)
{
  uint64_t now = s->stopped || s->cpu_rested || !s->cpu_begun ? 0 : cpu_time(s);
  if (now > s->cpu_begun) s->st.cpu_ns = now - s->cpu_begun;
}

void m6_samples_status(struct m6_samples *s, struct m6_samples_status *out)
{
  note_cpu_time(s);
  *out = s->st;
  if (s->st.tier == M6_SAMPLES_BPF) m6_samples_bpf_status(s, out);
}

uint32_t m6_samples_poll(struct m6_samples *s, void (*each)(void *, const struct m6_sample *), void *arg)
{
  /* Once in a while: when the process ends, its clock goes with it. */
  if (!(s->polls++ % 8)) note_cpu_time(s);
  return s->st.tier == M6_SAMPLES_BPF ? m6_samples_bpf_poll(s, each, arg) : m6_samples_perf_poll(s, each, arg);
}

int m6_samples_totals(struct m6_samples *s, void (*each)(void *, const struct m6_sample_total *), void *arg)
{
  return s->st.tier == M6_SAMPLES_BPF ? m6_samples_bpf_totals(s, each, arg) : m6_samples_perf_totals(s, each, arg);
}

uint64_t m6_samples_ring_bytes(const struct m6_samples *s)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < s->ring_count; i++) bytes += s->rings[i].page ? s->rings[i].bytes : 0;
  return bytes;
}

void m6_samples_pause(struct m6_samples *s, int pause)
{
  for (uint32_t i = 0; i < s->events.n; i++)
    ioctl(s->events.fd[i], pause ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
}

void m6_samples_rest(struct m6_samples *s, int rest)
{
  if (rest) {
    m6_samples_pause(s, 1);
    note_cpu_time(s);
    s->cpu_rested = cpu_time(s);
    return;
  }
  uint64_t now = cpu_time(s);
  if (s->cpu_rested && now > s->cpu_rested) s->cpu_begun += now - s->cpu_rested;
  s->cpu_rested = 0;
}

void m6_samples_weight(struct m6_samples *s, uint32_t weight)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  m6_sample_weigh(&s->weights, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec, weight);
  if (s->state) __atomic_store_n(&s->state->weight, weight, __ATOMIC_RELEASE);
}

void m6_samples_stop(struct m6_samples *s)
{
  if (s->stopped) return;
  note_cpu_time(s);
  s->stopped = 1;
  for (uint32_t i = 0; i < s->events.n; i++) ioctl(s->events.fd[i], PERF_EVENT_IOC_DISABLE, 0);
}

void m6_samples_close(struct m6_samples *s)
{
  if (!s) return;
  m6_samples_perf_close(s);
  m6_samples_bpf_close(s);
  M6_HASH_FREE(s->stacks, free);
  HASH_CLEAR(hh_seen, s->seen);
  M6_HASH_FREE(s->threads, free);
  M6_HASH_FREE(s->counts, free);
  free(s);
}
