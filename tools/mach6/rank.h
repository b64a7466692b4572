/* rank.h - did times change between two runs? For skewed data: by ranks, not by means.
 *
 *   test      Mann and Whitney 1947 (Wilcoxon's rank sum), normal approximation with ties; from 20 values on each side
 *   effect    Hodges and Lehmann 1963: the median of all differences of logarithms, so a ratio B / A; its interval by inverting
 *             the test
 *   many      Holm 1979: the chance of any false alarm among all nodes of one comparison is bounded
 *   dependence  frames are not independent of those before. The variance of a mean over n values that were drawn from a run of N
 *             is sigma^2 (1/n (1 - n/N) + f/N): f, the inflation by the dependence within the run, comes from batch
 *             means over the ranks of frame times (Fishman 1978). What independent values would give that variance is
 *             the effective number that test and interval use.
 *             A reservoir has no order, so a scope's own dependence is not known: it is taken to wander as its frames
 *             do, in absolute terms, so its f is 1 + (f of frames - 1) x (variance of frames / its variance), at most
 *             that of frames.
 * What this cannot see: how a scope wanders by itself, and what differs between runs of the same program (another load,
 * another address layout). Two files hold one run each, so nothing measures it; `least` of mach6 diff is there for
 * that, and compare_runs.h for several files a side.
 *
 * Pure; no allocation but in rank_inflation and rank_holm. Calls libm.
 */
#ifndef M6_RANK_H
#define M6_RANK_H

#include <stdint.h>

#define RANK_LEAST 20u /* values on each side, for a word on a change */

struct rank_side {
  const double *value; /* logarithms, ascending */
  uint32_t n;
  double effective; /* independent values that say as much */
};
struct rank_result {
  double z, p;             /* two-sided */
  double ratio, low, high; /* B / A, and its interval of 95 % */
};
struct rank_result rank_compare(const struct rank_side *a, const struct rank_side *b);

/* n values drawn from `of`, of which `units` are independent but for the inflation. */
double rank_effective(uint32_t n, uint64_t of, uint64_t units, double inflation);
/* By how much dependence inflates the variance of the series' mean rank; at least 1. In order of time. */
double rank_inflation(const double *series, uint32_t n);
/* The spread of sorted values: their standard deviation if they were normal, from the quartiles; tails do not count. */
double rank_spread(const double *sorted, uint32_t n);
/* The inflation of what spreads by `own` and wanders as a series does that spreads by `of` and has that inflation. */
double rank_inflation_of(double inflation, double of, double own);
/* p-values to adjusted ones, in place; NaN stays and does not count. 0, or -1 without memory. */
int rank_holm(double *p, uint32_t n);

#endif
