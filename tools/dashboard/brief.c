/* brief.c - a snapshot, cut to what a page shows: the report's own keys (mach6-json(5)), with a bound on the tree's
 * nodes and on sites, and the last minute second by second. Pure: a checked snapshot in, a JSON value out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/stats_internal.h"
#include "../../collector/stats_sites.h"
#include "dashboard.h"

#define NODES 300u
#define CHILDREN 24u /* of one node: the longest */
#define SITES 24u
#define CALLERS 8u /* of one site */
#define SECONDS 60u
#define STALLS 200u /* of that minute, the latest */

/* ---- the tree -----------------------------------------------------------------------------------------------------
 * */

static int longest_first(const void *a, const void *b)
{
  const mach6_node *x = *(const mach6_node *const *)a, *y = *(const mach6_node *const *)b;
  if (x->raw->time_sum != y->raw->time_sum) return x->raw->time_sum < y->raw->time_sum ? 1 : -1;
  return x < y ? -1 : x > y;
}

struct kept {
  const mach6_node *node;
  json_t *json;
};

/* Level by level, so that what is left out is what lies deepest; of each node the longest children. */
static json_t *tree(const mach6_stats *s, size_t most)
{
  const mach6_node *root = mach6_stats_root(s), *c;
  struct kept *row = calloc(most, sizeof *row);
  const mach6_node **children = calloc(s->snap->node_count + 1u, sizeof *children);
  size_t count = 0;
  if (row && children && root && most) row[count++] = (struct kept){root, m6_payload_node_alone(root)};
  for (size_t at = 0; at < count && row[at].json; at++) {
    size_t n = 0;
    for (c = mach6_node_first_child(row[at].node); c; c = mach6_node_next_sibling(c)) children[n++] = c;
    qsort(children, n, sizeof *children, longest_first);
    size_t shown = n < CHILDREN ? n : CHILDREN;
    if (shown > most - count) shown = most - count;
    json_t *list = json_object_get(row[at].json, "children"), *stats = json_object_get(row[at].json, "stats");
    for (size_t i = 0; i < shown; i++, count++) {
      row[count] = (struct kept){children[i], m6_payload_node_alone(children[i])};
      json_array_append_new(list, row[count].json);
    }
    if (shown == n) json_object_del(stats, "nodes_below");
    else json_object_set_new(stats, "children_left_out", json_integer((json_int_t)(n - shown)));
  }
  json_t *o = count ? row[0].json : json_null();
  free(row);
  free(children);
  return o;
}

/* ---- sites --------------------------------------------------------------------------------------------------------
 * */

static double weight(const json_t *row)
{
  double made = json_number_value(json_object_get(json_object_get(row, "made"), "bytes"));
  return json_is_true(json_object_get(row, "suspect")) ? INFINITY : made;
}
static int heaviest_first(const void *a, const void *b)
{
  double x = weight(*(json_t *const *)a), y = weight(*(json_t *const *)b);
  return (x < y) - (x > y);
}

static void cut_rows(json_t *of, size_t most)
{
  json_t *rows = json_object_get(of, "rows"), *kept = json_array(), *row;
  size_t n = json_array_size(rows), i;
  json_t **list = calloc(n + 1, sizeof *list);
  if (!list || !kept) n = 0;
  for (i = 0; i < n; i++) list[i] = json_array_get(rows, i);
  if (n) qsort(list, n, sizeof *list, heaviest_first);
  for (i = 0; i < n && i < most; i++) {
    row = list[i];
    json_t *stack = json_object_get(row, "stack");
    while (json_array_size(stack) > CALLERS) json_array_remove(stack, json_array_size(stack) - 1);
    json_array_append(kept, row);
  }
  free(list);
  json_object_set_new(of, "rows_left_out", json_integer((json_int_t)(json_array_size(rows) - i)));
  json_object_set_new(of, "rows", kept);
}

/* ---- the last minute ----------------------------------------------------------------------------------------------
 * */

/* The report's own, but for what the kernel and sites have by second. */
static json_t *seconds(const struct m6_snapshot *s)
{
  json_t *o = m6_payload_seconds(s), *rows = json_object_get(o, "rows"), *kept = json_array();
  size_t n = json_array_size(rows), i = n > SECONDS ? n - SECONDS : 0;
  for (; i < n; i++) json_array_append(kept, json_array_get(rows, i));
  json_object_set_new(o, "rows", kept);
  json_object_del(o, "kernel");
  json_object_del(o, "sites");
  return o;
}

static json_t *stalls(const mach6_stats *h)
{
  const struct m6_snapshot *s = h->snap;
  json_t *a = json_array();
  uint32_t i = s->stall_count > STALLS ? s->stall_count - STALLS : 0;
  for (; i < s->stall_count; i++) {
    const struct m6_snap_stall *k = &m6_snap_stalls(s)[i];
    if (k->at + SECONDS * 1000000000ull < s->elapsed_ns) continue;
    json_array_append_new(a, json_pack("{s:o, s:o, s:o, s:o, s:o}", "at_s", m6_json_seconds(k->at), "frame",
                                       m6_json_u64(k->frame), "time", m6_json_seconds(k->time), "median",
                                       m6_json_seconds(k->median), "scope",
                                       k->node ? json_string_nocheck(h->nodes[k->node].label) : json_null()));
  }
  return a;
}

json_t *brief(const mach6_stats *s, unsigned part)
{
  json_t *o = m6_payload_head(s);
  if (!o) return NULL;
  json_t *sites = m6_payload_sites(s->snap);
  if (json_is_object(sites)) {
    cut_rows(sites, SITES / part);
    json_object_del(sites, "mapped");
  }
  int error = json_object_set_new(o, "sites", sites);
  error |= json_object_set_new(o, "root", tree(s, NODES / part));
  error |= json_object_set_new(o, "seconds", seconds(s->snap));
  error |= json_object_set_new(o, "stalls", stalls(s));
  if (!error) return o;
  json_decref(o);
  return NULL;
}
