/* export_stacks.h - stacks with weights, from one of three sources: the time of scopes, CPU samples, sites of
 * allocations. What folded stacks, speedscope, pprof, the flame graph and `json --of` are all written from.
 *
 *   const struct export_measure *m = export_measure_named("bytes");
 *   struct export_stacks *x;
 *   int e = export_stacks_new(s, m, EXPORT_LINES, &x);      0, ENOMEM, or ENODATA: that was not recorded
 *   for (i = 0; i < x->count; i++) ... x->stack[i] ...
 *   export_stacks_free(x);
 *
 * Weights are whole numbers in the measure's unit. Those of sites are estimates; where the dump knows their interval of
 * 95 % it stands beside them. Sites that the dump has no row for are one stack, so that the sum is the estimate of all.
 * A stack is a path in a tree: the memory is that of the input, however deep it is. Pure but for memory. One thread.
 */
#ifndef M6_EXPORT_STACKS_H
#define M6_EXPORT_STACKS_H

#include <uthash.h>

#include "../../collector/stats_sites.h"

enum export_source { EXPORT_SCOPES, EXPORT_CPU, EXPORT_SITES };
enum export_unit { EXPORT_NS, EXPORT_BYTES, EXPORT_BLOCKS, EXPORT_SAMPLES };

struct export_value {
  double value, low, high; /* low, high: 95 %; NAN when not known */
};
struct export_measure {
  const char *word;  /* as --of has it */
  const char *what;  /* for titles and help */
  const char *pprof; /* its name among pprof's sample types */
  enum export_source source;
  enum export_unit unit;
  struct export_value (*site)(const struct m6_snapshot *s, const struct m6_snap_site *row); /* EXPORT_SITES */
  int scored; /* the interval is that of collector/sites.h: its standard error can be told */
  int mapped; /* of the sites that map memory, of which every call is known: no estimate */
};
const struct export_measure *export_measures(unsigned *count);
const struct export_measure *export_measure_named(const char *word); /* NULL: there is none */
const char *export_unit_name(enum export_unit u);                    /* "bytes", "blocks", ... */

struct export_function {
  const char *name, *module, *file; /* module, file: "" when not known */
  uint32_t line;                    /* of CPU samples: where most of its samples fell; else 0 */
  uint32_t index;
  int kernel;
  UT_hash_handle hh; /* in the order of their coming */
};
struct export_node {
  struct {
    struct export_node *parent; /* NULL: outermost */
    struct export_function *function;
    uint32_t line, inlined; /* inlined: into the parent */
  } key;
  uint32_t index, depth; /* depth: 1 for the outermost */
  UT_hash_handle hh;     /* in the order of their coming: parents first */
};
struct export_stack {
  const struct export_node *node;
  int64_t value;
  double low, high;
  const struct m6_snap_site *row; /* EXPORT_SITES */
  const char *group;              /* a part of the session, a thread; the same for all sites */
};
struct export_stacks {
  const mach6_stats *of;
  const struct export_measure *measure;
  struct export_function *functions; /* hashes */
  struct export_node *nodes;
  struct export_stack *stack;
  uint32_t count, room;
  struct export_value all; /* the sum of the stacks, and the interval of the estimate where it is known */
  uint64_t ns_each;        /* EXPORT_CPU: CPU time between two samples of a thread */
  char why[512];           /* why it is not the whole recording; "" when it is */
  struct m6_snap_site rest;
};

#define EXPORT_LINES 1u    /* the same function at another line is another node; else nodes are functions */
#define EXPORT_BY_SCOPE 2u /* sites: the scope that was open comes first */
#define EXPORT_ALL_SITES                                                                                               \
  4u /* those that have nothing of the measure, too: for formats that have several values a stack */
int export_stacks_new(const mach6_stats *s, const struct export_measure *m, unsigned flags, struct export_stacks **out);
void export_stacks_free(struct export_stacks *x);

/* What the weight stands for, rounded to whole numbers; 0 for what is no number or less than nothing. */
int64_t export_whole(double v);
/* A row's scope, NUL-terminated; the caller's to free. NULL: none was open. */
char *export_scope(const struct export_stacks *x, const struct m6_snap_site *row);
/* The standard error behind a score interval (collector/sites.h); NAN when not known. */
double export_standard_error(const struct export_measure *m, struct export_value v);

#endif
