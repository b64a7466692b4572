/* kernel_switches.c - see kernel_switches.h.
 *
 * An event that counts nothing (PERF_COUNT_SW_DUMMY) for each thread and CPU, whose rings get the switches, starts and
 * ends of threads. A ring is one CPU's; a thread goes from one to another. So what was taken is sorted by time, and
 * what is younger than M6_SWITCHES_HOLD_NS waits, because another CPU may not have written yet what came before it.
 */
#include "kernel_switches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../shm/clock.h"
#include "hash_free.h"
#include "kernel_samples_parts.h"

#define RECORD_MOST 64 /* bytes */

enum kind { SWITCHED_IN, SWITCHED_OUT, PREEMPTED, EXITED, LOSS };
struct happened {
  uint64_t ns;
  uint32_t tid, kind;
};
struct thread {
  uint32_t tid;
  uint64_t since_ns; /* its times are complete up to here */
  uint32_t torn;     /* halves of pairs that were missing; gaps */
  int gap;           /* nothing was recorded for a while, and no event came since: its state is not known */
  struct m6_thread_counters row;
  UT_hash_handle hh;
};
struct m6_switches {
  struct m6_samples base; /* its events and rings; it takes no samples */
  struct thread *threads;
  struct m6_thread_counters past, *rows; /* past: threads that ended and were folded */
  struct happened batch[M6_SWITCHES_BATCH];
  uint32_t count, next, sorted; /* batch[next .. count) is to come; in order up to `sorted` */
  uint64_t start_ns, known_ns, done_ns;
  uint64_t ring_from_ns; /* of the ring that is read: nothing was lost before */
  uint64_t taken, lost, torn, dropped;
  uint32_t losses;
  int same_namespace, stopped;
};

/* ---- opening -------------------------------------------------------------------------------------------------------
 * */

static struct thread *thread_of(struct m6_switches *s, uint32_t tid)
{
  struct thread *t;
  HASH_FIND(hh, s->threads, &tid, sizeof tid, t);
  return t;
}

static void fold(struct m6_thread_counters *sum, const struct m6_thread_counters *t)
{
  sum->lives += t->lives;
  sum->elapsed_ns += t->elapsed_ns;
  sum->on_ns += t->on_ns;
  sum->off_ns += t->off_ns;
  sum->wait_ns += t->wait_ns;
  sum->off_by[M6_OFF_OTHER] += t->off_by[M6_OFF_OTHER];
  for (int i = 0; i < M6_READINGS; i++) sum->counted[i] += t->counted[i];
}

static void make_room(struct m6_switches *s)
{
  for (struct thread *t = s->threads, *next; t; t = next) {
    next = t->hh.next;
    if (t->row.state != M6_COUNTERS_ENDED) continue;
    fold(&s->past, &t->row);
    HASH_DELETE(hh, s->threads, t);
    free(t);
  }
}

static struct thread *add_thread(struct m6_switches *s, uint32_t tid, uint64_t ns, uint32_t state)
{
  if (HASH_COUNT(s->threads) >= M6_COUNTERS_THREADS - 1) make_room(s);
  struct thread *t = HASH_COUNT(s->threads) >= M6_COUNTERS_THREADS - 1 ? NULL : calloc(1, sizeof *t);
  if (!t) return NULL;
  t->tid = tid;
  t->since_ns = ns;
  t->row = (struct m6_thread_counters){
    .tid = (pid_t)tid, .own_tid = (pid_t)tid, .tgid = s->base.o.pid, .state = state, .lives = 1, .call = -1};
  if (!s->same_namespace) t->row.own_tid = (pid_t)m6_samples_own_number(&s->base, tid);
  HASH_ADD(hh, s->threads, tid, sizeof t->tid, t);
  return t;
}

