/* snapshot.h - live stats: what the collector publishes, and what every inspector reads.
 *
 * A snapshot is one self-contained block: struct m6_snapshot, then nodes, spikes, retained frames, buckets, growth
 * events, stalls, reservoirs' samples, sites, then text, then what the kernel side adds (snapshot_kernel.h). Frames and
 * samples are in final snapshots and in those for a dump only. It travels three ways: in the live-stats file, under a
 * seqlock, twice, so that a reader nearly always finds one at rest; as the plain contents of a file descriptor when a
 * session has ended; and as a dump (collector/dump.h has the table of its fields).
 *
 * The live-stats file is /dev/shm/mach6-stats.<pid>.<load time in hex>, where pid is the target's as the collector's
 * namespace counts, mode 0600, owned by the target's user; the collector is its only writer. Readers check every count
 * and offset against `bytes` before they use it (the library behind mach6_stats.h does).
 * Units: times in nanoseconds, memory in bytes, both exact integers; conversion to seconds and KiB is the payload's.
 */
#ifndef M6_SNAPSHOT_H
#define M6_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include "budget.h"
#include "snapshot_govern.h"
#include "snapshot_kernel.h"
#include "snapshot_modules.h"
#include "snapshot_sites.h"

#define M6_SNAPSHOT_MAGIC 0x315041533648434dull /* "MCH6SAP1" in memory */
#define M6_SNAPSHOT_VERSION 6u
#define M6_STATS_MAGIC 0x315454533648434dull /* "MCH6STT1" */
#define M6_STATS_PREFIX "mach6-stats."

enum m6_node_kind { M6_NODE_ROOT, M6_NODE_STARTUP, M6_NODE_FRAME, M6_NODE_SHUTDOWN, M6_NODE_THREAD, M6_NODE_SCOPE };

/* Node 0 is the root. Children of a node are linked: first_child, next_sibling; 0 ends the list. */
struct m6_snap_node {
  uint32_t parent, first_child, next_sibling;
  uint32_t kind;                      /* enum m6_node_kind */
  uint32_t label_offset, label_bytes; /* in the text; valid UTF-8, made so by the collector */
  uint32_t label_flags;               /* 1: the text was cut; 2: bytes that were no UTF-8 were replaced */
  uint32_t reservoir;                 /* samples behind the percentiles, at most M6_RESERVOIR */
  uint64_t count;
  uint64_t abandoned; /* closed by longjmp, throw, thread end; not in count */
  uint64_t lost;      /* opened, end unknown because records were lost; not in count */
  uint64_t time_sum, time_max, time_p10, time_p50, time_p90; /* ns */
  int64_t d_sum; /* sum of D, bytes: a frame's is the process's, a scope's its own thread's */
  int64_t d_max;
  int64_t i_sum;   /* sum of I, bytes; meaningful for frames (and startup) only, 0 elsewhere */
  uint64_t allocs; /* allocations inside: process's for frames, own thread's for scopes */
  int64_t d_scopes, d_thread_rest, d_others; /* frame only: the exact three-way split of d_sum */
};

struct m6_snap_stream {
  uint64_t presents, failed;
  uint64_t display, drawable;
  uint32_t symbol, route;               /* present.h */
  uint32_t caller_offset, caller_bytes; /* module that called it first, in the text; 0 bytes = unknown */
  uint32_t tid;
  uint32_t kind; /* as in struct m6_stream */
};

#define M6_SPIKE_CAUSES 3
struct m6_snap_spike {
  uint64_t frame;        /* present number that ended it */
  uint64_t time, median; /* ns */
  uint64_t at;           /* ns since the session's start */
  uint64_t allocs;       /* in that frame, process */
  int64_t d;             /* bytes */
  struct {
    uint32_t node; /* index of a scope node */
    uint32_t calls;
    uint64_t time; /* ns, in this frame */
    uint64_t allocs;
  } cause[M6_SPIKE_CAUSES]; /* the longest first; node 0 = none */
};

struct m6_snap_frame { /* one retained frame record */
  uint64_t present;    /* number of the present that ended it */
  uint64_t at;         /* ns since the session's start, of its mark */
  uint64_t time, gap;  /* ns */
  int64_t d, i;        /* bytes */
  uint64_t allocs;
  uint32_t spike, lumped; /* lumped: frames that this record stands for because records were lost; 1 normally */
};

/* ---- what happened when ---- */

/* One second. Frames are in the second in which they ended; counters are read about twice a second, and what they went
 * up by between two readings is in the second of the later one: sums over all buckets are exact. What the kernel and
 * the sites counted in the same seconds is apart, for it is not always there: struct m6_snap_kernel_second, struct
 * m6_snap_site_second. */
