/* reservoir.c - merging and reading reservoirs; adding is in the header. See there for what is promised. */
#include "reservoir.h"

#include <stdlib.h>
#include <string.h>

/* Moves a random one of the first `left` samples to the end of them and gives it: sampling without replacement. */
static float draw(float *sample, uint32_t left, struct m6_rng *rng)
{
  uint32_t at = (uint32_t)m6_rng_below(rng, left);
  float value = sample[at];
  sample[at] = sample[left - 1];
  return value;
}

void m6_reservoir_merge(struct m6_reservoir *to, const struct m6_reservoir *from, struct m6_rng *rng)
{
  if (from->seen <= M6_RESERVOIR) { /* it holds its whole stream: offer it */
    for (uint32_t i = 0; i < from->seen; i++) m6_reservoir_add(to, rng, from->sample[i]);
    return;
  }
  if (to->seen == 0) {
    *to = *from;
    return;
  }
  /* Each place of the result is filled by drawing, without replacement, from the union of both streams: from a stream
   * with a probability in proportion to what is left of it. */
  struct m6_reservoir a = *to, b = *from;
  uint64_t left_a = a.seen, left_b = b.seen;
  uint32_t have_a = m6_reservoir_size(&a), have_b = M6_RESERVOIR;
  uint32_t n = 0;
  while (n < M6_RESERVOIR) {
    int from_a = have_b == 0 || (have_a != 0 && m6_rng_below(rng, left_a + left_b) < left_a);
    to->sample[n++] = from_a ? draw(a.sample, have_a--, rng) : draw(b.sample, have_b--, rng);
    if (from_a) left_a--;
    else left_b--;
  }
  to->seen = a.seen + b.seen;
}

static int by_value(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static float quantile(const float *sorted, uint32_t n, double q)
{
  double at = q * (n - 1);
  uint32_t i = (uint32_t)at;
  if (i + 1 >= n) return sorted[n - 1];
  return (float)(sorted[i] + (at - i) * ((double)sorted[i + 1] - sorted[i]));
}

struct m6_quantiles m6_reservoir_quantiles(const struct m6_reservoir *r)
{
  uint32_t n = m6_reservoir_size(r);
  if (n == 0) return (struct m6_quantiles){0, 0, 0};
  float sorted[M6_RESERVOIR];
  memcpy(sorted, r->sample, n * sizeof(float));
  qsort(sorted, n, sizeof(float), by_value);
  return (struct m6_quantiles){quantile(sorted, n, 0.1), quantile(sorted, n, 0.5), quantile(sorted, n, 0.9)};
}
