/* report.c - the report, part by part, in the order in which a reader asks: how fast, where, what memory does, what is
 * wrong with these numbers, what they cost.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/stats_internal.h"
#include "../../collector/stats_words.h"
#include "../../shm/present.h"
#include "report.h"

void report_heading(const struct page *p, const char *title)
{
  fprintf(p->to, "\n%s%s%s\n", ink(p, INK_BOLD), title, NO_INK(p));
}

/* A text of the snapshot, NUL-terminated; the caller frees it. */
static char *copy(const struct m6_snapshot *s, uint32_t offset, uint32_t n)
{
  return strndup(n ? m6_snap_text(s) + offset : "?", n ? n : 1);
}

static const struct m6_snap_node *node_of(const mach6_stats *s, uint32_t kind)
{
  for (const mach6_node *c = mach6_node_first_child(mach6_stats_root(s)); c; c = mach6_node_next_sibling(c))
    if (c->raw->kind == kind) return c->raw;
  return NULL;
}

/* Those that never allocate nor mark are known to the kernel's side alone. */
static uint32_t thread_count(const struct m6_snapshot *s)
{
  uint32_t kernel = s->kernel.thread_count + s->kernel.thread_more;
  return kernel > s->threads_seen ? kernel : s->threads_seen;
}

/* The last session of a chain ends by its frames, or by its time. */
static const char *end_text(const struct m6_snapshot *s)
{
  const struct m6_snap_govern *g = &s->govern;
  int whole = s->end_reason == M6_END_TTL && g->sessions_wanted > 1 && g->link_count >= g->sessions_wanted;
  return whole ? "the chain had all its sessions" : m6_end_text(s->end_reason);
}

static void title(const struct page *p, const struct m6_snapshot *s, const char *how_it_ended)
{
  char *name = copy(s, s->name_offset, s->name_bytes);
  fprintf(p->to, "%smach6%s  %s", ink(p, INK_BOLD), NO_INK(p), ink(p, INK_BOLD));
  if (name) t_label(p, name, 0);
  fprintf(p->to, "%s (pid %u), %s, level %s, %s", NO_INK(p), s->pid, t_time(p, (double)s->elapsed_ns / 1e9),
          m6_level_name(s->level), t_count(thread_count(s)));
  fputs(thread_count(s) == 1 ? " thread" : " threads", p->to);
  if (s->state == M6_COLLECTING && !how_it_ended) fprintf(p->to, ", collecting");
  else if (how_it_ended && (s->end_reason == M6_END_EXIT || s->end_reason == M6_END_NONE))
    fprintf(p->to, ";\n  %s", how_it_ended);
  else fprintf(p->to, ";\n  %s%s%s", end_text(s), how_it_ended ? "; " : "", how_it_ended ? how_it_ended : "");
  fputc('\n', p->to);
  free(name);
}

/* What a reader must know before all else: the program that he means may not be in here. */
static void lost(const struct page *p, const struct m6_snapshot *s)
{
  if (s->lost == M6_LOST_NOTHING) return;
  char *from = copy(s, s->lost_from_offset, s->lost_from_bytes), *line = NULL;
  char *to = s->lost_to_bytes ? copy(s, s->lost_to_offset, s->lost_to_bytes) : strdup("another program");
  size_t n;
  struct page made = *p;
  made.to = open_memstream(&line, &n);
  if (from && to && made.to) {
    fputs("The shim was lost at an exec: ", made.to);
    t_label(&made, from, 0);
    fprintf(made.to, " (pid %u) became ", s->lost_pid);
    t_label(&made, to, 0);
    fprintf(made.to, ", which is not in this report. Why: %s.", m6_lost_text(s->lost));
    if (fclose(made.to) == 0) t_wrap(p, 2, line);
  }
  free(line);
  free(to);
  free(from);
}

#define IN_PRESENT_LEAST 0.0005 /* mach6_frame() presents nothing, and takes no time to speak of */

