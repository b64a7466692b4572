/* budgets.h - the budgets of a session as one table: what each is called, what caps it, what is used of it, how often
 * it was overrun.
 *
 * The constants are shm/budget.h's. An option may lower a cap (or, for what bounds from below, raise it); none can
 * raise it. Some are fixed, each for a reason that who asks is told; some cannot be as low as to be of no use. Whoever
 * enforces a budget asks m6_budget_cap() and says what happens with m6_budget_use() and m6_budget_overrun(); `mach6
 * stat` shows all rows.
 * `mach6 probe` is a process of
 * its own, takes no longer time than probe.ttl and ends itself; a session whose frames are the calls of a function
 * (--frame-symbol) ends when probe.ttl is over, and counts it. The dashboard and an analysis are processes of their
 * own, too: their rows are enforced, counted, lowered and shown there; a session's snapshot has their caps, and says
 * that their use is known elsewhere.
 * One thread. Callers: all of the collector; `mach6 run`, which checks what it was given, `mach6 probe`, `mach6
 * dashboard`, `mach6 analyze`.
 */
#ifndef M6_BUDGETS_H
#define M6_BUDGETS_H

#include <stddef.h>
#include <stdint.h>

#include "../shm/snapshot.h"

enum m6_budget_kind {
  M6_BUDGET_LOWER,     /* an option may lower it */
  M6_BUDGET_FLOOR,     /* it bounds from below: an option may raise it */
  M6_BUDGET_FIXED,     /* no option changes it; budgets.c has the reasons */
  M6_BUDGET_DASHBOARD, /* an option of `mach6 dashboard` may lower it: no session uses it */
  M6_BUDGET_ANALYZE    /* the same of `mach6 analyze` */
};

/* X(name in code, name, unit, kind, cap, what it is) */
#define M6_BUDGETS(X)                                                                                                  \
  X(SESSION_TTL, "session.ttl", MS, LOWER, M6_SESSION_TTL_S * 1000ull, "how long a session may last")                  \
  X(SESSION_CHAIN, "session.chain", COUNT, LOWER, M6_SNAP_LINKS, "sessions that one chain may have")                   \
  X(FRAMES, "frames.retained", COUNT, LOWER, M6_FRAMES_RETAINED, "frame records kept; later ones overwrite")           \
  X(MEDIAN, "frames.median", COUNT, LOWER, M6_SPIKE_WINDOW, "frames behind the median that spikes are told by")        \
  X(MEDIAN_MIN, "frames.median_min", COUNT, FLOOR, M6_SPIKE_WINDOW_MIN, "frames before the first spike")               \
  X(BUCKETS, "retained.buckets", COUNT, LOWER, M6_BUCKETS_RETAINED,                                                    \
    "seconds whose metrics are kept; later ones overwrite")                                                            \
  X(GROWTH, "retained.growth", COUNT, LOWER, M6_GROWTH_RETAINED, "memory-growth events kept")                          \
  X(STALLS, "retained.stalls", COUNT, LOWER, M6_STALLS_RETAINED, "stall intervals kept")                               \
  X(SAMPLES, "samples.retained", COUNT, LOWER, M6_SAMPLES_RETAINED, "CPU samples kept with their time")                \
  X(SAMPLES_LITE, "samples.lite", HZ, LOWER, M6_SAMPLES_HZ_LITE, "CPU samples a second of a thread's time, at lite")   \
  X(SAMPLES_FULL, "samples.full", HZ, LOWER, M6_SAMPLES_HZ_FULL, "the same at level full")                             \
  X(SAMPLES_PERIOD, "samples.period", MS, FLOOR, M6_SAMPLES_PERIOD_MIN_MS,                                             \
    "between two samples of a thread, with or without privileges")                                                     \
  X(KERNEL_RING, "kernel.ring", BYTES, FIXED, M6_KERNEL_RING_BYTES,                                                    \
    "ring buffers that the kernel writes; full ones drop")                                                             \
  X(PROBE_TTL, "probe.ttl", MS, LOWER, M6_PROBE_TTL_MAX_S * 1000ull, "how long one function may be probed")            \
  X(DUMP, "dump.bytes", BYTES, LOWER, M6_DUMP_BYTES, "a dump; what does not fit is counted in it")                     \
  X(DUMP_OBJECT, "dump.object", BYTES, LOWER, M6_DUMP_OBJECT_BYTES, "one object in it")                                \
  X(SPIKES, "frames.spikes", COUNT, LOWER, M6_SPIKES_RETAINED, "spikes kept, the worst")                               \
  X(NODES, "tree.nodes", COUNT, LOWER, M6_NODES_MAX, "nodes of the tree; the rest is under (other)")                   \
  X(HEAP, "heap.interval", MS, FLOOR, M6_HEAP_INTERVAL_S * 1000ull, "between two measurements of the whole heap")      \
  X(HEAP_PENDING, "heap.pending", COUNT, FIXED, 1, "of them at a time")                                                \
  X(RING_BYTES, "rings.bytes", BYTES, FIXED, M6_RING_BYTES, "rings of the target's threads; full ones drop")           \
  X(RINGS, "rings.threads", COUNT, FIXED, M6_RINGS, "threads with a ring")                                             \
  X(SLOTS, "threads.counted", COUNT, FIXED, M6_SLOTS - 1, "threads with counters of their own")                        \
  X(STREAMS, "streams.told", COUNT, FIXED, M6_STREAMS, "present streams told apart")                                   \
  X(ANALYSIS_SUMMARY, "analysis.summary", BYTES, ANALYZE, M6_ANALYSIS_SUMMARY_BYTES, "a dump, summed up")              \
  X(ANALYSIS_ANSWER, "analysis.answer", BYTES, ANALYZE, M6_ANALYSIS_ANSWER_BYTES, "what is said of that")              \
  X(ANALYSIS_TIME, "analysis.time", MS, ANALYZE, M6_ANALYSIS_TIME_S * 1000ull, "until it is said")                     \
  X(CLIENTS, "control.clients", COUNT, LOWER, M6_CONTROL_CLIENTS, "commands under way at the control socket")          \
  X(DASHBOARD_CLIENTS, "dashboard.clients", COUNT, DASHBOARD, M6_DASHBOARD_CLIENTS, "pages open at a dashboard")       \
  X(DASHBOARD_REQUESTS, "dashboard.requests", COUNT, DASHBOARD, M6_DASHBOARD_REQUESTS, "its HTTP requests in flight")  \
  X(DASHBOARD_TTL, "dashboard.ttl", MS, DASHBOARD, M6_DASHBOARD_TTL_S * 1000ull, "how long it stays after a Start")    \
  X(DASHBOARD_STORED, "dashboard.stored", BYTES, DASHBOARD, M6_DASHBOARD_STORED_BYTES, "what it has saved, all files") \
  X(OVERHEAD_MEMORY, "overhead.memory", PPM, LOWER, M6_OVERHEAD_MEMORY_PPM, "mach6's own cost at level memory")        \
  X(OVERHEAD_LITE, "overhead.lite", PPM, LOWER, M6_OVERHEAD_LITE_PPM, "at level lite")                                 \
  X(OVERHEAD_FULL, "overhead.full", PPM, LOWER, M6_OVERHEAD_FULL_PPM, "at level full")

