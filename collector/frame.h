/* frame.h - frame times: histogram, rolling median and spikes, the series behind the picture, retained records, fps.
 *
 * Two times: an interval runs from present to present (entry to entry): fps, lows, percentiles, spikes and the series
 * are of intervals, what a player sees. A frame's own time, mark to done, is the frame node's (books.h). A lump (frames
 * whose boundaries were lost) counts in the series and in fps, which is frames over time, but is no sample.
 *
 * Promise: memory is fixed from the first frame on; O(1) a frame, plus moving at most M6_SPIKE_WINDOW numbers. Times in
 * ns.
 * Callers: capture.c, publish.c. One thread.
 */
#ifndef M6_FRAME_H
#define M6_FRAME_H

#include "books.h"
#include "clock.h"
#include "histogram.h"

/* A spike is longer than M6_SPIKE_FACTOR times the rolling median and at least M6_SPIKE_OVER_NS longer than it: the
 * first finds what stands out, the second leaves out what nobody could see at a thousand frames a second. */
#define M6_SPIKE_FACTOR 2u
#define M6_SPIKE_OVER_NS 1000000u

struct m6_spike {
  uint64_t frame, time, median, at, allocs;
  int64_t d;
  struct m6_cause cause[M6_CAUSES]; /* node: of the settled tree; time in ticks */
};

struct m6_median {            /* of the last `most` values: the window in order of arrival, and sorted */
  uint32_t count, next, most; /* most 0: M6_SPIKE_WINDOW */
  uint64_t arrived[M6_SPIKE_WINDOW], sorted[M6_SPIKE_WINDOW];
};
void m6_median_add(struct m6_median *m, uint64_t value);
uint64_t m6_median_value(const struct m6_median *m); /* 0 when empty */

struct m6_frames {
  struct m6_histogram intervals;
  struct m6_median median;
  uint64_t spikes_total;
  uint64_t unjudged, unjudged_max, unjudged_frame; /* frames before there was a median, and the longest of them */
  uint32_t spike_count, series_count;
  struct m6_spike spikes[M6_SPIKES_RETAINED]; /* the worst, in no order */
  uint64_t series_each;                       /* frames in one point */
  struct m6_snap_point series[M6_SERIES];     /* all but the last are full, but for lumps */
  int64_t reading_start;
  struct m6_snap_frame *retained;      /* a ring of retained_most */
  uint32_t retained_most, spikes_most; /* M6_FRAMES_RETAINED, M6_SPIKES_RETAINED, or what budgets made of them */
  uint32_t median_min;                 /* frames before the first spike: M6_SPIKE_WINDOW_MIN, or the same */
  uint64_t retained_total;
  uint32_t saturated;
};

int m6_frames_init(struct m6_frames *f, int64_t reading_start); /* 0 or ENOMEM */
void m6_frames_free(struct m6_frames *f);
/* What one frame looked like, for what else is kept of it; `frames` 0: it was startup, the rest is 0. */
struct m6_frame_seen {
  uint64_t frames;
  uint64_t interval, median, at; /* ns; the median is that of the frames before it */
  int stall;                     /* its interval is over the spike threshold */
  const struct m6_snap_frame *record;
};
struct m6_frame_seen m6_frames_add(struct m6_frames *f, const struct m6_ended *e, struct m6_rate rate,
                                   uint64_t start_clock);

/* Does the heap reading grow from frame to frame? Batch means over the series (verdict.c). */
struct m6_leak {
  double per_frame, ci; /* bytes a frame, half-width of its 95 % interval; NaN when there was too little to see */
  int verdict;          /* enum m6_verdict */
  uint32_t batches;
};
struct m6_leak m6_leak_of(const struct m6_snap_point *series, uint32_t count);
/* The same where a growth of fewer than `least` bytes a frame has no name. */
struct m6_leak m6_leak_beyond(const struct m6_snap_point *series, uint32_t count, double least);

#endif
