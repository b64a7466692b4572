/* payload_report.c - the whole report as one object. Each function below is one of its keys.
 *
 * Promise: a checked snapshot in, a JSON value out; no NaN or infinity in it, exact integers wherever a key ends in
 * `bytes` or is a count. Keys are only ever added.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "../shm/present.h"
#include "stats_kernel.h"
#include "stats_internal.h"
#include "stats_sites.h"
#include "stats_words.h"

static json_t *text(const struct m6_snapshot *s, uint32_t offset, uint32_t n)
{
  return n ? json_stringn_nocheck(m6_snap_text(s) + offset, n) : json_null();
}
static json_t *address(uint64_t v)
{
  char hex[32];
  snprintf(hex, sizeof hex, "0x%" PRIx64, v);
  return json_string(hex);
}
static json_t *utc(uint64_t unix_ns)
{
  time_t t = (time_t)(unix_ns / 1000000000u);
  struct tm tm;
  char out[64];
  if (!unix_ns || !gmtime_r(&t, &tm) || !strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%SZ", &tm)) return json_null();
  return json_string(out);
}
static json_t *ratio(uint64_t part, uint64_t whole) { return m6_json_real(whole ? (double)part / (double)whole : NAN); }
/* A measured time, or null where there was none to measure. */
static json_t *seconds_if(int known, uint64_t ns) { return known ? m6_json_seconds(ns) : json_null(); }

static json_t *target(const struct m6_snapshot *s)
{
  unsigned count;
  const struct m6_unseen_word *w = m6_unseen_words(&count);
  json_t *unseen = json_array();
  for (unsigned i = 0; i < count; i++)
    if (s->unseen & w[i].bit)
      json_array_append_new(unseen, json_pack("{s:s, s:s}", "code", w[i].code, "text", w[i].text));
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "pid", m6_json_u64(s->pid), "name",
                   text(s, s->name_offset, s->name_bytes), "exe", text(s, s->exe_offset, s->exe_bytes), "uid",
                   m6_json_u64(s->uid), "pointer_bits", m6_json_u64(s->pointer_bits), "unseen", unseen);
}

static json_t *lost(const struct m6_snapshot *s)
{
  if (s->lost == M6_LOST_NOTHING) return json_null();
  return json_pack("{s:o, s:o, s:o, s:s, s:s}", "pid", m6_json_u64(s->lost_pid), "from",
                   text(s, s->lost_from_offset, s->lost_from_bytes), "to", text(s, s->lost_to_offset, s->lost_to_bytes),
                   "why", m6_lost_name(s->lost), "text", m6_lost_text(s->lost));
}

static json_t *session(const struct m6_snapshot *s)
{
  json_t *exited = s->ending_known && WIFEXITED(s->ending) ? json_integer(WEXITSTATUS(s->ending)) : json_null();
  json_t *signal = s->ending_known && WIFSIGNALED(s->ending) ? json_integer(WTERMSIG(s->ending)) : json_null();
  return json_pack("{s:o, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:{s:o, s:o}, s:o, s:o, s:o}", "exit_status",
                   exited, "signal", signal, "number", m6_json_u64(s->session), "state", m6_state_name(s->state), "end",
                   m6_end_name(s->end_reason), "level", m6_level_name(s->level), "ttl_s", m6_json_seconds(s->ttl_ns),
                   "elapsed_s", m6_json_seconds(s->elapsed_ns), "started", utc(s->started_unix_ns), "clock",
                   m6_clock_name(s->clock_kind), "threads", "seen", m6_json_u64(s->threads_seen), "now",
                   m6_json_u64(s->threads_now), "images_other", m6_json_u64(s->images_other), "images_other_allocs",
                   m6_json_u64(s->images_other_allocs), "lost", lost(s));
}

static json_t *frame_source(const struct m6_snapshot *s)
{
  if (!s->presents || !s->stream_count) return json_null();
  const struct m6_snap_stream *m = &s->streams[s->main_stream];
  return json_pack("{s:s, s:s, s:o}", "symbol", m6_symbol_name(m->symbol), "route", m6_route_name(m->route), "caller",
                   text(s, m->caller_offset, m->caller_bytes));
}

