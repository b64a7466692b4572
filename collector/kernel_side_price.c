/* kernel_side_price.c - what the kernel's side took from the target: events at a price each. See calibrate_kernel.h.
 *
 * The figures are those of tests/bench (kernel, other, switches) on the machine that this was made on, and what
 * calibrate_kernel.c measured there beside them: where it measures otherwise, they go with it. Pure.
 */
#include "kernel_side.h"

/* There. */
#define RECORD_NS 1300.0 /* a switch out and in, recorded by perf */
#define PROBE_NS 1400.0
#define SAMPLE_NS 50000.0 /* most of it is the virtual machine's timer */
#define STACK_NS 65000.0  /* a sample whose stack is copied */
#define SWITCH_NS 700.0   /* a slice, by programs: its way in and out */
#define CALL_NS 1100.0    /* a system call, by programs */
#define READING_NS 1100.0 /* what a present's program does, beside its hit */

/* A machine that is so much slower or faster was disturbed while it measured. */
static double scaled(double here, double there)
{
  double by = here > 0 ? here / there : 1;
  return by < 0.25 ? 0.25 : by > 4 ? 4 : by;
}

struct m6_kernel_price m6_kernel_prices(const struct m6_kernel_measured *m, int unwound)
{
  double machine = scaled(m->record, RECORD_NS);
  double sample = m->sample > 0 ? m->sample : SAMPLE_NS, stack = m->stack > 0 ? m->stack : STACK_NS;
  return (struct m6_kernel_price){
    .record_ns = RECORD_NS * machine / 2,
    .switch_ns = SWITCH_NS * machine,
    .call_ns = CALL_NS * machine,
    .boundary_ns = PROBE_NS * scaled(m->probe, PROBE_NS) + READING_NS * machine,
    .sample_ns = unwound ? stack : sample,
  };
}

uint64_t m6_kernel_cost(const struct m6_kernel_side *k, uint64_t samples, int unwound)
{
  struct m6_kernel_price p = m6_kernel_prices(&k->measured, unwound);
  double ns = (double)samples * p.sample_ns;
  if (k->switching.switches) ns += (double)m6_switches_taken(k->switching.switches) * p.record_ns;
  if (k->counters) ns += (double)k->boundaries * p.boundary_ns;
  for (unsigned i = 0; k->counters && i < k->counters->thread_count; i++) {
    const struct m6_thread_counters *t = &k->counters->threads[i];
    ns += (double)t->counted[M6_SLICES] * p.switch_ns + (double)t->calls * p.call_ns;
  }
  if (k->counters) ns -= (double)k->counters->unseen_slices * p.switch_ns;
  return ns > 0 && ns < 1e18 ? (uint64_t)ns : 0;
}
