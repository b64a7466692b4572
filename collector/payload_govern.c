/* payload_govern.c - budgets, the governor, a chain of sessions and the whole heap, as JSON. See payload_report.c for
 * the keys' rules.
 *
 * Memory in bytes where the key says so, times in seconds, shares of 1.
 */
#include <jansson.h>
#include <math.h>

#include "../shm/layout.h"
#include "stats_internal.h"
#include "stats_sites.h"
#include "stats_words.h"

static json_t *amount(uint64_t v, uint32_t unit)
{
  switch (unit) {
  case M6_UNIT_MS: return json_real((double)v / 1e3);
  case M6_UNIT_PPM: return json_real((double)v / 1e6);
  default: return m6_json_u64(v);
  }
}

json_t *m6_payload_budgets(const struct m6_snap_budget *rows, uint32_t count)
{
  static const char *const units[M6_UNITS] = {"count", "bytes", "s", "share", "hz"};
  json_t *o = json_object();
  for (uint32_t i = 0; i < count; i++) {
    const struct m6_snap_budget *b = &rows[i];
    json_object_set_new(o, b->name,
                        json_pack("{s:o, s:o, s:o, s:s, s:s}", "used",
                                  b->used == M6_BUDGET_ELSEWHERE ? json_null() : amount(b->used, b->unit), "cap",
                                  amount(b->cap, b->unit), "overruns", m6_json_u64(b->overruns), "unit", units[b->unit],
                                  "bounds", b->floor ? "from below" : "from above"));
  }
  return o;
}

json_t *m6_payload_governor(const struct m6_snapshot *s)
{
  const struct m6_snap_govern *g = &s->govern;
  json_t *steps = json_array();
  for (uint32_t i = 0; i < g->step_count; i++) {
    const struct m6_snap_step *t = &g->steps[i];
    json_array_append_new(steps, json_pack("{s:o, s:{s:s, s:i, s:o}, s:{s:s, s:i, s:o}, s:o, s:o}", "at_s",
                                           m6_json_seconds(t->at_ns), "from", "level", m6_level_name(t->from_level),
                                           "interval", (int)t->from_interval, "sites_bytes", m6_json_u64(t->from_sites),
                                           "to", "level", m6_level_name(t->to_level), "interval", (int)t->to_interval,
                                           "sites_bytes", m6_json_u64(t->to_sites), "cost", m6_json_real(t->cost),
                                           "budget", m6_json_real(t->budget)));
  }
  json_t *held = json_object();
  for (uint32_t l = 0; l < M6_LEVELS; l++) json_object_set_new(held, m6_level_name(l), m6_json_seconds(g->held_ns[l]));
  return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "level", m6_level_name(g->level), "interval",
                   (int)g->interval, "held_s", held, "cost", m6_json_real(g->cost), "cost_shim",
                   m6_json_real(g->cost_shim), "cost_kernel", m6_json_real(g->cost_kernel), "cost_collector",
                   m6_json_real(g->cost_collector), "budget", m6_json_real(g->budget), "steps_total",
                   m6_json_u64(g->steps_total), "steps", steps);
}

json_t *m6_payload_chain(const struct m6_snapshot *s)
{
  const struct m6_snap_govern *g = &s->govern;
  if (g->sessions_wanted < 2) return json_null();
  json_t *links = json_array();
  uint64_t frames = 0;
  for (uint32_t i = 0; i < g->link_count; i++) {
    const struct m6_snap_link *l = &g->links[i];
    frames += l->presents;
    json_array_append_new(
      links,
      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:s}", "reading_start_bytes", json_integer(l->reading_start),
                "reading_end_bytes", json_integer(l->reading_end), "sum_d_bytes", json_integer(l->sum_d), "sum_i_bytes",
                json_integer(l->sum_i), "level_bytes", json_integer(l->level), "presents", m6_json_u64(l->presents),
                "elapsed_s", m6_json_seconds(l->elapsed_ns), "closed", l->closed != 0, "end", m6_end_name(l->end)));
  }
  return json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:s, s:o}", "wanted", m6_json_u64(g->sessions_wanted),
                   "sessions", m6_json_u64(g->link_count), "presents", m6_json_u64(frames), "closed",
                   g->chain_closed != 0, "leak_per_frame_bytes", m6_json_real(g->chain_per_frame), "leak_low_bytes",
                   m6_json_real(g->chain_low), "leak_high_bytes", m6_json_real(g->chain_high), "verdict",
                   m6_verdict_name((int32_t)g->chain_verdict), "links", links);
}

json_t *m6_payload_heap(const struct m6_snapshot *s)
{
  const struct m6_snap_heap *h = &s->govern.heap;
  if (h->count == 0) return h->error ? json_pack("{s:i, s:i}", "measurements", 0, "errno", (int)h->error) : json_null();
  struct m6_heap_unused u = m6_heap_unused_of(s);
  return json_pack(
    "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o}", "measurements", m6_json_u64(h->count), "at_s",
    m6_json_seconds(h->at_ns), "took_s", m6_json_seconds(h->took_ns), "rss_bytes", m6_json_u64(h->rss), "pss_bytes",
    m6_json_u64(h->pss), "anonymous_bytes", m6_json_u64(h->anonymous), "swap_bytes", m6_json_u64(h->swap), "live_bytes",
    h->live >= 0 ? json_integer(h->live) : json_null(), "errno", (int)h->error, "held_bytes",
    h->held ? m6_json_u64(h->held) : json_null(), "own_mappings_bytes", h->held ? json_integer(u.mapped) : json_null(),
    "unused_bytes", u.bytes >= 0 ? json_integer(u.bytes) : json_null(), "unused_share", m6_json_real(u.share));
}
