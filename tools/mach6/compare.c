/* compare.c - see compare.h. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* What of one recording every comparison needs. */
struct side {
  const mach6_stats *s;
  uint32_t *sample_at; /* of each node: where its samples begin */
  double *interval;    /* logarithms, ascending */
  uint32_t intervals;
  double inflation, spread; /* of the intervals */
  uint64_t frames;
};

static void side_free(struct side *d)
{
  free(d->sample_at);
  free(d->interval);
}

static int side_of(struct side *d, const mach6_stats *s)
{
  const struct m6_snapshot *n = s->snap;
  memset(d, 0, sizeof *d);
  d->s = s;
  d->frames = n->presents ? n->presents - 1 : 0;
  d->sample_at = malloc((n->node_count + 1u) * sizeof *d->sample_at);
  d->interval = malloc((n->frame_count + 1u) * sizeof *d->interval);
  if (!d->sample_at || !d->interval) return -1;
  uint32_t at = 0;
  for (uint32_t i = 0; i < n->node_count; i++) {
    d->sample_at[i] = at;
    at += m6_snap_nodes(n)[i].reservoir;
  }
  for (uint32_t i = 0; i < n->frame_count; i++) {
    const struct m6_snap_frame *f = &m6_snap_frames(n)[i];
    double ns = (double)f->time + (double)f->gap;
    if (f->lumped == 1 && ns > 0) d->interval[d->intervals++] = log(ns);
  }
  d->inflation = rank_inflation(d->interval, d->intervals);
  qsort(d->interval, d->intervals, sizeof *d->interval, by_value);
  d->spread = rank_spread(d->interval, d->intervals);
  return 0;
}

/* A node's samples as sorted logarithms; how many. */
static uint32_t samples_of(const struct side *d, const mach6_node *n, double out[M6_RESERVOIR])
{
  uint32_t at = d->sample_at[n->raw - m6_snap_nodes(d->s->snap)], k = n->raw->reservoir;
  if (at + k > d->s->snap->sample_count) return 0; /* they were cut off, or it is a live snapshot */
  for (uint32_t i = 0; i < k; i++) {
    double v = m6_snap_samples(d->s->snap)[at + i];
    out[i] = log(v > 1 ? v : 1);
  }
  qsort(out, k, sizeof *out, by_value);
  return k;
}

static void test_node(struct compare_row *r, const struct side *a, const struct side *b)
{
  static double va[M6_RESERVOIR], vb[M6_RESERVOIR];
  r->n_a = samples_of(a, r->a, va);
  r->n_b = samples_of(b, r->b, vb);
  if (r->n_a < RANK_LEAST || r->n_b < RANK_LEAST) return;
  r->tested = 1;
  /* Calls of one frame depend on each other: a frame is a unit. */
  uint64_t units_a = a->frames && a->frames < r->a->raw->count ? a->frames : r->a->raw->count;
  uint64_t units_b = b->frames && b->frames < r->b->raw->count ? b->frames : r->b->raw->count;
  double fa = rank_inflation_of(a->inflation, a->spread, rank_spread(va, r->n_a));
  double fb = rank_inflation_of(b->inflation, b->spread, rank_spread(vb, r->n_b));
  struct rank_side x = {va, r->n_a, rank_effective(r->n_a, r->a->raw->count, units_a, fa)};
  struct rank_side y = {vb, r->n_b, rank_effective(r->n_b, r->b->raw->count, units_b, fb)};
  r->rank = rank_compare(&x, &y);
}

static void test_frames(struct compare_row *r, const struct side *a, const struct side *b)
{
  r->p50_a = (double)a->s->snap->interval_p50 / 1e9;
  r->p50_b = (double)b->s->snap->interval_p50 / 1e9;
  r->n_a = a->intervals;
  r->n_b = b->intervals;
  if (r->n_a < RANK_LEAST || r->n_b < RANK_LEAST) return;
  r->tested = 1;
  struct rank_side x = {a->interval, r->n_a, rank_effective(r->n_a, r->n_a, 0, a->inflation)};
  struct rank_side y = {b->interval, r->n_b, rank_effective(r->n_b, r->n_b, 0, b->inflation)};
  r->rank = rank_compare(&x, &y);
}

/* ---- which nodes are the same
 * ---------------------------------------------------------------------------------------- */