/* From the histogram, the middle of a bucket; s. NaN when it is empty. */
static double interval_p10(const struct m6_snapshot *s)
{
  uint64_t all = 0, seen = 0;
  for (uint32_t b = 0; b < M6_HIST_BUCKETS; b++) all += s->histogram[b];
  for (uint32_t b = 0; b < M6_HIST_BUCKETS; b++) {
    seen += s->histogram[b];
    if (seen == 0 || seen * 10 < all) continue;
    uint32_t above = b < M6_HIST_SUB ? 0 : b / M6_HIST_SUB - 1; /* octaves above those that have a bucket for each ns */
    double low = b < M6_HIST_SUB ? b : M6_HIST_SUB + b % M6_HIST_SUB;
    return ldexp(low + (above ? 0.5 : 0), (int)above) / 1e9;
  }
  return NAN;
}

static void frames(const struct page *p, const mach6_stats *h, int parts)
{
  const struct m6_snapshot *s = mach6_stats_snapshot(h);
  if (!s->presents || !s->stream_count) {
    report_heading(p, "Frames");
    if (s->unseen & M6_UNSEEN_NO_SHIM) {
      t_wrap(p, 2,
             "No frame was seen: this process never called the function. Is it called in a child, which is not "
             "followed, or in "
             "another program that the command starts? `mach6 probe` counts its calls in any process.");
      return;
    }
    t_wrap(p, 2,
           "No frame was seen: the program called none of the functions that present one. Does it draw in another "
           "process, or "
           "through a library that it brings along? A program without a window can say mach6_frame() once a turn, see "
           "mach6_mark(3).");
    return;
  }
  const struct m6_snap_stream *m = &s->streams[s->main_stream];
  char *caller = copy(s, m->caller_offset, m->caller_bytes);
  report_heading(p, "Frames");
  if (m->symbol == M6_SYM_FRAME_SYMBOL) {
    fprintf(p->to, "  %s%s calls%s of ", ink(p, INK_BOLD), t_count(s->presents), NO_INK(p));
    t_label(p, caller && strrchr(caller, '/') ? strrchr(caller, '/') + 1 : caller ? caller : "?", 0);
    fputs(", each the end of a frame", p->to);
  } else {
    fprintf(p->to, "  %s%s presents%s by %s", ink(p, INK_BOLD), t_count(s->presents), NO_INK(p),
            m6_symbol_name(m->symbol));
    if (m->route == M6_ROUTE_LINK) fputs(" (linked", p->to);
    else fprintf(p->to, " (found through %s", m6_route_name(m->route));
    if (m->caller_bytes && caller) {
      fputs(", called from ", p->to);
      t_label(p, strrchr(caller, '/') ? strrchr(caller, '/') + 1 : caller, 0);
    }
    fputs(")", p->to);
  }
  free(caller);
  if (s->stream_count > 1) fprintf(p->to, "; %u other streams", s->stream_count - 1);
  if (m->failed) fprintf(p->to, "; %s presents failed", t_count(m->failed));
  fputc('\n', p->to);
  if (!isfinite(s->fps) || !s->interval_max) {
    t_wrap(p, 2, "Too few of them for frame times.");
    return;
  }
  fprintf(p->to, "  %s%s frames/s%s; frame time ", ink(p, INK_BOLD), t_number(s->fps), NO_INK(p));
  if (parts & REPORT_SUMMARY && isfinite(interval_p10(s))) fprintf(p->to, "p10 %s, ", t_time(p, interval_p10(s)));
  fprintf(p->to, "p50 %s%s%s", ink(p, INK_BOLD), t_time(p, (double)s->interval_p50 / 1e9), NO_INK(p));
  fprintf(p->to, ", p90 %s, p99 %s, longest %s\n", t_time(p, (double)s->interval_p90 / 1e9),
          t_time(p, (double)s->interval_p99 / 1e9), t_time(p, (double)s->interval_max / 1e9));
  double in_present = m6_snap_in_present(s);
  if (in_present * s->fps >= IN_PRESENT_LEAST)
    fprintf(p->to, "  in the present itself (driver, vsync) %s a frame, %s of the time\n", t_time(p, in_present),
            t_ratio(in_present * s->fps));
  if (isfinite(s->low_1pct_fps)) {
    fprintf(p->to, "  slowest 1 %%: %s frames/s", t_number(s->low_1pct_fps));
    if (isfinite(s->low_01pct_fps)) fprintf(p->to, ", slowest 0.1 %%: %s frames/s", t_number(s->low_01pct_fps));
    fputc('\n', p->to);
  }
  if (!(parts & (REPORT_LIVE | REPORT_SUMMARY))) report_picture(p, h);
}

