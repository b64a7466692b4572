/* report.h - a snapshot for people. A checked snapshot in, lines of at most page.width columns out. */
#ifndef M6_REPORT_H
#define M6_REPORT_H

#include "../../collector/mach6_stats.h"
#include "text.h"

enum report_parts {
  REPORT_ALL = 0,
  REPORT_LIVE = 1,   /* what `mach6 stat` shows, without the picture and the spikes' table */
  REPORT_SUMMARY = 2 /* what `mach6 analyze` takes: without the picture, with a p10 */
};

void report(const struct page *p, const mach6_stats *s, int parts, const char *how_it_ended);
/* One part of it, in lines as wide as they are; t_fold makes them fit. A part that has nothing to say writes nothing.
 * */
enum report_part {
  REPORT_TITLE,
  REPORT_FRAMES,
  REPORT_TREE,
  REPORT_SPIKES,
  REPORT_MEMORY,
  REPORT_CHAIN,
  REPORT_ALLOCATIONS,
  REPORT_KERNEL,
  REPORT_SITES,
  REPORT_DOUBTS,
  REPORT_COST,
  REPORT_BUDGETS,
  REPORT_PART_COUNT
};
void report_part(const struct page *p, const mach6_stats *s, enum report_part part, int parts,
                 const char *how_it_ended);
/* tree.c: time and memory by scope. */
void report_tree(const struct page *p, const mach6_stats *s);
/* picture.c: frame times from the first present to the last. */
void report_picture(const struct page *p, const mach6_stats *s);
/* report_govern.c: a chain of sessions, when there is one; what mach6's own cost led to; the budgets, as `mach6 stat`
 * shows them. */
struct m6_snapshot;
void report_chain(const struct page *p, const struct m6_snapshot *s);
void report_governor(const struct page *p, const struct m6_snapshot *s);
void report_budgets(const struct page *p, const struct m6_snapshot *s, int all); /* all, or those that were overrun */
/* report_kernel.c: where CPU time went, threads, system calls, what was refused; what spike number `spike` was made of.
 * */
void report_kernel(const struct page *p, const mach6_stats *s);
void report_spike_causes(const struct page *p, const mach6_stats *s, uint32_t spike);
/* report_sites.c: which code allocates, which keeps; nothing when no sites were asked for. */
void report_sites(const struct page *p, const mach6_stats *s, int parts);
void report_heading(const struct page *p, const char *title);

#endif
