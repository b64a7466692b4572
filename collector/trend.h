/* trend.h - does a level rise from session to session, by how much, and how sure is that?
 *
 * The slope is the median of all pairwise slopes (Theil 1950; Sen 1968, "Estimates of the regression coefficient based
 * on Kendall's tau", JASA 63), which a few odd sessions do not move. Its 95 % interval is Sen's, from the variance of
 * Kendall's S; what follows from one another weighs less than what is independent, so that variance is widened by the
 * autocorrelation of the residuals' ranks (Hamed and Rao 1998, "A modified Mann-Kendall trend test for autocorrelated
 * data", Journal of Hydrology 204), never narrowed. A rise is called growth when its interval excludes nothing at all,
 * it is worth a name, and the later half of the points still rises at half the pace at least: what warms up flattens
 * out, a leak does not.
 * Pure. Any thread.
 */
#ifndef M6_TREND_H
#define M6_TREND_H

#include <stdint.h>

#include "../shm/snapshot.h"

#define M6_TREND_MAX M6_SNAP_LINKS /* points */
#define M6_TREND_MIN 8u

struct m6_trend {
  double slope, low, high; /* NaN with fewer than M6_TREND_MIN points */
  int verdict;             /* enum m6_verdict */
};
/* x rises; `least`: a slope of less has no name. */
struct m6_trend m6_trend_of(const double *x, const double *y, uint32_t n, double least);

#endif
