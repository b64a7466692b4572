/* kernel_samples_perf.c - the tier without BPF: perf's ring buffers, one a CPU, aggregated here.
 *
 * An inherited event may not have a ring of its own unless it is bound to a CPU: so there is one event for each thread
 * and CPU, and all of one CPU write into that CPU's ring. For one's own processes no capability is asked for, as long
 * as the kernel is left out (perf_event_paranoid up to 2); what the setting forbids is named.
 * Promise: records are copied before they are looked at, and lengths checked; what the kernel dropped is counted.
 */
#include "kernel_samples_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define RING_PAGES                                                                                                     \
  32 /* a second of samples with full stacks at the highest rate; a quarter of what an unprivileged user may lock */
#define RING_PAGES_MIN 2
#define RING_PAGES_UNWIND                                                                                              \
  64 /* a third of a second of samples with M6_SAMPLES_STACK_BYTES each; half of what may be locked */
#define RECORD_BYTES 65536 /* a record's size has 16 bits */

#if defined(__x86_64__)
#include <asm/perf_regs.h>
/* In the order of their numbers, as a sample holds them. */
#define USER_REGS                                                                                                      \
  (1ull << PERF_REG_X86_BX | 1ull << PERF_REG_X86_BP | 1ull << PERF_REG_X86_SP | 1ull << PERF_REG_X86_IP |             \
   1ull << PERF_REG_X86_R12 | 1ull << PERF_REG_X86_R13 | 1ull << PERF_REG_X86_R14 | 1ull << PERF_REG_X86_R15)
#else
#define USER_REGS 0
#endif

/* ---- opening ------------------------------------------------------------------------------------------------------
 * */

static void unmap_rings(struct m6_samples *s)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (uint32_t i = 0; i < s->ring_count; i++)
    if (s->rings[i].page) munmap(s->rings[i].page, s->rings[i].bytes + page);
  free(s->rings);
  s->rings = NULL, s->ring_count = 0;
}

/* One entry for each CPU that is online: "0-3,6". */
static int list_cpus(struct m6_samples *s)
{
  char text[1024] = "";
  int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (got <= 0) snprintf(text, sizeof text, "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
  for (char *p = text; *p >= '0' && *p <= '9';) {
    long from = strtol(p, &p, 10), to = from;
    if (*p == '-') to = strtol(p + 1, &p, 10);
    if (*p == ',') p++;
    for (long cpu = from; cpu <= to && s->ring_count < 4096; cpu++) {
      struct m6_perf_ring *more = realloc(s->rings, (s->ring_count + 1) * sizeof *more);
      if (!more) return ENOMEM;
      s->rings = more;
      s->rings[s->ring_count++] = (struct m6_perf_ring){.fd = -1, .cpu = (int)cpu};
    }
  }
  return s->ring_count ? 0 : ENODEV;
}

static int map_ring(struct m6_samples *s, struct m6_perf_ring *r, int fd)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t most = s->o.unwind ? RING_PAGES_UNWIND : RING_PAGES;
  while (most > RING_PAGES_MIN && most * page * s->ring_count > M6_SAMPLES_RING_BYTES) most /= 2;
  for (size_t pages = most; pages >= RING_PAGES_MIN; pages /= 2) {
    void *p = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED) {
      r->page = p, r->bytes = pages * page, r->fd = fd;
      return 0;
    }
    if (errno != EPERM && errno != ENOMEM) break;
  }
  int e = errno;
  m6_samples_refuse(s, "map a ring buffer", M6_AREA_PERF_SELF, e, 0);
  return e;
}

