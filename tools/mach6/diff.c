/* diff.c - mach6 diff A B: what changed between two recordings. The judgement is compare.h's; here it is put into
 * words. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../collector/stats_internal.h"
#include "../../collector/stats_words.h"
#include "compare.h"
#include "diff_runs.h"
#include "dump_options.h"
#include "dumpfile.h"
#include "report.h"
#include "tool.h"

#define MOST_ROWS 40u

struct options {
  const char *file[2];
  int json;
  struct compare_options judge;
};

/* ---- JSON -----------------------------------------------------------------------------------------------------------
 * */

static json_t *side(const char *file, const mach6_stats *s)
{
  char why[512];
  int whole = !m6_stats_not_whole(s, why, sizeof why);
  return json_pack("{s:o, s:b, s:s, s:o, s:o, s:o, s:o}", "file", json_string(file), "whole", whole, "why", why,
                   "presents", m6_json_u64(s->snap->presents), "frames_kept", m6_json_u64(s->snap->frame_count),
                   "leak_per_frame_bytes", m6_json_real(s->snap->leak_per_frame), "leak_ci_bytes",
                   m6_json_real(s->snap->leak_ci));
}

static json_t *row_json(const struct compare_row *r)
{
  const mach6_node *n = r->b ? r->b : r->a;
  char *path = n ? node_path(n) : NULL;
  json_t *o = json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:b, s:b}", "path",
                        path ? json_string_nocheck(path) : json_null(), "in",
                        !n || (r->a && r->b) ? "both"
                        : r->a               ? "a"
                                             : "b",
                        "p50_a", m6_json_real(r->p50_a), "p50_b", m6_json_real(r->p50_b), "count_a",
                        r->a ? m6_json_u64(r->a->raw->count) : json_null(), "count_b",
                        r->b ? m6_json_u64(r->b->raw->count) : json_null(), "tested", r->tested, "changed", r->changed);
  free(path);
  if (o && r->tested)
    json_object_update_new(o, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "ratio", m6_json_real(r->rank.ratio), "low",
                                        m6_json_real(r->rank.low), "high", m6_json_real(r->rank.high), "z",
                                        m6_json_real(r->rank.z), "p", m6_json_real(r->rank.p), "p_adjusted",
                                        m6_json_real(r->p_all)));
  return o;
}

static int print_json(const struct options *o, const mach6_stats *a, const mach6_stats *b, const struct comparison *c)
{
  json_t *nodes = json_array();
  for (uint32_t i = 1; i < c->count; i++) json_array_append_new(nodes, row_json(&c->row[i]));
  json_t *all = json_pack("{s:s, s:o, s:o, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "mach6", MACH6_VERSION, "a",
                          side(o->file[0], a), "b", side(o->file[1], b), "alpha", o->judge.alpha, "least",
                          o->judge.least, "resolution", m6_json_real(c->resolution), "tested", m6_json_u64(c->tested),
                          "changed", m6_json_u64(c->changed), "too_few", m6_json_u64(c->too_few), "leak_p",
                          m6_json_real(c->leak_p), "frame_time", row_json(&c->row[0]), "nodes", nodes);
  int error = !all || json_dumpf(all, stdout, JSON_COMPACT);
  json_decref(all);
  putchar('\n');
  return error;
}

/* ---- for people
 * ------------------------------------------------------------------------------------------------------ */

static const char *percent(double ratio)
{
  static char slots[8][24];
  static unsigned next;
  char *o = slots[next++ % 8];
  double v = (ratio - 1) * 100;
  snprintf(o, 24, fabs(v) >= 99.5 ? "%+.0f %%" : "%+.1f %%", v);
  return o;
}

static const char *likelihood(double p)
{
  static char text[24];
  if (p < 0.0001) return "< 0.0001";
  snprintf(text, sizeof text, "%.4f", p);
  return text;
}

/* The program's; the caller frees it. */
static char *name_of(const struct m6_snapshot *s) { return strndup(m6_snap_text(s) + s->name_offset, s->name_bytes); }

static void about(const struct page *p, const char *which, const char *file, const mach6_stats *s)
{
  char why[512];
  const struct m6_snapshot *n = s->snap;
  fprintf(p->to, "  %s  ", which);
  char *name = name_of(n);
  t_label(p, file, 0);
  fputs(": ", p->to);
  t_label(p, name ? name : "?", 0);
  free(name);
  fprintf(p->to, ", %s presents in %s, %s frames kept, level %s\n", t_count(n->presents),
          t_time(p, (double)n->elapsed_ns / 1e9), t_count(n->frame_count), m6_level_name(n->level));
  if (m6_stats_not_whole(s, why, sizeof why)) t_wrap(p, 5, why);
}

