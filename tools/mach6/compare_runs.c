/* compare_runs.c - see compare_runs.h. */
#include "compare_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Student's t
 * ------------------------------------------------------------------------------------------------------ */

/* The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22), evaluated by Lentz's method. */
static double beta_share(double a, double b, double x)
{
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - beta_share(b, a, 1 - x);
  double c = 1, d = 1 - (a + b) * x / (a + 1), h;
  d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
  h = d;
  for (int m = 1; m < 1000; m++) {
    for (int odd = 0; odd < 2; odd++) {
      double n = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                     : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 + n * d;
      c = 1 + n / c;
      if (fabs(d) < 1e-300) d = 1e-300;
      if (fabs(c) < 1e-300) c = 1e-300;
      d = 1 / d;
      h *= c * d;
    }
    if (fabs(c * d - 1) < 1e-14) break;
  }
  return exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) * h / a;
}

double student_p(double t, double df) { return beta_share(df / 2, 0.5, df / (df + t * t)); }

double student_t(double p, double df)
{
  double low = 0, high = 1;
  while (student_p(high, df) > p && high < 1e9) high *= 2;
  for (int i = 0; i < 200; i++) {
    double middle = (low + high) / 2;
    if (student_p(middle, df) > p) low = middle;
    else high = middle;
  }
  return high;
}

/* ---- the rows
 * ------------------------------------------------------------------------------------------------------------ */

/* The labels from below the root down, with '/' between; malloc'ed. */
static char *path_of(const mach6_stats *s, const mach6_node *n)
{
  size_t bytes = 1;
  for (const mach6_node *k = n; k != s->nodes; k = &s->nodes[k->raw->parent]) bytes += strlen(k->label) + 1;
  char *path = malloc(bytes), *at = path ? path + bytes - 1 : NULL;
  if (!path) return NULL;
  *at = 0;
  for (const mach6_node *k = n; k != s->nodes; k = &s->nodes[k->raw->parent]) {
    size_t length = strlen(k->label);
    if (*at) *--at = '/';
    memcpy(at -= length, k->label, length);
  }
  memmove(path, at, strlen(at) + 1);
  return path;
}

struct work { /* beside a row, by index */
  double value[2][RUNS_MOST];
  uint32_t n[2];
};
struct builder {
  struct runs_comparison *c;
  struct work *work;
};

static struct runs_row *row_for(struct builder *w, char *path)
{
  struct runs_comparison *c = w->c;
  for (uint32_t i = 1; i < c->count; i++)
    if (path && strcmp(c->row[i].path, path) == 0) {
      free(path);
      return &c->row[i];
    }
  if (c->count == c->room) {
    uint32_t room = c->room ? 2 * c->room : 64;
    struct runs_row *rows = realloc(c->row, room * sizeof *rows);
    if (rows) c->row = rows;
    struct work *work = rows ? realloc(w->work, room * sizeof *work) : NULL;
    if (!work) {
      free(path);
      return NULL;
    }
    w->work = work;
    c->room = room;
  }
  memset(&w->work[c->count], 0, sizeof w->work[0]);
  c->row[c->count] = (struct runs_row){
    .path = path, .p50_a = NAN, .p50_b = NAN, .sd_a = NAN, .sd_b = NAN, .p_all = NAN};
  return &c->row[c->count++];
}

static void bring(struct builder *w, const struct runs_row *r, int side, double ns, uint32_t values)
{
  struct work *k = &w->work[r - w->c->row];
  if (values >= RANK_LEAST && ns > 0 && k->n[side] < RUNS_MOST) k->value[side][k->n[side]++] = log(ns);
}

static int add_run(struct builder *w, const mach6_stats *s, int side)
{
  const struct m6_snapshot *n = s->snap;
  bring(w, &w->c->row[0], side, (double)n->interval_p50, n->frame_count);
  for (uint32_t i = 1; i < n->node_count; i++) {
    const mach6_node *node = &s->nodes[i];
    if (node->raw->kind != M6_NODE_FRAME && node->raw->kind != M6_NODE_SCOPE) continue;
    char *path = path_of(s, node);
    struct runs_row *r = path ? row_for(w, path) : NULL;
    if (!r) return -1;
    bring(w, r, side, (double)node->raw->time_p50, node->raw->reservoir);
  }
  return 0;
}

