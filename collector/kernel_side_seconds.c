/* kernel_side_seconds.c - what the kernel counted, to the seconds of a capture. See kernel_side.h, retained.h.
 *
 * Readings are those that are there anyway, once a second, and what a snapshot shows: the sums over the seconds are
 * what it shows, to the last nanosecond. A capture that takes the place of another one (a chain's next session, the
 * program after exec) gets what was counted from then on.
 */
#include "kernel_side.h"

const struct m6_thread_counters *m6_kernel_threads(struct m6_kernel_side *k, uint32_t *count)
{
  *count = 0;
  if (k->counters) {
    *count = k->counters->thread_count;
    return k->counters->threads;
  }
  return k->proc ? m6_kernel_switches_rows(k, count) : NULL;
}

static int64_t sum(int64_t a, uint64_t b) { return (int64_t)((uint64_t)a + b); }

static void add(struct m6_snap_kernel_second *to, const struct m6_thread_counters *t, int unnamed)
{
  uint64_t off[M6_WHY_COUNT] = {0};
  to->elapsed = sum(to->elapsed, t->elapsed_ns);
  to->on = sum(to->on, t->on_ns);
  to->wait = sum(to->wait, t->wait_ns);
  to->off = sum(to->off, t->off_ns);
  for (int i = 0; i < M6_OFF_CAUSES; i++) off[i] = t->off_by[i];
  if (unnamed) m6_kernel_unname(off);
  for (int i = 0; i < M6_WHY_COUNT; i++) to->off_by[i] = sum(to->off_by[i], off[i]);
  to->calls = sum(to->calls, t->calls);
  to->call_ns = sum(to->call_ns, t->call_on_ns);
  to->voluntary = sum(to->voluntary, t->counted[M6_VOLUNTARY]);
  to->involuntary = sum(to->involuntary, t->counted[M6_INVOLUNTARY]);
  to->minor = sum(to->minor, t->counted[M6_MINOR]);
  to->major = sum(to->major, t->counted[M6_MAJOR]);
  to->migrations = sum(to->migrations, t->counted[M6_MIGRATIONS]);
  to->slices = sum(to->slices, t->counted[M6_SLICES]);
}

/* Switch records are known up to a moment ago, the others as of their last reading; at rest, up to its beginning. What
 * went by in a rest is in the second in which it ended, and that one covers it. */
static uint64_t read_ns(const struct m6_kernel_side *k)
{
  if (k->counters) return k->counters->read_ns;
  if (k->switching.switches) return k->resting ? k->rested_ns : m6_monotonic_ns();
  return k->slow_ns;
}

void m6_kernel_seconds(struct m6_kernel_side *k, struct m6_capture *c, uint64_t at_ns)
{
  struct m6_snap_kernel_second now = {.samples = (int64_t)k->sampling.samples, .periods = (int64_t)k->sampling.periods};
  uint32_t count;
  const struct m6_thread_counters *rows = m6_kernel_threads(k, &count);
  for (uint32_t i = 0; i < count; i++) add(&now, &rows[i], k->switching.switches != NULL);
  if (k->have_faults) now.minor = (int64_t)k->minor, now.major = (int64_t)k->major;
  now.covered = (int64_t)m6_ticks_since(read_ns(k), k->opened_ns);
  m6_retained_kernel(&c->retained, m6_ticks_since(at_ns, c->start_mono_ns), &k->told, &now);
  k->told = now;
}
