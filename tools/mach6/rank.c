/* rank.c - see rank.h. */
#include "rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS 96u /* of a side that go into the pairs: its quantiles, when there are more */
#define BATCHES 32u
#define Z95 1.959964

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* P(B > A) + P(B = A) / 2, and the share of the variance that ties leave. */
static double superiority(const struct rank_side *a, const struct rank_side *b, double *untied)
{
  double wins = 0, ties = 0, all = (double)a->n + b->n;
  uint32_t i = 0, k = 0;
  while (i < a->n || k < b->n) {
    double v = i < a->n && (k == b->n || a->value[i] <= b->value[k]) ? a->value[i] : b->value[k];
    uint32_t na = 0, nb = 0;
    while (i + na < a->n && a->value[i + na] == v) na++;
    while (k + nb < b->n && b->value[k + nb] == v) nb++;
    wins += (double)nb * ((double)i + 0.5 * na);
    double t = (double)na + nb;
    ties += t * t * t - t;
    i += na;
    k += nb;
  }
  *untied = 1 - ties / (all * all * all - all);
  return wins / ((double)a->n * b->n);
}

static uint32_t thin(const struct rank_side *s, double out[POINTS])
{
  if (s->n <= POINTS) {
    memcpy(out, s->value, s->n * sizeof *out);
    return s->n;
  }
  for (uint32_t i = 0; i < POINTS; i++) out[i] = s->value[(uint32_t)(((double)i + 0.5) / POINTS * s->n)];
  return POINTS;
}

static double at_share(const double *sorted, uint32_t n, double share)
{
  double at = share * n - 0.5;
  if (at <= 0) return sorted[0];
  if (at >= n - 1) return sorted[n - 1];
  uint32_t i = (uint32_t)at;
  return sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]);
}

struct rank_result rank_compare(const struct rank_side *a, const struct rank_side *b)
{
  static double pair[POINTS * POINTS];
  double pa[POINTS], pb[POINTS], untied;
  struct rank_result r;
  double sd = sqrt((a->effective + b->effective + 1) / (12 * a->effective * b->effective));
  double over = superiority(a, b, &untied) - 0.5;
  double spread = sd * sqrt(untied > 0 ? untied : 0);
  r.z = spread > 0 ? over / spread : 0;
  r.p = erfc(fabs(r.z) / M_SQRT2);
  uint32_t na = thin(a, pa), nb = thin(b, pb), n = 0;
  for (uint32_t i = 0; i < na; i++)
    for (uint32_t k = 0; k < nb; k++) pair[n++] = pb[k] - pa[i];
  qsort(pair, n, sizeof *pair, by_value);
  r.ratio = exp(at_share(pair, n, 0.5));
  r.low = exp(at_share(pair, n, 0.5 - Z95 * sd));
  r.high = exp(at_share(pair, n, 0.5 + Z95 * sd));
  return r;
}

double rank_effective(uint32_t n, uint64_t of, uint64_t units, double inflation)
{
  if (n == 0) return 0;
  if (of < n) of = n;
  if (units == 0 || units > of) units = of;
  double e = 1 / ((1 - (double)n / (double)of) / n + inflation / (double)units);
  return e < 1 ? 1 : e;
}

double rank_spread(const double *sorted, uint32_t n)
{
  return n ? (at_share(sorted, n, 0.75) - at_share(sorted, n, 0.25)) / 1.349 : 0;
}

double rank_inflation_of(double inflation, double of, double own)
{
  double share = own > 0 ? of * of / (own * own) : 1;
  return 1 + (inflation - 1) * (share < 1 ? share : 1);
}

struct place {
  double value;
  uint32_t at;
};
static int by_place(const void *a, const void *b)
{
  const struct place *x = a, *y = b;
  return x->value != y->value ? (x->value > y->value) - (x->value < y->value) : (x->at > y->at) - (x->at < y->at);
}

double rank_inflation(const double *series, uint32_t n)
{
  if (n < 2 * BATCHES) return 1;
  struct place *p = malloc(n * sizeof *p);
  double *rank = malloc(n * sizeof *rank), between = 0;
  if (!p || !rank) {
    free(p);
    free(rank);
    return 1;
  }
  for (uint32_t i = 0; i < n; i++) p[i] = (struct place){series[i], i};
  qsort(p, n, sizeof *p, by_place);
  for (uint32_t i = 0, end; i < n; i = end) { /* ties share their mean rank */
    for (end = i + 1; end < n && p[end].value == p[i].value;) end++;
    for (uint32_t k = i; k < end; k++) rank[p[k].at] = 0.5 * ((double)i + end - 1);
  }
  uint32_t each = n / BATCHES, used = each * BATCHES;
  double mean = 0, within = 0;
  for (uint32_t i = 0; i < used; i++) mean += rank[i] / used;
  for (uint32_t i = 0; i < used; i++) within += (rank[i] - mean) * (rank[i] - mean) / (used - 1);
  for (uint32_t b = 0; b < BATCHES; b++) {
    double m = 0;
    for (uint32_t i = 0; i < each; i++) m += rank[b * each + i] / each;
    between += (m - mean) * (m - mean) / (BATCHES - 1);
  }
  free(p);
  free(rank);
  double f = within > 0 ? each * between / within : 1;
  return f > 1 ? f : 1;
}

int rank_holm(double *p, uint32_t n)
{
  struct place *order = malloc((n ? n : 1) * sizeof *order);
  uint32_t m = 0;
  double most = 0;
  if (!order) return -1;
  for (uint32_t i = 0; i < n; i++)
    if (!isnan(p[i])) order[m++] = (struct place){p[i], i};
  qsort(order, m, sizeof *order, by_place);
  for (uint32_t i = 0; i < m; i++) {
    double v = order[i].value * (m - i);
    if (v > most) most = v;
    p[order[i].at] = most < 1 ? most : 1;
  }
  free(order);
  return 0;
}
