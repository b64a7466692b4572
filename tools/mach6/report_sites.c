/* report_sites.c - which code allocates and which keeps, from sampled allocations; beside what the books know exactly.
 *
 * A site is named after its innermost function that is no allocator, and where that one is the C++ library's own, after
 * who called it too. All amounts are estimates and carry their 95 % interval; where samples are missing it reaches from
 * what was seen to all that they can stand for. The last lines hold the sums against the exact books.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/stats_sites.h"
#include "../../collector/utf8.h"
#include "report.h"

#define LINES 40
#define CALLERS 3

typedef double (*measure)(const struct m6_snap_site *r);
static double by_frames(const struct m6_snap_site *r) { return r->in_frames.bytes; }
static double by_made(const struct m6_snap_site *r) { return r->made.bytes; }
static double by_growth(const struct m6_snap_site *r) { return r->suspect ? r->growth : 0; }
static double by_peak(const struct m6_snap_site *r) { return r->peak; }
/* Blocks that die in the frame they were born in, of sites where nearly all do. */
static double by_same_frame(const struct m6_snap_site *r)
{
  return r->same_frame.blocks >= 0.9 * r->in_frames.blocks && r->same_frame.samples >= 5 ? r->same_frame.bytes : 0;
}

static measure sorting;
static int larger_first(const void *a, const void *b)
{
  double x = sorting(*(const struct m6_snap_site *const *)a), y = sorting(*(const struct m6_snap_site *const *)b);
  return x < y ? 1 : x > y ? -1 : 0;
}
static uint32_t sort(const struct m6_snap_site *rows, uint32_t count, measure by, const struct m6_snap_site **list)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++)
    if (by(&rows[i]) > 0) list[n++] = &rows[i];
  sorting = by;
  qsort(list, n, sizeof *list, larger_first);
  return n;
}

static uint32_t sorted(const struct m6_snapshot *s, measure by, const struct m6_snap_site **list)
{
  return sort(m6_snap_sites_rows(s), s->sites.row_count, by, list);
}

/* ---- names
 * ---------------------------------------------------------------------------------------------------------------------
 * */

static void label(const struct page *p, const char *text, int n)
{
  char *copy = strndup(text, (size_t)n);
  if (copy) t_label(p, copy, 0);
  free(copy);
}

static void shortened(const struct page *p, const struct m6_site_line *l)
{
  int n = l->function_bytes;
  label(p, l->function, n > 120 ? (int)m6_utf8_whole(l->function, 120) : n);
  if (n > 120) fputs("...", p->to);
}

/* "module+0x12": a function without a name. */
static int is_address(const struct m6_site_line *l)
{
  return l->function_bytes > l->module_bytes + 2 && !memcmp(l->function, l->module, (size_t)l->module_bytes) &&
         !memcmp(l->function + l->module_bytes, "+0x", 3);
}

/* Which line names it: the innermost function that is no allocator; the last one when all are. */
static int own(const struct m6_site_line *line, int n)
{
  int i = 0;
  while (i < n - 1 && m6_site_is_allocator(&line[i])) i++;
  return i;
}

/* "Solver::step [game] solver.cc:12", and on a line of its own what it went through and who called. */
static void name(const struct page *p, const struct m6_snapshot *s, const struct m6_snap_site *r)
{
  struct m6_site_line line[LINES];
  int n = m6_site_lines(s, r, line, LINES), at = own(line, n), library = at;
  if (n == 0) {
    fputs(r->unnamed ? "(its name is being looked up)\n" : "(places without a stack)\n", p->to);
    return;
  }
  while (at < n - 1 && m6_site_is_library(&line[at])) at++;
  const struct m6_site_line *l = &line[at];
  fputs(ink(p, INK_BOLD), p->to);
  shortened(p, l);
  fputs(NO_INK(p), p->to);
  if (!is_address(l)) { /* that begins with it */
    fputs(" [", p->to);
    label(p, l->module, l->module_bytes);
    fputc(']', p->to);
  }
  if (l->source_bytes) {
    const char *slash = memrchr(l->source, '/', (size_t)l->source_bytes);
    const char *from = slash ? slash + 1 : l->source;
    fputc(' ', p->to);
    label(p, from, l->source_bytes - (int)(from - l->source));
  }
  fputc('\n', p->to);
  fprintf(p->to, "      %s", ink(p, INK_DIM));
  const char *between = "";
  if (r->scope_bytes) {
    fputs("in scope ", p->to);
    label(p, m6_snap_text(s) + r->scope_offset, (int)r->scope_bytes);
    between = "; ";
  }
  if (library < at) {
    fprintf(p->to, "%sthrough ", between);
    shortened(p, &line[library]);
    between = "; ";
  }
  for (int i = at + 1, k = 0; i < n && k < CALLERS; i++) {
    if (is_address(&line[i])) continue; /* tells nobody anything */
    fprintf(p->to, "%s", k ? " < " : *between ? "; from " : "from ");
    shortened(p, &line[i]);
    k++;
  }
  fprintf(p->to, "%s\n", NO_INK(p));
}