#define CAUSE_SHARE 20 /* a cause is worth a word from one twentieth of its frame on */

static int worst_first(const void *a, const void *b)
{
  const struct m6_snap_spike *x = *(const struct m6_snap_spike *const *)a, *y = *(const struct m6_snap_spike *const *)b;
  return x->time < y->time ? 1 : x->time > y->time ? -1 : 0;
}

static void spikes(const struct page *p, const mach6_stats *h, int most)
{
  const struct m6_snapshot *s = mach6_stats_snapshot(h);
  const struct m6_snap_spike *list[M6_SPIKES_RETAINED];
  const struct m6_snap_node *frame = node_of(h, M6_NODE_FRAME);
  int scopes = frame && frame->first_child;
  char line[1024];
  if (!s->spikes_total) return;
  snprintf(line, sizeof line, "Spikes: %s %s far longer than those before%s", t_count(s->spikes_total),
           s->spikes_total == 1 ? "frame was" : "frames were", s->spike_count > 1 ? ", the longest first" : "");
  report_heading(p, line);
  for (uint32_t i = 0; i < s->spike_count; i++) list[i] = &m6_snap_spikes(s)[i];
  qsort(list, s->spike_count, sizeof(const struct m6_snap_spike *), worst_first);
  for (int i = 0; i < (int)s->spike_count && i < most; i++) {
    const struct m6_snap_spike *k = list[i];
    fprintf(p->to, "  frame %s at %s: %s%s%s, the median was %s", t_count(k->frame), t_time(p, (double)k->at / 1e9),
            ink(p, INK_WARN), t_time(p, (double)k->time / 1e9), NO_INK(p), t_time(p, (double)k->median / 1e9));
    if (s->unseen & M6_UNSEEN_NO_SHIM) fputc('\n', p->to);
    else
      fprintf(p->to, "; %s allocation%s, %s\n", t_count(k->allocs), k->allocs == 1 ? "" : "s",
              t_bytes_signed((double)k->d));
    int any = 0;
    for (int c = 0; c < M6_SPIKE_CAUSES; c++) {
      if (!k->cause[c].node || k->cause[c].time * CAUSE_SHARE < k->time) continue;
      fputs(any++ ? ", " : "    in ", p->to);
      t_label(p, h->nodes[k->cause[c].node].label, 0);
      fprintf(p->to, " %s", t_time(p, (double)k->cause[c].time / 1e9));
      const char *between = " (";
      if (k->cause[c].calls > 1) fprintf(p->to, "%s%s calls", between, t_count(k->cause[c].calls)), between = ", ";
      if (k->cause[c].allocs)
        fprintf(p->to, "%s%s allocation%s", between, t_count(k->cause[c].allocs), k->cause[c].allocs == 1 ? "" : "s"),
          between = ", ";
      if (between[0] == ',') fputc(')', p->to);
    }
    if (any) fputc('\n', p->to);
    else if (scopes) t_wrap(p, 4, "in no scope that the program named");
    report_spike_causes(p, h, (uint32_t)(k - m6_snap_spikes(s)));
  }
  if (s->spikes_total > (uint64_t)most) fprintf(p->to, "  (and %s more)\n", t_count(s->spikes_total - (uint64_t)most));
}

