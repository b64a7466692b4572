/* kernel_pause.c - counters that rest and go on: programs are detached and attached again, entries and totals stay. See
 * kernel_counters.h.
 *
 * A thread's counts are made from the kernel's absolute readings, so a time in which no program ran costs no truth:
 * what it was on a CPU, waited and was off in there is settled from /proc before the programs come back, or by its next
 * switch. While none is attached, user space is the entries' only writer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/membarrier.h>

#include "../shm/clock.h"
#include "kernel_counters_parts.h"
#include "kernel_proc.h"
#include "kernel_seed.h"
#include "kernel_table.h"
#include "kernel_tasks.h"

/* ---- detaching -------------------------------------------------------------------------------------------------- */

/* A program that ran on another CPU when its link went may still do so: until each CPU has passed through the
 * scheduler. */
static void let_programs_end(void)
{
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) usleep(50000); /* not with nohz_full */
}

/* Nobody is in a call that was entered so long ago: it would be charged with all the time since. */
static void forget_calls(struct m6_counters_inside *in)
{
  for (uint32_t i = 0; i < M6_COUNTERS_THREADS; i++)
    if (in->table[i].call) __atomic_store_n(&in->table[i].call, 0, __ATOMIC_RELAXED);
}

void m6_counters_calls_stop(struct m6_counters *c)
{
  m6_counters_detach(c, M6_ATTACH_CALLS);
  let_programs_end();
  forget_calls(c->inside);
}

int m6_counters_calls_resume(struct m6_counters *c, struct m6_fault *fault)
{
  return m6_counters_attach(c, M6_ATTACH_CALLS, fault);
}

void m6_counters_pause(struct m6_counters *c)
{
  struct m6_counters_inside *in = c->inside;
  if (in->paused_ns) return;
  uint64_t now = m6_monotonic_ns();
  m6_counters_stop(c);
  let_programs_end();
  forget_calls(in);
  in->paused_ns = now;
}

/* ---- bringing entries forward ------------------------------------------------------------------------------------ */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* What it was off with its cause, as events say, from when it left its CPU until the pause. */
static uint64_t known_off(const struct m6_counters_thread *e, uint64_t paused)
{
  int was_off = e->state == M6_COUNTERS_OFF || e->state == M6_COUNTERS_SEEDED;
  return e->later_off_ns + (was_off && paused > e->since_ns ? paused - e->since_ns : 0);
}

/* The time since it was switched out the last time, divided for good; what is left of it has no cause that was seen. */
static void close_span(struct m6_counters_thread *e, uint64_t until, uint64_t on, uint64_t wait, uint64_t off)
{
  uint64_t span = until > e->out_ns ? until - e->out_ns : 0;
  on = least(on, span);
  wait = least(wait, span - on);
  off = least(off, span - on - wait);
  e->on_ns += on;
  e->wait_ns += wait;
  e->last_delay_ns += wait;
  e->off_ns[e->cause & (M6_OFF_CAUSES - 1)] += off;
  e->off_ns[M6_OFF_OTHER] += span - on - wait - off;
  e->later_off_ns = e->later_wait_ns = e->ran_ns = e->unseen_ns = 0;
  e->out_ns = e->since_ns = e->out_ns + span;
}

/* It ended meanwhile: what it did since the pause nobody knows. */
static void end(struct m6_counters_thread *e, uint64_t paused)
{
  uint64_t more = paused > e->since_ns ? paused - e->since_ns : 0;
  close_span(e, paused > e->since_ns ? paused : e->since_ns, e->ran_ns + (e->state == M6_COUNTERS_ON ? more : 0),
             e->later_wait_ns + (e->state == M6_COUNTERS_WAITING ? more : 0), known_off(e, paused));
  e->state = M6_COUNTERS_ENDED;
}

/* Counts go on from what the thread has now. How often it has migrated user space cannot read: as it was. */
static void take_counts(struct m6_counters_inside *in, struct m6_counters_thread *e, const struct m6_proc_thread *r)
{
  in->unseen_slices += r->counted[M6_SLICES] - e->last[M6_SLICES];
  for (int i = 0; i < M6_READINGS; i++)
    if (i != M6_MIGRATIONS) e->last[i] = r->counted[i];
  e->arrived = (uint32_t)r->counted[M6_SLICES];
  e->read_delay_ns = r->delay_ns;
  if (e->state != M6_COUNTERS_SEEDED) e->resumed = 1;
  e->state = M6_COUNTERS_SEEDED;
}

/* Another thread has that tid now, all of whose life is in the gap: the next owner counts on. */
static void begin_life(struct m6_counters_inside *in, struct m6_counters_thread *e, const struct m6_task *task,
                       const struct m6_proc_thread *r, uint64_t now)
{
  for (int i = 0; i < M6_READINGS; i++) e->base[i] -= e->last[i];
  memset(e->last, 0, sizeof e->last);
  e->lives++;
  e->here = task->here;
  e->own = task->own;
  e->state = M6_COUNTERS_ENDED; /* its migrations, too, are counted from nothing */
  e->cause = M6_OFF_OTHER;
  close_span(e, now, r->run_ns, r->delay_ns, 0);
  e->last_run_ns = r->run_ns;
  e->last_delay_ns = r->delay_ns;
  take_counts(in, e, r);
}

static int is_same(const struct m6_proc_thread *a, const struct m6_proc_thread *b)
{
  return a->state == b->state && a->run_ns == b->run_ns && memcmp(a->counted, b->counted, sizeof a->counted) == 0;
}

/* A thread that was there at the pause and is now. One that slept all the time sleeps on. One that is off its CPU has
 * exact readings: they divide the gap. One that is on it is known as of the last tick: its next switch divides all
 * since its last one. */
