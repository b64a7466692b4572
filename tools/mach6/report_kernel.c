/* report_kernel.c - what the kernel knew, for people: what a late frame waited for, where CPU time went by function and
 * by scope, threads, system calls, and what is missing and why.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/stats_internal.h"
#include "../../collector/stats_kernel.h"
#include "report.h"

#define FUNCTIONS_SHOWN 15
#define SCOPES_SHOWN 20
#define SCOPE_SHARE 200 /* a scope is shown from one sample in so many on */
#define SCOPE_DEPTH 14
#define THREADS_SHOWN 12
#define CALLS_SHOWN 10
#define PART_SHARE 100 /* a part of a frame is named from a hundredth of it on; what is less is summed up */

static const char *seconds(const struct page *p, uint64_t ns) { return t_time(p, (double)ns / 1e9); }

static void label(const struct page *p, const struct m6_snapshot *s, uint32_t offset, uint32_t bytes, int columns)
{
  char *text = strndup(bytes ? m6_snap_text(s) + offset : "?", bytes ? bytes : 1);
  if (text) t_label(p, text, columns);
  free(text);
}

void report_spike_causes(const struct page *p, const mach6_stats *h, uint32_t spike)
{
  const struct m6_snapshot *s = mach6_stats_snapshot(h);
  if (spike >= s->kernel.spike_cause_count) return;
  const struct m6_snap_causes *c = &m6_snap_spike_causes(s)[spike];
  if (c->time == 0) return;
  struct m6_part parts[M6_PARTS_MAX];
  unsigned n = m6_causes_sorted(c, parts);
  uint64_t named = 0;
  char line[1024];
  size_t at = 0;
  for (unsigned i = 0; i < n && (i == 0 || parts[i].ns * PART_SHARE >= c->time) && parts[i].ns; i++) {
    at += (size_t)snprintf(line + at, sizeof line - at, "%s%s %s", i ? ", " : "", parts[i].text,
                           seconds(p, parts[i].ns));
    named += parts[i].ns;
  }
  if (named < c->time)
    at += (size_t)snprintf(line + at, sizeof line - at, ", the rest %s", seconds(p, c->time - named));
  if (c->major)
    at += (size_t)snprintf(line + at, sizeof line - at, "; %s page fault%s from disk", t_count(c->major),
                           c->major == 1 ? "" : "s");
  if (c->calls)
    snprintf(line + at, sizeof line - at, "; %s system call%s", t_count(c->calls), c->calls == 1 ? "" : "s");
  t_wrap(p, 4, line);
}

static void missing(const struct page *p, const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  int any = 0;
  for (uint32_t i = 0; i < k->refusal_count; i++) {
    const struct m6_snap_refusal *r = &m6_snap_refusals(s)[i];
    char text[1200];
    size_t at = (size_t)snprintf(text, sizeof text, "%s: cannot %.*s: %s", m6_kernel_part_text(r->part),
                                 (int)r->what_bytes, m6_snap_text(s) + r->what_offset, strerror(r->error));
    if (r->closed_bytes)
      at += (size_t)snprintf(text + at, sizeof text - at, "; closed by: %.*s", (int)r->closed_bytes,
                             m6_snap_text(s) + r->closed_offset);
    if (r->opened_bytes)
      snprintf(text + at, sizeof text - at, "; opened by: %.*s", (int)r->opened_bytes,
               m6_snap_text(s) + r->opened_offset);
    for (char *c = text; *c; c++)
      if ((unsigned char)*c < 32 || *c == 127) *c = '?';
    if (!any++) report_heading(p, "What this machine did not let mach6 see (mach6 doctor says more)");
    t_wrap(p, 2, text);
  }
}

/* How long this level or a higher one held; *all: any. The governor's steps make a part of it. */
static double held(const struct m6_snapshot *s, uint32_t level, double *all)
{
  double part = *all = 0;
  for (uint32_t l = 0; l < M6_LEVELS; l++) {
    *all += (double)s->govern.held_ns[l] / 1e9;
    if (l >= level) part += (double)s->govern.held_ns[l] / 1e9;
  }
  return part;
}

