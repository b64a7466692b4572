/* governor.h - keeps what mach6 costs within its level's budget: measures, steps down, steps up again, and remembers
 * each step.
 *
 * The cost is CPU time: the shim's operations at their calibrated price, the programs in the kernel, the collector's
 * own. It is taken as a share of one core's time, or of the target's CPU time where that is more: a game that waits for
 * most of its frame is slowed by what is spent in the frame, not by a share of the little that it needs.
 *
 * The rungs, from above: each level with its sampling interval, then with the interval doubled, then the next level.
 * Below the last rung is the session's end: counting cannot pause, since blocks that come and go unseen would open the
 * books for good, while a session that ends has closed books and an inert shim behind it.
 * Sites are a ladder of their own, on any level: where sampled allocations make a quarter of what is too much or more,
 * the step is theirs. The distance between two samples is doubled, to M6_GOVERNOR_SITES times what was asked for, then
 * to the longest there is (M6_SITE_INTERVAL_MAX, next to nothing). Never to none: each sample stands for what the
 * distance was that it was drawn with, so that totals are estimates of the whole session as long as there is one;
 * without any, what came after would be missing from them. Going up, sites come first.
 * There nothing is wrong with a little more: a player does not feel 1 %, and a session that ends is felt; so the end
 * comes only when the cost is M6_GOVERNOR_TOLERATED times the budget. What is over it until then is counted and shown.
 *   down   when the cost was over the level's budget for M6_GOVERNOR_OVER_NS without a break
 *   up     when it was under half the budget of the rung above for M6_GOVERNOR_UNDER_NS; doubled each time that a step up had to be taken
 *          back within that time, so that it does not swing
 * After a step nothing is decided until the window holds nothing older than the step.
 *
 * What is counted is exact at every level and needs no rescaling; what is sampled stands for the interval that it was
 * taken at: CPU samples by sample_weight.h, allocations by the distance in their records.
 * Pure: no clock, no system call, no allocation. Callers: bounds.c. One thread.
 */
#ifndef M6_GOVERNOR_H
#define M6_GOVERNOR_H

#include <stdint.h>

#include "../shm/layout.h"
#include "../shm/snapshot.h"

#define M6_GOVERNOR_WINDOW_NS 2000000000ull
#define M6_GOVERNOR_OVER_NS 3000000000ull
#define M6_GOVERNOR_UNDER_NS 10000000000ull
#define M6_GOVERNOR_TOLERATED 4.0   /* times the budget, on the last rung */
#define M6_GOVERNOR_BACKOFF_MAX 16u /* times UNDER_NS */
#define M6_GOVERNOR_SAMPLES 32u
#define M6_GOVERNOR_SITES 64u         /* times the distance that was asked for, and then the longest */
#define M6_GOVERNOR_SITES_EVERY 1024u /* what follows every allocation */

struct m6_spent { /* all in ns since any moment, the same one for all; each only grows */
  uint64_t now, shim, kernel, collector, target_cpu;
  uint64_t sites; /* of shim and collector: sampled allocations */
};
struct m6_rung {
  uint32_t level, interval; /* enum m6_level; 1 or 2 */
  uint32_t sites;           /* mean bytes between two sampled ones; 0: none */
};
enum m6_governor_says { M6_GOVERNOR_STAY, M6_GOVERNOR_DOWN, M6_GOVERNOR_UP, M6_GOVERNOR_END };

struct m6_governor {
  double budget[M6_LEVELS]; /* share, by level */
  struct m6_rung at, top;   /* now; what was asked for, or what can be had of it: it never goes higher */
  uint64_t start_ns;
  struct m6_spent window[M6_GOVERNOR_SAMPLES];
  uint32_t count, next;
  double cost, shim, kernel, collector; /* the last measurement and its parts; NaN before the first */
  double sites;                         /* of shim and collector */
  uint64_t over_since, under_since;     /* 0: it is not */
  uint64_t last_up;
  uint32_t backoff;
  uint64_t overs[M6_LEVELS]; /* measurements over the budget of their level, by level */
  double most[M6_LEVELS];    /* the highest cost that was measured at each level */
  uint64_t steps_total;
  struct m6_snap_step steps[M6_SNAP_STEPS]; /* a ring: the last of them */
};

void m6_governor_begin(struct m6_governor *g, enum m6_level level, const double budget[M6_LEVELS], uint32_t sites,
                       uint64_t now_ns);
/* What was spent until now: measures over the window, decides. `at` has changed when it says DOWN or UP. */
enum m6_governor_says m6_governor_look(struct m6_governor *g, const struct m6_spent *spent);
/* A level that it stepped up to cannot be had: back to the one below, which is the top from now on. */
void m6_governor_refused(struct m6_governor *g, enum m6_level level, uint64_t now_ns);
/* The steps in their order, the last M6_SNAP_STEPS at most; gives how many. */
uint32_t m6_governor_steps(const struct m6_governor *g, struct m6_snap_step out[M6_SNAP_STEPS]);

#endif
