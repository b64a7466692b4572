/* trend.c - see trend.h. */
#include "trend.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* All pairwise slopes, sorted: n (n - 1) / 2 of them. */
static uint32_t slopes_of(const double *x, const double *y, uint32_t n, double *out)
{
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = i + 1; j < n; j++)
      if (x[j] > x[i]) out[k++] = (y[j] - y[i]) / (x[j] - x[i]);
  qsort(out, k, sizeof *out, ascending);
  return k;
}
static double middle(const double *sorted, uint32_t n)
{
  return n == 0 ? NAN : (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* By how much the variance of S grows because residuals lean on their neighbours: at least 1. */
static double correction(const double *x, const double *y, uint32_t n, double slope)
{
  double rank[M6_TREND_MAX], mean = (n + 1) / 2.0, squares = 0, sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    rank[i] = 1;
    for (uint32_t j = 0; j < n; j++) {
      double a = y[i] - slope * x[i], b = y[j] - slope * x[j];
      rank[i] += b < a ? 1 : b == a && j != i ? 0.5 : 0;
    }
    squares += (rank[i] - mean) * (rank[i] - mean);
  }
  if (squares <= 0) return 1;
  for (uint32_t lag = 1; lag <= n / 3; lag++) {
    double product = 0;
    for (uint32_t i = 0; i + lag < n; i++) product += (rank[i] - mean) * (rank[i + lag] - mean);
    double rho = product / squares +
                 1.0 / n; /* in a short series it comes out low by so much at least (Marriott and Pope 1954) */
    if (fabs(rho) < 1.28 / sqrt(n)) continue; /* not told from noise; a doubtful one counts, for it only widens */
    sum += (double)(n - lag) * (n - lag - 1) * (n - lag - 2) * rho;
  }
  double c = 1 + 2 * sum / ((double)n * (n - 1) * (n - 2));
  return c > 1 ? c : 1;
}

struct m6_trend m6_trend_of(const double *x, const double *y, uint32_t n, double least)
{
  struct m6_trend t = {NAN, NAN, NAN, M6_VERDICT_UNKNOWN};
  if (n < M6_TREND_MIN || n > M6_TREND_MAX) return t;
  double *slopes = malloc((size_t)n * (n - 1) / 2 * sizeof *slopes);
  if (slopes == NULL) return t;
  uint32_t later = n - n / 2, k = slopes_of(x + n / 2, y + n / 2, later, slopes);
  double late = middle(slopes, k);
  k = slopes_of(x, y, n, slopes);
  t.slope = middle(slopes, k);
  double deviation = sqrt((double)n * (n - 1) * (2.0 * n + 5) / 18 * correction(x, y, n, t.slope));
  double reach = 1.96 * deviation, from = floor((k - reach) / 2), to = ceil((k + reach) / 2);
  t.low = from < 1 ? -INFINITY : slopes[(uint32_t)from - 1];
  t.high = to >= k ? INFINITY : slopes[(uint32_t)to];
  free(slopes);
  t.verdict = M6_VERDICT_STEADY;
  if (fabs(t.slope) < least || late / t.slope < 0.5) return t;
  if (t.low > 0) t.verdict = M6_VERDICT_GROWS;
  else if (t.high < 0) t.verdict = M6_VERDICT_SHRINKS;
  return t;
}