/* "WHAT 12 s of 30 s, ..." when it is of a part of the session. */
static void of_part(const struct page *p, const struct m6_snapshot *s, uint32_t level, const char *what,
                    const char *why)
{
  char line[512];
  double all, part = held(s, level, &all);
  if (part >= 0.995 * all) return;
  snprintf(line, sizeof line, "%s %s of %s: %s.", what, t_time(p, part), t_time(p, all), why);
  t_wrap(p, 2, line);
}

static void functions(const struct page *p, const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  if (k->samples == M6_KERNEL_NONE) return;
  char line[512];
  report_heading(p, "CPU time, by function");
  snprintf(line, sizeof line, "%s samples, one for each %s of a thread's CPU time%s; %s", t_count(k->samples_taken),
           t_time(p, k->period_us / 1e6),
           k->kernel_mode ? ", in the kernel as well" : "; time in the kernel is not seen",
           k->unwound ? "callers by unwinding" : "callers by frame pointers");
  size_t at = strlen(line);
  if (k->profile_cut) at += (size_t)snprintf(line + at, sizeof line - at, ", lost in %s", t_count(k->profile_cut));
  if (k->samples_lost + k->stacks_lost)
    snprintf(line + at, sizeof line - at, "; %s lost", t_count(k->samples_lost + k->stacks_lost));
  t_wrap(p, 2, line);
  if (k->samples_periods > k->samples_taken) {
    snprintf(line, sizeof line,
             "The governor had them taken for a part of the time: those of then stand for more, all of them for %s "
             "times %s.",
             t_count(k->samples_periods), t_time(p, k->period_us / 1e6));
    t_wrap(p, 2, line);
  }
  of_part(p, s, M6_LEVEL_LITE, "They are of", "at level memory, to which the governor stepped down, none is taken");
  if (k->unnamed) {
    snprintf(line, sizeof line, "%s of them are left out: to read that much debug information took too long",
             t_count(k->unnamed));
    t_wrap(p, 2, line);
  }
  if (k->function_count == 0) {
    if (k->samples_taken == 0) t_wrap(p, 2, "No sample was taken: it used less CPU time than that.");
    else if (s->state != M6_ENDED) t_wrap(p, 2, "Functions are named when the session has ended.");
    return;
  }
  double all = k->profile_samples ? (double)k->profile_samples : 1;
  int room = p->width - 21, name = room * 5 / 9;
  fprintf(p->to, "%s  %8s %8s  %-*s%s%s\n", ink(p, INK_DIM), "self", "total", name, "function", "where", NO_INK(p));
  for (uint32_t i = 0; i < k->function_count && i < FUNCTIONS_SHOWN; i++) {
    const struct m6_snap_function *f = &m6_snap_functions(s)[i];
    if (f->self == 0 && i > 0) break;
    fprintf(p->to, "  %8s %8s  ", t_ratio((double)f->self / all), t_ratio((double)f->total / all));
    label(p, s, f->function_offset, f->function_bytes, name);
    char where[512];
    const char *text = m6_snap_text(s);
    if (f->file_bytes) snprintf(where, sizeof where, " %.*s:%u", (int)f->file_bytes, text + f->file_offset, f->line);
    else snprintf(where, sizeof where, " %.*s", (int)f->module_bytes, text + f->module_offset);
    t_label(p, where, t_columns(p, where) > room - name ? room - name : 0);
    fputc('\n', p->to);
  }
}

/* ---- CPU time by scope ----------------------------------------------------------------------------------------------
 * */

struct scopes {
  const struct page *p;
  const mach6_node *root;
  const uint64_t *self, *total; /* samples by node */
  uint64_t all;
  unsigned shown;
};

static void scope_row(const struct scopes *l, uint64_t self, uint64_t total, const char *branch, const char *name)
{
  const struct page *p = l->p;
  double all = l->all ? (double)l->all : 1;
  fprintf(p->to, "  %8s %8s  %s%s%s", self ? t_ratio((double)self / all) : "", t_ratio((double)total / all),
          ink(p, INK_DIM), branch, NO_INK(p));
  t_label(p, name,
          t_columns(p, name) > p->width - 21 - t_columns(p, branch) ? p->width - 21 - t_columns(p, branch) : 0);
  fputc('\n', p->to);
}

