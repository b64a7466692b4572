/* histogram.c - see histogram.h. */
#include "histogram.h"

#include <math.h>

void m6_histogram_add(struct m6_histogram *h, uint64_t ns)
{
  uint32_t b = m6_histogram_bucket(ns);
  h->count++;
  h->n[b]++;
  h->sum[b] += ns;
  if (ns > h->max) h->max = ns;
}

uint64_t m6_histogram_quantile(const struct m6_histogram *h, double q)
{
  if (h->count == 0) return 0;
  uint64_t rank = (uint64_t)ceil(q * (double)h->count);
  if (rank == 0) rank = 1;
  if (rank >= h->count) return h->max;
  uint64_t seen = 0;
  for (uint32_t b = 0; b < M6_HIST_BUCKETS; b++) {
    seen += h->n[b];
    if (seen >= rank) return h->sum[b] / h->n[b];
  }
  return h->max;
}

double m6_histogram_low(const struct m6_histogram *h, double share, uint64_t least)
{
  if (h->count < least || h->count == 0) return NAN;
  double frames = floor((double)h->count * share), left = frames, time = 0;
  for (uint32_t b = M6_HIST_BUCKETS; b-- > 0 && left > 0;) {
    if (h->n[b] == 0) continue;
    double take = h->n[b] < left ? h->n[b] : left;
    time += (double)h->sum[b] * (take / h->n[b]);
    left -= take;
  }
  return time > 0 ? frames / (time * 1e-9) : NAN;
}
