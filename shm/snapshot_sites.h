/* snapshot_sites.h - sampled allocations by site, as part of a snapshot (snapshot.h): a head in struct m6_snapshot, and
 * rows.
 *
 * All amounts are estimates but those named exact. `low` and `high` bound 95 %; where samples are missing `bytes` is
 * what was seen, and `high` holds all that the missing ones can stand for (collector/sites.h): then the two are no
 * longer about as far from `bytes`. Growth, ages and lifetimes are in frames, or in seconds where there are none. A
 * row's stack is text: a line for each function from the innermost one on, each "function TAB module TAB file:line"
 * (the last may be empty); a line that begins with a TAB-less "^" is inlined into the next. While the session runs,
 * names are those of symbol tables, without lines and inlined functions; for a dump, for whoever watches, and at the
 * end all is looked up.
 */
#ifndef M6_SNAPSHOT_SITES_H
#define M6_SNAPSHOT_SITES_H

#include <stdint.h>

#include "budget.h"

struct m6_snap_amount {
  double bytes, low, high, blocks;
  uint64_t samples;
};
struct m6_snap_site {
  uint32_t scope_offset, scope_bytes; /* innermost open scope; 0 bytes: none */
  uint32_t stack_offset, stack_bytes; /* 0 bytes: not kept */
  struct m6_snap_amount made;         /* in the session */
  struct m6_snap_amount in_frames;    /* after the first present */
  struct m6_snap_amount live;         /* now */
  struct m6_snap_amount same_frame;   /* died in the frame they were born in */
  double peak, peak_low, peak_high;   /* most bytes live at one time; 95 % of what lived then */
  double dead_blocks, dead_frames;    /* blocks whose death is known, sum of their lifetimes */
  double growth, growth_error;        /* bytes a frame (a second); NaN when unknown */
  double age;                         /* of what lives, mean; NaN when nothing does */
  uint32_t oldest, suspect;           /* suspect: it grows, and still does */
  uint32_t unnamed, free_;            /* unnamed: the stack's names are still being looked up */
};

/* One second, as in struct m6_snap_bucket: what these counts of struct m6_snap_sites went up by. */
struct m6_snap_site_second {
  uint64_t second;
  int64_t samples, dropped, dropped_bytes;
  int64_t maps, maps_dropped;
};

struct m6_snap_sites {
  uint32_t interval; /* mean bytes between two sampled ones; 0: no sites were asked for, and all else is 0 */
  uint32_t row_count;
  uint64_t rows_offset;
  uint32_t sites, per_second; /* different sites in all; growth is per second: there were no frames */
  struct m6_snap_amount made, in_frames, live, same_frame;
  uint64_t exact_bytes, exact_count; /* allocated in the session, from the books */
  int64_t exact_live;                /* what the heap reading changed by */
  double peak, peak_low, peak_high;
  uint64_t samples, dropped, stackless, untracked, deaths_lost, refused;
  uint64_t dropped_bytes;        /* what the dropped ones stand for, at most; exactly with interval 1 */
  double price_ns;               /* of one sample to the game, calibrated; NaN when it is not known */
  uint64_t cost_ns;              /* of all of them; in shim_ns */
  uint64_t stacks, stacks_whole; /* unwound; to a thread's first function */
  /* What the program maps itself (mmap, mremap, brk), every call of it, in rows of their own: not in the sums above. */
  uint32_t map_count, map_sites;
  uint64_t maps_offset;
  uint64_t maps, maps_dropped; /* calls; of these, without a record */
  uint64_t maps_dropped_bytes; /* of those without */
  double maps_made, maps_live; /* bytes of those with one */
  uint64_t seconds_offset;
  uint32_t second_count; /* as many as buckets; 0 without sites */
  uint32_t free_;
  uint64_t unmaps_dropped; /* ends of ranges, of munmap, mremap and the break, without a record */
  uint64_t unmaps_dropped_bytes;
  double maps_untracked; /* bytes whose end will not be known: there was no room for so many ranges */
  /* Where nothing is dropped, maps_live = the books' `mapped` + these two - maps_untracked, exactly. */
  int64_t unmapped_elsewhere; /* bytes that went, and that no call of this session had mapped */
  /* Bytes that were mapped at an address of the caller's (MAP_FIXED), where no such call had mapped any. */
  int64_t placed_elsewhere;
};

_Static_assert(sizeof(struct m6_snap_site) == 16 + 4 * 40 + 10 * 8 && sizeof(struct m6_snap_site_second) == 48,
               "size must not change within a version");

#endif