static int open_one(struct m6_samples *base, pid_t tid)
{
  struct m6_switches *s = (struct m6_switches *)base;
  struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_DUMMY};
  attr.disabled = attr.inherit = attr.inherit_thread = 1;
  attr.context_switch = attr.task = 1;
  attr.sample_id_all = 1, attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attr.use_clockid = 1, attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1, attr.wakeup_watermark = ~0u; /* we poll */
  attr.exclude_kernel = attr.exclude_hv = 1;
  if (!base->events.n) M6_HASH_FREE(s->threads, free); /* a new round */
  int e = m6_perf_open_thread(base, tid, &attr);
  return e ? e : add_thread(s, (uint32_t)tid, 0, M6_COUNTERS_SEEDED) ? 0 : ENOMEM;
}

static int same_namespace(pid_t pid)
{
  uint64_t dev[2], ino[2];
  m6_samples_pidns(pid, &dev[0], &ino[0]);
  m6_samples_pidns(getpid(), &dev[1], &ino[1]);
  return ino[0] == ino[1] && dev[0] == dev[1];
}

static void all_events(struct m6_switches *s, unsigned long request)
{
  for (uint32_t i = 0; i < s->base.events.n; i++) ioctl(s->base.events.fd[i], request, 0);
}

int m6_switches_open(pid_t pid, struct m6_switches **out, struct m6_fault *fault)
{
  struct m6_switches *s = calloc(1, sizeof *s);
  *out = NULL;
  if (!s) return m6_fault_set(fault, ENOMEM, M6_AREA_NONE, "allocate", "the switches");
  s->base.o.pid = pid;
  s->same_namespace = same_namespace(pid);
  int e = m6_perf_begin(&s->base);
  if (!e) e = m6_samples_attach(&s->base, open_one);
  if (e) {
    m6_switches_close(s);
    return m6_fault_set(fault, e, M6_AREA_PERF_SELF, "record", "the context switches of process %d", (int)pid);
  }
  all_events(s, PERF_EVENT_IOC_ENABLE);
  s->start_ns = s->known_ns = s->done_ns = m6_monotonic_ns();
  for (struct thread *t = s->threads; t; t = t->hh.next) t->since_ns = s->start_ns;
  *out = s;
  return 0;
}

void m6_switches_stop(struct m6_switches *s)
{
  if (s->stopped) return;
  all_events(s, PERF_EVENT_IOC_DISABLE);
  s->stopped = 1;
}

void m6_switches_close(struct m6_switches *s)
{
  if (!s) return;
  m6_samples_perf_close(&s->base);
  M6_HASH_FREE(s->threads, free);
  free(s->rows);
  free(s);
}

/* ---- the books -----------------------------------------------------------------------------------------------------
 * */

/* A thread of which no event came yet is in a state that the first one tells; until then its time stays open. */
static void spend(struct thread *t, uint64_t ns)
{
  struct m6_thread_counters *r = &t->row;
  if (r->state == M6_COUNTERS_SEEDED || r->state == M6_COUNTERS_ENDED || ns <= t->since_ns) return;
  uint64_t d = ns - t->since_ns;
  t->since_ns = ns;
  r->elapsed_ns += d;
  if (r->state == M6_COUNTERS_ON) r->on_ns += d;
  else if (r->state == M6_COUNTERS_WAITING) r->wait_ns += d;
  else r->off_ns += d, r->off_by[M6_OFF_OTHER] += d;
}