/* The first frames have no median to be judged by, and are often the longest: loading, compiling shaders. */
static void not_judged(const struct page *p, const struct m6_snapshot *s)
{
  if (!s->unjudged || s->unjudged_max <= s->interval_p99) return;
  char text[256];
  if (!s->spikes_total) report_heading(p, "Spikes: none");
  snprintf(text, sizeof text, "The first %s frames are not judged; the longest of them was frame %s with %s.",
           t_count(s->unjudged), t_count(s->unjudged_frame), t_time(p, (double)s->unjudged_max / 1e9));
  t_wrap(p, 2, text);
}

static void split(const struct page *p, const struct m6_snap_node *f)
{
  double n = (double)f->count, gap = (double)f->i_sum / n;
  char text[512], after[128] = "changes nothing";
  if (fabs(gap) >= 0.05) snprintf(after, sizeof after, "%s %s", gap < 0 ? "gives back" : "adds", t_bytes(fabs(gap)));
  snprintf(text, sizeof text,
           "A frame takes %s, warm-up included: %s in its scopes, %s in the rest of its thread, %s in other threads. "
           "The gap after it %s.",
           t_bytes_signed((double)f->d_sum / n), t_bytes_signed((double)f->d_scopes / n),
           t_bytes_signed((double)f->d_thread_rest / n), t_bytes_signed((double)f->d_others / n), after);
  t_wrap(p, 2, text);
}

#define HOUR_FROM_S 10.0 /* a shorter run says little about an hour */

static void verdict(const struct page *p, const struct m6_snapshot *s)
{
  double seconds = (double)(s->last_present_ns - s->first_present_ns) / 1e9;
  double frame = s->presents > 1 ? seconds / (double)(s->presents - 1) : NAN;
  int grows = s->verdict == M6_VERDICT_GROWS;
  char amount[128];
  snprintf(amount, sizeof amount, "%s a frame %s %s (95 %%)", t_bytes_signed(s->leak_per_frame), p->utf8 ? "±" : "+-",
           t_bytes(s->leak_ci));
  fputs("  Verdict: ", p->to);
  if (s->verdict == M6_VERDICT_STEADY) {
    fprintf(p->to, "%ssteady%s: %s.\n", ink(p, INK_GOOD), NO_INK(p), amount);
  } else if (grows || s->verdict == M6_VERDICT_SHRINKS) {
    fprintf(p->to, "%s%s%s: %s", ink(p, grows ? INK_BAD : INK_GOOD), grows ? "it grows" : "it shrinks", NO_INK(p),
            amount);
    if (frame > 0 && seconds >= HOUR_FROM_S)
      fprintf(p->to, ",\n    %s an hour at this rate", t_bytes_signed(s->leak_per_frame / frame * 3600));
    fputs(".\n", p->to);
  } else if (isfinite(s->leak_ci)) {
    fprintf(p->to, "not known yet: between %s and %s a frame.\n    A longer run tells more.\n",
            t_bytes_signed(s->leak_per_frame - s->leak_ci), t_bytes_signed(s->leak_per_frame + s->leak_ci));
  } else {
    fputs("not known, there were too few frames to tell a leak from warming up.\n", p->to);
  }
}

#define BOOK_COLUMNS 44 /* of a line without its note */

static void book_line(const struct page *p, const char *what, double bytes, int sign, const char *note)
{
  fprintf(p->to, "  %-28s%14s", what, sign ? t_bytes_signed(bytes) : t_bytes(bytes));
  if (*note && BOOK_COLUMNS + 2 + t_columns(p, note) > p->width) fputs("\n  ", p->to); /* on a line of its own */
  if (*note) fprintf(p->to, "  %s%s%s", ink(p, INK_DIM), note, NO_INK(p));
  fputc('\n', p->to);
}