static const char *plus_minus(const struct page *p) { return p->utf8 ? "±" : "+-"; }

/* "14.2 KiB ± 1.1 KiB": an amount over so many frames; "14.2 KiB to 20.1 KiB" where some are missing. Padded for a
 * table with 11 and 10. */
static void put_padded(const struct page *p, const struct m6_snap_amount *a, double over, int missing, int before,
                       int after)
{
  double half = (a->high - a->low) / 2 / over;
  const char *between = missing ? "to" : plus_minus(p);
  fprintf(p->to, "%*s", before, t_bytes((missing ? a->low : a->bytes) / over));
  if (isnan(half)) fprintf(p->to, "%*s", after ? after + 3 : 0, ""); /* a dump that does not know it */
  else                                                               /* "0 B", not "0.0 B" */
    fprintf(p->to, " %s %-*s", between, after ? after - missing : 0,
            t_bytes(missing      ? a->high / over
                    : half < 0.5 ? 0
                                 : half));
}
static void put_amount(const struct page *p, const struct m6_snap_amount *a, double over, int missing)
{
  put_padded(p, a, over, missing, 11, 10);
}
static void put_interval(const struct page *p, const struct m6_snap_amount *a, int missing)
{
  put_padded(p, a, 1, missing, 0, 0);
}

/* ---- parts
 * ---------------------------------------------------------------------------------------------------------------------
 * */

static void churn(const struct page *p, const struct m6_snapshot *s, const struct m6_snap_site **list, uint32_t most)
{
  int frames = s->presents > 1;
  double over = frames ? (double)m6_snap_sites_presents(s) : 1;
  const struct m6_snap_amount *all = frames ? &s->sites.in_frames : &s->sites.made;
  uint32_t n = sorted(s, frames ? by_frames : by_made, list);
  fprintf(p->to, "  %s%s  share  calls%s  died at once  where%s\n", ink(p, INK_DIM),
          frames ? "bytes a frame           " : "bytes                   ", frames ? "/fr" : "   ", NO_INK(p));
  for (uint32_t i = 0; i < n && i < most; i++) {
    const struct m6_snap_site *r = list[i];
    const struct m6_snap_amount *a = frames ? &r->in_frames : &r->made;
    put_amount(p, a, over, s->sites.dropped > 0);
    fprintf(p->to, "  %5s  %8s", t_ratio(all->bytes > 0 ? a->bytes / all->bytes : 0), t_number(a->blocks / over));
    fprintf(p->to, "  %12s  ", frames ? t_ratio(a->blocks > 0 ? r->same_frame.blocks / a->blocks : 0) : "-");
    name(p, s, r);
  }
  if (s->sites.sites > most) fprintf(p->to, "  (and %s more sites)\n", t_count(s->sites.sites - most));
}

static void arena(const struct page *p, const struct m6_snapshot *s, const struct m6_snap_site **list, uint32_t most)
{
  const struct m6_snap_sites *h = &s->sites;
  uint32_t n = sorted(s, by_same_frame, list);
  double presents = (double)m6_snap_sites_presents(s);
  if (n == 0 || s->presents < 2) return;
  fputs("  Blocks that die in the frame they were born in; they belong in a frame arena:\n", p->to);
  for (uint32_t i = 0; i < n && i < most; i++) {
    put_amount(p, &list[i]->same_frame, presents, h->dropped || h->untracked || h->deaths_lost);
    fprintf(p->to, " a frame in %s blocks  ", t_number(list[i]->same_frame.blocks / presents));
    name(p, s, list[i]);
  }
}