/* The counterpart of each node of b in a, by index; UINT32_MAX: none. In preorder, so that parents come first. */
static int match(const mach6_stats *a, const mach6_stats *b, uint32_t *in_a)
{
  uint32_t n = b->snap->node_count;
  in_a[0] = 0;
  for (uint32_t i = 1; i < n; i++) in_a[i] = UINT32_MAX;
  /* Parents come before their children in a dump; a live snapshot's order may be another, so go by links. */
  const mach6_node *at = mach6_node_first_child(b->nodes);
  while (at) {
    uint32_t i = (uint32_t)(at - b->nodes), parent = in_a[at->raw->parent];
    if (parent != UINT32_MAX) {
      const mach6_node *twin = mach6_node_first_child(&a->nodes[parent]);
      while (twin && (strcmp(twin->label, at->label) != 0 || twin->raw->kind != at->raw->kind))
        twin = mach6_node_next_sibling(twin);
      if (twin) in_a[i] = (uint32_t)(twin - a->nodes);
    }
    const mach6_node *next = mach6_node_first_child(at);
    while (!next && at != b->nodes) {
      next = mach6_node_next_sibling(at);
      if (!next) at = &b->nodes[at->raw->parent];
    }
    at = next;
  }
  return 0;
}

static int has_times(const mach6_node *n) { return n->raw->kind == M6_NODE_FRAME || n->raw->kind == M6_NODE_SCOPE; }

static struct compare_row *add(struct comparison *c, const mach6_node *a, const mach6_node *b)
{
  struct compare_row *r = &c->row[c->count++];
  *r = (struct compare_row){.a = a, .b = b, .p50_a = NAN, .p50_b = NAN, .p_all = NAN};
  if (a) r->p50_a = mach6_node_stats(a).time_p50;
  if (b) r->p50_b = mach6_node_stats(b).time_p50;
  return r;
}

static int largest_first(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

static int judge(struct comparison *c, const struct compare_options *o)
{
  double *p = malloc(c->count * sizeof *p), *width = malloc(c->count * sizeof *width);
  uint32_t widths = 0;
  int error = !p || !width;
  for (uint32_t i = 0; !error && i < c->count; i++) p[i] = c->row[i].tested ? c->row[i].rank.p : NAN;
  if (!error) error = rank_holm(p, c->count);
  for (uint32_t i = 0; !error && i < c->count; i++) {
    struct compare_row *r = &c->row[i];
    if (!r->tested) continue;
    c->tested++;
    r->p_all = p[i];
    r->changed = p[i] < o->alpha && (r->rank.ratio >= 1 + o->least || r->rank.ratio <= 1 / (1 + o->least));
    c->changed += (uint32_t)r->changed;
    width[widths++] = sqrt(r->rank.high / r->rank.low) - 1;
  }
  c->resolution = NAN;
  if (widths) {
    qsort(width, widths, sizeof *width, largest_first);
    c->resolution = width[widths / 2];
  }
  free(p);
  free(width);
  return error ? -1 : 0;
}

int compare(const mach6_stats *a, const mach6_stats *b, const struct compare_options *o, struct comparison *out)
{
  struct side x, y;
  uint32_t na = a->snap->node_count, nb = b->snap->node_count;
  memset(out, 0, sizeof *out);
  int error = side_of(&x, a) | side_of(&y, b);
  uint32_t *in_a = malloc(nb * sizeof *in_a);
  uint8_t *met = calloc(na, 1);
  out->row = malloc((na + nb + 1u) * sizeof *out->row);
  if (!in_a || !met || !out->row) error = -1;
  if (!error) {
    out->inflation_a = x.inflation;
    out->inflation_b = y.inflation;
    match(a, b, in_a);
    test_frames(add(out, NULL, NULL), &x, &y);
    for (uint32_t i = 1; i < nb; i++) {
      const mach6_node *twin = in_a[i] == UINT32_MAX ? NULL : &a->nodes[in_a[i]];
      if (twin) met[in_a[i]] = 1;
      if (!has_times(&b->nodes[i])) continue;
      struct compare_row *r = add(out, twin, &b->nodes[i]);
      if (twin) test_node(r, &x, &y);
      if (!twin) out->only_b++;
      else if (!r->tested) out->too_few++;
    }
    for (uint32_t i = 1; i < na; i++)
      if (!met[i] && has_times(&a->nodes[i])) {
        add(out, &a->nodes[i], NULL);
        out->only_a++;
      }
    error = judge(out, o);
    double ci_a = a->snap->leak_ci / 1.96, ci_b = b->snap->leak_ci / 1.96;
    out->leak_p = erfc(fabs(b->snap->leak_per_frame - a->snap->leak_per_frame) / sqrt(ci_a * ci_a + ci_b * ci_b) /
                       M_SQRT2);
  }
  side_free(&x);
  side_free(&y);
  free(in_a);
  free(met);
  if (error) compare_free(out);
  return error;
}

void compare_free(struct comparison *c)
{
  free(c->row);
  c->row = NULL;
}