/* The largest child that comes after `last` in that order, of those that are worth a row: a tree is wide where it is
 * flat, so looking for a few of many costs less than an order of all. */
static const mach6_node *next_largest(const struct scopes *l, const mach6_node *parent, const mach6_node *last)
{
  const mach6_node *best = NULL;
  for (const mach6_node *c = mach6_node_first_child(parent); c; c = mach6_node_next_sibling(c)) {
    uint64_t n = l->total[c - l->root];
    if (n == 0 || n * SCOPE_SHARE < l->all) continue;
    if (last && (n > l->total[last - l->root] || (n == l->total[last - l->root] && c <= last))) continue;
    if (!best || n > l->total[best - l->root] || (n == l->total[best - l->root] && c < best)) best = c;
  }
  return best;
}

static void scope_rows(struct scopes *l, const mach6_node *parent, int depth)
{
  char branch[2 * SCOPE_DEPTH + 1];
  const mach6_node *c = depth < SCOPE_DEPTH ? next_largest(l, parent, NULL) : NULL;
  snprintf(branch, sizeof branch, "%*s", 2 * depth, "");
  for (; c && l->shown < SCOPES_SHOWN; c = next_largest(l, parent, c)) {
    l->shown++;
    scope_row(l, l->self[c - l->root], l->total[c - l->root], branch, *c->label ? c->label : "(no name)");
    scope_rows(l, c, depth + 1);
  }
}

/* A sample falls to the innermost scope that its thread had open; what is no scope's is told below them, so that it
 * adds up. */
static void scopes(const struct page *p, const mach6_stats *h)
{
  const struct m6_snapshot *s = h->snap;
  const struct m6_snap_kernel *k = &s->kernel;
  uint64_t *total = m6_samples_below(h);
  if (total && k->samples != M6_KERNEL_NONE && k->samples_periods) {
    struct scopes l = {p, mach6_stats_root(h), m6_snap_cpu_samples(s), total, k->samples_periods, 0};
    unsigned with = 0;
    for (uint32_t i = 1; i < s->node_count; i++) with += total[i] != 0;
    report_heading(p, "CPU time, by scope");
    fprintf(p->to, "%s  %8s %8s  scope, and those inside it%s\n", ink(p, INK_DIM), "self", "total", NO_INK(p));
    scope_rows(&l, l.root, 0);
    if (with > l.shown) fprintf(p->to, "  %8s %8s  (and %s more, which had less)\n", "", "", t_count(with - l.shown));
    const struct {
      uint64_t n;
      const char *what;
    } rest[] = {{m6_snap_cpu_samples(s)[0], "(between all of these)"},
                {k->samples_in_presents, "(in the present itself)"},
                {k->samples_elsewhere, "(threads that marked no scope)"},
                {k->samples_late, "(overwritten before they got a time)"}};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
      if (rest[i].n) scope_row(&l, rest[i].n, rest[i].n, "", rest[i].what);
  }
  free(total);
}

