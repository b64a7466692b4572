/* histogram.h - a log-linear histogram of durations in ns: M6_HIST_SUB buckets an octave, mergeable, of fixed size.
 *
 * Promise: a quantile read from it is within one bucket's width (1/32, 3.2 %) of the true order statistic; the maximum and sums are
 * exact. Durations under 32 ns have a bucket each; those beyond 2^44 ns (five hours) share the last.
 * Callers: frame.c, publish.c. No allocation, one thread.
 */
#ifndef M6_HISTOGRAM_H
#define M6_HISTOGRAM_H

#include <stdint.h>

#include "../shm/snapshot.h"

struct m6_histogram {
  uint64_t count, max;
  uint32_t n[M6_HIST_BUCKETS];
  uint64_t sum[M6_HIST_BUCKETS]; /* of each bucket's durations: makes lows exact but for one bucket */
};

static inline uint32_t m6_histogram_bucket(uint64_t ns)
{
  if (ns < M6_HIST_SUB) return (uint32_t)ns;
  uint32_t octave = 63 - (uint32_t)__builtin_clzll(ns); /* >= 5 */
  uint32_t b = (octave - 4) * M6_HIST_SUB + (uint32_t)(ns >> (octave - 5)) - M6_HIST_SUB;
  return b < M6_HIST_BUCKETS ? b : M6_HIST_BUCKETS - 1;
}
void m6_histogram_add(struct m6_histogram *h, uint64_t ns);
/* The q-quantile in ns (nearest rank, the bucket's mean); 0 when empty. */
uint64_t m6_histogram_quantile(const struct m6_histogram *h, double q);
/* Frames over time, a second, of the slowest `share` of all frames; NaN with fewer than `least` frames. */
double m6_histogram_low(const struct m6_histogram *h, double share, uint64_t least);

#endif
