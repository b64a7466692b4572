/* payload_sites.c - the report's key "sites": sampled allocations, null when none were asked for; and "modules": the
 * files that stacks led through. Keys are only ever added. */
#include <math.h>

#include "stats_sites.h"

static json_t *amount(const struct m6_snap_amount *a)
{
  return json_pack("{s:o, s:o, s:o, s:o, s:o}", "bytes", m6_json_real(a->bytes), "low", m6_json_real(a->low), "high",
                   m6_json_real(a->high), "blocks", m6_json_real(a->blocks), "samples", m6_json_u64(a->samples));
}

static json_t *text(const char *s, int n) { return n > 0 ? json_stringn_nocheck(s, (size_t)n) : json_null(); }

static json_t *stack(const struct m6_snapshot *s, const struct m6_snap_site *row)
{
  json_t *a = json_array();
  const char *at = m6_snap_text(s) + row->stack_offset, *end = at + row->stack_bytes;
  struct m6_site_line l;
  while (m6_site_next_line(&at, end, &l))
    json_array_append_new(a, json_pack("{s:o, s:o, s:o, s:b}", "function", text(l.function, l.function_bytes), "module",
                                       text(l.module, l.module_bytes), "source", text(l.source, l.source_bytes),
                                       "inlined", l.inlined));
  return a;
}

/* "peak_bytes", "peak_low", "peak_high" */
static void put_peak(json_t *o, double bytes, double low, double high)
{
  struct m6_snap_amount a = m6_snap_peak(bytes, low, high);
  json_object_set_new(o, "peak_bytes", m6_json_real(a.bytes));
  json_object_set_new(o, "peak_low", m6_json_real(a.low));
  json_object_set_new(o, "peak_high", m6_json_real(a.high));
}

static json_t *row(const struct m6_snapshot *s, const struct m6_snap_site *r, const char *kind)
{
  json_t *o = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "kind", kind, "scope",
                        text(m6_snap_text(s) + r->scope_offset, (int)r->scope_bytes), "stack", stack(s, r), "made",
                        amount(&r->made), "in_frames", amount(&r->in_frames), "live", amount(&r->live), "same_frame",
                        amount(&r->same_frame), "dead_blocks", m6_json_real(r->dead_blocks), "lifetime_frames",
                        m6_json_real(r->dead_blocks > 0 ? r->dead_frames / r->dead_blocks : NAN), "growth",
                        m6_json_real(r->growth), "growth_ci", m6_json_real(r->growth_error), "age_frames",
                        m6_json_real(r->age), "oldest_frames", m6_json_u64(r->oldest), "suspect", r->suspect != 0);
  put_peak(o, r->peak, r->peak_low, r->peak_high);
  return o;
}

/* What the program maps itself: every call, and every end, so where nothing was dropped nothing is an estimate. */
static json_t *mapped(const struct m6_snapshot *s)
{
  const struct m6_snap_sites *h = &s->sites;
  json_t *rows = json_array();
  for (uint32_t i = 0; i < h->map_count; i++) json_array_append_new(rows, row(s, &m6_snap_site_maps(s)[i], "mapped"));
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "calls", m6_json_u64(h->maps),
                   "dropped", m6_json_u64(h->maps_dropped), "dropped_bytes", m6_json_u64(h->maps_dropped_bytes),
                   "sites", m6_json_u64(h->map_sites), "made_bytes", m6_json_real(h->maps_made), "live_bytes",
                   m6_json_real(h->maps_live), "exact_live_bytes", json_integer(s->mapped), "ends_dropped",
                   m6_json_u64(h->unmaps_dropped), "ends_dropped_bytes", m6_json_u64(h->unmaps_dropped_bytes),
                   "untracked_bytes", m6_json_real(h->maps_untracked), "unmapped_elsewhere_bytes",
                   json_integer(h->unmapped_elsewhere), "placed_elsewhere_bytes", json_integer(h->placed_elsewhere),
                   "rows", rows);
}

json_t *m6_payload_modules(const struct m6_snapshot *s)
{
  const struct m6_snap_module *m = m6_snap_module_rows(s);
  json_t *a = json_array();
  for (uint32_t i = 0; i < s->modules.count; i++, m++)
    json_array_append_new(
      a, json_pack("{s:o, s:o, s:o, s:o, s:o}", "path", text(m6_snap_text(s) + m->path_offset, (int)m->path_bytes),
                   "build_id", text(m6_snap_text(s) + m->build_id_offset, (int)m->build_id_bytes), "start",
                   m6_json_u64(m->start), "end", m6_json_u64(m->end), "offset", m6_json_u64(m->offset)));
  return a;
}

json_t *m6_payload_sites(const struct m6_snapshot *s)
{
  const struct m6_snap_sites *h = &s->sites;
  if (h->interval == 0) return json_null();
  json_t *rows = json_array();
  for (uint32_t i = 0; i < h->row_count; i++) json_array_append_new(rows, row(s, &m6_snap_sites_rows(s)[i], "heap"));
  json_t *o = json_pack(
    "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "interval_bytes", m6_json_u64(h->interval), "growth_per",
    h->per_second ? "second" : "frame", "sites", m6_json_u64(h->sites), "made", amount(&h->made), "in_frames",
    amount(&h->in_frames), "live", amount(&h->live), "exact_bytes", m6_json_u64(h->exact_bytes), "exact_count",
    m6_json_u64(h->exact_count), "exact_live_bytes", json_integer(h->exact_live), "same_frame", amount(&h->same_frame));
  put_peak(o, h->peak, h->peak_low, h->peak_high);
  json_object_set_new(o, "losses",
                      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "dropped", m6_json_u64(h->dropped), "dropped_bytes",
                                m6_json_u64(h->dropped_bytes), "stackless", m6_json_u64(h->stackless), "untracked",
                                m6_json_u64(h->untracked), "deaths_lost", m6_json_u64(h->deaths_lost), "refused",
                                m6_json_u64(h->refused)));
  json_object_set_new(o, "samples", m6_json_u64(h->samples));
  json_object_set_new(o, "price_ns", m6_json_real(h->price_ns));
  json_object_set_new(o, "cost_s", m6_json_seconds(h->cost_ns));
  json_object_set_new(
    o, "stacks", json_pack("{s:o, s:o}", "unwound", m6_json_u64(h->stacks), "whole", m6_json_u64(h->stacks_whole)));
  json_object_set_new(o, "rows", rows);
  json_object_set_new(o, "mapped", mapped(s));
  return o;
}