static void books(const struct page *p, const mach6_stats *h)
{
  const struct m6_snapshot *s = mach6_stats_snapshot(h);
  const struct m6_snap_node *start = node_of(h, M6_NODE_STARTUP), *frame = node_of(h, M6_NODE_FRAME);
  char note[256] = "";
  report_heading(p, "Memory");
  if (s->unseen & M6_UNSEEN_NO_SHIM) {
    t_wrap(p, 2, "Not seen: the program runs without the shim.");
    return;
  }
  if (s->unseen & M6_UNSEEN_MALLOC_NOT_FIRST) {
    t_wrap(p, 2, "Not counted: another allocator comes before mach6's.");
    return;
  }
  if (start && frame && frame->count)
    snprintf(note, sizeof note, "startup %s, frames %s, end %s", t_bytes_signed((double)start->d_sum),
             t_bytes_signed((double)frame->d_sum), t_bytes_signed((double)s->tail_d));
  book_line(p, "heap at the start", (double)s->reading_start, 0, "");
  book_line(p, "inside frames (sum D)", (double)s->sum_d, 1, note);
  book_line(p, "between frames (sum I)", (double)s->sum_i, 1, "");
  fprintf(p->to, "  %-28s%14s  ", "heap now", t_bytes((double)s->reading_now));
  if (p->width < 100) fputs("\n    ", p->to);
  if (s->closed)
    fprintf(p->to, "%snet %s; the books close to the byte%s\n", ink(p, INK_GOOD),
            t_bytes_signed((double)s->reading_now - (double)s->reading_start), NO_INK(p));
  else
    fprintf(p->to, "%sthe books do NOT close: off by %s%s\n", ink(p, INK_BAD),
            t_bytes_signed((double)s->reading_now - (double)s->reading_start - (double)s->sum_d - (double)s->sum_i),
            NO_INK(p));
  if (s->books_saturated) t_wrap(p, 2, "A counter was out of range and was clamped: these sums are bounds.");
  if (frame && frame->count) {
    split(p, frame);
    verdict(p, s);
  }
}

static void allocations(const struct page *p, const mach6_stats *h)
{
  const struct m6_snapshot *s = mach6_stats_snapshot(h);
  const struct m6_snap_node *frame = node_of(h, M6_NODE_FRAME);
  uint64_t count = 0;
  double bytes = 0;
  if (s->unseen & (M6_UNSEEN_MALLOC_NOT_FIRST | M6_UNSEEN_NO_SHIM)) return;
  report_heading(p, "Allocations");
  for (int i = 0; i < M6_ALLOC_KIND_COUNT; i++) count += s->allocs[i].count, bytes += (double)s->allocs[i].bytes;
  fprintf(p->to, "  %s%s calls%s, %s", ink(p, INK_BOLD), t_count(count), NO_INK(p), t_bytes(bytes));
  if (frame && frame->count)
    fprintf(p->to, "; %s%s a frame%s", ink(p, INK_BOLD), t_number((double)frame->allocs / (double)frame->count),
            NO_INK(p));
  fprintf(p->to, "; %s frees, %s\n  ", t_count(s->frees), t_bytes((double)s->freed_bytes));
  int any = 0;
  for (int i = 0; i < M6_ALLOC_KIND_COUNT; i++)
    if (s->allocs[i].count)
      fprintf(p->to, "%s%s %s (%s)", any++ ? ", " : "", m6_alloc_kind_name((uint32_t)i), t_count(s->allocs[i].count),
              t_bytes((double)s->allocs[i].bytes));
  if (any) fputs("\n  ", p->to);
  fprintf(p->to, "mapped %s in %s calls; the break moved by %s\n", t_bytes_signed((double)s->mapped),
          t_count(s->map_calls), t_bytes_signed((double)s->brk_growth));
}

static void doubts(const struct page *p, const struct m6_snapshot *s)
{
  unsigned words, unseen;
  const struct m6_loss_word *w = m6_loss_words(&words);
  const struct m6_unseen_word *u = m6_unseen_words(&unseen);
  char line[512];
  int any = 0;
  for (unsigned i = 0; i < words; i++) {
    uint64_t n = m6_loss_of(s, &w[i]);
    if (!n) continue;
    if (!any++) report_heading(p, "What was lost");
    snprintf(line, sizeof line, "%s: %s", w[i].text, t_count(n));
    t_wrap(p, 2, line);
  }
  any = 0;
  for (unsigned i = 0; i < unseen; i++) {
    if (!(s->unseen & u[i].bit)) continue;
    if (!any++) report_heading(p, "What cannot be seen");
    t_wrap(p, 2, u[i].text);
  }
  if (s->images_other) {
    if (!any++) report_heading(p, "What cannot be seen");
    snprintf(line, sizeof line, "%u other %s of this run made %s allocations that are not in this report",
             s->images_other, s->images_other == 1 ? "program" : "programs", t_count(s->images_other_allocs));
    t_wrap(p, 2, line);
  }
}

