/* picture.c - the frame times of a whole session as a drawing: average and longest of each group of frames.
 *
 * One column stands for the same number of frames everywhere, so the eye may compare. The scale ends above what most
 * groups need; a frame that is longer by far is an arrow at the top and does not flatten the rest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../shm/layout.h"
#include "../../shm/snapshot.h"
#include "report.h"

#define ROWS 8
#define AXIS 9 /* columns for the scale at the left */

struct column {
  double avg, max; /* ms; NaN: nothing */
  uint64_t frames, sum;
};

static int by_size(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* A round number just above v. */
static double round_up(double v)
{
  static const double steps[] = {1, 1.2, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10};
  double unit = pow(10, floor(log10(v)));
  for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++)
    if (v <= steps[i] * unit * 1.0000001) return steps[i] * unit;
  return 10 * unit;
}

/* Merges neighbours until they fit. Gives the number of columns. */
static int columns_of(const struct m6_snapshot *s, int room, struct column *out)
{
  int n = (int)s->series_count, each = (n + room - 1) / room, count = 0;
  for (int i = 0; i < n; i += each) {
    struct column c = {NAN, NAN, 0, 0};
    uint64_t max = 0;
    for (int k = i; k < n && k < i + each; k++) {
      c.frames += s->series[k].frames;
      c.sum += s->series[k].time_sum;
      if (s->series[k].time_max > max) max = s->series[k].time_max;
    }
    if (c.frames) {
      c.avg = (double)c.sum / 1e6 / (double)c.frames;
      c.max = (double)max / 1e6;
    }
    out[count++] = c;
  }
  return count;
}

void report_picture(const struct page *p, const mach6_stats *h)
{
  static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const struct m6_snapshot *s = mach6_stats_snapshot(h);
  struct column c[M6_SERIES];
  double sizes[M6_SERIES];
  int n = columns_of(s, p->width - AXIS - 2, c), known = 0;
  for (int i = 0; i < n; i++)
    if (isfinite(c[i].max)) sizes[known++] = c[i].max;
  if (known < 2) return;
  qsort(sizes, (size_t)known, sizeof *sizes, by_size);
  double most = sizes[known - 1], usual = sizes[known * 85 / 100];
  double top = round_up(most > usual * 2.5 ? usual * 1.5 : most);
  if (top <= 0 || !isfinite(top)) return;
  int stretch = (p->width - AXIS - 2) / n;
  if (stretch > 4) stretch = 4;
  if (stretch < 1) stretch = 1;

  fputc('\n', p->to);
  for (int row = ROWS - 1; row >= 0; row--) {
    double low = top * row / ROWS, high = top * (row + 1) / ROWS;
    if (row == ROWS - 1 || row == ROWS / 2 - 1) fprintf(p->to, "%6.4g ms%s", high, p->utf8 ? "┤" : "|");
    else fprintf(p->to, "%*s%s", AXIS, "", p->utf8 ? "│" : "|");
    enum ink now = INK_PLAIN;
    for (int i = 0; i < n * stretch; i++) {
      const struct column *k = &c[i / stretch];
      const char *mark = " ";
      enum ink want = INK_PLAIN;
      if (k->avg > low) {
        int part = k->avg >= high ? 8 : (int)((k->avg - low) / (high - low) * 8 + 0.5);
        if (part == 0 && row == 0) part = 1;
        if (part) mark = p->utf8 ? eighths[part] : part > 3 ? "#" : ".", want = INK_BAR;
      }
      if (want == INK_PLAIN && k->max > low && (k->max <= high || row == ROWS - 1)) {
        int beyond = k->max > top;
        mark = beyond ? (p->utf8 ? "▲" : "^") : p->utf8 ? "·" : "'";
        want = beyond ? INK_BAD : INK_PEAK;
      }
      if (want != now) fputs(ink(p, INK_PLAIN), p->to), fputs(want == INK_PLAIN ? "" : ink(p, want), p->to), now = want;
      fputs(mark, p->to);
    }
    if (now != INK_PLAIN) fputs(NO_INK(p), p->to);
    fputc('\n', p->to);
  }
  fprintf(p->to, "%6.4g ms%s", 0.0, p->utf8 ? "└" : "+");
  for (int i = 0; i < n * stretch; i++) fputs(p->utf8 ? "─" : "-", p->to);
  fprintf(p->to, "\n%*sframe 1%*s", AXIS + 1, "", n * stretch > 30 ? n * stretch - 20 : 3, "");
  uint64_t frames = 0;
  for (int i = 0; i < n; i++) frames += c[i].frames;
  fprintf(p->to, "%13s\n%*s", t_count(frames), AXIS + 1, "");
  fprintf(p->to, "%s%s%s %s", ink(p, INK_BAR), p->utf8 ? "█" : "#", NO_INK(p),
          c[0].frames > 1 ? "average" : "each frame");
  if (c[0].frames > 1)
    fprintf(p->to, ", %s%s%s longest of %s frames", ink(p, INK_PEAK), p->utf8 ? "·" : "'", NO_INK(p),
            t_count(c[0].frames));
  if (most > top)
    fprintf(p->to, ", %s%s%s beyond the scale (up to %s)", ink(p, INK_BAD), p->utf8 ? "▲" : "^", NO_INK(p),
            t_time(p, most / 1e3));
  fputc('\n', p->to);
}