struct m6_snap_bucket {
  uint64_t second;             /* since the session's start */
  uint64_t frames;             /* lumps count as what they stand for */
  uint64_t time_sum, time_max; /* ns, of present-to-present intervals */
  int64_t d, i;                /* bytes, of these frames */
  uint64_t allocs, bytes, frees;
  int64_t live,
    mapped; /* bytes at its last reading: the heap reading; mapped minus unmapped since the session's start */
  uint64_t records, lost;
  uint64_t collector_ns, target_cpu_ns; /* CPU time */
  uint32_t stalls, threads;             /* threads: that have counters, at its last reading */
};
/* The heap reading was higher than it had ever been, by a step that was worth a word. */
struct m6_snap_growth {
  uint64_t at;    /* ns since the session's start */
  uint64_t frame; /* number of the present that was just made; 0: before the first one */
  int64_t live;   /* the new high, bytes */
  int64_t growth; /* since the event before it, or the session's start */
  int64_t d;      /* of the frame */
  uint64_t allocs;
};
/* Each interval over the spike threshold (collector/frame.h), in the order of time; `spikes` has the worst with more
 * causes. */
struct m6_snap_stall {
  uint64_t frame, at, time, median; /* as in struct m6_snap_spike */
  uint64_t allocs;
  int64_t d;
  uint32_t node, calls; /* the scope in which most of its time was spent; 0 = none */
  uint64_t node_time;   /* ns */
};

/* Frame times over the whole session in at most this many equal groups of frames, for pictures and for slopes. */
#define M6_SERIES 256
struct m6_snap_point {
  uint64_t frames;
  uint64_t time_sum, time_max; /* ns, of present-to-present intervals */
  int64_t live;                /* process heap reading at the group's last frame, relative to reading_start, bytes */
};

/* Present-to-present intervals: log-linear histogram, 32 buckets an octave of nanoseconds (3 % wide). Mergeable. */
#define M6_HIST_SUB 32
#define M6_HIST_BUCKETS (40 * M6_HIST_SUB)

/* Kinds of allocating calls, in this order in `allocs`. */
#define M6_ALLOC_KINDS(X) X(malloc) X(calloc) X(realloc) X(aligned) X(new)
enum m6_alloc_kind {
  M6_ALLOC_MALLOC,
  M6_ALLOC_CALLOC,
  M6_ALLOC_REALLOC,
  M6_ALLOC_ALIGNED,
  M6_ALLOC_NEW,
  M6_ALLOC_KIND_COUNT
};

struct m6_snapshot {
  uint64_t magic;
  uint32_t version, head_bytes;
  uint64_t bytes; /* of the whole block */
  uint32_t node_count, spike_count, frame_count, text_bytes;
  uint64_t nodes_offset, spikes_offset, frames_offset, text_offset;

  /* target */
  uint32_t pid, uid;
  uint64_t load_ns;
  uint32_t pointer_bits, unseen;  /* M6_UNSEEN_* */
  uint32_t exe_offset, exe_bytes; /* path */
  uint32_t name_offset, name_bytes;

  /* session */
  uint32_t state, end_reason, level, session; /* enum m6_state, m6_end, m6_level */
  uint64_t started_unix_ns;
  uint64_t elapsed_ns, ttl_ns;
  uint64_t published_ns;                                        /* CLOCK_MONOTONIC */
  uint32_t clock_kind, threads_seen, threads_now, images_other; /* other images of the same run */
  uint64_t images_other_allocs;
  uint32_t lost, lost_pid;                    /* enum m6_lost; the process that became a program without the shim */
  uint32_t lost_from_offset, lost_from_bytes; /* what it was before */
  uint32_t lost_to_offset, lost_to_bytes;     /* its path; 0 bytes = not known */

  /* presents and frames of the main stream */
  uint64_t presents;
  uint64_t frames_recorded;                   /* frames whose record arrived */
  uint64_t first_present_ns, last_present_ns; /* since the session's start */
  uint32_t stream_count, main_stream;
  struct m6_snap_stream streams[M6_STREAMS];

  /* frame time: present to present */
  double fps; /* frames over time; NaN with fewer than two presents */
  uint64_t interval_p50, interval_p90, interval_p99, interval_max; /* ns; from the histogram */
  /* frames over time of the slowest 1 % and 0.1 %; NaN when fewer than 100 / 1,000 */
  double low_1pct_fps, low_01pct_fps;
  uint64_t spikes_total;
  uint64_t unjudged, unjudged_max, unjudged_frame; /* frames before there was a median; ns; present number */