static json_t *streams(const struct m6_snapshot *s)
{
  static const char *const kinds[] = {"free", "live", "destroyed"};
  json_t *a = json_array();
  for (uint32_t i = 0; i < s->stream_count; i++) {
    const struct m6_snap_stream *m = &s->streams[i];
    json_array_append_new(a, json_pack("{s:b, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:s}", "main",
                                       i == s->main_stream, "presents", m6_json_u64(m->presents), "failed",
                                       m6_json_u64(m->failed), "symbol", m6_symbol_name(m->symbol), "route",
                                       m6_route_name(m->route), "caller", text(s, m->caller_offset, m->caller_bytes),
                                       "display", address(m->display), "drawable", address(m->drawable), "tid",
                                       m6_json_u64(m->tid), "kind", m->kind < 3 ? kinds[m->kind] : "?"));
  }
  return a;
}

double m6_snap_in_present(const struct m6_snapshot *s)
{
  const struct m6_snap_node *nodes = m6_snap_nodes(s), *frame = NULL;
  for (uint32_t i = s->node_count ? nodes[0].first_child : 0; i != 0 && !frame; i = nodes[i].next_sibling)
    if (nodes[i].kind == M6_NODE_FRAME) frame = &nodes[i];
  if (!frame || !frame->count || !isfinite(s->fps) || s->last_present_ns <= s->first_present_ns) return NAN;
  double all = (double)(s->last_present_ns - s->first_present_ns) - (double)frame->time_sum;
  return all > 0 ? all / 1e9 / (double)frame->count : 0;
}

static json_t *frame_time(const struct m6_snapshot *s)
{
  int known = isfinite(s->fps) && s->interval_max > 0;
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "in_present_avg",
                   m6_json_real(m6_snap_in_present(s)), "fps", m6_json_real(s->fps), "p50",
                   seconds_if(known, s->interval_p50), "p90", seconds_if(known, s->interval_p90), "p99",
                   seconds_if(known, s->interval_p99), "max", seconds_if(known, s->interval_max), "low_1pct_fps",
                   m6_json_real(s->low_1pct_fps), "low_01pct_fps", m6_json_real(s->low_01pct_fps), "first_present_s",
                   seconds_if(s->presents > 0, s->first_present_ns), "last_present_s",
                   seconds_if(s->presents > 0, s->last_present_ns));
}

static json_t *books(const struct m6_snapshot *s)
{
  return json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "reading_start_kib",
                   m6_json_kib(s->reading_start), "reading_now_kib", m6_json_kib(s->reading_now), "sum_d_kib",
                   m6_json_kib(s->sum_d), "sum_i_kib", m6_json_kib(s->sum_i), "closed", s->closed != 0, "saturated",
                   s->books_saturated != 0, "reading_start_bytes", json_integer(s->reading_start), "reading_now_bytes",
                   json_integer(s->reading_now), "sum_d_bytes", json_integer(s->sum_d), "sum_i_bytes",
                   json_integer(s->sum_i), "tail_d_bytes", json_integer(s->tail_d), "leak_per_frame_bytes",
                   m6_json_real(s->leak_per_frame), "leak_ci_bytes", m6_json_real(s->leak_ci), "verdict",
                   m6_verdict_name(s->verdict), "verdict_batches", m6_json_u64(s->verdict_batches));
}

