/* payload_kernel.c - the key "kernel" of a report, and what the kernel adds to spikes and frames. As payload_report.c.
 */
#include <math.h>
#include <string.h>

#include "stats_kernel.h"

static json_t *text(const struct m6_snapshot *s, uint32_t offset, uint32_t n)
{
  return n ? json_stringn_nocheck(m6_snap_text(s) + offset, n) : json_null();
}

json_t *m6_json_causes(const struct m6_snap_causes *c)
{
  if (c == NULL || c->time == 0) return json_null();
  json_t *o = json_object();
  struct m6_part parts[M6_PARTS_MAX];
  unsigned n = m6_causes_sorted(c, parts);
  json_object_set_new(o, "first", json_string(parts[0].name));
  json_object_set_new(o, "time", m6_json_seconds(c->time));
  json_object_set_new(o, "on_cpu", m6_json_seconds(c->on));
  json_object_set_new(o, "on_cpu_in_syscalls", m6_json_seconds(c->call_ns));
  json_object_set_new(o, "run_queue", m6_json_seconds(c->wait));
  json_t *off = json_object(), *order = json_array();
  for (uint32_t i = 0; i < M6_WHY_COUNT; i++) json_object_set_new(off, m6_why_name(i), m6_json_seconds(c->off[i]));
  json_object_set_new(o, "off_cpu", off);
  for (unsigned i = 0; i < n && parts[i].ns; i++)
    json_array_append_new(order, json_pack("{s:s, s:o}", "cause", parts[i].name, "time", m6_json_seconds(parts[i].ns)));
  json_object_set_new(o, "causes", order);
  json_object_set_new(o, "syscalls", m6_json_u64(c->calls));
  json_object_set_new(o, "minor_faults", m6_json_u64(c->minor));
  json_object_set_new(o, "major_faults", m6_json_u64(c->major));
  json_object_set_new(o, "voluntary_switches", m6_json_u64(c->voluntary));
  json_object_set_new(o, "involuntary_switches", m6_json_u64(c->involuntary));
  json_object_set_new(o, "migrations", m6_json_u64(c->migrations));
  return o;
}

/* In the order of the frames' rows; ns, so that the parts of each row sum up to its first number. */
json_t *m6_payload_frame_causes(const struct m6_snapshot *s)
{
  if (s->kernel.frame_cause_count == 0) return json_null();
  json_t *rows = json_array();
  json_t *columns = json_pack("[s, s, s, s]", "time_ns", "on_cpu_ns", "on_cpu_in_syscalls_ns", "run_queue_ns");
  for (uint32_t i = 0; i < M6_WHY_COUNT; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s_ns", m6_why_name(i));
    json_array_append_new(columns, json_string(name));
  }
  static const char *const counts[] = {"syscalls",           "minor_faults",         "major_faults",
                                       "voluntary_switches", "involuntary_switches", "migrations"};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) json_array_append_new(columns, json_string(counts[i]));
  for (uint32_t i = 0; i < s->kernel.frame_cause_count; i++) {
    const struct m6_snap_causes *c = &m6_snap_frame_causes(s)[i];
    if (c->time == 0) {
      json_array_append_new(rows, json_null());
      continue;
    }
    json_t *row = json_pack("[o, o, o, o]", m6_json_u64(c->time), m6_json_u64(c->on), m6_json_u64(c->call_ns),
                            m6_json_u64(c->wait));
    for (uint32_t k = 0; k < M6_WHY_COUNT; k++) json_array_append_new(row, m6_json_u64(c->off[k]));
    const uint32_t n[] = {c->calls, c->minor, c->major, c->voluntary, c->involuntary, c->migrations};
    for (size_t k = 0; k < sizeof n / sizeof *n; k++) json_array_append_new(row, m6_json_u64(n[k]));
    json_array_append_new(rows, row);
  }
  return json_pack("{s:o, s:o}", "columns", columns, "rows", rows);
}

static json_t *refused(const struct m6_snapshot *s)
{
  json_t *a = json_array();
  for (uint32_t i = 0; i < s->kernel.refusal_count; i++) {
    const struct m6_snap_refusal *r = &m6_snap_refusals(s)[i];
    const char *name = strerrorname_np(r->error);
    json_array_append_new(a, json_pack("{s:s, s:o, s:s, s:s, s:o, s:o}", "part", m6_kernel_part_name(r->part), "what",
                                       text(s, r->what_offset, r->what_bytes), "errno", name ? name : "?", "error",
                                       strerror(r->error), "closed_by", text(s, r->closed_offset, r->closed_bytes),
                                       "opened_by", text(s, r->opened_offset, r->opened_bytes)));
  }
  return a;
}

static json_t *threads(const struct m6_snapshot *s)
{
  json_t *a = json_array();
  for (uint32_t i = 0; i < s->kernel.thread_count; i++) {
    const struct m6_snap_thread *t = &m6_snap_threads(s)[i];
    json_t *off = json_object(), *latency = json_array();
    for (uint32_t k = 0; k < M6_WHY_COUNT; k++) json_object_set_new(off, m6_why_name(k), m6_json_seconds(t->off_by[k]));
    uint32_t used = M6_LATENCY_BUCKETS;
    while (used && t->latency[used - 1] == 0) used--;
    for (uint32_t k = 0; k < used; k++) json_array_append_new(latency, m6_json_u64(t->latency[k]));
    json_array_append_new(
      a, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "tid",
                   m6_json_u64(t->tid), "name", text(s, t->name_offset, t->name_bytes), "lives", m6_json_u64(t->lives),
                   "elapsed_s", m6_json_seconds(t->elapsed), "on_cpu_s", m6_json_seconds(t->on), "off_cpu_s",
                   m6_json_seconds(t->off), "run_queue_s", m6_json_seconds(t->wait), "off_cpu", off, "slices",
                   m6_json_u64(t->slices), "voluntary_switches", m6_json_u64(t->voluntary), "involuntary_switches",
                   m6_json_u64(t->involuntary), "minor_faults", m6_json_u64(t->minor), "major_faults",
                   m6_json_u64(t->major), "migrations", m6_json_u64(t->migrations), "samples", m6_json_u64(t->samples),
                   "syscalls", m6_json_u64(t->calls), "on_cpu_in_syscalls_s", m6_json_seconds(t->call_ns),
                   "run_queue_latency_log2_ns", latency));
  }
  return a;
}

