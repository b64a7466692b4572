/* diff_runs.c - mach6 diff with several recordings a side: loads them, and puts compare_runs.h's judgement into words.
 * */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare_runs.h"
#include "diff_runs.h"
#include "dumpfile.h"
#include "report.h"
#include "tool.h"

#define MOST_ROWS 40u

struct side {
  char *names; /* cut at its commas */
  const char *file[RUNS_MOST];
  mach6_stats *run[RUNS_MOST];
  uint32_t n;
};

int diff_is_runs(const char *files) { return strchr(files, ',') && access(files, F_OK) != 0; }

static void side_free(struct side *s)
{
  for (uint32_t i = 0; i < s->n; i++) mach6_stats_close(s->run[i]);
  free(s->names);
}

/* 0, or an exit status after a message. */
static int side_load(struct side *s, const char *files, int *status)
{
  memset(s, 0, sizeof *s);
  s->names = strdup(files);
  if (!s->names) return say("%s: %s", files, strerror(ENOMEM)), EXIT_OTHER;
  char *rest = s->names, *name;
  while ((name = strsep(&rest, ",")) != NULL) {
    int own;
    if (s->n == RUNS_MOST) return say("%s: more than %u recordings on a side", files, RUNS_MOST), EXIT_USAGE;
    if (*name == 0) return say("'%s': a name is missing between two commas", files), EXIT_USAGE;
    int error = dump_load(name, &s->run[s->n], &own);
    if (error) return error;
    s->file[s->n++] = name;
    if (own) *status = own;
  }
  if (s->n < 2)
    return say(
             "%s: with several recordings on one side it takes two at least on the other: runs of one program differ, "
             "and by how much is what they are for",
             files),
           EXIT_USAGE;
  return 0;
}

/* ---- JSON -----------------------------------------------------------------------------------------------------------
 * */

static json_t *side_json(const struct side *s)
{
  json_t *a = json_array();
  for (uint32_t i = 0; i < s->n; i++) {
    char why[512];
    int whole = !m6_stats_not_whole(s->run[i], why, sizeof why);
    json_array_append_new(a, json_pack("{s:o, s:b, s:o}", "file", json_string(s->file[i]), "whole", whole, "presents",
                                       m6_json_u64(s->run[i]->snap->presents)));
  }
  return a;
}

static json_t *row_json(const struct runs_row *r)
{
  json_t *o = json_pack("{s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:b, s:b}", "path",
                        r->path ? json_string_nocheck(r->path) : json_null(), "p50_a", m6_json_real(r->p50_a), "p50_b",
                        m6_json_real(r->p50_b), "runs_a", (int)r->runs_a, "runs_b", (int)r->runs_b, "sd_a",
                        m6_json_real(r->sd_a), "sd_b", m6_json_real(r->sd_b), "tested", r->tested, "changed",
                        r->changed);
  if (o && r->tested)
    json_object_update_new(o, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "ratio", m6_json_real(r->ratio), "low",
                                        m6_json_real(r->low), "high", m6_json_real(r->high), "t", m6_json_real(r->t),
                                        "df", m6_json_real(r->df), "p", m6_json_real(r->p), "p_adjusted",
                                        m6_json_real(r->p_all)));
  return o;
}

static int print_json(const struct side *a, const struct side *b, const struct compare_options *o,
                      const struct runs_comparison *c)
{
  json_t *nodes = json_array();
  for (uint32_t i = 1; i < c->count; i++) json_array_append_new(nodes, row_json(&c->row[i]));
  json_t *all = json_pack("{s:s, s:s, s:o, s:o, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "mach6", MACH6_VERSION,
                          "unit", "run", "a", side_json(a), "b", side_json(b), "alpha", o->alpha, "least", o->least,
                          "resolution", m6_json_real(c->resolution), "tested", m6_json_u64(c->tested), "changed",
                          m6_json_u64(c->changed), "too_few", m6_json_u64(c->too_few), "frame_time",
                          row_json(&c->row[0]), "nodes", nodes);
  int error = !all || json_dumpf(all, stdout, JSON_COMPACT);
  json_decref(all);
  putchar('\n');
  return error;
}

/* ---- for people
 * ------------------------------------------------------------------------------------------------------ */

static void about(const struct page *p, const char *which, const struct side *s)
{
  char why[512];
  for (uint32_t i = 0; i < s->n; i++) {
    fprintf(p->to, "  %s  ", i ? " " : which);
    t_label(p, s->file[i], 0);
    fprintf(p->to, ": %s presents in %s\n", t_count(s->run[i]->snap->presents),
            t_time(p, (double)s->run[i]->snap->elapsed_ns / 1e9));
    if (m6_stats_not_whole(s->run[i], why, sizeof why)) t_wrap(p, 5, why);
  }
}

int diff_name_columns(const struct page *p) { return p->width >= 103 ? 40 : p->width > 79 ? p->width - 63 : 16; }

