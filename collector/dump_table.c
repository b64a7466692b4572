/* dump_table.c - what is in a dump, as tables. Their order is that of the file: what is left out when a dump would be
 * too large is the end of it. Names are for good; their C names stand beside them.
 */
#include "dump.h"

#define F(type, name, member)                                                                                          \
  {                                                                                                                    \
    name, offsetof(ROW, member), type                                                                                  \
  }
#define SAME(type, member) F(type, #member, member)
#define COUNT(fields) (sizeof(fields) / sizeof *(fields))

#define ROW struct m6_snapshot
static const struct m6_field session[] = {SAME(M6_U32, pid),
                                          SAME(M6_U32, uid),
                                          SAME(M6_U64, load_ns),
                                          SAME(M6_U32, pointer_bits),
                                          SAME(M6_U32, unseen),
                                          F(M6_TEXT, "exe", exe_offset),
                                          F(M6_TEXT, "name", name_offset),
                                          SAME(M6_U32, state),
                                          SAME(M6_U32, end_reason),
                                          SAME(M6_U32, level),
                                          SAME(M6_U32, session),
                                          SAME(M6_U64, started_unix_ns),
                                          SAME(M6_U64, elapsed_ns),
                                          SAME(M6_U64, ttl_ns),
                                          SAME(M6_U64, published_ns),
                                          SAME(M6_U32, clock_kind),
                                          SAME(M6_U32, threads_seen),
                                          SAME(M6_U32, threads_now),
                                          SAME(M6_U32, images_other),
                                          SAME(M6_U64, images_other_allocs),
                                          SAME(M6_U32, lost),
                                          SAME(M6_U32, lost_pid),
                                          F(M6_TEXT, "lost_from", lost_from_offset),
                                          F(M6_TEXT, "lost_to", lost_to_offset),
                                          SAME(M6_U64, presents),
                                          SAME(M6_U64, frames_recorded),
                                          SAME(M6_U64, first_present_ns),
                                          SAME(M6_U64, last_present_ns),
                                          SAME(M6_U32, main_stream),
                                          SAME(M6_F64, fps),
                                          SAME(M6_U64, interval_p50),
                                          SAME(M6_U64, interval_p90),
                                          SAME(M6_U64, interval_p99),
                                          SAME(M6_U64, interval_max),
                                          SAME(M6_F64, low_1pct_fps),
                                          SAME(M6_F64, low_01pct_fps),
                                          SAME(M6_U64, spikes_total),
                                          SAME(M6_U64, unjudged),
                                          SAME(M6_U64, unjudged_max),
                                          SAME(M6_U64, unjudged_frame),
                                          SAME(M6_I64, reading_start),
                                          SAME(M6_I64, reading_now),
                                          SAME(M6_I64, sum_d),
                                          SAME(M6_I64, sum_i),
                                          SAME(M6_U32, closed),
                                          SAME(M6_U32, books_saturated),
                                          SAME(M6_I64, tail_d),
                                          SAME(M6_F64, leak_per_frame),
                                          SAME(M6_F64, leak_ci),
                                          SAME(M6_I32, verdict),
                                          SAME(M6_U32, verdict_batches),
                                          SAME(M6_U64, frees),
                                          SAME(M6_U64, freed_bytes),
                                          SAME(M6_I64, mapped),
                                          SAME(M6_U64, map_calls),
                                          SAME(M6_I64, brk_growth),
                                          SAME(M6_U64, records),
                                          SAME(M6_U64, records_lost),
                                          SAME(M6_U64, holes),
                                          SAME(M6_U64, frames_lost),
                                          SAME(M6_U64, labels_refused),
                                          SAME(M6_U64, streams_refused),
                                          SAME(M6_U64, slots_refused),
                                          SAME(M6_U64, rings_refused),
                                          SAME(M6_U64, nodes_refused),
                                          SAME(M6_U64, underflows),
                                          SAME(M6_U64, abandoned),
                                          SAME(M6_U64, bad_records),
                                          SAME(M6_U64, frames_overwritten),
                                          SAME(M6_U64, buckets_overwritten),
                                          SAME(M6_U64, growth_overwritten),
                                          SAME(M6_U64, stalls_overwritten),
                                          SAME(M6_U64, shim_ns),
                                          SAME(M6_U64, collector_ns),
                                          SAME(M6_U64, target_cpu_ns),
                                          SAME(M6_F64, price_pair_ns),
                                          SAME(M6_F64, price_scope_ns),
                                          SAME(M6_F64, price_frame_ns),
                                          SAME(M6_U64, publishes),
                                          SAME(M6_U32, ending_known),
                                          SAME(M6_I32, ending),
                                          SAME(M6_U32, series_frames_each),
                                          F(M6_U32, "modules.more", modules.more),
                                          F(M6_U32, "govern.sessions_wanted", govern.sessions_wanted),
                                          F(M6_U64, "govern.steps_total", govern.steps_total),
                                          F(M6_U64, "govern.held_memory_ns", govern.held_ns[M6_LEVEL_MEMORY]),
                                          F(M6_U64, "govern.held_lite_ns", govern.held_ns[M6_LEVEL_LITE]),
                                          F(M6_U64, "govern.held_full_ns", govern.held_ns[M6_LEVEL_FULL]),
                                          F(M6_U32, "govern.level", govern.level),
                                          F(M6_U32, "govern.interval", govern.interval),
                                          F(M6_F64, "govern.cost", govern.cost),
                                          F(M6_F64, "govern.budget", govern.budget),
                                          F(M6_F64, "govern.cost_shim", govern.cost_shim),
                                          F(M6_F64, "govern.cost_kernel", govern.cost_kernel),
                                          F(M6_F64, "govern.cost_collector", govern.cost_collector),
                                          F(M6_F64, "govern.chain_per_frame", govern.chain_per_frame),
                                          F(M6_F64, "govern.chain_low", govern.chain_low),
                                          F(M6_F64, "govern.chain_high", govern.chain_high),
                                          F(M6_U32, "govern.chain_verdict", govern.chain_verdict),
                                          F(M6_U32, "govern.chain_closed", govern.chain_closed),
                                          F(M6_U64, "heap.count", govern.heap.count),
                                          F(M6_U64, "heap.at_ns", govern.heap.at_ns),
                                          F(M6_U64, "heap.took_ns", govern.heap.took_ns),
                                          F(M6_U64, "heap.rss", govern.heap.rss),
                                          F(M6_U64, "heap.pss", govern.heap.pss),
                                          F(M6_U64, "heap.anonymous", govern.heap.anonymous),
                                          F(M6_U64, "heap.swap", govern.heap.swap),
                                          F(M6_U64, "heap.held", govern.heap.held),
                                          F(M6_I64, "heap.live", govern.heap.live),
                                          F(M6_I64, "heap.mapped", govern.heap.mapped),
                                          F(M6_U64, "heap.missed", govern.heap.missed),
                                          F(M6_I32, "heap.error", govern.heap.error),
                                          F(M6_U32, "heap.free_", govern.heap.free_)};
