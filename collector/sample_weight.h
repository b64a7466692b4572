/* sample_weight.h - how many periods a CPU sample stands for, by the time at which it was taken.
 *
 * The governor samples one part in n of the time: each sample that is taken then stands for n periods. A sample is
 * often looked at after the next step, so the last M6_SAMPLE_WEIGHTS changes are kept; what is older than all of them
 * has the oldest one's weight before. Totals are sums of weights: times the period, an estimate of CPU time whatever
 * steps there were (Horvitz and Thompson 1952: each unit counts by the inverse of its chance to be drawn).
 * Pure. One thread. Callers: the sampler.
 */
#ifndef M6_SAMPLE_WEIGHT_H
#define M6_SAMPLE_WEIGHT_H

#include <stdint.h>

#define M6_SAMPLE_WEIGHTS 16u /* a step takes the governor 3 s: more than half a minute without a poll */

struct m6_sample_weights { /* zero: every sample stands for one period */
  struct {
    uint64_t since_ns;
    uint32_t weight, before;
  } step[M6_SAMPLE_WEIGHTS]; /* a ring */
  uint64_t steps;
};

/* From this time on. Times of steps do not fall. */
static inline void m6_sample_weigh(struct m6_sample_weights *w, uint64_t since_ns, uint32_t weight)
{
  uint32_t before = w->steps ? w->step[(w->steps - 1) % M6_SAMPLE_WEIGHTS].weight : 1;
  uint64_t at = w->steps++ % M6_SAMPLE_WEIGHTS;
  w->step[at].since_ns = since_ns;
  w->step[at].weight = weight ? weight : 1;
  w->step[at].before = before;
}

static inline uint32_t m6_sample_weight(const struct m6_sample_weights *w, uint64_t time_ns)
{
  uint32_t weight = 1;
  uint64_t kept = w->steps < M6_SAMPLE_WEIGHTS ? w->steps : M6_SAMPLE_WEIGHTS;
  for (uint64_t n = 1; n <= kept; n++) {
    uint64_t at = (w->steps - n) % M6_SAMPLE_WEIGHTS;
    if (w->step[at].since_ns <= time_ns) return w->step[at].weight;
    weight = w->step[at].before;
  }
  return weight;
}

#endif
