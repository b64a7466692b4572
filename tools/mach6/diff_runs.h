/* diff_runs.h - mach6 diff A1,A2,... B1,B2,...: several recordings a side, so that how much runs of one program differ
 * is in the test. */
#ifndef M6_DIFF_RUNS_H
#define M6_DIFF_RUNS_H

#include "compare.h"
#include "report.h"

/* What the columns of figures leave of a line for a name, in both kinds of comparison. */
int diff_name_columns(const struct page *p);
/* A node's path, padded to these columns; where it is too long, without its first labels: the last ones tell it from
 * others. */
void diff_name(const struct page *p, const char *path);

/* Are these several names? Not when there is a file of just that name. */
int diff_is_runs(const char *files);
/* Loads, compares, prints; an exit status. */
int diff_runs(const char *files_a, const char *files_b, const struct compare_options *o, int json);

#endif