static void go_on(struct m6_counters_inside *in, struct m6_counters_thread *e, pid_t tgid,
                  const struct m6_proc_thread *r)
{
  struct m6_proc_thread again;
  uint64_t off = known_off(e, in->paused_ns), now = m6_monotonic_ns();
  int is_off = r->state != 'R' && m6_proc_thread_read(tgid, (pid_t)e->here, &again) && is_same(r, &again);
  if (is_off && (e->state == M6_COUNTERS_OFF || e->state == M6_COUNTERS_SEEDED) &&
      r->counted[M6_SLICES] == e->last[M6_SLICES] && r->counted[M6_VOLUNTARY] == e->last[M6_VOLUNTARY] &&
      r->counted[M6_INVOLUNTARY] == e->last[M6_INVOLUNTARY])
    return;
  uint64_t on = r->run_ns - e->last_run_ns, wait = r->delay_ns - e->last_delay_ns;
  if (is_off) {
    close_span(e, now, on, wait, off);
    e->last_run_ns = r->run_ns;
    e->cause = m6_proc_thread_cause(tgid, (pid_t)e->here);
    take_counts(in, e, r);
    if (r->state == 'Z' || r->state == 'X') e->state = M6_COUNTERS_ENDED;
    return;
  }
  uint64_t span = now - e->out_ns;
  on = least(on, span);
  wait = least(wait, span - on);
  off = least(off, span - on - wait);
  e->off_ns[e->cause & (M6_OFF_CAUSES - 1)] += off;
  e->out_ns += off;
  e->ran_ns = on;
  e->later_wait_ns = wait;
  e->later_off_ns = span - off - on - wait;
  e->unseen_ns = 0;
  e->cause = M6_OFF_OTHER;
  e->since_ns = now;
  take_counts(in, e, r);
}

/* Programs see threads begin until they are detached, which on a busy machine is long after the pause was asked for:
 * one that began since then and has had an event has begun but once. */
static void forward(struct m6_counters_inside *in, struct m6_counters_thread *e, pid_t tgid, const struct m6_task *task)
{
  struct m6_proc_thread r;
  if (!m6_proc_thread_read(tgid, (pid_t)task->here, &r)) {
    if (e->state != M6_COUNTERS_ENDED) end(e, in->paused_ns);
    return;
  }
  int ended = e->state == M6_COUNTERS_ENDED, gone = r.state == 'Z' || r.state == 'X';
  int other = ended ? !gone
                    : (r.began_ns >= in->paused_ns && r.began_ns > e->since_ns) || r.run_ns < e->last_run_ns ||
                        r.counted[M6_VOLUNTARY] < e->last[M6_VOLUNTARY];
  if (ended && gone) return; /* not away yet */
  if (other && !ended) end(e, in->paused_ns);
  if (other) begin_life(in, e, task, &r, m6_monotonic_ns());
  else go_on(in, e, tgid, &r);
}

static uint64_t bit_of(uint32_t at) { return 1ull << at % 64; }

/* Each entry of one process; `alive` has those whose thread is there. `started`: programs run again, and an entry whose
 * thread has an event is theirs: only of those that none will ever come for, the state is set. */
static int each_entry(struct m6_counters_inside *in, unsigned target, int started, struct m6_fault *fault)
{
  pid_t tgid = (pid_t)in->target_here[target];
  struct m6_task *tasks = calloc(M6_COUNTERS_THREADS, sizeof *tasks);
  uint64_t alive[M6_COUNTERS_THREADS / 64] = {0};
  if (!tasks) return m6_fault_set(fault, ENOMEM, M6_AREA_NONE, "allocate", "the threads");
  int n = m6_tasks_find(tgid, tasks, M6_COUNTERS_THREADS, fault);
  for (int i = 0; i < n; i++) {
    struct m6_counters_thread *e = m6_table_find(in, tasks[i].tid);
    if (!e) continue;
    uint32_t at = (uint32_t)(e - in->table);
    alive[at / 64] |= bit_of(at);
    if (!started) forward(in, e, tgid, &tasks[i]);
  }
  free(tasks);
  if (n < 0) return -n;
  for (uint32_t at = 0; at < M6_COUNTERS_THREADS; at++) {
    struct m6_counters_thread *e = &in->table[at];
    if (!e->tid || e->tgid != in->target_global[target] || alive[at / 64] & bit_of(at)) continue;
    if (!started && e->state != M6_COUNTERS_ENDED) end(e, in->paused_ns);
    if (started && e->state == M6_COUNTERS_SEEDED) __atomic_store_n(&e->state, M6_COUNTERS_ENDED, __ATOMIC_RELAXED);
  }
  return 0;
}

int m6_counters_resume(struct m6_counters *c, int calls, struct m6_fault *fault)
{
  struct m6_counters_inside *in = c->inside;
  int err = 0;
  if (in->paused_ns == 0) return 0;
  for (unsigned t = 0; t < in->targets && !err; t++) err = each_entry(in, t, 0, fault);
  uint64_t forwarded = m6_monotonic_ns(), before = in->paused_ns;
  uint64_t tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK); /* all that were there at the pause have entries */
  if (!err) in->paused_ns = forwarded; /* should the programs be refused, this is where the books stand */
  if (!err) err = m6_counters_attach(c, M6_ATTACH_TASKS | (calls ? M6_ATTACH_CALLS : 0), fault);
  if (err) return err;
  for (unsigned t = 0; t < in->targets && !err; t++) err = m6_seed(in, (pid_t)in->target_here[t], before - tick, fault);
  for (unsigned t = 0; t < in->targets && !err; t++) err = each_entry(in, t, 1, fault);
  in->seeded_ns = m6_monotonic_ns();
  in->paused_ns = 0;
  if (err) m6_counters_pause(c);
  return err;
}