static void threads(const struct page *p, const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  if (k->thread_count == 0) return;
  report_heading(p, "Threads, as the kernel saw them");
  int wide = p->width >= 99, mostly = p->width >= 80; /* the last columns go first */
  fprintf(p->to, "%s  %-18s %9s %10s %9s", ink(p, INK_DIM), "thread", "on CPU", "run queue", "off CPU");
  if (mostly) fprintf(p->to, "  %-18s", "mostly");
  fprintf(p->to, " %8s", "switches");
  if (wide) fprintf(p->to, " %9s %8s", "preempted", "faults");
  fprintf(p->to, "%s\n", NO_INK(p));
  for (uint32_t i = 0; i < k->thread_count && i < THREADS_SHOWN; i++) {
    const struct m6_snap_thread *t = &m6_snap_threads(s)[i];
    uint32_t most = M6_WHY_OTHER;
    for (uint32_t w = 0; w < M6_WHY_UNNAMED; w++)
      if (t->off_by[w] > t->off_by[most]) most = w;
    fputs("  ", p->to);
    label(p, s, t->name_offset, t->name_bytes, 18);
    const char *times[] = {seconds(p, t->on), seconds(p, t->wait), seconds(p, t->off)};
    static const int width[] = {9, 10, 9};
    for (int n = 0; n < 3; n++) fprintf(p->to, " %*s%s", width[n] - t_columns(p, times[n]), "", times[n]);
    char why[64] = "-";
    if (t->off_by[most]) snprintf(why, sizeof why, "%s %s", m6_why_name(most), seconds(p, t->off_by[most]));
    if (mostly) fputs("  ", p->to), t_label(p, why, 18);
    fprintf(p->to, " %8s", t_count(t->voluntary + t->involuntary));
    if (wide) fprintf(p->to, " %9s %8s", t_count(t->involuntary), t_count(t->minor + t->major));
    fputc('\n', p->to);
  }
  uint32_t shown = k->thread_count < THREADS_SHOWN ? k->thread_count : THREADS_SHOWN;
  if (k->thread_count + k->thread_more > shown)
    fprintf(p->to, "  (and %s more, which ran less)\n", t_count(k->thread_count + k->thread_more - shown));
  char line[256];
  snprintf(
    line, sizeof line, "%s page faults, %s of them from disk%s", t_count(k->minor + k->major), t_count(k->major),
    k->counters == M6_KERNEL_PROC ? "; threads by /proc, once a second: what they did just before they ended is missing"
    : k->counters == M6_KERNEL_PERF ? "; each thread's own, and its wait in the run queue, by /proc, once a second"
                                    : "");
  if (k->faults != M6_KERNEL_NONE) t_wrap(p, 2, line);
  of_part(p, s, M6_LEVEL_LITE, "Watched for",
          s->level == M6_LEVEL_MEMORY
            ? "at level memory none is, and what they did since the last step down is not in here"
            : "at level memory none is; what they waited for then is not known, and one that ended then is shown until "
              "then");
  if (k->counters_lost) {
    snprintf(line, sizeof line, "%s of the kernel's events are not in these numbers", t_count(k->counters_lost));
    t_wrap(p, 2, line);
  }
}

static void calls(const struct page *p, const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  if (!k->syscalls) return;
  report_heading(p, "System calls, the longest together first");
  int wide = p->width >= 76, name = wide ? 24 : 17;
  fprintf(p->to, "%s  %-*s %10s %9s %9s %9s%s%s\n", ink(p, INK_DIM), name, "call", "count", "in all", "average",
          "longest", wide ? "  threads" : "", NO_INK(p));
  for (uint32_t i = 0; i < k->call_count && i < CALLS_SHOWN; i++) {
    const struct m6_snap_call *c = &m6_snap_calls(s)[i];
    char number[32];
    snprintf(number, sizeof number, "number %u", c->number);
    fputs("  ", p->to);
    if (c->name_bytes) label(p, s, c->name_offset, c->name_bytes, name);
    else t_label(p, number, name);
    const char *times[] = {seconds(p, c->ns), t_time(p, c->count ? (double)c->ns / (double)c->count / 1e9 : NAN),
                           seconds(p, c->max_ns)};
    fprintf(p->to, " %10s", t_count(c->count));
    for (int n = 0; n < 3; n++) fprintf(p->to, " %*s%s", 9 - t_columns(p, times[n]), "", times[n]);
    if (wide) fprintf(p->to, " %8s", t_count(c->threads));
    fputc('\n', p->to);
  }
  if (k->call_count > CALLS_SHOWN) fprintf(p->to, "  (and %s more)\n", t_count(k->call_count - CALLS_SHOWN));
  of_part(p, s, M6_LEVEL_FULL, "Counted for", "below level full, to which the governor stepped down, none is");
}

void report_kernel(const struct page *p, const mach6_stats *h)
{
  const struct m6_snapshot *s = mach6_stats_snapshot(h);
  if (!m6_kernel_was_open(s)) return;
  functions(p, s);
  scopes(p, h);
  threads(p, s);
  calls(p, s);
  if (s->kernel.frames_lost) {
    char line[128];
    report_heading(p, "Frames whose causes were lost");
    snprintf(line, sizeof line, "%s, because %s", t_count(s->kernel.frames_lost),
             s->kernel.frames == M6_KERNEL_PERF ? "their thread's switches were not all seen"
                                                : "the kernel's buffer was full");
    t_wrap(p, 2, line);
  }
  missing(p, s);
}