#define UNSAMPLED (256 << 10) /* a thread allocates so much at most before it looks whether it is to take samples */
#define NONE_MAY_BE 3.84      /* z^2: so many intervals may live where no sample does, the score interval of nothing */

/* Do the books have more that lives than the sites can have? */
static int more_lives(const struct m6_snap_sites *h)
{
  double unseen = h->live.samples || h->interval == 1 ? 0 : NONE_MAY_BE * h->interval;
  return (double)h->exact_live > h->live.high + unseen + UNSAMPLED;
}

/* Why it proves little that no site grew; NULL: nothing speaks against it. */
static const char *doubt(const struct m6_snapshot *s)
{
  const struct m6_snap_sites *h = &s->sites;
  if (s->verdict == M6_VERDICT_GROWS)
    return "No site grew all the time, but the heap grows (above): in blocks whose birth or end no sample told, in "
           "many sites by little, or it is too seldom for so few samples: a smaller --sites=BYTES takes more.";
  if (h->dropped || h->untracked)
    return "No site grew all the time, as far as was seen: samples are missing, or their end is not known.";
  if (more_lives(h))
    return "No site grew all the time, but by the books more is live than the sites have: what is in none of them may "
           "grow.";
  return NULL;
}

static void growth(const struct page *p, const struct m6_snapshot *s, const struct m6_snap_site **list, uint32_t most)
{
  uint32_t n = sorted(s, by_growth, list);
  const char *unit = s->sites.per_second ? "second" : "frame";
  int told = 0;
  for (uint32_t i = 0; i < s->sites.row_count; i++) told |= isfinite(m6_snap_sites_rows(s)[i].growth);
  if (n == 0) {
    const char *hedge = doubt(s);
    if (!told) t_wrap(p, 2, "Which of them grow is not known: it was too short to tell that from warming up.");
    else if (!hedge) t_wrap(p, 2, "No site grew all the time: nothing here looks like a leak.");
    else t_wrap(p, 2, hedge);
    return;
  }
  fprintf(p->to, "  %sWhat grows, and still did at the end%s%s:\n", ink(p, INK_BAD), NO_INK(p),
          s->sites.dropped ? " (of what was seen: where samples are missing it may be more)" : "");
  for (uint32_t i = 0; i < n && i < most; i++) {
    const struct m6_snap_site *r = list[i];
    fprintf(p->to, "  %11s a %s %s %s", t_bytes_signed(r->growth), unit, plus_minus(p), t_bytes(r->growth_error));
    fputs(", ", p->to);
    put_interval(p, &r->live, s->sites.dropped || s->sites.untracked);
    fprintf(p->to, " in %s blocks", t_number(r->live.blocks));
    if (!s->sites.per_second) fprintf(p->to, ", the oldest %s frames old", t_count(r->oldest));
    fputs("\n      ", p->to);
    name(p, s, r);
  }
}

static void peak(const struct page *p, const struct m6_snapshot *s, const struct m6_snap_site **list, uint32_t most)
{
  uint32_t n = sorted(s, by_peak, list);
  if (n == 0) return;
  const struct m6_snap_sites *h = &s->sites;
  int missing = h->dropped || h->untracked;
  struct m6_snap_amount a = m6_snap_peak(h->peak, h->peak_low, h->peak_high);
  fputs("  At their peak (", p->to);
  put_interval(p, &a, missing);
  fputs(" in all):\n", p->to);
  for (uint32_t i = 0; i < n && i < most; i++) {
    a = m6_snap_peak(list[i]->peak, list[i]->peak_low, list[i]->peak_high);
    put_amount(p, &a, 1, missing);
    fputs("  ", p->to);
    name(p, s, list[i]);
  }
}

