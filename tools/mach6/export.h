/* export.h - a dump in the forms that other programs read. Each writer gets a handle and a stream; 0 or an errno.
 *
 *   json        the whole report as one object, with every table of the dump under its name
 *   jsonl       an object a line: first the recording, then each row of each table
 *   csv         one table (RFC 4180); the last column says whether the recording is whole
 *   chrome      trace events (the Trace Event Format), for Perfetto's UI and chrome://tracing
 *   folded      self time by scope, in microseconds, a stack a line: what flame graph tools read
 *   speedscope  the same as sampled profiles, one for each part of the session
 *
 * What an aggregated tree can show: how much time a scope took in all, not when. So the trace has frames, presents, stalls,
 * growth and counters at their times, and the scopes as one mean frame, apart, which its name says.
 */
#ifndef M6_EXPORT_H
#define M6_EXPORT_H

#include <stdio.h>

#include "../../collector/stats_internal.h"

int export_json(const mach6_stats *s, FILE *to);
int export_jsonl(const mach6_stats *s, FILE *to);
int export_csv(const mach6_stats *s, FILE *to, const char *table); /* EINVAL: there is no such table */
int export_chrome(const mach6_stats *s, FILE *to);
int export_folded(const mach6_stats *s, FILE *to);
/* The stacks of CPU samples instead, as the collector folded them. ENODATA: there are none. */
int export_folded_cpu(const mach6_stats *s, FILE *to);
int export_speedscope(const mach6_stats *s, FILE *to);

/* The time that a node spent outside its children, ns. */
uint64_t export_self(const mach6_node *n);
/* The next node in preorder below `top`; NULL at the end. */
const mach6_node *export_next(const mach6_node *n, const mach6_node *top);

#endif