/* What makes the two unlike, whatever the program does. */
static void unlike(const struct page *p, const struct m6_snapshot *a, const struct m6_snapshot *b)
{
  char *x = name_of(a), *y = name_of(b);
  if (x && y && strcmp(x, y) != 0) t_wrap(p, 2, "These are recordings of two programs.");
  if (a->level != b->level) t_wrap(p, 2, "Their levels differ: what mach6 itself costs is part of what changed.");
  free(x);
  free(y);
}

static void line(const struct page *p, const struct compare_row *r)
{
  char *path = r->b ? node_path(r->b) : NULL;
  const char *a = t_time(p, r->p50_a), *b = t_time(p, r->p50_b);
  fputs("  ", p->to);
  diff_name(p, path ? path : "between presents");
  free(path);
  fprintf(p->to, " %*s%s %*s%s", 8 - t_columns(p, a), "", a, 8 - t_columns(p, b), "", b);
  if (!r->tested) fprintf(p->to, "  too few to tell\n");
  else
    fprintf(p->to, "  %s%8s%s  (%s .. %s)  %s\n", r->changed ? ink(p, r->rank.ratio > 1 ? INK_BAD : INK_GOOD) : "",
            percent(r->rank.ratio), r->changed ? NO_INK(p) : "", percent(r->rank.low), percent(r->rank.high),
            likelihood(r->p_all));
}

/* By what it makes of a frame, or of the whole session: the largest first. */
static double weight(const struct compare_row *r)
{
  return r->b ? fabs(log(r->rank.ratio)) * (double)r->b->raw->time_sum : 0;
}
static int heaviest_first(const void *a, const void *b)
{
  double x = weight(*(const struct compare_row *const *)a), y = weight(*(const struct compare_row *const *)b);
  return (x < y) - (x > y);
}

static void names_of(const struct page *p, const struct comparison *c, int in_a, uint32_t count, const char *what)
{
  uint32_t shown = 0;
  if (!count) return;
  fprintf(p->to, "  %s: ", what);
  for (uint32_t i = 1; i < c->count && shown < 8; i++) {
    const struct compare_row *r = &c->row[i];
    if (in_a ? r->b != NULL : r->a != NULL) continue;
    char *path = node_path(in_a ? r->a : r->b);
    if (shown++) fputs(", ", p->to);
    t_label(p, path ? path : "?", 0);
    free(path);
  }
  if (count > shown) fprintf(p->to, " and %s more", t_count(count - shown));
  fputc('\n', p->to);
}

static void scopes(const struct page *p, const struct options *o, const struct comparison *c)
{
  const struct compare_row **list = malloc(c->count * sizeof(const struct compare_row *));
  uint32_t n = 0;
  char text[512];
  for (uint32_t i = 1; list && i < c->count; i++)
    if (c->row[i].changed) list[n++] = &c->row[i];
  report_heading(p, "Scopes that changed");
  if (n) qsort(list, n, sizeof(const struct compare_row *), heaviest_first);
  for (uint32_t i = 0; i < n && i < MOST_ROWS; i++) line(p, list[i]);
  if (n > MOST_ROWS) fprintf(p->to, "  and %s more (--json has them all)\n", t_count(n - MOST_ROWS));
  if (!n) fputs("  none\n", p->to);
  free(list);
  if (!c->tested) {
    t_wrap(p, 2, "Nothing could be compared: it takes 20 calls of a scope, or 20 frames, on each side.");
  } else {
    snprintf(
      text, sizeof text,
      "%s compared; what is shown has an adjusted p below %g and differs by %g %% at least. Half of the intervals are "
      "narrower than +-%.1f %%: smaller changes than that go unseen. Two recordings say nothing of how much one "
      "program's runs differ: for what matters give several a side (mach6 diff A1,A2,A3 B1,B2,B3).",
      t_count(c->tested), o->judge.alpha, o->judge.least * 100, c->resolution * 100);
    t_wrap(p, 2, text);
  }
  if (c->too_few) fprintf(p->to, "  %s with fewer than %u calls were not compared\n", t_count(c->too_few), RANK_LEAST);
  names_of(p, c, 1, c->only_a, "only in A");
  names_of(p, c, 0, c->only_b, "only in B");
}

static double per_frame(const mach6_stats *s, double total)
{
  return s->snap->presents > 1 ? total / (double)(s->snap->presents - 1) : NAN;
}