/* What is left by call, where the books say something else: why. */
static int beside_the_books(const struct m6_snapshot *s, char *text, size_t room, int n)
{
  const struct m6_snap_sites *h = &s->sites;
  const struct {
    double bytes;
    const char *what;
  } why[] = {
    {(double)h->unmapped_elsewhere, "was given back that no call of this session had mapped"},
    {(double)h->placed_elsewhere, "was mapped by MAP_FIXED where no such call had mapped any"},
    {h->maps_untracked, "is in more ranges than are kept"},
    {(double)h->maps_dropped_bytes, "was mapped by calls that are missing"},
    {(double)h->unmaps_dropped_bytes, "went by calls that are missing"},
  };
  if ((double)s->mapped == h->maps_live || s->govern.link_count > 1)
    return n; /* the books' are of a chain's last session */
  n += snprintf(text + n, room - (size_t)n, ", by call %s", t_bytes(h->maps_live));
  for (size_t i = 0, said = 0; i < sizeof why / sizeof *why; i++)
    if (why[i].bytes != 0)
      n += snprintf(text + n, room - (size_t)n, "%s%s %s", said++ ? "; " : ": ", t_bytes(why[i].bytes), why[i].what);
  return n;
}

/* What the program maps itself: no samples, each call of it, and each end. */
static void mapped(const struct page *p, const struct m6_snapshot *s, const struct m6_snap_site **list, uint32_t most)
{
  const struct m6_snap_sites *h = &s->sites;
  uint32_t n = sort(m6_snap_site_maps(s), h->map_count, by_made, list);
  if (h->maps == 0 && h->unmapped_elsewhere == 0) return;
  char text[800];
  int n_text = snprintf(text, sizeof text, "Mapped by the program itself: %s", t_bytes(h->maps_made));
  if (s->govern.link_count <= 1)
    n_text += snprintf(text + n_text, sizeof text - (size_t)n_text, "; by the books it changed by %s",
                       t_bytes_signed((double)s->mapped));
  n_text = beside_the_books(s, text, sizeof text, n_text);
  if (h->maps_dropped) {
    n_text += snprintf(text + n_text, sizeof text - (size_t)n_text, ". %s of ", t_count(h->maps_dropped));
    n_text += snprintf(text + n_text, sizeof text - (size_t)n_text, "%s calls are missing, of %s", t_count(h->maps),
                       t_bytes((double)h->maps_dropped_bytes));
  }
  snprintf(text + n_text, sizeof text - (size_t)n_text, ".");
  t_wrap(p, 2, text);
  for (uint32_t i = 0; i < n && i < most; i++) {
    fprintf(p->to, "  %11s in %s calls, %s left", t_bytes(list[i]->made.bytes), t_number(list[i]->made.blocks),
            t_bytes(list[i]->live.bytes));
    if (list[i]->suspect) {
      fprintf(p->to, ", %sgrows by %s a %s", ink(p, INK_BAD), t_bytes(list[i]->growth),
              h->per_second ? "second" : "frame");
      fprintf(p->to, " %s %s%s", plus_minus(p), t_bytes(list[i]->growth_error), NO_INK(p));
    }
    fputs("  ", p->to);
    name(p, s, list[i]);
  }
}

#define SAMPLES_FEW 30 /* with fewer, an interval from their spread is too narrow */

/* What leaks stand on: blocks that were sampled and not given back, beside what the heap reading changed by. */
static int live_against_the_books(const struct page *p, const struct m6_snap_sites *h, char *text, size_t room, int n)
{
  double exact = (double)h->exact_live;
  int missing = h->dropped || h->untracked;
  n += snprintf(text + n, room - (size_t)n, " What lives: %s by the books,", t_bytes_signed(exact));
  if (!missing && !h->live.samples && h->interval > 1)
    return n +
           snprintf(text + n, room - (size_t)n, " and no sample of it%s.", more_lives(h) ? ", which is too few" : "");
  n += snprintf(text + n, room - (size_t)n, " %s", t_bytes(missing ? h->live.low : h->live.bytes));
  if (missing) n += snprintf(text + n, room - (size_t)n, " to %s by the sites", t_bytes(h->live.high));
  else
    n += snprintf(text + n, room - (size_t)n, " %s %s by the sites", plus_minus(p),
                  t_bytes((h->live.high - h->live.low) / 2));
  if (more_lives(h)) n += snprintf(text + n, room - (size_t)n, ", which is less");
  else if (exact < h->live.low - UNSAMPLED)
    n += snprintf(text + n, room - (size_t)n,
                  ", which is more: in the books it is less by what was given back of blocks older than the session");
  return n + snprintf(text + n, room - (size_t)n, ".");
}