#undef ROW

#define ROW struct m6_snap_stream
static const struct m6_field streams[] = {SAME(M6_U64, presents),
                                          SAME(M6_U64, failed),
                                          SAME(M6_U64, display),
                                          SAME(M6_U64, drawable),
                                          SAME(M6_U32, symbol),
                                          SAME(M6_U32, route),
                                          F(M6_TEXT, "caller", caller_offset),
                                          SAME(M6_U32, tid),
                                          SAME(M6_U32, kind)};
#undef ROW

struct alloc { /* as in struct m6_snapshot */
  uint64_t count, bytes;
};
_Static_assert(sizeof(struct alloc) == sizeof(((struct m6_snapshot *)0)->allocs[0]), "a copy of what has no name");
#define ROW struct alloc
static const struct m6_field allocs[] = {SAME(M6_U64, count), SAME(M6_U64, bytes)};
#undef ROW

#define ROW struct m6_snap_point
static const struct m6_field series[] = {SAME(M6_U64, frames), SAME(M6_U64, time_sum), SAME(M6_U64, time_max),
                                         SAME(M6_I64, live)};
#undef ROW

static const struct m6_field histogram[] = {{"intervals", 0, M6_U32}};

/* A node's place among its siblings is that of its row; its parent comes before it. */
#define ROW struct m6_snap_node
static const struct m6_field nodes[] = {
  SAME(M6_U32, parent),        SAME(M6_U32, kind),      F(M6_TEXT, "label", label_offset),
  SAME(M6_U32, label_flags),   SAME(M6_U32, reservoir), SAME(M6_U64, count),
  SAME(M6_U64, abandoned),     SAME(M6_U64, lost),      SAME(M6_U64, time_sum),
  SAME(M6_U64, time_max),      SAME(M6_U64, time_p10),  SAME(M6_U64, time_p50),
  SAME(M6_U64, time_p90),      SAME(M6_I64, d_sum),     SAME(M6_I64, d_max),
  SAME(M6_I64, i_sum),         SAME(M6_U64, allocs),    SAME(M6_I64, d_scopes),
  SAME(M6_I64, d_thread_rest), SAME(M6_I64, d_others)};
