/* report.h - a snapshot for people. A checked snapshot in, lines of at most page.width columns out. */
#ifndef M6_REPORT_H
#define M6_REPORT_H

#include "../../collector/mach6_stats.h"
#include "text.h"

enum report_parts {
  REPORT_ALL = 0,
  REPORT_LIVE = 1
}; /* LIVE: what `mach6 stat` shows, without the picture and the spikes' table */

void report(const struct page *p, const mach6_stats *s, int parts, const char *how_it_ended);
/* tree.c: time and memory by scope. */
void report_tree(const struct page *p, const mach6_stats *s);
/* picture.c: frame times from the first present to the last. */
void report_picture(const struct page *p, const mach6_stats *s);
/* report_sites.c: which code allocates, which keeps; nothing when no sites were asked for. */
void report_sites(const struct page *p, const mach6_stats *s, int parts);
void report_heading(const struct page *p, const char *title);

#endif