void diff_name(const struct page *p, const char *path)
{
  const char *mark = p->utf8 ? "…/" : "../", *from = path, *slash;
  int columns = diff_name_columns(p), less = t_columns(p, mark);
  if (t_columns(p, path) > columns)
    while (t_columns(p, from) > columns - less && (slash = strchr(from, '/')) != NULL) from = slash + 1;
  if (from == path) less = 0;
  else fputs(mark, p->to);
  t_label(p, from, columns - less);
}

static void line(const struct page *p, const struct runs_row *r)
{
  const char *a = t_time(p, r->p50_a), *b = t_time(p, r->p50_b);
  fputs("  ", p->to);
  diff_name(p, r->path ? r->path : "between presents");
  fprintf(p->to, " %*s%s %*s%s", 8 - t_columns(p, a), "", a, 8 - t_columns(p, b), "", b);
  if (!r->tested) fprintf(p->to, "  in too few runs to tell\n");
  else
    fprintf(p->to, "  %s%+7.1f %%%s  (%+.1f %% .. %+.1f %%)  %.4f\n",
            r->changed ? ink(p, r->ratio > 1 ? INK_BAD : INK_GOOD) : "", (r->ratio - 1) * 100,
            r->changed ? NO_INK(p) : "", (r->low - 1) * 100, (r->high - 1) * 100, r->p_all);
}

static int largest_first(const void *a, const void *b)
{
  const struct runs_row *x = *(const struct runs_row *const *)a, *y = *(const struct runs_row *const *)b;
  double u = fabs(log(x->ratio)) * x->p50_b, v = fabs(log(y->ratio)) * y->p50_b;
  return (u < v) - (u > v);
}

static void print_text(const struct side *a, const struct side *b, const struct compare_options *o,
                       const struct runs_comparison *c)
{
  struct page p = page_on(stdout, STDOUT_FILENO);
  const struct runs_row **list = malloc(c->count * sizeof(const struct runs_row *));
  uint32_t n = 0;
  char text[512];
  fprintf(p.to, "%smach6%s  what changed from A to B, beyond what runs differ by\n", ink(&p, INK_BOLD), NO_INK(&p));
  about(&p, "A", a);
  about(&p, "B", b);
  report_heading(&p, "Frame times");
  fprintf(p.to, "  %s%-*s %8s %8s  %9s  (95 %% interval)  adjusted p%s\n", ink(&p, INK_DIM), diff_name_columns(&p), "",
          "p50 A", "p50 B", "change", NO_INK(&p));
  line(&p, &c->row[0]);
  if (c->row[0].tested)
    fprintf(p.to, "  runs differ by %.1f %% in A, by %.1f %% in B (standard deviation)\n", c->row[0].sd_a * 100,
            c->row[0].sd_b * 100);
  report_heading(&p, "Scopes that changed");
  for (uint32_t i = 1; list && i < c->count; i++)
    if (c->row[i].changed) list[n++] = &c->row[i];
  if (n) qsort(list, n, sizeof(const struct runs_row *), largest_first);
  for (uint32_t i = 0; i < n && i < MOST_ROWS; i++) line(&p, list[i]);
  if (n > MOST_ROWS) fprintf(p.to, "  and %s more (--json has them all)\n", t_count(n - MOST_ROWS));
  if (!n) fputs("  none\n", p.to);
  free(list);
  snprintf(
    text, sizeof text,
    "%s compared, by the medians of runs; what is shown has an adjusted p below %g and differs by %g %% at least. "
    "Half of the intervals are narrower than +-%.1f %%: smaller changes than that go unseen; more runs make them "
    "narrower.",
    t_count(c->tested), o->alpha, o->least * 100, c->resolution * 100);
  if (c->tested) t_wrap(&p, 2, text);
  if (c->too_few)
    fprintf(p.to, "  %s in too few runs, or with fewer than %u calls, were not compared\n", t_count(c->too_few),
            RANK_LEAST);
}

int diff_runs(const char *files_a, const char *files_b, const struct compare_options *o, int json)
{
  struct side a = {0}, b = {0};
  struct runs_comparison c = {0};
  int status = EXIT_FINE, error = side_load(&a, files_a, &status);
  if (!error) error = side_load(&b, files_b, &status);
  if (!error && compare_runs(a.run, a.n, b.run, b.n, o, &c)) {
    say("%s, %s: %s", files_a, files_b, strerror(ENOMEM));
    error = EXIT_OTHER;
  } else if (!error) {
    if (json) status = print_json(&a, &b, o, &c) ? EXIT_OTHER : status;
    else print_text(&a, &b, o, &c);
    compare_runs_free(&c);
    if (fflush(stdout) || ferror(stdout)) say("the comparison could not be written"), error = EXIT_OTHER;
  }
  side_free(&a);
  side_free(&b);
  return error ? error : status;
}