static json_t *allocs(const struct m6_snapshot *s)
{
  json_t *o = json_object();
  uint64_t count = 0, bytes = 0;
  for (uint32_t i = 0; i < M6_ALLOC_KIND_COUNT; i++) {
    count += s->allocs[i].count;
    bytes += s->allocs[i].bytes;
    json_object_set_new(
      o, m6_alloc_kind_name(i),
      json_pack("{s:o, s:o}", "count", m6_json_u64(s->allocs[i].count), "bytes", m6_json_u64(s->allocs[i].bytes)));
  }
  json_object_set_new(o, "total", json_pack("{s:o, s:o}", "count", m6_json_u64(count), "bytes", m6_json_u64(bytes)));
  json_object_set_new(o, "counted", json_boolean(!(s->unseen & M6_UNSEEN_MALLOC_NOT_FIRST)));
  json_object_set_new(o, "frees", m6_json_u64(s->frees));
  json_object_set_new(o, "freed_bytes", m6_json_u64(s->freed_bytes));
  json_object_set_new(o, "mapped_bytes", json_integer(s->mapped));
  json_object_set_new(o, "map_calls", m6_json_u64(s->map_calls));
  json_object_set_new(o, "brk_growth_bytes", json_integer(s->brk_growth));
  return o;
}

static json_t *losses(const struct m6_snapshot *s)
{
  unsigned count;
  const struct m6_loss_word *w = m6_loss_words(&count);
  json_t *o = json_pack("{s:o}", "records", m6_json_u64(s->records));
  for (unsigned i = 0; i < count; i++) json_object_set_new(o, w[i].key, m6_json_u64(m6_loss_of(s, &w[i])));
  return o;
}

static json_t *overhead(const struct m6_snapshot *s)
{
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kernel_s",
                   m6_json_seconds(s->kernel.kernel_ns), "kernel_share_of_target_cpu",
                   ratio(s->kernel.kernel_ns, s->target_cpu_ns), "shim_s", m6_json_seconds(s->shim_ns), "collector_s",
                   m6_json_seconds(s->collector_ns), "target_cpu_s", seconds_if(s->target_cpu_ns > 0, s->target_cpu_ns),
                   "shim_share_of_target_cpu", ratio(s->shim_ns, s->target_cpu_ns), "collector_share_of_a_core",
                   ratio(s->collector_ns, s->elapsed_ns), "price_pair_ns", m6_json_real(s->price_pair_ns),
                   "price_scope_ns", m6_json_real(s->price_scope_ns), "price_frame_ns", m6_json_real(s->price_frame_ns),
                   "publishes", m6_json_u64(s->publishes));
}

static json_t *series(const struct m6_snapshot *s)
{
  json_t *points = json_array();
  for (uint32_t i = 0; i < s->series_count; i++) {
    const struct m6_snap_point *p = &s->series[i];
    json_array_append_new(points,
                          json_pack("{s:o, s:o, s:o, s:o}", "frames", m6_json_u64(p->frames), "avg",
                                    m6_json_real(p->frames ? (double)p->time_sum / 1e9 / (double)p->frames : NAN),
                                    "max", m6_json_seconds(p->time_max), "live_bytes", json_integer(p->live)));
  }
  return json_pack("{s:o, s:o}", "frames_each", m6_json_u64(s->series_frames_each), "points", points);
}

static json_t *spikes(const mach6_stats *h)
{
  const struct m6_snapshot *s = h->snap;
  json_t *a = json_array();
  for (uint32_t i = 0; i < s->spike_count; i++) {
    const struct m6_snap_spike *k = &m6_snap_spikes(s)[i];
    const struct m6_snap_causes *of = i < s->kernel.spike_cause_count ? &m6_snap_spike_causes(s)[i] : NULL;
    json_t *causes = json_array();
    for (int c = 0; c < M6_SPIKE_CAUSES; c++)
      if (k->cause[c].node)
        json_array_append_new(
          causes, json_pack("{s:o, s:o, s:o, s:o}", "label", json_string_nocheck(h->nodes[k->cause[c].node].label),
                            "calls", m6_json_u64(k->cause[c].calls), "time", m6_json_seconds(k->cause[c].time),
                            "allocs", m6_json_u64(k->cause[c].allocs)));
    json_array_append_new(a, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "frame", m6_json_u64(k->frame),
                                       "at_s", m6_json_seconds(k->at), "time", m6_json_seconds(k->time), "median",
                                       m6_json_seconds(k->median), "allocs", m6_json_u64(k->allocs), "mem_delta_bytes",
                                       json_integer(k->d), "causes", causes, "kernel", m6_json_causes(of)));
  }
  return json_pack("{s:o, s:o, s:{s:o, s:o, s:o}}", "total", m6_json_u64(s->spikes_total), "worst", a, "not_judged",
                   "frames", m6_json_u64(s->unjudged), "longest", seconds_if(s->unjudged_max > 0, s->unjudged_max),
                   "frame", m6_json_u64(s->unjudged_frame));
}