/* Mean, and the standard deviation (n - 1). */
static void moments(const double *v, uint32_t n, double *mean, double *sd)
{
  double m = 0, s = 0;
  for (uint32_t i = 0; i < n; i++) m += v[i] / n;
  for (uint32_t i = 0; i < n; i++) s += (v[i] - m) * (v[i] - m);
  *mean = n ? m : NAN;
  *sd = n > 1 ? sqrt(s / (n - 1)) : NAN;
}

static void test_row(struct runs_row *r, const struct work *k)
{
  double a, b, sa, sb;
  moments(k->value[0], r->runs_a = k->n[0], &a, &sa);
  moments(k->value[1], r->runs_b = k->n[1], &b, &sb);
  r->p50_a = exp(a) / 1e9;
  r->p50_b = exp(b) / 1e9;
  r->sd_a = sa;
  r->sd_b = sb;
  if (r->runs_a < 2 || r->runs_b < 2) return;
  double va = fmax(sa, RUNS_LEAST_SD) * fmax(sa, RUNS_LEAST_SD) / r->runs_a;
  double vb = fmax(sb, RUNS_LEAST_SD) * fmax(sb, RUNS_LEAST_SD) / r->runs_b, se = sqrt(va + vb);
  r->tested = 1;
  r->t = (b - a) / se;
  r->df = (va + vb) * (va + vb) / (va * va / (r->runs_a - 1) + vb * vb / (r->runs_b - 1));
  r->p = student_p(r->t, r->df);
  double half = student_t(0.05, r->df) * se;
  r->ratio = exp(b - a);
  r->low = exp(b - a - half);
  r->high = exp(b - a + half);
}

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int judge(struct runs_comparison *c, const struct compare_options *o)
{
  double *p = malloc(c->count * sizeof *p), *width = malloc(c->count * sizeof *width);
  uint32_t widths = 0;
  int error = !p || !width;
  for (uint32_t i = 0; !error && i < c->count; i++) p[i] = c->row[i].tested ? c->row[i].p : NAN;
  if (!error) error = rank_holm(p, c->count);
  for (uint32_t i = 0; !error && i < c->count; i++) {
    struct runs_row *r = &c->row[i];
    c->too_few += i != 0 && !r->tested;
    if (!r->tested) continue;
    c->tested++;
    r->p_all = p[i];
    r->changed = p[i] < o->alpha && (r->ratio >= 1 + o->least || r->ratio <= 1 / (1 + o->least));
    c->changed += (uint32_t)r->changed;
    width[widths++] = sqrt(r->high / r->low) - 1;
  }
  c->resolution = NAN;
  if (widths) {
    qsort(width, widths, sizeof *width, by_value);
    c->resolution = width[widths / 2];
  }
  free(p);
  free(width);
  return error ? -1 : 0;
}

int compare_runs(mach6_stats *const *a, uint32_t na, mach6_stats *const *b, uint32_t nb,
                 const struct compare_options *o, struct runs_comparison *out)
{
  struct builder w = {out, NULL};
  memset(out, 0, sizeof *out);
  int error = row_for(&w, NULL) == NULL;
  for (uint32_t i = 0; !error && i < na; i++) error = add_run(&w, a[i], 0);
  for (uint32_t i = 0; !error && i < nb; i++) error = add_run(&w, b[i], 1);
  for (uint32_t i = 0; !error && i < out->count; i++) test_row(&out->row[i], &w.work[i]);
  if (!error) error = judge(out, o);
  free(w.work);
  if (error) compare_runs_free(out);
  return error ? -1 : 0;
}

void compare_runs_free(struct runs_comparison *c)
{
  for (uint32_t i = 0; i < c->count; i++) free(c->row[i].path);
  free(c->row);
  *c = (struct runs_comparison){0};
}