static void against_the_books(const struct page *p, const struct m6_snapshot *s)
{
  const struct m6_snap_sites *h = &s->sites;
  char text[1000];
  double exact = (double)h->exact_bytes;
  int n = snprintf(text, sizeof text, "The books say %s in %s calls;", t_bytes(exact), t_count(h->exact_count));
  n += snprintf(text + n, sizeof text - (size_t)n, " the sites add up to %s", t_bytes(h->made.bytes));
  if (!h->dropped)
    n += snprintf(text + n, sizeof text - (size_t)n, " %s %s", plus_minus(p),
                  t_bytes((h->made.high - h->made.low) / 2));
  n += snprintf(text + n, sizeof text - (size_t)n, " in %s calls", t_count((uint64_t)h->made.blocks));
  if (h->dropped)
    n += snprintf(text + n, sizeof text - (size_t)n,
                  ", and samples that are missing stand for %s%s more: every amount here is from what was seen to that",
                  h->interval > 1 ? "at most " : "", t_bytes((double)h->dropped_bytes));
  if (exact < h->made.low || exact > h->made.high) {
    if (h->interval == 1 && exact > h->made.high)
      n += snprintf(text + n, sizeof text - (size_t)n, "; %s are in no sample", t_bytes(exact - h->made.high));
    else
      n += snprintf(text + n, sizeof text - (size_t)n, ", which is outside of its 95 %% interval%s",
                    h->samples < SAMPLES_FEW ? ": so few samples cannot tell, --sites=16K takes more" : "");
  }
  n += snprintf(text + n, sizeof text - (size_t)n, ".");
  n = live_against_the_books(p, h, text, sizeof text, n);
  n += snprintf(text + n, sizeof text - (size_t)n, " %s samples, one %s %s;", t_count(h->samples),
                h->interval > 1 ? "in" : "for", h->interval > 1 ? t_bytes(h->interval) : "each allocation");
  snprintf(text + n, sizeof text - (size_t)n, " %s of %s stacks reach the thread's first function.",
           t_ratio(h->stacks ? (double)h->stacks_whole / (double)h->stacks : 0), t_count(h->stacks));
  t_wrap(p, 2, text);
  if (h->cost_ns) {
    char of[64] = "";
    if (s->target_cpu_ns)
      snprintf(of, sizeof of, ", %s of its CPU time", t_ratio((double)h->cost_ns / (double)s->target_cpu_ns));
    snprintf(text, sizeof text, "Taking them cost the game about %s%s: %s each.", t_time(p, (double)h->cost_ns / 1e9),
             of, t_time(p, h->price_ns / 1e9));
    t_wrap(p, 2, text);
  }
  struct {
    uint64_t n;
    const char *text;
  } lost[] = {{h->dropped, "samples found no room and are missing"},
              {h->stackless, "samples came without their stack"},
              {h->untracked, "samples whose end cannot be known: too many seemed alive at once"},
              {h->deaths_lost, "ends of samples were noticed late"},
              {h->refused, "samples came from more places than are told apart"}};
  for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
    if (!lost[i].n) continue;
    snprintf(text, sizeof text, "%s %s.", t_count(lost[i].n), lost[i].text);
    t_wrap(p, 2, text);
  }
}

void report_sites(const struct page *p, const mach6_stats *h, int parts)
{
  const struct m6_snapshot *s = mach6_stats_snapshot(h);
  const struct m6_snap_site *list[M6_SITES_SHOWN];
  int live = parts & REPORT_LIVE;
  if (!s->sites.interval) return;
  report_heading(p, s->sites.interval == 1 ? "Sites, from every allocation" : "Sites, estimated from samples");
  if (s->sites.row_count == 0) {
    t_wrap(p, 2, "No allocation was sampled.");
    if (!live) mapped(p, s, list, 5);
    return;
  }
  churn(p, s, list, live ? 5 : 10);
  growth(p, s, list, live ? 3 : 8);
  if (!live) {
    arena(p, s, list, 5);
    peak(p, s, list, 3);
    mapped(p, s, list, 5);
  }
  against_the_books(p, s);
}
