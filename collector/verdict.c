/* verdict.c - does the heap grow from frame to frame, and how sure is that?
 *
 * Batch means (Schmeiser 1982, "Batch size effects in the analysis of simulation output": ten to thirty batches carry
 * nearly all the information). The first tenth of the frames is left out: caches fill. The rest of the series is joined
 * into at most M6_BATCHES equal batches; each gives one growth a frame, (reading at its end - reading at its start) /
 * frames. Warm-up that goes on is cut by the marginal standard error rule (White 1997, "An effective truncation
 * heuristic for bias reduction in simulation output"): of all cuts in the first half the one that leaves the mean with
 * the smallest standard error. The mean of what remains and Student's t give the 95 % interval. Growths of neighbours
 * lean against each other (what one batch took the next gives back), which makes the interval too wide, never too
 * narrow.
 * A verdict: it grows, or shrinks, when the interval leaves out 0; it is steady when all of the interval is within
 * M6_LEAK_TELLING; anything else is not known yet, and the interval says between what.
 * Callers: publish.c, site_growth.c. Pure.
 */
#include <math.h>

#include "frame.h"

#define M6_BATCHES 30u
#define M6_BATCHES_MIN 8u
#define M6_WARM_UP 0.10
#define M6_FRAMES_MIN 200u /* fewer are a start, not a rate */
#define M6_LEAK_LEAST 1.0  /* bytes a frame: less is no leak that anybody would look for */
#define M6_LEAK_TELLING                                                                                                \
  256.0 /* bytes a frame, 53 MiB an hour at 60 frames a second: a bound that is worth a "steady" */

/* Student's t, two-sided 95 %, by degrees of freedom. */
static double t95(uint32_t df)
{
  static const double t[] = {0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                             2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080,
                             2.074, 2.069,  2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return df < sizeof t / sizeof t[0] ? t[df] : 2.042;
}

struct m6_leak m6_leak_of(const struct m6_snap_point *series, uint32_t count)
{
  return m6_leak_beyond(series, count, M6_LEAK_LEAST);
}

struct m6_leak m6_leak_beyond(const struct m6_snap_point *series, uint32_t count, double least)
{
  struct m6_leak r = {NAN, NAN, M6_VERDICT_UNKNOWN, 0};
  /* The last point is usually not full; its frames would weigh more than others'. */
  uint32_t full = count;
  if (full > 1 && series[full - 1].frames < series[0].frames) full--;
  uint64_t frames = 0, seen = 0;
  for (uint32_t i = 0; i < full; i++) frames += series[i].frames;
  uint32_t from = 0; /* points of the warm-up */
  while (from < full && (double)seen < M6_WARM_UP * (double)frames) seen += series[from++].frames;
  if (from == 0 || from >= full) return r;
  uint32_t usable = full - from, each = (usable + M6_BATCHES - 1) / M6_BATCHES, batches = usable / each;
  from = full - batches * each;
  r.batches = batches;
  if (batches < M6_BATCHES_MIN || frames < M6_FRAMES_MIN) return r;
  double growth[M6_BATCHES];
  for (uint32_t b = 0; b < batches; b++) {
    const struct m6_snap_point *first = &series[from + b * each];
    double in = 0;
    for (uint32_t i = 0; i < each; i++) in += (double)first[i].frames;
    if (in <= 0) return r;
    growth[b] = ((double)first[each - 1].live - (double)first[-1].live) / in;
  }
  double best = INFINITY;
  for (uint32_t cut = 0; cut <= batches / 2 && batches - cut >= M6_BATCHES_MIN; cut++) {
    uint32_t n = batches - cut;
    double mean = 0, squares = 0;
    for (uint32_t b = cut; b < batches; b++) { /* Welford 1962 */
      double off = growth[b] - mean;
      mean += off / (b - cut + 1);
      squares += off * (growth[b] - mean);
    }
    if (cut > 0 && squares / ((double)n * n) >= best) continue;
    best = squares / ((double)n * n);
    r.batches = n;
    r.per_frame = mean;
    r.ci = t95(n - 1) * sqrt(squares / (n - 1) / n);
  }
  double size = fabs(r.per_frame);
  if (size >= least && size > r.ci) r.verdict = r.per_frame > 0 ? M6_VERDICT_GROWS : M6_VERDICT_SHRINKS;
  else if (size + r.ci <= M6_LEAK_TELLING) r.verdict = M6_VERDICT_STEADY;
  return r;
}