#define M6_BUDGET_ENUM(id, ...) M6_BUDGET_##id,
enum m6_budget_id { M6_BUDGETS(M6_BUDGET_ENUM) M6_BUDGET_COUNT };
#undef M6_BUDGET_ENUM
_Static_assert(M6_BUDGET_COUNT <= M6_SNAP_BUDGETS, "each has a place in the snapshot");

struct m6_budget_row { /* what never changes */
  const char *name, *what;
  uint64_t cap;
  uint32_t unit, kind;
};
extern const struct m6_budget_row m6_budget_rows[M6_BUDGET_COUNT] __attribute__((visibility("hidden")));

#pragma GCC visibility push(hidden)
uint64_t m6_budget_cap(enum m6_budget_id id);
uint64_t m6_budget_used(enum m6_budget_id id);
uint64_t m6_budget_overruns(enum m6_budget_id id);
void m6_budget_use(enum m6_budget_id id, uint64_t used);         /* what is used now */
void m6_budget_most(enum m6_budget_id id, uint64_t used);        /* the same, and only a maximum counts */
void m6_budget_overrun(enum m6_budget_id id, uint64_t overruns); /* so many in all, in this session */
void m6_budget_overran(enum m6_budget_id id);                    /* one more */
/* A session begins: nothing is used, nothing overrun. Caps stay. */
void m6_budget_begin(void);
/* All rows, as a snapshot has them; gives how many. */
uint32_t m6_budget_snap(struct m6_snap_budget out[M6_SNAP_BUDGETS]);
/* The dashboard's rows alone, with what it uses of them. */
uint32_t m6_budget_snap_dashboard(struct m6_snap_budget out[M6_SNAP_BUDGETS]);

/* NAME=VALUE, the value with a unit where the budget has one: 120s, 500ms, 1MiB, 0.2%, 100. 0; or -1 with the reason in
 * `why`. */
int m6_budget_option(const char *text, char *why, size_t room);
/* The same of the dashboard's rows, and of no others; of an analysis' rows. */
int m6_budget_option_dashboard(const char *text, char *why, size_t room);
int m6_budget_option_analyze(const char *text, char *why, size_t room);
#pragma GCC visibility pop

#endif