int m6_perf_open_thread(struct m6_samples *s, pid_t tid, struct perf_event_attr *attr)
{
  if (!s->events.n) { /* a new round */
    unmap_rings(s);
    int e = list_cpus(s);
    if (e) return e;
  }
  int any = 0, first = 0;
  for (uint32_t i = 0; i < s->ring_count; i++) {
    struct m6_perf_ring *r = &s->rings[i];
    int fd = m6_perf_event_open(attr, tid, r->cpu, -1);
    if (fd < 0) {
      if (errno == ENODEV) continue; /* a CPU that went away */
      first = first ? first : errno;
      break;
    }
    int e = r->page ? (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, r->fd) ? errno : 0) : map_ring(s, r, fd);
    if (e) {
      close(fd);
      first = first ? first : e;
      break;
    }
    if ((e = m6_samples_add_event(s, fd))) return e;
    any = 1;
  }
  return first ? first : any ? 0 : ENODEV;
}

static int open_one(struct m6_samples *s, pid_t tid)
{
  struct perf_event_attr attr;
  m6_samples_attr(s, &attr);
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
  attr.sample_max_stack = M6_SAMPLES_STACK_MAX;
  attr.use_clockid = 1, attr.clockid = CLOCK_MONOTONIC;
  attr.comm = 1;
  attr.watermark = 1, attr.wakeup_watermark = ~0u; /* we poll */
  attr.exclude_kernel = attr.exclude_hv = attr.exclude_callchain_kernel = !s->st.kernel_mode;
  if (s->o.unwind) {
    attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attr.sample_regs_user = USER_REGS;
    attr.sample_stack_user = M6_SAMPLES_STACK_BYTES;
    attr.exclude_callchain_user = 1;
  }
  return m6_perf_open_thread(s, tid, &attr);
}

int m6_perf_begin(struct m6_samples *s)
{
  s->record = malloc(RECORD_BYTES);
  return s->record ? 0 : ENOMEM;
}

int m6_samples_perf_open(struct m6_samples *s)
{
  if (m6_perf_begin(s)) return ENOMEM;
  int e = EACCES;
  if (!(s->o.flags & M6_SAMPLES_WITHOUT_KERNEL)) {
    s->st.kernel_mode = 1;
    e = m6_samples_attach(s, open_one);
  }
  if (e == EACCES || e == EPERM) {
    s->st.kernel_mode = 0;
    e = m6_samples_attach(s, open_one);
  }
  if (!e) s->st.tier = M6_SAMPLES_PERF;
  return e;
}

void m6_samples_perf_close(struct m6_samples *s)
{
  unmap_rings(s);
  m6_samples_detach(s);
  free(s->record);
  free(s->batch);
  s->record = NULL;
  s->batch = NULL, s->batch_count = s->batch_room = 0;
}

/* ---- threads -------------------------------------------------------------------------------------------------------
 * */

/* The number that the target itself knows the thread by: the last one of NSpid. */
uint32_t m6_samples_own_number(const struct m6_samples *s, uint32_t tid)
{
  char path[80], line[256];
  uint32_t own = tid;
  snprintf(path, sizeof path, "/proc/%d/task/%u/status", s->o.pid, tid);
  FILE *f = fopen(path, "re");
  if (!f) return tid;
  while (fgets(line, sizeof line, f)) {
    if (strncmp(line, "NSpid:", 6) != 0) continue;
    char *p = line + 6, *end;
    for (unsigned long v; v = strtoul(p, &end, 10), end != p; p = end) own = (uint32_t)v;
    break;
  }
  fclose(f);
  return own;
}

static struct m6_known_thread *thread_of(struct m6_samples *s, uint32_t seen)
{
  struct m6_known_thread *t;
  HASH_FIND(hh_seen, s->seen, &seen, sizeof seen, t);
  if (t || HASH_CNT(hh_seen, s->seen) >= M6_SAMPLES_THREADS) return t;
  t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->seen_tid = seen;
  t->tid = m6_samples_own_number(s, seen);
  char path[80];
  snprintf(path, sizeof path, "/proc/%d/task/%u/comm", s->o.pid, seen);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    ssize_t n = read(fd, t->name, sizeof t->name - 1);
    if (n > 0 && t->name[n - 1] == '\n') t->name[n - 1] = 0;
    close(fd);
  }
  HASH_ADD(hh_seen, s->seen, seen_tid, sizeof t->seen_tid, t);
  HASH_ADD(hh, s->threads, tid, sizeof t->tid, t);
  return t;
}