static void apply(struct m6_switches *s, const struct happened *h)
{
  if (h->kind == LOSS) {
    s->losses++;
    return;
  }
  static const uint32_t states[] = {M6_COUNTERS_ON, M6_COUNTERS_OFF, M6_COUNTERS_WAITING, M6_COUNTERS_ENDED};
  int came = h->kind == SWITCHED_IN;
  struct thread *t = thread_of(s, h->tid);
  if (!t && h->kind == EXITED) return;
  if (!t && !(t = add_thread(s, h->tid, h->ns, came ? M6_COUNTERS_OFF : M6_COUNTERS_ON))) {
    s->lost++;
    return;
  }
  struct m6_thread_counters *r = &t->row;
  int was_on = r->state == M6_COUNTERS_ON;
  if (r->state == M6_COUNTERS_SEEDED) r->state = came ? M6_COUNTERS_OFF : M6_COUNTERS_ON;
  else if (r->state == M6_COUNTERS_ENDED) t->since_ns = h->ns, r->lives++; /* another thread with that number */
  else if (t->gap) r->state = came ? M6_COUNTERS_OFF : M6_COUNTERS_ON;
  else if (was_on == came) t->torn++, s->torn++;
  t->gap = 0;
  spend(t, h->ns);
  r->state = states[h->kind];
  if (came) r->counted[M6_SLICES]++;
  else if (h->kind != EXITED) r->counted[h->kind == PREEMPTED ? M6_INVOLUNTARY : M6_VOLUNTARY]++;
}

void m6_switches_until(struct m6_switches *s, uint64_t ns)
{
  while (s->next < s->count && s->batch[s->next].ns < ns) apply(s, &s->batch[s->next++]);
  if (ns > s->done_ns) s->done_ns = ns;
}

int m6_switches_at(struct m6_switches *s, uint32_t own_tid, uint64_t ns, struct m6_kernel_reading *r, uint32_t *lives)
{
  if (ns < s->done_ns) return 0;
  m6_switches_until(s, ns);
  struct thread *t = s->same_namespace ? thread_of(s, own_tid) : s->threads;
  while (t && t->row.own_tid != (pid_t)own_tid) t = t->hh.next;
  if (!t || t->gap || t->row.state == M6_COUNTERS_SEEDED || t->row.state == M6_COUNTERS_ENDED) return 0;
  spend(t, ns);
  *r = (struct m6_kernel_reading){.time_ns = ns,
                                  .on_ns = t->row.on_ns,
                                  .wait_ns = t->row.wait_ns,
                                  .off_ns[M6_OFF_OTHER] = t->row.off_ns,
                                  .voluntary = t->row.counted[M6_VOLUNTARY],
                                  .involuntary = t->row.counted[M6_INVOLUNTARY]};
  *lives = t->row.lives + t->torn + s->losses;
  return 1;
}

const struct m6_thread_counters *m6_switches_rows(struct m6_switches *s, uint32_t *count)
{
  uint32_t n = 0;
  free(s->rows);
  s->rows = calloc(HASH_COUNT(s->threads) + 1, sizeof *s->rows);
  for (struct thread *t = s->threads; t && s->rows; t = t->hh.next) {
    spend(t, s->done_ns);
    if (t->row.state != M6_COUNTERS_SEEDED) s->rows[n++] = t->row;
  }
  if (s->past.lives && s->rows) s->rows[n++] = s->past;
  *count = n;
  return s->rows;
}

/* ---- records
 * --------------------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
  const struct happened *x = a, *y = b;
  if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
  return (x->kind > y->kind) - (x->kind < y->kind);
}
/* What came at the end goes to its place: of what was there before, only the youngest is in question. */
static void sort_from(struct m6_switches *s, uint32_t sorted)
{
  if (sorted == s->count) return;
  qsort(s->batch + sorted, s->count - sorted, sizeof *s->batch, by_time);
  uint32_t from = sorted;
  while (from > s->next && s->batch[from - 1].ns > s->batch[sorted].ns) from--;
  if (from < sorted) qsort(s->batch + from, s->count - from, sizeof *s->batch, by_time);
}

static void forget_done(struct m6_switches *s)
{
  memmove(s->batch, s->batch + s->next, (s->count - s->next) * sizeof *s->batch);
  s->count -= s->next;
  s->next = 0;
}

static void add(struct m6_switches *s, uint64_t ns, uint32_t tid, enum kind kind)
{
  if (s->count == M6_SWITCHES_BATCH) { /* moments in the older half can't be asked for any more, but it is counted */
    qsort(s->batch + s->next, s->count - s->next, sizeof *s->batch, by_time);
    m6_switches_until(s, s->batch[s->count / 2].ns + 1);
    forget_done(s);
    s->sorted = s->count;
  }
  if (ns >= s->start_ns) s->batch[s->count++] = (struct happened){ns, tid, kind}; /* else not every event was on yet */
}

