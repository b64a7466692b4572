/* stats_sites.h - reading the sites of a checked snapshot: rows, and the lines of their stacks. Pure. */
#ifndef M6_STATS_SITES_H
#define M6_STATS_SITES_H

#include <math.h>

#include "stats_internal.h"

struct m6_site_line { /* one function of a stack; not NUL-terminated */
  const char *function, *module, *source;
  int function_bytes, module_bytes, source_bytes;
  int inlined; /* into the next one */
};

static inline const struct m6_snap_site *m6_snap_sites_rows(const struct m6_snapshot *s)
{
  return (const struct m6_snap_site *)((const char *)s + s->sites.rows_offset);
}
static inline const struct m6_snap_site *m6_snap_site_maps(const struct m6_snapshot *s)
{
  return (const struct m6_snap_site *)((const char *)s + s->sites.maps_offset);
}
static inline const struct m6_snap_site_second *m6_snap_site_seconds(const struct m6_snapshot *s)
{
  return (const struct m6_snap_site_second *)((const char *)s + s->sites.seconds_offset);
}
/* Of a peak: what a dump of an earlier version does not know is NaN. */
static inline struct m6_snap_amount m6_snap_peak(double peak, double low, double high)
{
  int known = low <= peak && peak <= high;
  return (struct m6_snap_amount){peak, known ? low : NAN, known ? high : NAN, NAN, 0};
}
/* Sites are of a whole chain of sessions: how many presents those had together. The link of the session that goes on is
 * not there yet. */
static inline uint64_t m6_snap_sites_presents(const struct m6_snapshot *s)
{
  const struct m6_snap_govern *g = &s->govern;
  uint64_t n = g->link_count && g->links[g->link_count - 1].end != M6_END_NONE ? 0 : s->presents;
  for (uint32_t i = 0; i < g->link_count; i++) n += g->links[i].presents;
  return n;
}
/* The next line from *at, which moves on; 0 at the end. */
int m6_site_next_line(const char **at, const char *end, struct m6_site_line *out);
/* Up to `most` lines of a row's stack; how many. */
int m6_site_lines(const struct m6_snapshot *s, const struct m6_snap_site *row, struct m6_site_line *out, int most);
/* Is this function part of an allocator, or a wrapper that everybody goes through? It is not what a site is named
 * after. */
int m6_site_is_allocator(const struct m6_site_line *l);
/* Is it the C++ library's own? */
int m6_site_is_library(const struct m6_site_line *l);

/* What the allocator holds and nobody uses, at the last measurement of the whole heap: of `held` what is neither live
 * nor the program's own mappings. Not known of a program that ran before. */
struct m6_heap_unused {
  int64_t mapped, held; /* held: without what the program itself has mapped; 0 when it is not known */
  int64_t bytes;        /* below 0 when it is not known */
  double share;         /* of `held`; NaN then */
};
struct m6_heap_unused m6_heap_unused_of(const struct m6_snapshot *s);

M6_HIDDEN json_t *m6_payload_sites(const struct m6_snapshot *s);
M6_HIDDEN json_t *m6_payload_modules(const struct m6_snapshot *s);

#endif