#undef ROW

#define ROW struct m6_snap_spike
#define CAUSE(n, k)                                                                                                    \
  F(M6_U32, "cause" n ".node", cause[k].node), F(M6_U32, "cause" n ".calls", cause[k].calls),                          \
    F(M6_U64, "cause" n ".time", cause[k].time), F(M6_U64, "cause" n ".allocs", cause[k].allocs)
static const struct m6_field spikes[] = {SAME(M6_U64, frame), SAME(M6_U64, time),   SAME(M6_U64, median),
                                         SAME(M6_U64, at),    SAME(M6_U64, allocs), SAME(M6_I64, d),
                                         CAUSE("1", 0),       CAUSE("2", 1),        CAUSE("3", 2)};
_Static_assert(M6_SPIKE_CAUSES == 3, "each has its columns");
#undef ROW

#define ROW struct m6_snap_bucket
static const struct m6_field buckets[] = {SAME(M6_U64, second),
                                          SAME(M6_U64, frames),
                                          SAME(M6_U64, time_sum),
                                          SAME(M6_U64, time_max),
                                          SAME(M6_I64, d),
                                          SAME(M6_I64, i),
                                          SAME(M6_U64, allocs),
                                          SAME(M6_U64, bytes),
                                          SAME(M6_U64, frees),
                                          SAME(M6_I64, live),
                                          SAME(M6_I64, mapped),
                                          SAME(M6_U64, records),
                                          SAME(M6_U64, lost),
                                          SAME(M6_U64, collector_ns),
                                          SAME(M6_U64, target_cpu_ns),
                                          SAME(M6_U32, stalls),
                                          SAME(M6_U32, threads)};
#undef ROW

#define ROW struct m6_snap_growth
static const struct m6_field growth[] = {SAME(M6_U64, at),     SAME(M6_U64, frame), SAME(M6_I64, live),
                                         SAME(M6_I64, growth), SAME(M6_I64, d),     SAME(M6_U64, allocs)};
#undef ROW

#define ROW struct m6_snap_stall
static const struct m6_field stalls[] = {SAME(M6_U64, frame),  SAME(M6_U64, at),     SAME(M6_U64, time),
                                         SAME(M6_U64, median), SAME(M6_U64, allocs), SAME(M6_I64, d),
                                         SAME(M6_U32, node),   SAME(M6_U32, calls),  SAME(M6_U64, node_time)};
#undef ROW

static const struct m6_field samples[] = {{"ns", 0, M6_F32}};

#define ROW struct m6_snap_frame
static const struct m6_field frames[] = {SAME(M6_U64, present), SAME(M6_U64, at),    SAME(M6_U64, time),
                                         SAME(M6_U64, gap),     SAME(M6_I64, d),     SAME(M6_I64, i),
                                         SAME(M6_U64, allocs),  SAME(M6_U32, spike), SAME(M6_U32, lumped)};
#undef ROW

