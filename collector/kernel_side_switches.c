/* kernel_side_switches.c - what frames waited for where no program may run in the kernel: by perf's switch records. See
 * kernel_side.h, kernel_switches.h.
 *
 * A poll takes the records, then the rings are drained, which brings presents; each waits here until the records of its
 * time are known, and gets its thread's readings at that moment: on, preempted, off. From there on it is a boundary
 * like the kernel's own.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel_side.h"

/* A present is told when it returns, and its moment is its entry. One that takes longer finds its moment gone, and is
 * counted. */
#define PRESENT_NS 500000000ull

void m6_kernel_switches_open(struct m6_kernel_side *k)
{
  struct m6_kernel_switching *w = &k->switching;
  struct m6_fault fault;
  if (k->frame_place) return; /* frames without the shim: nobody tells when one ends */
  w->waiting = calloc(M6_PRESENTS_WAITING, sizeof *w->waiting);
  if (w->waiting && m6_switches_open(k->pid, &w->switches, &fault)) m6_kernel_refuse(k, M6_KERNEL_PART_FRAMES, &fault);
}

void m6_kernel_switches_close(struct m6_kernel_side *k)
{
  m6_switches_close(k->switching.switches);
  free(k->switching.waiting);
  free(k->switching.rows);
}

void m6_kernel_switches_poll(struct m6_kernel_side *k)
{
  if (k->switching.switches == NULL || k->resting) return;
  m6_kernel_switches_settle(k); /* where no drain came in between */
  m6_switches_poll(k->switching.switches);
}

/* Presents that were drained find their moments; the rest have none. */
void m6_kernel_switches_rest(struct m6_kernel_side *k)
{
  struct m6_switches *s = k->switching.switches;
  if (s == NULL) return;
  m6_switches_stop(s);
  m6_switches_poll(s);
  m6_kernel_switches_settle(k);
  m6_switches_until(s, m6_switches_known(s));
}
void m6_kernel_switches_wake(struct m6_kernel_side *k)
{
  if (k->switching.switches) m6_switches_resume(k->switching.switches);
}

void m6_kernel_switches_stop(struct m6_kernel_side *k)
{
  if (k->switching.switches == NULL || k->resting) return;
  m6_switches_stop(k->switching.switches);
  m6_switches_poll(k->switching.switches);
}

/* They come thread by thread: a later one is put where it belongs. */
void m6_kernel_presented(void *arg, const struct m6_capture *c, uint32_t tid, uint32_t stream, uint64_t number,
                         uint64_t clock)
{
  struct m6_kernel_switching *w = &((struct m6_kernel_side *)arg)->switching;
  if (w->count == M6_PRESENTS_WAITING) {
    w->lost++;
    return;
  }
  struct m6_present_waiting p = {m6_clock_mono(c->rate, clock), number, tid, stream};
  uint32_t at = w->count++;
  for (; at > 0 && w->waiting[at - 1].ns > p.ns; at--) w->waiting[at] = w->waiting[at - 1];
  w->waiting[at] = p;
}

void m6_kernel_switches_settle(struct m6_kernel_side *k)
{
  struct m6_kernel_switching *w = &k->switching;
  if (w->switches == NULL || k->resting) return;
  uint64_t known = m6_switches_known(w->switches);
  uint32_t n = 0;
  for (; n < w->count && w->waiting[n].ns <= known; n++) {
    const struct m6_present_waiting *p = &w->waiting[n];
    struct m6_kernel_frame f = {.tid = p->tid, .own_tid = p->tid, .stream = p->stream, .number = p->number};
    if (p->ns < m6_switches_began(w->switches)) continue;
    if (m6_switches_at(w->switches, p->tid, p->ns, &f.entry, &f.lives)) {
      m6_kernel_boundary(&f, k);
    } else {
      w->lost++;
    }
  }
  memmove(w->waiting, w->waiting + n, (w->count - n) * sizeof *w->waiting);
  w->count -= n;
  m6_switches_until(w->switches, k->stopped ? known : known - PRESENT_NS);
}

/* Part of what looks like off from here. */
static void take_back(struct m6_thread_counters *t, uint64_t *ns, uint64_t known)
{
  uint64_t more = known > *ns ? known - *ns : 0;
  if (more > t->off_ns) more = t->off_ns;
  *ns += more;
  t->off_ns -= more;
  t->off_by[M6_OFF_OTHER] = t->off_ns;
}

/* Faults are /proc's to know, and the wait after a wake-up, and what the switches themselves take, which are between
 * two records; and the switches that found no room, or came while the governor had none recorded. */
static void complete(struct m6_thread_counters *t, const struct m6_thread_counters *proc, uint32_t count)
{
  for (uint32_t i = 0; i < count; i++) {
    if (proc[i].tid != t->tid || t->tid == 0) continue;
    t->counted[M6_MINOR] = proc[i].counted[M6_MINOR];
    t->counted[M6_MAJOR] = proc[i].counted[M6_MAJOR];
    static const enum m6_reading switches[] = {M6_VOLUNTARY, M6_INVOLUNTARY, M6_SLICES};
    for (size_t r = 0; r < sizeof switches / sizeof *switches; r++)
      if (proc[i].counted[switches[r]] > t->counted[switches[r]])
        t->counted[switches[r]] = proc[i].counted[switches[r]];
    take_back(t, &t->on_ns, proc[i].on_ns);
    take_back(t, &t->wait_ns, proc[i].wait_ns);
    return;
  }
}

const struct m6_thread_counters *m6_kernel_switches_rows(struct m6_kernel_side *k, uint32_t *count)
{
  uint32_t from_proc, n;
  const struct m6_thread_counters *proc = m6_proc_threads_rows(k->proc, &from_proc), *seen;
  *count = from_proc;
  if (k->switching.switches == NULL) return proc;
  seen = m6_switches_rows(k->switching.switches, &n);
  struct m6_thread_counters *rows = seen ? malloc((n + from_proc + 1) * sizeof *rows) : NULL;
  if (rows == NULL) return proc;
  free(k->switching.rows);
  k->switching.rows = rows;
  memcpy(rows, seen, n * sizeof *rows);
  for (uint32_t i = 0; i < n; i++) complete(&rows[i], proc, from_proc);
  *count = n;
  for (uint32_t i = 0; i < from_proc; i++) { /* those that were not switched once are there all the same */
    uint32_t at = 0;
    while (at < n && rows[at].tid != proc[i].tid) at++;
    if (at < n || proc[i].counted[M6_SLICES]) continue;
    rows[*count] = proc[i];
    rows[(*count)++].off_by[M6_OFF_OTHER] = proc[i].off_ns;
  }
  return rows;
}
