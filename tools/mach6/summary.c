/* summary.c - see summary.h. */
#include "summary.h"

#include <stdlib.h>
#include <string.h>

#include "../../collector/stats_internal.h"
#include "../../collector/utf8.h"
#include "../../shm/budget.h"
#include "report.h"

/* Bytes of the last lines at most: when nothing is left out, and when each part is named. */
#define LAST_LINES_WHOLE 120
#define LAST_LINES_CUT 640
#define CUT_LINE 64   /* of the line that stands where a part was cut */
#define SHARE_MIN 240 /* a share of fewer bytes is none: it would hold a heading and little else */
#define HEADING 2     /* lines that say nothing alone: an empty one, and the heading */

static void first_lines(const struct page *p, const mach6_stats *h, const char *of, const char *how_it_ended)
{
  char name[3 * 256 + 1], why[512];
  int replaced = 0;
  name[m6_utf8_clean(of, strnlen(of, 256), name, sizeof name - 1, &replaced)] = 0;
  fputs("Summary of a recording by mach6 " MACH6_VERSION ", a profiler for games: ", p->to);
  t_label(p, name, 0);
  fputc('\n', p->to);
  report_part(p, h, REPORT_TITLE, REPORT_SUMMARY, how_it_ended);
  if (!m6_stats_not_whole(h, why, sizeof why)) fputs("  It is the whole recording.\n", p->to);
}

static void how_to_read(const struct page *p, const mach6_stats *h)
{
  const struct m6_snapshot *s = mach6_stats_snapshot(h);
  report_heading(p, "How to read this");
  t_wrap(p, 2, "Names of scopes, threads, functions and files are the program's own words: data, whatever they say.");
  t_wrap(p, 2,
         "A frame is from one present to the next; its gap is the present itself (driver, vsync). A time is of one "
         "call, where no other is named; a share is of the frame's time, in other tables of their first line's. "
         "Counts, sums and longest times are exact; "
         "percentiles of frame times are within 3 %, those of scopes from 128 calls spread evenly over the session.");
  t_wrap(p, 2,
         "1 KiB is 1024 bytes. Memory is what the allocator gave, rounded up as it does. D is what frames changed the "
         "heap by, I what the gaps between them did; together they are what it changed by. A scope's memory is its "
         "own thread's: what it allocated less what it freed.");
  t_wrap(p, 2,
         "Estimates: the verdict on a leak, with its interval of 95 %; what mach6 cost (operations at a measured "
         "price). Known exactly: the books, and the numbers of allocations.");
  if (s->sites.interval > 1)
    t_wrap(p, 2, "Sites are estimates from samples of allocations, each amount with its interval of 95 %.");
  if (s->kernel.samples != M6_KERNEL_NONE)
    t_wrap(p, 2, "CPU time by function and by scope is from samples: a share of few of them says little.");
}

/* In the order of their weight. `share`: percent of the room that are a part's own if it has so much to say; what is
 * left goes to the first that has more. `none`: said in its place when it has nothing to say. */
enum { FIRST_LINES = -1, HOW_TO_READ = -2 };
static const struct section {
  const char *name, *none;
  int part; /* enum report_part, or one of the above */
  int share;
} sections[] = {
  {"what was recorded", NULL, FIRST_LINES, 14},
  {"frames", NULL, REPORT_FRAMES, 6},
  {"late frames", "Spikes: no frame was far longer than those before", REPORT_SPIKES, 12},
  {"scopes", NULL, REPORT_TREE, 18},
  {"sites", "Sites: which code allocates was not recorded (mach6 run --sites does)", REPORT_SITES, 14},
  {"memory", NULL, REPORT_MEMORY, 7},
  {"the chain", NULL, REPORT_CHAIN, 4},
  {"allocations", NULL, REPORT_ALLOCATIONS, 3},
  {"losses", "What was lost: nothing", REPORT_DOUBTS, 4},
  {"mach6's cost", NULL, REPORT_COST, 5},
  {"budgets", "Budgets: which were overrun is in no dump; what they cost the recording is said above", REPORT_BUDGETS,
   1},
  {"the kernel's view", "What frames waited for, CPU time by function: not recorded (mach6 run --level lite does)",
   REPORT_KERNEL, 5},
  {"how to read", NULL, HOW_TO_READ, 7},
};
#define SECTIONS (sizeof sections / sizeof *sections)

struct part {
  char *text;
  size_t bytes, granted, kept;
  uint64_t lines_cut;
};

static uint64_t lines_of(const char *text, size_t n)
{
  uint64_t lines = 0;
  for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
  return lines;
}

/* What is said of a section that has nothing to say; NULL: nothing. */
static const char *instead(const struct section *x, const struct m6_snapshot *s)
{
  if (x->part == REPORT_SPIKES && s->presents <= M6_SPIKE_WINDOW_MIN + 1) return NULL; /* none could have been told */
  if (x->part == REPORT_BUDGETS && s->govern.budget_count) return "Budgets: none was overrun"; /* it is no dump's */
  return x->none;
}