#define ROW struct m6_snap_step
static const struct m6_field steps[] = {
  SAME(M6_U64, at_ns),         SAME(M6_U32, from_level),  SAME(M6_U32, to_level),
  SAME(M6_U32, from_interval), SAME(M6_U32, to_interval), SAME(M6_U32, from_sites),
  SAME(M6_U32, to_sites),      SAME(M6_F64, cost),        SAME(M6_F64, budget)};
#undef ROW

#define ROW struct m6_snap_link
static const struct m6_field chain[] = {
  SAME(M6_I64, reading_start), SAME(M6_I64, reading_end), SAME(M6_I64, sum_d),  SAME(M6_I64, sum_i),
  SAME(M6_I64, level),         SAME(M6_U64, presents),    SAME(M6_U64, middle), SAME(M6_U64, elapsed_ns),
  SAME(M6_U32, closed),        SAME(M6_U32, end)};
#undef ROW

/* ---- what the kernel knew (shm/snapshot_kernel.h) ---- */

#define ROW struct m6_snap_kernel
static const struct m6_field kernel[] = {SAME(M6_U32, counters),
                                         SAME(M6_U32, samples),
                                         SAME(M6_U32, faults),
                                         SAME(M6_U32, frames),
                                         SAME(M6_U32, syscalls),
                                         SAME(M6_U32, kernel_mode),
                                         SAME(M6_U32, unwound),
                                         SAME(M6_U32, period_us),
                                         SAME(M6_U64, began_ns),
                                         SAME(M6_U64, samples_taken),
                                         SAME(M6_U64, samples_lost),
                                         SAME(M6_U64, stacks_lost),
                                         SAME(M6_U64, samples_late),
                                         SAME(M6_U64, samples_periods),
                                         SAME(M6_U64, samples_in_presents),
                                         SAME(M6_U64, samples_elsewhere),
                                         SAME(M6_U64, profile_samples),
                                         SAME(M6_U64, profile_kernel),
                                         SAME(M6_U64, profile_cut),
                                         SAME(M6_U64, profile_bare),
                                         SAME(M6_U64, sampled_cpu_ns),
                                         SAME(M6_U64, minor),
                                         SAME(M6_U64, major),
                                         SAME(M6_U32, faults_user_only),
                                         SAME(M6_U32, unnamed),
                                         SAME(M6_U64, counters_lost),
                                         SAME(M6_U64, frames_lost),
                                         SAME(M6_U64, kernel_ns),
                                         SAME(M6_F64, price_switch_ns),
                                         SAME(M6_F64, price_call_ns),
                                         SAME(M6_F64, price_boundary_ns),
                                         SAME(M6_F64, price_sample_ns),
                                         SAME(M6_U64, prices_measured),
                                         SAME(M6_U32, thread_more),
                                         SAME(M6_U32, call_more),
                                         SAME(M6_U32, function_more),
                                         SAME(M6_U32, folded_more)};
#undef ROW

#define ROW struct m6_snap_refusal
static const struct m6_field refusals[] = {SAME(M6_U32, part), SAME(M6_I32, error), F(M6_TEXT, "what", what_offset),
                                           F(M6_TEXT, "closed", closed_offset), F(M6_TEXT, "opened", opened_offset)};
#undef ROW

