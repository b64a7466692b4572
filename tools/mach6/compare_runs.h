/* compare_runs.h - several recordings a side: what changed beyond what runs of one program differ by. Pure, as
 * compare.h.
 *
 * Two recordings cannot tell a change of the program from a run that was another: another load, another layout of
 * memory. Several can. The unit is the run: each brings one number a node, the logarithm of its median (the median
 * present-to-present time for frames), and these few numbers are compared (summary measures: Matthews, Altman, Campbell
 * and Royston 1990; cluster-level analysis: Donner and Klar 2000).
 *
 *   test      Welch 1947's t, which takes no equal variances, with Satterthwaite's 1946 degrees of freedom; two runs a side at least, and
 *             with so few only what is far outside of how they differ
 *   effect    the ratio B / A of the geometric means of the medians, and its interval of 95 %
 *   many      Holm 1979, as in rank.h
 * How well each median is known within its run needs no estimate: it is in what the medians differ by. A side whose
 * runs are alike to the last digit is taken to differ by RUNS_LEAST_SD.
 */
#ifndef M6_COMPARE_RUNS_H
#define M6_COMPARE_RUNS_H

#include "compare.h"

#define RUNS_MOST 64u
#define RUNS_LEAST_SD 0.001

struct runs_row {
  char *path;              /* NULL: frame times */
  uint32_t runs_a, runs_b; /* that have it, with RANK_LEAST calls or more */
  double p50_a, p50_b;     /* s, geometric means of the medians; NaN where there are none */
  double sd_a, sd_b;       /* share that runs differ by; NaN with fewer than two */
  int tested;
  double t, df, p, ratio, low, high; /* when tested */
  double p_all;
  int changed;
};
struct runs_comparison {
  struct runs_row *row; /* [0] is frame times */
  uint32_t count, room, tested, changed, too_few;
  double resolution; /* share: half the width of the median interval */
};

/* 0, or -1 without memory. na, nb: 1 .. RUNS_MOST. */
int compare_runs(mach6_stats *const *a, uint32_t na, mach6_stats *const *b, uint32_t nb,
                 const struct compare_options *o, struct runs_comparison *out);
void compare_runs_free(struct runs_comparison *c);

/* Student's t: the chance of being further from 0 than t, on either side; and the t of which that chance is p. */
double student_p(double t, double df);
double student_t(double p, double df);

#endif