  /* books: bytes */
  int64_t reading_start, reading_now, sum_d, sum_i;
  uint32_t closed;          /* sum_d + sum_i == reading_now - reading_start, and the slots agree */
  uint32_t books_saturated; /* a counter was out of range and was clamped */
  int64_t tail_d;           /* part of sum_d after the last boundary (node shutdown) */
  /* bytes a frame and the half-width of its 95 % interval; NaN when there was too little to see */
  double leak_per_frame, leak_ci;
  int32_t verdict; /* enum m6_verdict */
  uint32_t verdict_batches;

  /* allocations: exact totals */
  struct {
    uint64_t count, bytes;
  } allocs[M6_ALLOC_KIND_COUNT];
  uint64_t frees, freed_bytes;
  int64_t mapped;
  uint64_t map_calls;
  int64_t brk_growth;

  /* losses */
  uint64_t records, records_lost, holes, frames_lost, labels_refused, streams_refused, slots_refused, rings_refused,
    nodes_refused, underflows, abandoned, bad_records, frames_overwritten;

  /* overhead */
  uint64_t shim_ns;                                     /* estimate: operations at their calibrated price */
  uint64_t collector_ns;                                /* CPU time of the collector spent on this target */
  uint64_t target_cpu_ns;                               /* CPU time of the target, 0 when unknown */
  double price_pair_ns, price_scope_ns, price_frame_ns; /* NaN when not calibrated */
  uint64_t publishes;

  /* what happened when: regions as above; `at`, `second` and order are those of time */
  uint32_t bucket_count, growth_count, stall_count, sample_count;
  uint64_t buckets_offset, growth_offset, stalls_offset;
  uint64_t samples_offset; /* float, ns: the reservoirs of node 0, 1, ...; each as many as its `reservoir` says */
  uint64_t buckets_overwritten, growth_overwritten, stalls_overwritten;
  uint32_t ending_known; /* `ending` is what waitpid said of the target; `mach6 run` alone gets to know */
  int32_t ending;

  uint32_t series_count, series_frames_each;
  struct m6_snap_point series[M6_SERIES];
  uint32_t histogram[M6_HIST_BUCKETS];
  struct m6_snap_govern govern;

  struct m6_snap_kernel kernel;

  struct m6_snap_sites sites;

  struct m6_snap_modules modules;
};

/* Why the program that an exec of this run led to had no shim. */
enum m6_lost {
  M6_LOST_NOTHING,
  M6_LOST_UNKNOWN,
  M6_LOST_PRELOAD, /* its environment did not name it */
  M6_LOST_TOKEN,   /* it did, but MACH6_RUN was gone */
  M6_LOST_PROGRAM, /* it had both: the program takes no preload, or found no place for its segment */
  M6_LOST_KINDS
};

enum m6_verdict { M6_VERDICT_UNKNOWN, M6_VERDICT_STEADY, M6_VERDICT_GROWS, M6_VERDICT_SHRINKS };

_Static_assert(sizeof(struct m6_snap_node) == 152, "size must not change within a version");
_Static_assert(sizeof(struct m6_snap_frame) == 64 && sizeof(struct m6_snap_stream) == 56,
               "size must not change within a version");
_Static_assert(sizeof(struct m6_snap_bucket) == 128 && sizeof(struct m6_snap_growth) == 48 &&
                 sizeof(struct m6_snap_stall) == 64,
               "size must not change within a version");
_Static_assert(sizeof(struct m6_snapshot) % 8 == 0, "copied in words");

/* The live-stats file: a head, then two places for a snapshot, each `place_bytes` long. The collector writes the
 * place that is not `current`, then makes it current. Whoever looks more than once holds a shared lock (F_OFD_SETLK) on
 * the file's first byte: then the collector looks up for it what it does not otherwise while the game runs. */
struct m6_stats_head {
  uint64_t magic;
  uint32_t version, current;
  uint64_t place_bytes;
  uint64_t seq[2]; /* seqlock.h, one for each place */
  uint32_t collector_pid, ended;
  uint64_t free_[2];
};
_Static_assert(sizeof(struct m6_stats_head) == 64, "one cache line");
#define M6_STATS_PLACES_OFFSET 4096u
#define M6_SNAPSHOT_LIVE_MAX (8u << 20)   /* one place of the live-stats file; enough for level memory's final one */
#define M6_SNAPSHOT_BYTES_MAX (16u << 20) /* a final snapshot, with samples and the kernel side's rows for each frame */

#endif