/* Each ends with its thread (pid and tid) and its time; LOST and EXIT have fields of their own before. */
static void take(struct m6_samples *base, const struct perf_event_header *h, const uint64_t *f, uint32_t n)
{
  struct m6_switches *s = (struct m6_switches *)base;
  if (n < 2) return;
  uint64_t ns = f[n - 1];
  uint32_t tid = (uint32_t)(f[n - 2] >> 32);
  if (h->type == PERF_RECORD_SWITCH) {
    s->taken++;
    add(s, ns, tid,
        !(h->misc & PERF_RECORD_MISC_SWITCH_OUT)        ? SWITCHED_IN
        : h->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? PREEMPTED
                                                        : SWITCHED_OUT);
  } else if (h->type == PERF_RECORD_EXIT && n >= 5) {
    add(s, ns, (uint32_t)(f[1] & UINT32_MAX), EXITED);
  } else if (h->type == PERF_RECORD_LOST && n >= 4) {
    s->lost += f[1];
    s->dropped += f[1];
    add(s, s->ring_from_ns, 0, LOSS); /* it began after that, and ended before this */
    add(s, ns, 0, LOSS);
  } else {
    return;
  }
  if (ns > s->ring_from_ns) s->ring_from_ns = ns;
}

void m6_switches_poll(struct m6_switches *s)
{
  uint64_t before = s->known_ns, now = m6_monotonic_ns();
  forget_done(s);
  s->sorted = s->count;
  for (uint32_t i = 0; i < s->base.ring_count; i++) {
    s->ring_from_ns = before; /* the ring was emptied then, or later */
    struct m6_perf_ring *r = &s->base.rings[i];
    if (!r->page) continue;
    int full = r->bytes - (__atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE) - r->page->data_tail) < RECORD_MOST;
    m6_perf_drain(&s->base, r, take);
    if (full) { /* how much was lost is told by the next record that fits */
      add(s, s->ring_from_ns, 0, LOSS);
      add(s, now, 0, LOSS);
    }
  }
  sort_from(s, s->sorted);
  s->known_ns = s->stopped ? now : now - M6_SWITCHES_HOLD_NS;
}

/* ---- pauses
 * ---------------------------------------------------------------------------------------------------------- */

static int is_there(pid_t pid, uint32_t tid)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%u", (int)pid, tid);
  return access(path, F_OK) == 0;
}

void m6_switches_resume(struct m6_switches *s)
{
  if (!s->stopped) return;
  all_events(s, PERF_EVENT_IOC_ENABLE);
  uint64_t paused = s->done_ns;
  s->stopped = 0;
  s->start_ns = s->known_ns = s->done_ns = m6_monotonic_ns();
  for (struct thread *t = s->threads; t; t = t->hh.next) {
    struct m6_thread_counters *r = &t->row;
    if (r->state == M6_COUNTERS_ENDED || r->state == M6_COUNTERS_SEEDED) continue;
    spend(t, paused);
    t->torn++; /* moments before and after are of two lives */
    t->gap = 1;
    r->state = is_there(s->base.o.pid, t->tid) ? M6_COUNTERS_OFF : M6_COUNTERS_ENDED;
    spend(t, s->start_ns);
  }
}

uint64_t m6_switches_began(const struct m6_switches *s) { return s->start_ns; }
uint64_t m6_switches_known(const struct m6_switches *s) { return s->known_ns; }
uint64_t m6_switches_taken(const struct m6_switches *s) { return s->taken; }
uint64_t m6_switches_ring_bytes(const struct m6_switches *s) { return m6_samples_ring_bytes(&s->base); }
uint64_t m6_switches_dropped(const struct m6_switches *s) { return s->dropped; }
uint64_t m6_switches_lost(const struct m6_switches *s) { return s->lost + s->torn; }
