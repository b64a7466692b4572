/* compare.h - two recordings, node by node: what changed, and how sure that is. Pure: handles of the library in, a
 * table out.
 *
 * Nodes are the same when the labels from below the root down to them are. Times are compared by rank.h, over the
 * samples that the recordings carry; frame times over all frames that were kept. Counts have no distribution in a
 * recording and are given as they are.
 */
#ifndef M6_COMPARE_H
#define M6_COMPARE_H

#include "../../collector/stats_internal.h"
#include "rank.h"

struct compare_row {
  const mach6_node *a, *b; /* NULL: not in that one. Both NULL: frame times, present to present */
  double p50_a, p50_b;     /* s */
  uint32_t n_a, n_b;       /* values that were compared */
  int tested;              /* 0: too few on a side, or only on one */
  struct rank_result rank;
  double p_all; /* adjusted for all that were tested */
  int changed;  /* p_all < alpha, and the ratio is `least` away from 1 */
};
struct compare_options {
  double alpha; /* of any false alarm in the whole comparison */
  double least; /* share: a smaller change is not worth a word */
};
struct comparison {
  struct compare_row *row; /* [0] is frame times */
  uint32_t count, tested, changed, only_a, only_b, too_few;
  double resolution; /* share: half the width of the median interval: about the least that can be seen */
  double inflation_a, inflation_b;
  double leak_p; /* of the two leaks being the same; NaN when one is not known */
};

/* 0, or -1 without memory. */
int compare(const mach6_stats *a, const mach6_stats *b, const struct compare_options *o, struct comparison *out);
void compare_free(struct comparison *c);

#endif
