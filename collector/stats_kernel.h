/* stats_kernel.h - the kernel side's part of a checked snapshot, for reports and JSON. See shm/snapshot_kernel.h. */
#ifndef M6_STATS_KERNEL_H
#define M6_STATS_KERNEL_H

#include "stats_internal.h"

#define M6_SECTION(name, type, offset)                                                                                 \
  static inline const type *name(const struct m6_snapshot *s)                                                          \
  {                                                                                                                    \
    return (const type *)((const char *)s + s->kernel.offset);                                                         \
  }
M6_SECTION(m6_snap_refusals, struct m6_snap_refusal, refusals_offset)
M6_SECTION(m6_snap_threads, struct m6_snap_thread, threads_offset)
M6_SECTION(m6_snap_calls, struct m6_snap_call, calls_offset)
M6_SECTION(m6_snap_functions, struct m6_snap_function, functions_offset)
M6_SECTION(m6_snap_cpu_samples, uint64_t, samples_offset)
M6_SECTION(m6_snap_spike_causes, struct m6_snap_causes, spike_causes_offset)
M6_SECTION(m6_snap_frame_causes, struct m6_snap_causes, frame_causes_offset)
M6_SECTION(m6_snap_kernel_seconds, struct m6_snap_kernel_second, seconds_offset)
M6_SECTION(m6_snap_folded, char, folded_offset)
#undef M6_SECTION

const char *m6_kernel_source_name(uint32_t source) M6_HIDDEN; /* "bpf", "perf", "proc", "none" */
const char *m6_kernel_part_name(uint32_t part) M6_HIDDEN;
const char *m6_kernel_part_text(uint32_t part) M6_HIDDEN; /* what is missing without it */
const char *m6_why_name(uint32_t why) M6_HIDDEN;
const char *m6_why_text(uint32_t why) M6_HIDDEN;
/* 0: a session at level memory, which has none of this. One that the governor brought there has what came before. */
static inline int m6_kernel_was_open(const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  return s->level != M6_LEVEL_MEMORY || k->counters || k->samples || k->faults || k->refusal_count;
}
/* The best that was had: "bpf", "perf", "proc", "none". */
const char *m6_kernel_tier(const struct m6_snapshot *s) M6_HIDDEN;

/* Samples of each node and all below it, by the node's index; the caller's to free. NULL when there are none. */
uint64_t *m6_samples_below(const mach6_stats *h) M6_HIDDEN;

/* An interval's parts, the largest first: on CPU (its system calls apart, where they are known), the run queue, each
 * cause. They sum up to the interval's time. */
#define M6_PARTS_MAX (3 + M6_WHY_COUNT)
struct m6_part {
  const char *name, *text; /* JSON's word, and one for people */
  uint64_t ns;
};
unsigned m6_causes_sorted(const struct m6_snap_causes *c, struct m6_part parts[M6_PARTS_MAX]) M6_HIDDEN;

json_t *m6_json_causes(const struct m6_snap_causes *c) M6_HIDDEN; /* null when not known */
json_t *m6_payload_kernel(const mach6_stats *h) M6_HIDDEN;
json_t *m6_payload_frame_causes(const struct m6_snapshot *s) M6_HIDDEN;

#endif
