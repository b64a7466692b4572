/* reservoir.h - a uniform sample of a stream, of fixed size.
 *
 * Promise: after n values every one of them is in the sample with the same probability (Vitter 1985, "Random sampling with a
 * reservoir", Algorithm R). Two reservoirs merge into one that is as good as if it had seen both streams. Deterministic: the
 * same values and the same seed give the same sample. No allocation. Samples are floats: 24 bits are more than a sample of 128 can
 * tell apart. Callers: tree.c, frame.c. One thread.
 */
#ifndef M6_RESERVOIR_H
#define M6_RESERVOIR_H

#include <stdint.h>

#include "../shm/budget.h"

struct m6_rng {
  uint64_t state;
};
static inline void m6_rng_seed(struct m6_rng *r, uint64_t seed) { r->state = seed ? seed : 0x9e3779b97f4a7c15ull; }
/* xorshift64* (Marsaglia 2003, Vigna 2016): one multiply, passes what a sampler needs. */
static inline uint64_t m6_rng_next(struct m6_rng *r)
{
  uint64_t x = r->state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  r->state = x;
  return x * 0x2545f4914f6cdd1dull;
}
/* Uniform in [0, n), without a division (Lemire 2019; the bias of 2^-64 n is below anything that can be seen). */
static inline uint64_t m6_rng_below(struct m6_rng *r, uint64_t n)
{
  return (uint64_t)(((unsigned __int128)m6_rng_next(r) * n) >> 64);
}

struct m6_reservoir {
  uint64_t seen; /* values offered so far */
  float sample[M6_RESERVOIR];
};

static inline uint32_t m6_reservoir_size(const struct m6_reservoir *r)
{
  return r->seen < M6_RESERVOIR ? (uint32_t)r->seen : M6_RESERVOIR;
}
static inline void m6_reservoir_add(struct m6_reservoir *r, struct m6_rng *rng, float value)
{
  uint64_t n = r->seen++;
  if (n < M6_RESERVOIR) {
    r->sample[n] = value;
    return;
  }
  uint64_t at = m6_rng_below(rng, n + 1);
  if (at < M6_RESERVOIR) r->sample[at] = value;
}

/* Everything that `from` saw is now seen by `to`. `from` is unchanged. */
void m6_reservoir_merge(struct m6_reservoir *to, const struct m6_reservoir *from, struct m6_rng *rng);

/* The three quantiles, by linear interpolation between order statistics (Hyndman & Fan 1996, type 7). 0 when empty. */
struct m6_quantiles {
  float p10, p50, p90;
};
struct m6_quantiles m6_reservoir_quantiles(const struct m6_reservoir *r);

#endif