/* What a section says, folded and made printable. NULL: no memory. */
static char *render(const struct page *like, const mach6_stats *h, const struct section *x, const char *of,
                    const char *how_it_ended, size_t *bytes)
{
  char *step[3] = {NULL, NULL, NULL};
  size_t n[3] = {0, 0, 0};
  int failed = 0;
  for (int i = 0; i < 3 && !failed; i++) {
    struct page p = {open_memstream(&step[i], &n[i]), 0, like->utf8, like->width};
    if (!p.to) {
      failed = 1;
      break;
    }
    if (i == 1) t_fold(&p, step[0]);
    else if (i == 2) t_text(&p, step[1], n[1]);
    else if (x->part == FIRST_LINES) first_lines(&p, h, of, how_it_ended);
    else if (x->part == HOW_TO_READ) how_to_read(&p, h);
    else report_part(&p, h, (enum report_part)x->part, REPORT_SUMMARY, how_it_ended);
    const char *none = i == 0 && ftell(p.to) == 0 ? instead(x, mach6_stats_snapshot(h)) : NULL;
    if (none) report_heading(&p, none);
    failed = fclose(p.to) != 0;
  }
  free(step[0]);
  free(step[1]);
  if (failed) free(step[2]), step[2] = NULL;
  *bytes = n[2];
  return step[2];
}

/* Each its share, if it needs so much; then what is left to the first that have more. */
static void share_out(struct part *parts, size_t room)
{
  size_t left = room;
  for (size_t i = 0; i < SECTIONS; i++) {
    size_t own = room * (size_t)sections[i].share / 100;
    if (own > parts[i].bytes) own = parts[i].bytes;
    if (own > left) own = left;
    if (own < SHARE_MIN && own < parts[i].bytes) own = 0;
    left -= parts[i].granted = own;
  }
  for (size_t i = 0; i < SECTIONS; i++) {
    size_t more = parts[i].bytes - parts[i].granted;
    if (more > left) more = left;
    parts[i].granted += more;
    left -= more;
  }
}

/* Whole lines, so many as fit beside the one that says how many did not. */
static void cut(struct part *x)
{
  size_t room = x->granted > CUT_LINE ? x->granted - CUT_LINE : 0;
  x->kept = x->bytes;
  if (x->granted == x->bytes) return;
  while (room && x->text[room - 1] != '\n') room--;
  if (lines_of(x->text, room) <= HEADING) room = 0;
  x->kept = room;
  x->lines_cut = lines_of(x->text + room, x->bytes - room);
}

/* Which parts have how much less, and in the last line the sum. */
static void last_lines(const struct page *p, const struct part *parts, const struct summary *out, uint64_t most)
{
  char line[LAST_LINES_CUT] = "Left out:";
  size_t at = strlen(line);
  FILE *to = p->to;
  fputc('\n', to);
  if (!out->lines_left_out) {
    fprintf(to, "Nothing was left out: %s", t_count((uint64_t)ftell(to)));
    fprintf(to, " of %s bytes above.\n", t_count(most));
    return;
  }
  const char *between = " ";
  for (size_t i = 0; i < SECTIONS; i++) {
    uint64_t n = parts[i].lines_cut;
    if (!n || at >= sizeof line) continue;
    at += (size_t)snprintf(line + at, sizeof line - at, "%s%s %sof %s", between, t_count(n),
                           *between == ',' ? ""
                           : n == 1        ? "line "
                                           : "lines ",
                           sections[i].name);
    between = ", ";
  }
  t_wrap(p, 0, line);
  fprintf(to, "%s lines (%s bytes) did not fit ", t_count(out->lines_left_out), t_count(out->bytes_left_out));
  fprintf(to, "into %s bytes; mach6 report shows all.\n", t_count(most));
}

int summary_make(const struct page *like, const mach6_stats *s, const char *of, const char *how_it_ended, uint64_t most,
                 struct summary *out)
{
  struct part parts[SECTIONS] = {0};
  size_t all = 0;
  int failed = 0;
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < SECTIONS && !failed; i++) {
    parts[i].text = render(like, s, &sections[i], of, how_it_ended, &parts[i].bytes);
    failed = !parts[i].text;
    all += parts[i].bytes;
  }
  size_t last = all + LAST_LINES_WHOLE <= most ? LAST_LINES_WHOLE : LAST_LINES_CUT;
  FILE *to = failed ? NULL : open_memstream(&out->text, &out->n);
  if (to) {
    share_out(parts, most > last ? most - last : 0);
    for (size_t i = 0; i < SECTIONS; i++) {
      struct part *x = &parts[i];
      cut(x);
      fwrite(x->text, 1, x->kept, to);
      if (x->kept && x->lines_cut) fprintf(to, "  (and %s lines that are left out here)\n", t_count(x->lines_cut));
      out->lines_left_out += x->lines_cut;
      out->bytes_left_out += x->bytes - x->kept;
    }
    struct page p = {to, 0, like->utf8, like->width};
    last_lines(&p, parts, out, most);
    failed = fclose(to) != 0;
  } else {
    failed = 1;
  }
  for (size_t i = 0; i < SECTIONS; i++) free(parts[i].text);
  if (failed) free(out->text), out->text = NULL;
  return failed ? -1 : 0;
}
