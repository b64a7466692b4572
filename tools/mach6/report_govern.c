/* report_govern.c - the parts of a report that are about bounds: a chain of sessions and its leak, the governor's
 * steps, the budgets. See report.h.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../../collector/stats_internal.h"
#include "../../collector/stats_sites.h"
#include "../../collector/stats_words.h"
#include "report.h"

void report_chain(const struct page *p, const struct m6_snapshot *s)
{
  const struct m6_snap_govern *g = &s->govern;
  char line[512];
  if (g->sessions_wanted < 2) return;
  uint64_t presents = 0;
  for (uint32_t i = 0; i < g->link_count; i++) presents += g->links[i].presents;
  report_heading(p, "The chain of sessions");
  snprintf(line, sizeof line,
           "%u of %u sessions, %s presents; %s. What the kernel counted, CPU "
           "samples and sites are of all of them; all else in this report is the last one's.",
           g->link_count, g->sessions_wanted, t_count(presents),
           g->chain_closed ? "their books close, and each begins with the reading that the one before ended with"
                           : "their books do NOT close across the joints");
  t_wrap(p, 2, line);
  for (uint32_t i = 0; i < g->link_count; i++) {
    if (i >= 8 && i + 4 < g->link_count) { /* the ends of a long chain say enough */
      if (i == 8) fprintf(p->to, "    ... and %u more\n", g->link_count - 12);
      continue;
    }
    const struct m6_snap_link *l = &g->links[i];
    fprintf(p->to, "    %4u  %8s presents in %s", i + 1, t_count(l->presents), t_time(p, (double)l->elapsed_ns / 1e9));
    fprintf(p->to, ", heap level %s, from %s", t_bytes((double)l->level), t_bytes((double)l->reading_start));
    fprintf(p->to, " to %s%s\n", t_bytes((double)l->reading_end), l->closed ? "" : ", NOT closed");
  }
  fputs("  Verdict: ", p->to);
  if (!isfinite(g->chain_per_frame)) {
    fputs("not known, it takes eight sessions or more.\n", p->to);
    return;
  }
  int grows = g->chain_verdict == M6_VERDICT_GROWS, steady = g->chain_verdict == M6_VERDICT_STEADY;
  fprintf(p->to, "%s%s%s: %s a frame", ink(p, grows ? INK_BAD : INK_GOOD),
          grows    ? "it leaks"
          : steady ? "no leak"
                   : "it shrinks",
          NO_INK(p), t_bytes_signed(g->chain_per_frame));
  if (isfinite(g->chain_low) && isfinite(g->chain_high))
    fprintf(p->to, ", 95 %% between %s and %s", t_bytes_signed(g->chain_low), t_bytes_signed(g->chain_high));
  fputs(".\n", p->to);
}

/* What part of the session each level had, when there was more than one. */
static void held(const struct page *p, const struct m6_snap_govern *g)
{
  char line[256];
  size_t at = 0;
  unsigned levels = 0;
  for (uint32_t l = M6_LEVELS; l-- > 0;) {
    if (g->held_ns[l] == 0) continue;
    at += (size_t)snprintf(line + at, sizeof line - at, "%s %s for %s", levels++ ? "," : "Level", m6_level_name(l),
                           t_time(p, (double)g->held_ns[l] / 1e9));
  }
  if (levels > 1) t_wrap(p, 2, line);
}