#define ROW struct m6_snap_thread
#define OFF_BY(e, name, text) F(M6_U64, "off." name, off_by[M6_WHY_##e]),
#define LATENCY(i) F(M6_U32, "latency." #i, latency[i])
#define LATENCY_4(a, b, c, d) LATENCY(a), LATENCY(b), LATENCY(c), LATENCY(d)
static const struct m6_field threads[] = {SAME(M6_U32, tid),
                                          SAME(M6_U32, lives),
                                          F(M6_TEXT, "name", name_offset),
                                          SAME(M6_U64, elapsed),
                                          SAME(M6_U64, on),
                                          SAME(M6_U64, off),
                                          SAME(M6_U64, wait),
                                          M6_WHYS(OFF_BY) SAME(M6_U64, calls),
                                          SAME(M6_U64, call_ns),
                                          SAME(M6_U64, voluntary),
                                          SAME(M6_U64, involuntary),
                                          SAME(M6_U64, minor),
                                          SAME(M6_U64, major),
                                          SAME(M6_U64, migrations),
                                          SAME(M6_U64, slices),
                                          SAME(M6_U64, samples),
                                          SAME(M6_U64, waits),
                                          LATENCY_4(0, 1, 2, 3),
                                          LATENCY_4(4, 5, 6, 7),
                                          LATENCY_4(8, 9, 10, 11),
                                          LATENCY_4(12, 13, 14, 15),
                                          LATENCY_4(16, 17, 18, 19),
                                          LATENCY_4(20, 21, 22, 23),
                                          LATENCY_4(24, 25, 26, 27),
                                          LATENCY_4(28, 29, 30, 31)};
_Static_assert(M6_LATENCY_BUCKETS == 32, "each has its column");
#undef ROW

#define ROW struct m6_snap_kernel_second
#define OFF_IN_SECOND(e, name, text) F(M6_I64, "off." name, off_by[M6_WHY_##e]),
static const struct m6_field kernel_seconds[] = {SAME(M6_U64, second),
                                                 SAME(M6_I64, covered),
                                                 SAME(M6_I64, elapsed),
                                                 SAME(M6_I64, on),
                                                 SAME(M6_I64, wait),
                                                 SAME(M6_I64, off),
                                                 M6_WHYS(OFF_IN_SECOND) SAME(M6_I64, calls),
                                                 SAME(M6_I64, call_ns),
                                                 SAME(M6_I64, voluntary),
                                                 SAME(M6_I64, involuntary),
                                                 SAME(M6_I64, minor),
                                                 SAME(M6_I64, major),
                                                 SAME(M6_I64, migrations),
                                                 SAME(M6_I64, slices),
                                                 SAME(M6_I64, samples),
                                                 SAME(M6_I64, periods)};
#undef ROW

#define ROW struct m6_snap_call
static const struct m6_field calls[] = {SAME(M6_U32, number), SAME(M6_U32, threads), F(M6_TEXT, "name", name_offset),
                                        SAME(M6_U64, count),  SAME(M6_U64, ns),      SAME(M6_U64, max_ns)};
#undef ROW

#define ROW struct m6_snap_function
static const struct m6_field functions[] = {F(M6_TEXT, "function", function_offset),
                                            F(M6_TEXT, "module", module_offset),
                                            F(M6_TEXT, "file", file_offset),
                                            SAME(M6_U32, line),
                                            SAME(M6_U32, inlined),
                                            SAME(M6_U64, self),
                                            SAME(M6_U64, total)};
#undef ROW

#define ROW struct m6_snap_causes
#define OFF(e, name, text) F(M6_U64, "off." name, off[M6_WHY_##e]),
static const struct m6_field causes[] = {
  SAME(M6_U64, time),        SAME(M6_U64, on),        SAME(M6_U64, wait),  M6_WHYS(OFF) SAME(M6_U64, call_ns),
  SAME(M6_U32, calls),       SAME(M6_U32, minor),     SAME(M6_U32, major), SAME(M6_U32, voluntary),
  SAME(M6_U32, involuntary), SAME(M6_U32, migrations)};
#undef ROW

/* ---- sampled allocations by site (shm/snapshot_sites.h) ---- */

