/* kernel_side_level.c - less from the kernel while the governor says so. See kernel_side.h.
 *
 * What is detached, kernel_side_hold.c knows. CPU samples are taken in one look out of so many, and stand for as many
 * periods each: an event's period does not reach threads that inherited it, a pause does, and threads to come follow.
 */
#include "budgets.h"
#include "kernel_side.h"

uint32_t m6_kernel_duty(uint32_t period_us, uint32_t level, uint32_t interval)
{
  uint32_t wanted = m6_kernel_period(level == M6_LEVEL_FULL);
  uint32_t looks = period_us < wanted ? (wanted + period_us - 1) / period_us : 1; /* opened at full, now at lite */
  return looks * interval;
}

uint32_t m6_kernel_level(struct m6_kernel_side *k, uint32_t level, uint32_t interval)
{
  if (k == NULL || k->opening || k->stopped) return M6_LEVEL_FULL;
  uint32_t most = m6_kernel_hold(k, level);
  k->level_now = level = level < most ? level : most;
  if (level == M6_LEVEL_MEMORY || k->resting || k->samples == NULL) return most;
  uint32_t duty = m6_kernel_duty(k->sampling.period_us, level, interval);
  if (duty != k->duty) {
    m6_samples_weight(k->samples, duty);
    k->duty = duty;
    k->looks = 0;
  }
  int pause = k->looks++ % duty != 0;
  if (k->paused != pause) m6_samples_pause(k->samples, pause);
  k->paused = pause;
  return most;
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
  if (k->switching.switches) {
    rings += m6_switches_ring_bytes(k->switching.switches);
    frames_lost += m6_switches_dropped(k->switching.switches);
  }
  if (k->samples) {
    rings += m6_samples_ring_bytes(k->samples);
    uint32_t us = s->period_us * k->duty;
    for (int full = 0; full < 2; full++) /* a level that was left uses nothing any more */
      m6_budget_use(
        full ? M6_BUDGET_SAMPLES_FULL : M6_BUDGET_SAMPLES_LITE,
        k->level_now != M6_LEVEL_MEMORY && full == (k->level_now == M6_LEVEL_FULL) ? (1000000u + us / 2) / us : 0);
    m6_budget_use(M6_BUDGET_SAMPLES_PERIOD, s->period_us / 1000u);
  }
  m6_budget_use(M6_BUDGET_KERNEL_RING, rings);
  m6_budget_overrun(M6_BUDGET_KERNEL_RING, frames_lost + (s->tier == M6_SAMPLES_PERF ? s->lost : 0));
  if (k->frame_place) m6_budget_use(M6_BUDGET_PROBE_TTL, (m6_monotonic_ns() - k->opened_ns) / 1000000u);
}
