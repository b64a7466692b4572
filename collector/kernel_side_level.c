/* kernel_side_level.c - less from the kernel, when the governor says so. See kernel_side.h.
 *
 * Below level full nothing is counted at system calls any more; below lite nothing at all. What was detached stays so: a thread that was
 * in a call meanwhile would be charged for all of it. With the interval doubled CPU samples are taken in every other period of
 * the caller's, which for many of them is the same, and holds for threads to come as well.
 */
#include "budgets.h"
#include "kernel_side.h"

void m6_kernel_level(struct m6_kernel_side *k, uint32_t level, int pause)
{
  if (k == NULL || k->opening || k->stopped) return;
  if (level == M6_LEVEL_MEMORY) {
    m6_kernel_stop(k);
    return;
  }
  if (level < M6_LEVEL_FULL && k->counters) m6_counters_calls_stop(k->counters);
  if (k->samples && k->paused != pause) {
    m6_samples_pause(k->samples, pause);
    k->paused = pause;
  }
}

uint32_t m6_kernel_period(int full)
{
  uint64_t us = m6_samples_period((uint32_t)m6_budget_cap(full ? M6_BUDGET_SAMPLES_FULL : M6_BUDGET_SAMPLES_LITE));
  uint64_t least = m6_budget_cap(M6_BUDGET_SAMPLES_PERIOD) * 1000u;
  return (uint32_t)(us > least ? us : least);
}

void m6_kernel_budgets(const struct m6_kernel_side *k, uint64_t frames_lost)
{
  if (k == NULL || k->opening) return;
  const struct m6_samples_status *s = &k->sampling;
  uint64_t rings = k->have_frames ? M6_FRAMES_RING_BYTES : 0;
  if (k->switching.switches) rings += m6_switches_ring_bytes(k->switching.switches);
  if (k->samples) {
    rings += m6_samples_ring_bytes(k->samples);
    m6_budget_use(k->level == M6_LEVEL_FULL ? M6_BUDGET_SAMPLES_FULL : M6_BUDGET_SAMPLES_LITE,
                  (1000000u + s->period_us / 2) / s->period_us);
    m6_budget_use(M6_BUDGET_SAMPLES_PERIOD, s->period_us / 1000u);
  }
  m6_budget_use(M6_BUDGET_KERNEL_RING, rings);
  m6_budget_overrun(M6_BUDGET_KERNEL_RING, frames_lost + (s->tier == M6_SAMPLES_PERF ? s->lost : 0));
  if (k->frame_place) m6_budget_use(M6_BUDGET_PROBE_TTL, (m6_monotonic_ns() - k->opened_ns) / 1000000u);
}
