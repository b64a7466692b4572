/* publish_tree.c - the settled tree as a snapshot's nodes, with their labels, and the samples behind their percentiles.
 * See publish_parts.h. Calls tree.c's m6_tree_home: a node that only an open frame knows gets its place here. */
#include "publish_parts.h"

#include <string.h>

static void put_label(struct m6_writer *w, const struct m6_capture *c, uint32_t label, struct m6_snap_node *n)
{
  static const char *const parts[] = {"root", "startup", "frame", "shutdown"};
  if (label >= M6_LABEL_PART) {
    m6_put_clean(w, parts[(label - M6_LABEL_PART) & 3], &n->label_offset, &n->label_bytes, &n->label_flags);
    return;
  }
  if (label >= M6_LABEL_THREAD) {
    m6_put_clean(w, m6_capture_name(c, label), &n->label_offset, &n->label_bytes, &n->label_flags);
    return;
  }
  const struct m6_label_text *l = &c->labels[label];
  int known = label != M6_LABEL_OTHER && l->flags & M6_LABEL_KNOWN;
  const char *text = label == M6_LABEL_OTHER ? "(other)" : known ? l->text : "(label lost)";
  size_t length = known ? l->bytes : strlen(text);
  uint32_t at = w->label_at[label];
  if (at == 0) at = 1 + m6_put_text(w, text, &length);
  if (length) w->label_at[label] = at; /* not when the text was full: others' bytes may stand there later */
  n->label_offset = at - 1;
  n->label_bytes = (uint32_t)length;
  if (known) n->label_flags = l->flags & (M6_LABEL_CUT | M6_LABEL_REPLACED);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

void m6_put_open(struct m6_capture *c, struct m6_writer *w)
{
  struct m6_tree *t = &c->tree;
  struct m6_thread *p = c->presenter;
  if (p == NULL || !p->presenting) return;
  for (uint32_t i = t->nodes[p->top].touched_next; i != 0; i = t->nodes[i].touched_next) {
    const struct m6_node *x = &t->nodes[i];
    uint32_t out = t->nodes[m6_tree_home(t, i, t->frame)].out;
    if (out == 0) continue;
    struct m6_snap_node *n = &w->nodes[out];
    uint64_t max = m6_ticks_to_ns(c->rate, x->time_max);
    n->count += x->count;
    n->abandoned += x->abandoned;
    n->lost += x->lost;
    n->time_sum += m6_ticks_to_ns(c->rate, x->time_sum);
    if (max > n->time_max) n->time_max = max;
    n->d_sum = m6_sum_saturated(n->d_sum, x->d_sum, &t->saturated);
    n->allocs += x->allocs;
  }
}

/* So that every home has a place in the snapshot, they are made before it is laid out. */
static void make_homes(struct m6_capture *c)
{
  struct m6_thread *p = c->presenter;
  if (p == NULL || !p->presenting) return;
  for (uint32_t i = c->tree.nodes[p->top].touched_next; i != 0; i = c->tree.nodes[i].touched_next) {
    uint32_t home = m6_tree_home(&c->tree, i, c->tree.frame);
    for (; home != 0 && !c->tree.nodes[home].visible; home = c->tree.nodes[home].key.parent)
      c->tree.nodes[home].visible = 1;
  }
}

/* Of a sample, which is a float: the longest time of all has no number when it is rounded up. */
static uint64_t sampled_ns(struct m6_rate rate, float ticks)
{
  return m6_ticks_to_ns(rate, ticks < 0x1p64f ? (uint64_t)ticks : UINT64_MAX);
}

void m6_put_times(struct m6_snap_node *n, struct m6_rate rate, const struct m6_reservoir *r)
{
  struct m6_quantiles q = m6_reservoir_quantiles(r);
  n->reservoir = m6_reservoir_size(r);
  n->time_p10 = sampled_ns(rate, q.p10);
  n->time_p50 = sampled_ns(rate, q.p50);
  n->time_p90 = sampled_ns(rate, q.p90);
  if (n->time_p10 > n->time_max)
    n->time_p10 = n->time_max; /* float's rounding must not show a median above the maximum */
  if (n->time_p50 > n->time_max) n->time_p50 = n->time_max;
  if (n->time_p90 > n->time_max) n->time_p90 = n->time_max;
}

static void put_node(struct m6_capture *c, struct m6_writer *w, uint32_t node, uint32_t parent_out)
{
  struct m6_node *x = &c->tree.nodes[node];
  uint32_t at = w->node_count++;
  x->out = at;
  struct m6_snap_node *n = &w->nodes[at];
  memset(n, 0, sizeof *n);
  n->kind = x->kind;
  n->parent = parent_out;
  put_label(w, c, node == 0 ? M6_LABEL_PART + M6_NODE_ROOT : x->key.label, n);
  if (node != 0) { /* linked behind its siblings */
    struct m6_snap_node *p = &w->nodes[parent_out];
    if (p->first_child == 0) p->first_child = at;
    else {
      /* `reservoir` is not needed until the parent's times are filled in: it holds the last child meanwhile */
      w->nodes[p->reservoir].next_sibling = at;
    }
    p->reservoir = at;
  }
  n->count = x->count;
  n->abandoned = x->abandoned;
  n->lost = x->lost;
  n->time_sum = m6_ticks_to_ns(c->rate, x->time_sum);
  n->time_max = m6_ticks_to_ns(c->rate, x->time_max);
  n->d_sum = x->d_sum;
  n->d_max = x->d_max;
  n->allocs = x->allocs;
}

static int worth_showing(const struct m6_capture *c, uint32_t node)
{
  const struct m6_node *x = &c->tree.nodes[node];
  return x->kind != M6_NODE_SCOPE || x->count || x->abandoned || x->lost || x->samples;
}

/* Visible is what has statistics, and what lies above it. */
static void mark_visible(struct m6_capture *c)
{
  struct m6_tree *t = &c->tree;
  for (uint32_t i = 0; i < t->bump; i++) t->nodes[i].out = t->nodes[i].visible = 0;
  uint32_t n = t->nodes[0].first_child;
  while (n != 0) {
    if (worth_showing(c, n))
      for (uint32_t up = n; up != 0 && !t->nodes[up].visible; up = t->nodes[up].key.parent) t->nodes[up].visible = 1;
    if (t->nodes[n].first_child) {
      n = t->nodes[n].first_child;
      continue;
    }
    while (n != 0 && t->nodes[n].next_sibling == 0) n = t->nodes[n].key.parent;
    if (n != 0) n = t->nodes[n].next_sibling;
  }
}

void m6_put_tree(struct m6_capture *c, struct m6_writer *w, uint32_t shutdown_shown)
{
  struct m6_tree *t = &c->tree;
  mark_visible(c);
  make_homes(c);
  if (!shutdown_shown) t->nodes[t->shutdown].visible = 0;
  put_node(c, w, 0, 0);
  uint32_t n = t->nodes[0].first_child;
  while (n != 0 && w->node_count < M6_NODES_MAX) {
    int shown = t->nodes[n].visible;
    if (shown) put_node(c, w, n, t->nodes[t->nodes[n].key.parent].out);
    if (shown && t->nodes[n].first_child) {
      n = t->nodes[n].first_child;
      continue;
    }
    while (n != 0 && t->nodes[n].next_sibling == 0) n = t->nodes[n].key.parent;
    if (n != 0) n = t->nodes[n].next_sibling;
  }
  w->nodes[0].reservoir = 0;
  for (uint32_t i = 1; i < t->bump; i++)
    if (t->nodes[i].out != 0) m6_put_times(&w->nodes[t->nodes[i].out], c->rate, &t->nodes[i].times);
}

void m6_put_account(struct m6_snap_node *n, const struct m6_account *a, struct m6_rate rate, uint32_t *saturated)
{
  n->count = a->count;
  n->time_sum = m6_ticks_to_ns(rate, a->time_sum);
  n->time_max = m6_ticks_to_ns(rate, a->time_max);
  n->allocs = a->allocs;
  n->d_sum = m6_clamp(a->d, saturated);
  n->d_max = m6_clamp(a->d_max, saturated);
  n->i_sum = m6_clamp(a->i, saturated);
  if (a->count == 1) { /* the one sample is its own percentiles */
    n->time_p10 = n->time_p50 = n->time_p90 = n->time_max;
    n->reservoir = 1;
  }
}

/* ---- samples -------------------------------------------------------------------------------------------------- */

uint32_t m6_put_samples(const struct m6_capture *c, const struct m6_writer *w, float *to)
{
  static uint32_t from[M6_NODES_MAX]; /* settled node of each of the snapshot's */
  const struct m6_tree *t = &c->tree;
  uint32_t n = 0;
  memset(from, 0, sizeof from);
  for (uint32_t i = 1; i < t->bump; i++)
    if (t->nodes[i].out) from[t->nodes[i].out] = i;
  for (uint32_t i = 0; i < w->node_count; i++) {
    const struct m6_reservoir *r = from[i] == t->frame ? &c->books.times : from[i] ? &t->nodes[from[i]].times : NULL;
    int same = r && m6_reservoir_size(r) == w->nodes[i].reservoir;
    for (uint32_t k = 0; k < w->nodes[i].reservoir; k++) /* what is one node's only sample is in no reservoir */
      to[n++] = same ? (float)sampled_ns(c->rate, r->sample[k]) : (float)w->nodes[i].time_p50;
  }
  return n;
}