static void memory(const struct page *p, const mach6_stats *a, const mach6_stats *b, const struct comparison *c)
{
  const struct m6_snapshot *x = a->snap, *y = b->snap;
  double na = 0, nb = 0;
  report_heading(p, "Memory");
  for (int i = 0; i < M6_ALLOC_KIND_COUNT; i++) na += (double)x->allocs[i].count, nb += (double)y->allocs[i].count;
  fprintf(p->to, "  allocations a frame    %s -> %s (startup and end included; counts, not tested)\n",
          t_number(per_frame(a, na)), t_number(per_frame(b, nb)));
  if (isnan(x->leak_per_frame) || isnan(y->leak_per_frame))
    fputs("  growth a frame         not known on both sides\n", p->to);
  else {
    fprintf(p->to, "  growth a frame         %s +- %s -> %s +- %s", t_bytes_signed(x->leak_per_frame),
            t_bytes(x->leak_ci), t_bytes_signed(y->leak_per_frame), t_bytes(y->leak_ci));
    fprintf(p->to, "; p %s\n", likelihood(c->leak_p));
  }
}

static void show(const struct options *o, const mach6_stats *a, const mach6_stats *b, const struct comparison *c)
{
  char *text = NULL;
  size_t n;
  struct page to = page_on(stdout, STDOUT_FILENO), p = to;
  p.to = open_memstream(&text, &n);
  if (p.to == NULL) p.to = stdout;
  fprintf(p.to, "%smach6%s  what changed from A to B\n", ink(&p, INK_BOLD), NO_INK(&p));
  about(&p, "A", o->file[0], a);
  about(&p, "B", o->file[1], b);
  unlike(&p, a->snap, b->snap);
  report_heading(&p, "Frame times");
  fprintf(p.to, "  %s%-*s %8s %8s  %8s  (95 %% interval)  adjusted p%s\n", ink(&p, INK_DIM), diff_name_columns(&p), "",
          "p50 A", "p50 B", "change", NO_INK(&p));
  line(&p, &c->row[0]);
  scopes(&p, o, c);
  memory(&p, a, b, c);
  if (p.to == stdout) return;
  if (fclose(p.to) == 0) t_fold(&to, text);
  free(text);
}

/* ---- options
 * ---------------------------------------------------------------------------------------------------------- */

static double share(struct argp_state *state, const char *option, const char *arg, double most)
{
  char *end;
  double v = strtod(arg, &end);
  if (end != arg && *end == '%') v /= 100, end++;
  if (end == arg || *end || !(v >= 0 && v <= most))
    argp_error(state, "%s takes a share from 0 to %g, as 0.01 or 1%%, not '%s'", option, most, arg);
  return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  switch (key) {
  case 'j': o->json = 1; return 0;
  case 'a': o->judge.alpha = share(state, "--alpha", arg, 0.5); return 0;
  case 'l': o->judge.least = share(state, "--least", arg, 100); return 0;
  default: return dump_option(key, arg, state, o->file, 2);
  }
}

int m6_diff(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"json", 'j', 0, 0, "One JSON object, with every node", 0},
    {"alpha", 'a', "SHARE", 0, "The chance of any false alarm in the whole comparison (0.01)", 0},
    {"least", 'l', "SHARE", 0, "Changes smaller than that are not shown (1%)", 0},
    {0},
  };
  static const struct argp argp = {table,
                                   parse,
                                   "A B\nA1,A2... B1,B2...",
                                   "Compare two recordings of one program, or several a side, node by node.",
                                   NULL,
                                   NULL,
                                   NULL};
  struct options o = {.judge = {0.01, 0.01}};
  mach6_stats *a, *b;
  int status, status_b;
  dump_parse(&argp, "mach6 diff", argc, argv, &o);
  if (diff_is_runs(o.file[0]) || diff_is_runs(o.file[1])) return diff_runs(o.file[0], o.file[1], &o.judge, o.json);
  int error = dump_load(o.file[0], &a, &status);
  if (error) return error;
  if ((error = dump_load(o.file[1], &b, &status_b))) {
    mach6_stats_close(a);
    return error;
  }
  struct comparison c;
  if (status_b) status = status_b;
  if (compare(a, b, &o.judge, &c)) {
    say("%s, %s: %s", o.file[0], o.file[1], strerror(ENOMEM));
    status = EXIT_OTHER;
  } else if (o.json) {
    if (print_json(&o, a, b, &c)) status = EXIT_OTHER;
  } else {
    show(&o, a, b, &c);
  }
  compare_free(&c);
  mach6_stats_close(a);
  mach6_stats_close(b);
  if (fflush(stdout) || ferror(stdout)) return say("the comparison could not be written"), EXIT_OTHER;
  return status;
}