static void cost(const struct page *p, const struct m6_snapshot *s)
{
  char text[512], of[128] = "", core[64] = "";
  if (s->target_cpu_ns)
    snprintf(of, sizeof of, " of its %s of CPU time (%s)", t_time(p, (double)s->target_cpu_ns / 1e9),
             t_ratio((double)s->shim_ns / (double)s->target_cpu_ns));
  if (s->elapsed_ns > 1000000000u) /* a start is no rate */
    snprintf(core, sizeof core, " (%s of a core)", t_ratio((double)s->collector_ns / (double)s->elapsed_ns));
  if (!isfinite(s->price_pair_ns))
    snprintf(text, sizeof text,
             "in the game: not known, this machine was too busy to measure a price; the collector beside it %s%s",
             t_time(p, (double)s->collector_ns / 1e9), core);
  else
    snprintf(text, sizeof text, "in the game about %s%s; the collector beside it %s%s",
             t_time(p, (double)s->shim_ns / 1e9), of, t_time(p, (double)s->collector_ns / 1e9), core);
  size_t at = strlen(text);
  if (s->kernel.kernel_ns) {
    at += (size_t)snprintf(text + at, sizeof text - at, "; its programs in the kernel about %s",
                           t_time(p, (double)s->kernel.kernel_ns / 1e9));
    if (s->target_cpu_ns)
      snprintf(text + at, sizeof text - at, " (%s of the game's)",
               t_ratio((double)s->kernel.kernel_ns / (double)s->target_cpu_ns));
  }
  report_heading(p, "What mach6 cost");
  t_wrap(p, 2, text);
}

void report_part(const struct page *p, const mach6_stats *h, enum report_part part, int parts, const char *how_it_ended)
{
  const struct m6_snapshot *s = mach6_stats_snapshot(h);
  char why[512];
  switch (part) {
  case REPORT_TITLE:
    title(p, s, how_it_ended);
    lost(p, s);
    if (m6_stats_not_whole(h, why, sizeof why)) t_wrap(p, 2, why);
    break;
  case REPORT_FRAMES: frames(p, h, parts); break;
  case REPORT_TREE: report_tree(p, h); break;
  case REPORT_SPIKES:
    spikes(p, h, parts & REPORT_LIVE ? 2 : 5);
    not_judged(p, s);
    break;
  case REPORT_MEMORY: books(p, h); break;
  case REPORT_CHAIN: report_chain(p, s); break;
  case REPORT_ALLOCATIONS: allocations(p, h); break;
  case REPORT_KERNEL: report_kernel(p, h); break;
  case REPORT_SITES: report_sites(p, h, parts); break;
  case REPORT_DOUBTS: doubts(p, s); break;
  case REPORT_COST:
    cost(p, s);
    report_governor(p, s);
    break;
  case REPORT_BUDGETS: report_budgets(p, s, parts & REPORT_LIVE); break;
  case REPORT_PART_COUNT: break;
  }
}

static void all_parts(const struct page *p, const mach6_stats *h, int parts, const char *how_it_ended)
{
  for (int i = 0; i < REPORT_PART_COUNT; i++) report_part(p, h, (enum report_part)i, parts, how_it_ended);
}

void report(const struct page *p, const mach6_stats *h, int parts, const char *how_it_ended)
{
  char *text = NULL;
  size_t n;
  struct page made = *p;
  made.to = open_memstream(&text, &n);
  if (made.to == NULL) { /* no memory: then lines are as wide as they are */
    all_parts(p, h, parts, how_it_ended);
    return;
  }
  all_parts(&made, h, parts, how_it_ended);
  if (fclose(made.to) == 0) t_fold(p, text);
  free(text);
}
