/* export.h - a dump in the forms that other programs read. Each writer gets a stream; 0 or an errno.
 *
 *   json        the whole report as one object, with every table of the dump under its name; with --of the stacks of that alone
 *   jsonl       an object a line: first the recording, then each row of each table
 *   csv         one table (RFC 4180); the last column says whether the recording is whole
 *   chrome      trace events (the Trace Event Format), for Perfetto's UI and chrome://tracing
 *   folded      a stack a line and its weight: what flame graph tools read
 *   speedscope  the same as sampled profiles, one for each part of the session or thread
 *   pprof       profile.proto, gzip'd: for pprof and what reads its files
 *   flamegraph  a picture of them: one SVG file, for a browser
 *
 * The last four are of stacks with weights (export_stacks.h): self time by scope, CPU samples, or sites of allocations.
 *
 * What an aggregated tree can show: how much time a scope took in all, not when. So the trace has frames, presents,
 * stalls, growth and counters at their times, and the scopes as one mean frame, apart, which its name says.
 */
#ifndef M6_EXPORT_H
#define M6_EXPORT_H

#include <stdio.h>

#include "../../collector/stats_internal.h"
#include "export_stacks.h"

int export_json(const mach6_stats *s, FILE *to);
int export_jsonl(const mach6_stats *s, FILE *to);
int export_csv(const mach6_stats *s, FILE *to, const char *table); /* EINVAL: there is no such table */
int export_chrome(const mach6_stats *s, FILE *to);

int export_folded(const struct export_stacks *x, FILE *to);
int export_speedscope(const struct export_stacks *x, FILE *to);
int export_pprof(const struct export_stacks *x, FILE *to); /* binary */
int export_flame(const struct export_stacks *x, FILE *to);
int export_stacks_json(const struct export_stacks *x, FILE *to);
/* What the stacks are, how sure their sum is, and whether they are all; as snprintf. */
int export_title(const struct export_stacks *x, char *out, size_t room);

/* The time that a node spent outside its children, ns. */
uint64_t export_self(const mach6_node *n);
/* The next node in preorder below `top`; NULL at the end. */
const mach6_node *export_next(const mach6_node *n, const mach6_node *top);

#endif