/* One array a frame, in the order of `columns`: 32,768 objects with their keys would be ten times as long. */
static json_t *frames(const struct m6_snapshot *s)
{
  json_t *rows = json_array();
  for (uint32_t i = 0; i < s->frame_count; i++) {
    const struct m6_snap_frame *f = &m6_snap_frames(s)[i];
    json_array_append_new(rows,
                          json_pack("[o, o, o, o, o, o, o, b, o]", m6_json_u64(f->present), m6_json_seconds(f->at),
                                    m6_json_seconds(f->time), m6_json_seconds(f->gap), json_integer(f->d),
                                    json_integer(f->i), m6_json_u64(f->allocs), f->spike != 0, m6_json_u64(f->lumped)));
  }
  return json_pack("{s:[s, s, s, s, s, s, s, s, s], s:o, s:o, s:o}", "columns", "present", "at_s", "time_s", "gap_s",
                   "mem_delta_bytes", "inverse_mem_bytes", "allocs", "spike", "frames", "overwritten",
                   m6_json_u64(s->frames_overwritten), "rows", rows, "kernel", m6_payload_frame_causes(s));
}

/* What became of a dump on its way here; for others: were frame records overwritten? */
static json_t *recording(const mach6_stats *h)
{
  char why[512];
  int whole = !m6_stats_not_whole(h, why, sizeof why);
  return json_pack("{s:b, s:s, s:o, s:o}", "whole", whole, "why", why, "left_out", m6_json_u64(h->dump.left_out),
                   "damaged_at", h->dump.broke_why ? m6_json_u64(h->dump.broke_at) : json_null());
}

#define KEY(key, value) error |= json_object_set_new(o, key, value)
json_t *m6_payload_head(const mach6_stats *h)
{
  const struct m6_snapshot *s = h->snap;
  json_t *o = json_object();
  int error = !o;
  KEY("mach6", json_string(MACH6_VERSION));
  KEY("format", json_integer(M6_SNAPSHOT_VERSION));
  KEY("target", target(s));
  KEY("session", session(s));
  KEY("presents", m6_json_u64(s->presents));
  KEY("frames_recorded", m6_json_u64(s->frames_recorded));
  KEY("frame_source", frame_source(s));
  KEY("streams", streams(s));
  KEY("frame_time", frame_time(s));
  KEY("books", books(s));
  KEY("allocs", allocs(s));
  KEY("losses", losses(s));
  KEY("overhead", overhead(s));
  KEY("budgets", m6_payload_budgets(s->govern.budgets, s->govern.budget_count));
  KEY("governor", m6_payload_governor(s));
  KEY("chain", m6_payload_chain(s));
  KEY("heap", m6_payload_heap(s));
  KEY("spikes", spikes(h));
  if (!error) return o;
  json_decref(o);
  return NULL;
}

json_t *m6_payload_report(const mach6_stats *h, int with_frames)
{
  const struct m6_snapshot *s = h->snap;
  json_t *o = m6_payload_head(h);
  int error = !o;
  KEY("kernel", m6_payload_kernel(h));
  KEY("series", series(s));
  KEY("seconds", m6_payload_seconds(s));
  KEY("sites", m6_payload_sites(s));
  KEY("modules", m6_payload_modules(s));
  KEY("root", m6_payload_node(h->nodes));
  KEY("recording", recording(h));
  if (with_frames) KEY("frames", frames(s));
  if (!error) return o;
  json_decref(o);
  return NULL;
}
#undef KEY

int mach6_stats_convert(const mach6_stats *s, enum mach6_format format, char **out, size_t *bytes)
{
  return m6_payload_encode(m6_payload_report(s, 0), format, out, bytes);
}
