/* tree.c - the stats tree as a table: a frame first, then what other threads did meanwhile, then what came before and
 * after.
 *
 * The longest child comes first. A parent shows MOST_CHILDREN of them and sums up the rest, so that a report
 * stays readable; JSON has them all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/stats_internal.h"
#include "report.h"

#define MOST_CHILDREN 24
#define MOST_DEPTH 14
#define LABEL_LEAST 24 /* columns; numbers make room for it where the terminal is narrow */

/* The numbers of a row: the heading, its columns, and how soon it goes. */
enum number { SHARE, CALLS, AVG, P50, P90, MAX, MEM, ALLOCS, NUMBERS };
static const struct {
  const char *heading;
  int columns, keep; /* the least `keep` goes first */
} numbers[NUMBERS] = {
  [SHARE] = {"share", 6, 7}, [CALLS] = {"calls", 8, 4}, [AVG] = {"avg", 8, 9},       [P50] = {"p50", 8, 2},
  [P90] = {"p90", 8, 1},     [MAX] = {"max", 8, 6},     [MEM] = {"mem/call", 10, 5}, [ALLOCS] = {"allocs", 6, 3}};

struct table {
  const struct page *p;
  double frames;  /* calls are by frame when positive, else in all */
  uint64_t whole; /* ns that are 100 % */
  int label;      /* columns of the label */
  unsigned shown; /* bits: numbers that there is room for */
  double least;   /* share below which a child is only counted */
  int no_memory;  /* nothing is known of it */
};

static int longest_first(const void *a, const void *b)
{
  const mach6_node *x = *(const mach6_node *const *)a, *y = *(const mach6_node *const *)b;
  if (x->raw->time_sum != y->raw->time_sum) return x->raw->time_sum < y->raw->time_sum ? 1 : -1;
  return x < y ? -1 : x > y;
}

static void fit(struct table *t)
{
  t->shown = (1u << NUMBERS) - 1;
  t->label = t->p->width - 2;
  for (int i = 0; i < NUMBERS; i++) t->label -= numbers[i].columns + 1;
  while (t->label < LABEL_LEAST) {
    int least = -1;
    for (int i = 0; i < NUMBERS; i++)
      if (t->shown >> i & 1 && (least < 0 || numbers[i].keep < numbers[least].keep)) least = i;
    if (least < 0) break;
    t->shown &= ~(1u << least);
    t->label += numbers[least].columns + 1;
  }
}

static void put(const struct table *t, enum number i, const char *text)
{
  /* "µ" is two bytes and one column: printf pads by bytes. */
  if (t->shown >> i & 1) fprintf(t->p->to, " %*s%s", numbers[i].columns - t_columns(t->p, text), "", text);
}

static void head(const struct table *t)
{
  const struct page *p = t->p;
  fprintf(p->to, "%s  %*s", ink(p, INK_DIM), t->label, "");
  for (int i = 0; i < NUMBERS; i++)
    put(t, (enum number)i, i == CALLS && t->frames > 0 ? "calls/fr" : numbers[i].heading);
  fprintf(p->to, "%s\n", NO_INK(p));
}

static void row(const struct table *t, const mach6_node *n, const char *branch, enum ink emphasis)
{
  const struct page *p = t->p;
  struct mach6_node_stats s = mach6_node_stats(n);
  double share = t->whole ? (double)n->raw->time_sum / (double)t->whole : NAN;
  double calls = t->frames > 0 ? (double)s.count / t->frames : (double)s.count;
  double allocs = s.count ? (double)s.allocs / (double)s.count : NAN;
  int thread = n->raw->kind == M6_NODE_THREAD; /* it lived once */
  fputs("  ", p->to);
  fprintf(p->to, "%s%s%s%s", ink(p, INK_DIM), branch, NO_INK(p), emphasis ? ink(p, emphasis) : "");
  t_label(p, *n->label ? n->label : "(no name)", t->label - t_columns(p, branch));
  fputs(emphasis ? NO_INK(p) : "", p->to);
  put(t, SHARE, t_ratio(share));
  put(t, CALLS, thread ? "" : t_number(calls));
  put(t, AVG, t_time(p, s.time_avg));
  put(t, P50, thread ? "" : t_time(p, s.time_p50));
  put(t, P90, thread ? "" : t_time(p, s.time_p90));
  put(t, MAX, thread ? "" : t_time(p, s.time_max));
  put(t, MEM, t->no_memory ? "-" : t_bytes_signed(s.mem_delta_avg * 1024));
  put(t, ALLOCS, t->no_memory ? "-" : t_short(allocs));
  fputc('\n', p->to);
}