static json_t *calls(const struct m6_snapshot *s)
{
  if (!s->kernel.syscalls) return json_null();
  json_t *a = json_array();
  for (uint32_t i = 0; i < s->kernel.call_count; i++) {
    const struct m6_snap_call *c = &m6_snap_calls(s)[i];
    json_array_append_new(a, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "number", m6_json_u64(c->number), "name",
                                       text(s, c->name_offset, c->name_bytes), "count", m6_json_u64(c->count), "time",
                                       m6_json_seconds(c->ns), "max", m6_json_seconds(c->max_ns), "threads",
                                       m6_json_u64(c->threads)));
  }
  return a;
}

static json_t *functions(const struct m6_snapshot *s)
{
  if (s->kernel.samples == M6_KERNEL_NONE) return json_null();
  json_t *a = json_array();
  for (uint32_t i = 0; i < s->kernel.function_count; i++) {
    const struct m6_snap_function *f = &m6_snap_functions(s)[i];
    json_array_append_new(
      a, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "function", text(s, f->function_offset, f->function_bytes),
                   "module", text(s, f->module_offset, f->module_bytes), "self", m6_json_u64(f->self), "total",
                   m6_json_u64(f->total), "file", text(s, f->file_offset, f->file_bytes), "line",
                   f->line ? m6_json_u64(f->line) : json_null(), "inlined", f->inlined != 0));
  }
  return a;
}

static json_t *samples(const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  if (k->samples == M6_KERNEL_NONE) return json_null();
  uint64_t in_scopes = 0;
  for (uint32_t i = 0; i < k->sample_count; i++) in_scopes += m6_snap_cpu_samples(s)[i];
  return json_pack("{s:o, s:o, s:o, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "taken",
                   m6_json_u64(k->samples_taken), "periods", m6_json_u64(k->samples_periods), "period_s",
                   m6_json_real(k->period_us / 1e6), "kernel_mode", k->kernel_mode != 0, "stacks",
                   k->unwound ? "unwound" : "frame pointers", "lost", m6_json_u64(k->samples_lost), "stacks_lost",
                   m6_json_u64(k->stacks_lost), "late", m6_json_u64(k->samples_late), "in_tree", m6_json_u64(in_scopes),
                   "in_presents", m6_json_u64(k->samples_in_presents), "elsewhere", m6_json_u64(k->samples_elsewhere),
                   "in_kernel", m6_json_u64(k->profile_kernel), "callers_lost", m6_json_u64(k->profile_cut),
                   "without_stack", m6_json_u64(k->profile_bare), "target_cpu_s", m6_json_seconds(k->sampled_cpu_ns));
}

json_t *m6_payload_kernel(const mach6_stats *h)
{
  const struct m6_snapshot *s = h->snap;
  const struct m6_snap_kernel *k = &s->kernel;
  if (!m6_kernel_was_open(s)) return json_null();
  json_t *o = json_object();
  json_object_set_new(o, "tier", json_string(m6_kernel_tier(s)));
  json_object_set_new(o, "sources",
                      json_pack("{s:s, s:s, s:s, s:s}", "counters", m6_kernel_source_name(k->counters), "frames",
                                m6_kernel_source_name(k->frames), "samples", m6_kernel_source_name(k->samples),
                                "faults", m6_kernel_source_name(k->faults)));
  json_object_set_new(o, "began_s", m6_json_seconds(k->began_ns));
  json_object_set_new(o, "prices",
                      json_pack("{s:o, s:o, s:o, s:o, s:o}", "switch_ns", m6_json_real(k->price_switch_ns),
                                "syscall_ns", m6_json_real(k->price_call_ns), "present_ns",
                                m6_json_real(k->price_boundary_ns), "sample_ns", m6_json_real(k->price_sample_ns),
                                "measured", m6_json_u64(k->prices_measured)));
  json_object_set_new(o, "refused", refused(s));
  json_object_set_new(o, "faults",
                      k->faults == M6_KERNEL_NONE
                        ? json_null()
                        : json_pack("{s:o, s:o, s:b}", "minor", m6_json_u64(k->minor), "major", m6_json_u64(k->major),
                                    "user_only", k->faults_user_only != 0));
  json_object_set_new(o, "threads", threads(s));
  json_object_set_new(o, "syscalls", calls(s));
  json_object_set_new(o, "samples", samples(s));
  json_object_set_new(o, "functions", functions(s));
  json_object_set_new(o, "losses",
                      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "samples_unnamed", m6_json_u64(k->unnamed),
                                "counters", m6_json_u64(k->counters_lost), "frames", m6_json_u64(k->frames_lost),
                                "threads_left_out", m6_json_u64(k->thread_more), "functions_left_out",
                                m6_json_u64(k->function_more), "folded_left_out", m6_json_u64(k->folded_more)));
  return o;
}