#define AMOUNT(member)                                                                                                 \
  F(M6_F64, #member ".bytes", member.bytes), F(M6_F64, #member ".low", member.low),                                    \
    F(M6_F64, #member ".high", member.high), F(M6_F64, #member ".blocks", member.blocks),                              \
    F(M6_U64, #member ".samples", member.samples)
#define ROW struct m6_snap_sites
static const struct m6_field site_sums[] = {SAME(M6_U32, interval),
                                            SAME(M6_U32, sites),
                                            SAME(M6_U32, per_second),
                                            AMOUNT(made),
                                            AMOUNT(in_frames),
                                            AMOUNT(live),
                                            SAME(M6_U64, exact_bytes),
                                            SAME(M6_U64, exact_count),
                                            SAME(M6_I64, exact_live),
                                            SAME(M6_F64, peak),
                                            SAME(M6_U64, samples),
                                            SAME(M6_U64, dropped),
                                            SAME(M6_U64, stackless),
                                            SAME(M6_U64, untracked),
                                            SAME(M6_U64, deaths_lost),
                                            SAME(M6_U64, refused),
                                            SAME(M6_F64, price_ns),
                                            SAME(M6_U64, cost_ns),
                                            SAME(M6_U64, stacks),
                                            SAME(M6_U64, stacks_whole),
                                            SAME(M6_U32, map_sites),
                                            SAME(M6_U64, maps),
                                            SAME(M6_U64, maps_dropped),
                                            SAME(M6_F64, maps_made),
                                            SAME(M6_F64, maps_live),
                                            SAME(M6_U64, dropped_bytes),
                                            SAME(M6_U64, maps_dropped_bytes),
                                            SAME(M6_U64, unmaps_dropped),
                                            SAME(M6_U64, unmaps_dropped_bytes),
                                            SAME(M6_F64, maps_untracked),
                                            SAME(M6_I64, unmapped_elsewhere),
                                            SAME(M6_I64, placed_elsewhere),
                                            AMOUNT(same_frame),
                                            SAME(M6_F64, peak_low),
                                            SAME(M6_F64, peak_high)};
#undef ROW

#define ROW struct m6_snap_site_second
static const struct m6_field site_seconds[] = {SAME(M6_U64, second),  SAME(M6_I64, samples),
                                               SAME(M6_I64, dropped), SAME(M6_I64, dropped_bytes),
                                               SAME(M6_I64, maps),    SAME(M6_I64, maps_dropped)};
#undef ROW

#define ROW struct m6_snap_site
static const struct m6_field sites[] = {F(M6_TEXT, "scope", scope_offset),
                                        F(M6_TEXT, "stack", stack_offset),
                                        AMOUNT(made),
                                        AMOUNT(in_frames),
                                        AMOUNT(live),
                                        AMOUNT(same_frame),
                                        SAME(M6_F64, peak),
                                        SAME(M6_F64, dead_blocks),
                                        SAME(M6_F64, dead_frames),
                                        SAME(M6_F64, growth),
                                        SAME(M6_F64, growth_error),
                                        SAME(M6_F64, age),
                                        SAME(M6_U32, oldest),
                                        SAME(M6_U32, suspect),
                                        SAME(M6_U32, unnamed),
                                        SAME(M6_U32, free_),
                                        SAME(M6_F64, peak_low),
                                        SAME(M6_F64, peak_high)};
#undef ROW

/* ---- files whose code was met (shm/snapshot_modules.h) ---- */

#define ROW struct m6_snap_module
static const struct m6_field modules[] = {F(M6_TEXT, "path", path_offset), F(M6_TEXT, "build_id", build_id_offset),
                                          SAME(M6_U64, start), SAME(M6_U64, end), SAME(M6_U64, offset)};
#undef ROW

static const struct m6_field cpu_samples[] = {{"samples", 0, M6_U64}}; /* of each node itself */
static const struct m6_field folded[] = {{"byte", 0, M6_U8}};          /* folded stacks of CPU samples: lines of text */

#define AT(member) offsetof(struct m6_snapshot, member)
#define INLINE(fields, type, most, count_at, member)                                                                   \
  {                                                                                                                    \
#fields, fields, COUNT(fields), sizeof(type), most, count_at, M6_FIXED, AT(member), 0                              \
  }
#define NAMED(name, fields, type, most, count, offset, newest)                                                         \
  {                                                                                                                    \
    name, fields, COUNT(fields), sizeof(type), most, AT(count), AT(offset), 0, newest                                  \
  }
#define REGION(fields, type, most, count, offset, newest) NAMED(#fields, fields, type, most, count, offset, newest)

static const struct m6_section sections[] = {
  {"session", session, COUNT(session), sizeof(struct m6_snapshot), 1, M6_FIXED, M6_FIXED, 0, 0},
  INLINE(streams, struct m6_snap_stream, M6_STREAMS, AT(stream_count), streams),
  INLINE(allocs, struct alloc, M6_ALLOC_KIND_COUNT, M6_FIXED, allocs),
  INLINE(series, struct m6_snap_point, M6_SERIES, AT(series_count), series),
  INLINE(histogram, uint32_t, M6_HIST_BUCKETS, M6_FIXED, histogram),
  REGION(nodes, struct m6_snap_node, M6_NODES_MAX, node_count, nodes_offset, 0),
  REGION(spikes, struct m6_snap_spike, M6_SPIKES_RETAINED, spike_count, spikes_offset, 0),
  REGION(buckets, struct m6_snap_bucket, M6_BUCKETS_RETAINED, bucket_count, buckets_offset, 1),
  REGION(growth, struct m6_snap_growth, M6_GROWTH_RETAINED, growth_count, growth_offset, 1),
  REGION(stalls, struct m6_snap_stall, M6_STALLS_RETAINED, stall_count, stalls_offset, 1),
  REGION(samples, float, M6_NODES_MAX *M6_RESERVOIR, sample_count, samples_offset, 0),
  REGION(frames, struct m6_snap_frame, M6_FRAMES_RETAINED, frame_count, frames_offset, 1),
  INLINE(steps, struct m6_snap_step, M6_SNAP_STEPS, AT(govern.step_count), govern.steps),
  INLINE(chain, struct m6_snap_link, M6_SNAP_LINKS, AT(govern.link_count), govern.links),
  {"kernel", kernel, COUNT(kernel), sizeof(struct m6_snap_kernel), 1, M6_FIXED, M6_FIXED, AT(kernel),
   0}, /* before its own */
  REGION(refusals, struct m6_snap_refusal, M6_KERNEL_REFUSALS_MAX, kernel.refusal_count, kernel.refusals_offset, 0),
  REGION(threads, struct m6_snap_thread, M6_KERNEL_THREADS_MAX, kernel.thread_count, kernel.threads_offset, 0),
  REGION(calls, struct m6_snap_call, M6_KERNEL_CALLS_MAX, kernel.call_count, kernel.calls_offset, 0),
  REGION(kernel_seconds, struct m6_snap_kernel_second, M6_BUCKETS_RETAINED, kernel.second_count, kernel.seconds_offset,
         1),
  REGION(functions, struct m6_snap_function, M6_KERNEL_FUNCTIONS_MAX, kernel.function_count, kernel.functions_offset,
         0),
  REGION(cpu_samples, uint64_t, M6_NODES_MAX, kernel.sample_count, kernel.samples_offset, 0),
  NAMED("spike_causes", causes, struct m6_snap_causes, M6_SPIKES_RETAINED, kernel.spike_cause_count,
        kernel.spike_causes_offset, 0),
  {"site_sums", site_sums, COUNT(site_sums), sizeof(struct m6_snap_sites), 1, M6_FIXED, M6_FIXED, AT(sites),
   0}, /* before its own */
  REGION(site_seconds, struct m6_snap_site_second, M6_BUCKETS_RETAINED, sites.second_count, sites.seconds_offset, 1),
  REGION(sites, struct m6_snap_site, M6_SITES_SHOWN, sites.row_count, sites.rows_offset, 0),
  NAMED("site_maps", sites, struct m6_snap_site, M6_SITE_MAPS_SHOWN, sites.map_count, sites.maps_offset, 0),
  REGION(modules, struct m6_snap_module, M6_MODULES_SHOWN, modules.count, modules.offset, 0),
  REGION(folded, uint8_t, M6_KERNEL_FOLDED_MAX, kernel.folded_bytes, kernel.folded_offset, 0),
  NAMED("frame_causes", causes, struct m6_snap_causes, M6_FRAMES_RETAINED, kernel.frame_cause_count,
        kernel.frame_causes_offset, 1),
};

const struct m6_section *m6_dump_sections(unsigned *count)
{
  *count = COUNT(sections);
  return sections;
}