static void below(const struct table *t, const mach6_node *parent, const char *lead, int depth)
{
  const struct page *p = t->p;
  unsigned count = 0;
  for (const mach6_node *c = mach6_node_first_child(parent); c; c = mach6_node_next_sibling(c)) count++;
  const mach6_node **list = count ? malloc(count * sizeof(const mach6_node *)) : NULL;
  if (!list) return;
  count = 0;
  for (const mach6_node *c = mach6_node_first_child(parent); c; c = mach6_node_next_sibling(c)) list[count++] = c;
  qsort(list, count, sizeof(const mach6_node *), longest_first);
  unsigned shown = depth >= MOST_DEPTH ? 0 : count > MOST_CHILDREN ? MOST_CHILDREN : count;
  while (shown && (double)list[shown - 1]->raw->time_sum < t->least * (double)t->whole) shown--;
  for (unsigned i = 0; i < shown; i++) {
    char branch[128], next[128];
    int last = i + 1 == count;
    snprintf(branch, sizeof branch, "%s%s", lead, p->utf8 ? (last ? "└ " : "├ ") : (last ? "` " : "| "));
    snprintf(next, sizeof next, "%s%s", lead, last ? "  " : p->utf8 ? "│ " : "| ");
    row(t, list[i], branch, INK_PLAIN);
    below(t, list[i], next, depth + 1);
  }
  if (shown < count) {
    uint64_t time = 0;
    for (unsigned i = shown; i < count; i++) time += list[i]->raw->time_sum;
    fprintf(p->to, "  %s%s%sand %s more, %s in all%s\n", ink(p, INK_DIM), lead, p->utf8 ? "└ " : "` ",
            t_count(count - shown), t_time(p, (double)time / 1e9), NO_INK(p));
  }
  free(list);
}

/* The children of the root that are of one kind, each with what lies below. */
static void part(struct table *t, const mach6_node *root, uint32_t kind, int only_with_children)
{
  for (const mach6_node *c = mach6_node_first_child(root); c; c = mach6_node_next_sibling(c)) {
    if (c->raw->kind != kind || (only_with_children && !c->raw->first_child)) continue;
    t->whole = c->raw->time_sum;
    row(t, c, "", INK_BOLD);
    below(t, c, "", 0);
  }
}

static int has(const mach6_node *root, uint32_t kind, int with_children)
{
  for (const mach6_node *c = mach6_node_first_child(root); c; c = mach6_node_next_sibling(c))
    if (c->raw->kind == kind && (!with_children || c->raw->first_child)) return 1;
  return 0;
}

void report_tree(const struct page *p, const mach6_stats *s)
{
  const mach6_node *root = mach6_stats_root(s);
  double frames = 0;
  for (const mach6_node *c = mach6_node_first_child(root); c; c = mach6_node_next_sibling(c))
    if (c->raw->kind == M6_NODE_FRAME) frames = (double)c->raw->count;
  uint32_t unseen = mach6_stats_snapshot(s)->unseen;
  struct table t = {
    .p = p, .frames = frames, .no_memory = (unseen & (M6_UNSEEN_NO_SHIM | M6_UNSEEN_MALLOC_NOT_FIRST)) != 0};
  fit(&t);
  if (frames > 0) {
    report_heading(p, "A frame, by scope");
    head(&t);
    part(&t, root, M6_NODE_FRAME, 0);
    if (mach6_node_first_child(root) && frames > 0) {
      const mach6_node *f = mach6_node_first_child(root);
      while (f->raw->kind != M6_NODE_FRAME) f = mach6_node_next_sibling(f);
      if (!f->raw->first_child && !(unseen & M6_UNSEEN_NO_SHIM))
        t_wrap(p, 2, "(no scopes: a program names its own with mach6_mark and mach6_done, see mach6_mark(3))");
    }
  }
  if (has(root, M6_NODE_THREAD, 1)) {
    report_heading(p, frames > 0 ? "Other threads, by scope" : "Threads, by scope");
    head(&t);
    part(&t, root, M6_NODE_THREAD, 1);
  }
  if (has(root, M6_NODE_SCOPE, 0)) {
    report_heading(p, "Outside of all frames");
    head(&t);
    part(&t, root, M6_NODE_SCOPE, 0);
  }
  t.frames = 0;
  t.least = frames > 0 ? 0.02 : 0;                             /* what happens once is worth less room */
  int ended = mach6_stats_snapshot(s)->state != M6_COLLECTING; /* else there is no end yet */
  if (has(root, M6_NODE_STARTUP, 0) || (ended && has(root, M6_NODE_SHUTDOWN, 0))) {
    report_heading(p, frames <= 0 ? "The whole session"
                      : ended     ? "Before the first frame, after the last"
                                  : "Before the first frame");
    head(&t);
    part(&t, root, M6_NODE_STARTUP, 0);
    if (ended) part(&t, root, M6_NODE_SHUTDOWN, 0);
  }
}