void report_governor(const struct page *p, const struct m6_snapshot *s)
{
  const struct m6_snap_govern *g = &s->govern;
  char line[512];
  if (isfinite(g->cost)) {
    snprintf(line, sizeof line,
             "lately %s of one core or of the game's time, whichever is more: %s in the game, %s in the kernel, %s "
             "beside it; the budget is %s",
             t_ratio(g->cost), t_ratio(g->cost_shim), t_ratio(g->cost_kernel), t_ratio(g->cost_collector),
             t_ratio(g->budget));
    t_wrap(p, 2, line);
  }
  for (uint32_t i = 0; i < g->step_count; i++) {
    const struct m6_snap_step *t = &g->steps[i];
    if (t->from_sites != t->to_sites) {
      snprintf(line, sizeof line, "at %s allocations are sampled %s, one in %s: it cost %s, the budget was %s",
               t_time(p, (double)t->at_ns / 1e9), t->to_sites > t->from_sites ? "more seldom" : "more often",
               t_bytes(t->to_sites), t_ratio(t->cost), t_ratio(t->budget));
      t_wrap(p, 2, line);
      continue;
    }
    if (t->to_level < t->from_level && t->cost <= t->budget) {
      snprintf(line, sizeof line, "at %s back to level %s: what level %s adds was refused when it was to come back",
               t_time(p, (double)t->at_ns / 1e9), m6_level_name(t->to_level), m6_level_name(t->from_level));
      t_wrap(p, 2, line);
      continue;
    }
    int down = t->to_level < t->from_level || (t->to_level == t->from_level && t->to_interval > t->from_interval);
    snprintf(line, sizeof line, "at %s %s to level %s%s: it cost %s, the budget was %s",
             t_time(p, (double)t->at_ns / 1e9), down ? "down" : "up", m6_level_name(t->to_level),
             t->to_interval > 1 ? ", working half as often" : "", t_ratio(t->cost), t_ratio(t->budget));
    t_wrap(p, 2, line);
  }
  if (g->steps_total > g->step_count)
    fprintf(p->to, "  (and %s steps before these)\n", t_count(g->steps_total - g->step_count));
  held(p, g);
  if (g->heap.count) {
    const struct m6_snap_heap *h = &g->heap;
    report_heading(p, "The whole heap, as the kernel sees it");
    snprintf(line, sizeof line,
             "at %s: resident %s, proportional %s, anonymous %s, swapped %s. Measured %s time%s, the last in %s.",
             t_time(p, (double)h->at_ns / 1e9), t_bytes((double)h->rss), t_bytes((double)h->pss),
             t_bytes((double)h->anonymous), t_bytes((double)h->swap), t_count(h->count), h->count == 1 ? "" : "s",
             t_time(p, (double)h->took_ns / 1e9));
    t_wrap(p, 2, line);
    struct m6_heap_unused u = m6_heap_unused_of(s);
    if (u.share >= 0 && h->live > u.held) {
      snprintf(line, sizeof line,
               "%s lived in the allocator then, %s of that in memory: the rest was never written to.",
               t_bytes((double)h->live), t_bytes((double)u.held));
      t_wrap(p, 2, line);
    } else if (u.share >= 0) {
      snprintf(line, sizeof line,
               "The allocator held %s then, of which %s were not in use (%s: free blocks, headers, rounding).",
               t_bytes((double)u.held), t_bytes((double)u.bytes), t_ratio(u.share));
      t_wrap(p, 2, line);
    }
  }
}

static const char *amount(const struct page *p, uint64_t v, uint32_t unit)
{
  switch (unit) {
  case M6_UNIT_BYTES: return t_bytes((double)v);
  case M6_UNIT_MS: return t_time(p, (double)v / 1e3);
  case M6_UNIT_PPM: return t_ratio((double)v / 1e6);
  default: return t_count(v);
  }
}

void report_budgets(const struct page *p, const struct m6_snapshot *s, int all)
{
  int any = 0;
  for (uint32_t i = 0; i < s->govern.budget_count; i++) {
    const struct m6_snap_budget *b = &s->govern.budgets[i];
    if (!all && !b->overruns) continue;
    if (!any++) {
      report_heading(p, all ? "Budgets" : "Budgets that were overrun");
      fprintf(p->to, "  %s%-22s %12s %12s %10s%s\n", ink(p, INK_DIM), "", "used", "cap", "overruns", NO_INK(p));
    }
    int elsewhere = b->used == M6_BUDGET_ELSEWHERE;
    fprintf(p->to, "  %-22s %12s", b->name, elsewhere ? "-" : amount(p, b->used, b->unit));
    if (elsewhere) {
      fprintf(p->to, " %12s %10s  in %s\n", amount(p, b->cap, b->unit), "-",
              strncmp(b->name, "analysis.", 9) ? "the dashboard's page" : "mach6 analyze");
      continue;
    }
    fprintf(p->to, " %12s %s%10s%s%s\n", amount(p, b->cap, b->unit), b->overruns ? ink(p, INK_WARN) : "",
            t_count(b->overruns), b->overruns ? NO_INK(p) : "", b->floor ? "  at least" : "");
  }
}
