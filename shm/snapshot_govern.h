/* snapshot_govern.h - what a snapshot says about the session's bounds: budgets, the governor's steps, the chain, the
 * heap as the kernel sees it. Part of snapshot.h; the same rules. Every count is checked against its array before it is
 * used.
 */
#ifndef M6_SNAPSHOT_GOVERN_H
#define M6_SNAPSHOT_GOVERN_H

#include <stdint.h>

#include "layout.h"

/* ---- budgets ------------------------------------------------------------------------------------------------------
 * */

#define M6_SNAP_BUDGETS 48
/* In `used`: another process uses it (the dashboard, an analysis), and shows it itself. */
#define M6_BUDGET_ELSEWHERE UINT64_MAX
enum m6_unit {
  M6_UNIT_COUNT,
  M6_UNIT_BYTES,
  M6_UNIT_MS,
  M6_UNIT_PPM /* millionths of a share */,
  M6_UNIT_HZ,
  M6_UNITS
};
struct m6_snap_budget {
  char name[24];     /* printable ASCII, NUL-terminated; two words with a dot between */
  uint64_t cap;      /* as it holds now: the constant, or what an option made of it */
  uint64_t used;     /* the most that was used, or what is used now: as the row has it; or M6_BUDGET_ELSEWHERE */
  uint64_t overruns; /* how often it was reached and something was refused, dropped, overwritten or ended */
  uint32_t unit;     /* enum m6_unit */
  uint32_t floor;    /* 1: the cap bounds from below (an interval) */
};

/* ---- the governor -------------------------------------------------------------------------------------------------
 * */

#define M6_SNAP_STEPS 64
struct m6_snap_step {
  uint64_t at_ns;                      /* since the session's start */
  uint32_t from_level, to_level;       /* enum m6_level */
  uint32_t from_interval, to_interval; /* sampling intervals, in units of the level's own: 1 or 2 */
  uint32_t from_sites, to_sites;       /* mean bytes between two sampled allocations; 0: none were asked for */
  double cost, budget;                 /* shares, when it was decided: the measured one, the level's */
};

/* ---- chained sessions ---------------------------------------------------------------------------------------------
 * */

#define M6_SNAP_LINKS 288 /* a day of sessions of 300 s */
struct m6_snap_link {     /* one session of the chain that is closed */
  int64_t reading_start,
    reading_end; /* process heap readings, bytes: absolute, so that one's end is the next one's start */
  int64_t sum_d, sum_i;
  int64_t level;     /* median of its frames' readings: what the leak is told from */
  uint64_t presents; /* in it */
  uint64_t middle;   /* the chain's frame number at its middle */
  uint64_t elapsed_ns;
  uint32_t closed; /* its books close, and its start is the end of the one before */
  uint32_t end;    /* enum m6_end; M6_END_NONE: joined to the next */
};

/* ---- the heap as the kernel sees it ---------------------------------------------------------------------------------
 * */

struct m6_snap_heap { /* /proc/PID/smaps, and for pss smaps_rollup; bytes */
  uint64_t count;     /* measurements so far; 0: none, and nothing else holds */
  uint64_t at_ns;     /* of the last one, since the session's start */
  uint64_t took_ns;   /* how long it took, and so for how long the target's mappings may have been held */
  uint64_t rss, pss, anonymous, swap;
  uint64_t held;   /* resident or swapped, in what may be the allocator's; 0: not known */
  int64_t live;    /* in the allocator at that moment; below 0: not known */
  int64_t mapped;  /* what the program itself had mapped more at that moment than at the session's start */
  uint64_t missed; /* due while one was still pending */
  int32_t error;   /* errno of the last one that failed; 0 */
  uint32_t free_;
};

struct m6_snap_govern {
  uint32_t budget_count, step_count, link_count, sessions_wanted; /* sessions_wanted: of the chain; 1 = no chain */
  uint64_t steps_total;                                           /* step_count are the last of them */
  uint32_t level, interval;                                       /* now */
  uint64_t held_ns[M6_LEVELS];                                    /* time at each level, by enum m6_level */
  double cost, budget; /* the last measured share, and the level's; NaN when not measured yet */
  double cost_shim, cost_kernel, cost_collector; /* the parts of `cost` */
  struct m6_snap_heap heap;
  double chain_per_frame, chain_low, chain_high; /* leak, bytes a frame, with its 95 % interval; NaN when unknown */
  uint32_t chain_verdict, chain_closed;          /* enum m6_verdict; all links, and the chain as a whole */
  struct m6_snap_budget budgets[M6_SNAP_BUDGETS];
  struct m6_snap_step steps[M6_SNAP_STEPS];
  struct m6_snap_link links[M6_SNAP_LINKS];
};
_Static_assert(sizeof(struct m6_snap_budget) == 56 && sizeof(struct m6_snap_step) == 48,
               "size must not change within a version");
_Static_assert(sizeof(struct m6_snap_link) == 72 && sizeof(struct m6_snap_heap) == 96,
               "size must not change within a version");

#endif