/* ---- records
 * --------------------------------------------------------------------------------------------------------- */

static uint64_t keep(struct m6_samples *s, const uint64_t *ip, uint32_t n)
{
  if (!n) return M6_STACK_NONE;
  if (n > M6_SAMPLES_STACK_MAX) n = M6_SAMPLES_STACK_MAX;
  uint64_t h = 0x9e3779b97f4a7c15ull ^ n;
  for (uint32_t i = 0; i < n; i++) {
    h = (h ^ ip[i]) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  if (h <= M6_STACK_LOST) h = 2;
  struct m6_known_stack *k;
  HASH_FIND(hh, s->stacks, &h, sizeof h, k);
  if (k) return h;
  if (HASH_COUNT(s->stacks) >= s->o.retained || !m6_samples_keep(s, h, ip, n)) {
    s->st.lost_stacks++;
    return M6_STACK_LOST;
  }
  return h;
}

static void count(struct m6_samples *s, const struct m6_sample *x)
{
  struct m6_bpf_count_key key;
  struct m6_known_count *c;
  memset(&key, 0, sizeof key);
  key.user = x->user, key.kernel = x->kernel, key.tid = x->tid;
  HASH_FIND(hh, s->counts, &key, sizeof key, c);
  if (!c) {
    if (HASH_COUNT(s->counts) >= s->o.retained || !(c = calloc(1, sizeof *c))) {
      s->st.lost++;
      return;
    }
    c->key = key;
    HASH_ADD(hh, s->counts, key, sizeof c->key, c);
  }
  c->count += x->weight;
}

static void retain(struct m6_samples *s, const struct m6_sample *x)
{
  if (s->batch_count == s->batch_room || s->batch_count >= s->o.retained) {
    uint32_t room = s->batch_room ? s->batch_room * 2 : 256;
    struct m6_sample *more = s->batch_count >= s->o.retained ? NULL : realloc(s->batch, room * sizeof *more);
    if (!more) {
      s->st.lost_retained++;
      return;
    }
    s->batch = more, s->batch_room = room;
  }
  s->batch[s->batch_count++] = *x;
}

/* Behind the frames: which registers there are, the registers, the stack's size, the stack, how much of it is real. */
static uint32_t unwind(struct m6_samples *s, const uint64_t *f, uint64_t n, uint64_t *ip)
{
  enum { REGS = 8 };
  if (n < 1 + REGS + 2 || f[0] != PERF_SAMPLE_REGS_ABI_64) return 0;
  const uint64_t *r = f + 1;
  struct m6_user_state u = {
    .bx = r[0], .bp = r[1], .sp = r[2], .ip = r[3], .r12 = r[4], .r13 = r[5], .r14 = r[6], .r15 = r[7]};
  uint64_t size = f[1 + REGS], words = size / 8;
  if (size && words <= n - (1 + REGS + 2)) {
    uint64_t real = f[1 + REGS + 1 + words];
    u.stack = (const unsigned char *)&f[1 + REGS + 1];
    u.bytes = (uint32_t)(real < size ? real : size);
  }
  return s->o.unwind(s->o.unwind_arg, &u, ip, M6_SAMPLES_STACK_MAX);
}

/* A sample: ip, pid and tid, time, number of frames, frames. Values from PERF_CONTEXT_MAX up say which frames follow.
 * */
static void take_sample(struct m6_samples *s, const uint64_t *f, uint32_t n)
{
  if (n < 4) return;
  uint64_t stack[2][M6_SAMPLES_STACK_MAX] = {{0}};
  uint32_t depth[2] = {0, 0}, side = 1;
  uint64_t frames = f[3] < n - 4 ? f[3] : n - 4;
  for (uint64_t i = 0; i < frames; i++) {
    uint64_t v = f[4 + i];
    if (v >= (uint64_t)PERF_CONTEXT_MAX) side = v == (uint64_t)PERF_CONTEXT_KERNEL ? 0 : 1;
    else if (depth[side] < M6_SAMPLES_STACK_MAX) stack[side][depth[side]++] = v;
  }
  if (s->o.unwind) depth[1] = unwind(s, f + 4 + frames, n - 4 - frames, stack[1]);
  struct m6_known_thread *t = thread_of(s, (uint32_t)(f[1] >> 32));
  struct m6_sample x = {
    .time_ns = f[2], .tid = t ? t->tid : (uint32_t)(f[1] >> 32), .weight = m6_sample_weight(&s->weights, f[2])};
  x.kernel = keep(s, stack[0], depth[0]);
  x.user = keep(s, stack[1], depth[1]);
  s->st.samples++;
  s->st.periods += x.weight;
  count(s, &x);
  retain(s, &x);
}

/* A thread's new name: pid and tid, text. */
static void take_name(struct m6_samples *s, const uint64_t *f, uint32_t n)
{
  if (n < 3) return;
  struct m6_known_thread *t = thread_of(s, (uint32_t)(f[0] >> 32));
  if (!t) return;
  memcpy(t->name, &f[1], sizeof t->name);
  t->name[sizeof t->name - 1] = 0;
}

static void take(struct m6_samples *s, const struct perf_event_header *h, const uint64_t *f, uint32_t n)
{
  uint32_t type = h->type;
  if (type == PERF_RECORD_SAMPLE) {
    take_sample(s, f, n);
  } else if (type == PERF_RECORD_LOST && n >= 2) {
    s->st.samples += f[1];
    s->st.periods += f[1] * m6_sample_weight(&s->weights, UINT64_MAX); /* they have no time: as it is now */
    s->st.lost += f[1];
  } else if (type == PERF_RECORD_COMM) {
    take_name(s, f, n);
  } else if (type == PERF_RECORD_THROTTLE) {
    s->st.throttled++;
  }
}

static void copy_out(const struct m6_perf_ring *r, uint64_t at, void *to, size_t bytes)
{
  const char *data = (const char *)r->page + sysconf(_SC_PAGESIZE);
  size_t offset = at & (r->bytes - 1), first = bytes < r->bytes - offset ? bytes : r->bytes - offset;
  memcpy(to, data + offset, first);
  memcpy((char *)to + first, data, bytes - first);
}

void m6_perf_drain(struct m6_samples *s, struct m6_perf_ring *r, m6_perf_take *each)
{
  uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE), tail = r->page->data_tail;
  while (head - tail >= sizeof(struct perf_event_header)) {
    struct perf_event_header h;
    copy_out(r, tail, &h, sizeof h);
    if (h.size < sizeof h || h.size > head - tail) {
      tail = head; /* cannot be; what is not understood is not read */
      break;
    }
    size_t bytes = h.size - sizeof h;
    copy_out(r, tail + sizeof h, s->record, bytes);
    each(s, &h, s->record, (uint32_t)(bytes / sizeof *s->record));
    tail += h.size;
  }
  __atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
  uint64_t x = ((const struct m6_sample *)a)->time_ns, y = ((const struct m6_sample *)b)->time_ns;
  return (x > y) - (x < y);
}

uint32_t m6_samples_perf_poll(struct m6_samples *s, void (*each)(void *, const struct m6_sample *), void *arg)
{
  s->batch_count = 0;
  for (uint32_t i = 0; i < s->ring_count; i++)
    if (s->rings[i].page) m6_perf_drain(s, &s->rings[i], take);
  if (s->batch_count) qsort(s->batch, s->batch_count, sizeof *s->batch, by_time);
  for (uint32_t i = 0; each && i < s->batch_count; i++) each(arg, &s->batch[i]);
  return s->batch_count;
}

int m6_samples_perf_totals(struct m6_samples *s, void (*each)(void *, const struct m6_sample_total *), void *arg)
{
  for (const struct m6_known_count *c = s->counts; c; c = c->hh.next) {
    struct m6_sample_total t = {.count = c->count, .user = c->key.user, .kernel = c->key.kernel, .tid = c->key.tid};
    each(arg, &t);
  }
  return 0;
}
