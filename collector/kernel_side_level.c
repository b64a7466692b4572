/* kernel_side_level.c - less from the kernel, when the governor says so. See kernel_side.h.
 *
 * Below level full nothing is counted at system calls any more; below lite nothing at all. What was detached stays so: a thread that was
 * in a call meanwhile would be charged for all of it. With the interval doubled CPU samples are taken in every other period of
 * the caller's, which for many of them is the same, and holds for threads to come as well.
 */
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
