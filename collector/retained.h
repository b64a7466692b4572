/* retained.h - what happened when, for as long as a session may last: seconds, memory-growth events, stalls.
 *
 *   bucket   one second: frames that ended in it, and what every counter went up by; beside it, what the kernel and the sites
 *            counted in it, which is not always there
 *   growth   the heap reading reached a new high, at least M6_GROWTH_STEP and a sixteenth of the high before it above the
 *            event before: as many a doubling for a small heap as for a large one, and a steady leak is a row of them
 *   stall    an interval over the spike threshold (frame.h: more than M6_SPIKE_FACTOR times the rolling median, and
 *            M6_SPIKE_OVER_NS more than it)
 *
 * Promise: fixed memory from the start, O(1) a frame and a reading; when a buffer is full the oldest entry gives way
 * and is counted. Buckets are in order of time, whatever a target's clock says; what is late goes to its own second
 * while that is kept, else to the oldest that is. Callers: capture.c, publish.c, kernel_side_seconds.c,
 * kernel_side_view.c. One thread.
 */
#ifndef M6_RETAINED_H
#define M6_RETAINED_H

#include "frame.h"

#define M6_GROWTH_STEP 65536 /* bytes */
#define M6_GROWTH_SHARE 16   /* of the high before */

struct m6_moment { /* cumulative counters, at one moment */
  uint64_t at;     /* ns since the session's start */
  uint64_t allocs, bytes, frees;
  __int128 live, mapped;
  uint64_t records, lost;
  uint32_t threads;
};

struct m6_retained {
  struct m6_snap_bucket bucket[M6_BUCKETS_RETAINED];
  struct m6_snap_kernel_second kernel[M6_BUCKETS_RETAINED]; /* of the same seconds, at the same places; zeros */
  struct m6_snap_site_second sites[M6_BUCKETS_RETAINED];    /* where nobody brought readings */
  struct m6_snap_growth growth[M6_GROWTH_RETAINED];
  struct m6_snap_stall stall[M6_STALLS_RETAINED];   /* node: of the settled tree; node_time in ticks */
  uint64_t bucket_total, growth_total, stall_total; /* ever; the newest are kept, entry k at k % room */
  uint64_t buckets_most, growth_most, stalls_most;  /* the room: the arrays', or less where budgets say so */
  uint64_t second;                                  /* of the last reading */
  int64_t high;                                     /* live at the last growth event */
  uint64_t frame;                                   /* the last present */
  uint32_t saturated;
  struct m6_moment last;
  uint64_t collector_ns, target_cpu_ns;
  struct m6_snap_site_second sites_then; /* the last reading */
};

void m6_retained_init(struct m6_retained *r, const struct m6_moment *start);
void m6_retained_frame(struct m6_retained *r, const struct m6_ended *e, const struct m6_frame_seen *seen);
void m6_retained_sample(struct m6_retained *r, const struct m6_moment *now);
/* CPU time so far, of the collector and of the target: goes to the last bucket. */
void m6_retained_cost(struct m6_retained *r, uint64_t collector_ns, uint64_t target_cpu_ns);
/* Readings of what the kernel counted, the one before and this one, taken `at` (ns since the session's start, by the
 * collector's clock); and of the sites, in the second of the last m6_retained_sample. What went down is taken off: sums
 * stay exact. */
void m6_retained_kernel(struct m6_retained *r, uint64_t at, const struct m6_snap_kernel_second *then,
                        const struct m6_snap_kernel_second *now);
void m6_retained_sites(struct m6_retained *r, const struct m6_snap_site_second *now);

/* What it takes of a snapshot at most, and the regions themselves: at base + at, which is 8-aligned, with the head's
 * counts and offsets; gives the end. `out` translates nodes of the settled tree. */
#define M6_RETAINED_SNAP_BYTES                                                                                         \
  (M6_BUCKETS_RETAINED * sizeof(struct m6_snap_bucket) + M6_GROWTH_RETAINED * sizeof(struct m6_snap_growth) +          \
   M6_STALLS_RETAINED * sizeof(struct m6_snap_stall))
size_t m6_retained_put(const struct m6_retained *r, struct m6_rate rate, uint32_t (*out)(void *, uint32_t), void *arg,
                       char *base, size_t at, struct m6_snapshot *s);
/* The rows of the seconds that are kept, oldest first; gives their number, which is that of the buckets. */
uint32_t m6_retained_kernel_put(const struct m6_retained *r, struct m6_snap_kernel_second *to);
uint32_t m6_retained_sites_put(const struct m6_retained *r, struct m6_snap_site_second *to);
static inline uint32_t m6_retained_seconds(const struct m6_retained *r)
{
  return (uint32_t)(r->bucket_total < r->buckets_most ? r->bucket_total : r->buckets_most);
}

#endif
