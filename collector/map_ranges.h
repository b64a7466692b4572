/* map_ranges.h - which range of addresses is whose: mappings as they were made, and what of them went.
 *
 * Ranges do not overlap. The one that was made last holds its place; an end takes what is older than itself
 * (shm/sites.h says why that is all). So of two that are told in the wrong order the same is left, as long as no birth
 * is told after its own end.
 *
 * Promise: memory is O(ranges), M6_MAP_RANGES_MAX at most: what finds no room is told as lost. O(log ranges) for each
 * that is cut or goes: a treap (Aragon and Seidel 1989) by address. Any clock and any range may come. One thread.
 * Callers: site_side.c, map_check.c.
 */
#ifndef M6_MAP_RANGES_H
#define M6_MAP_RANGES_H

#include <stdint.h>

#define M6_MAP_RANGES_MAX 65536u /* the kernel's own default for mappings of one process is about that */

struct m6_map_ranges;
struct m6_map_ranges *m6_map_ranges_open(void); /* NULL: no memory */
void m6_map_ranges_close(struct m6_map_ranges *r);

enum m6_map_loss {
  M6_MAP_GONE,     /* ended */
  M6_MAP_REPLACED, /* by what is mapped there now */
  M6_MAP_NO_ROOM,  /* it is still mapped, but not known any more */
};
struct m6_map_event {
  uint64_t start, end, clock;
  uint64_t key; /* of what is mapped there; 0: an end */
};
/* Tells of each that lost something, itself included: whose it was, how many bytes, and why. */
typedef void m6_map_lost(void *arg, uint64_t key, uint64_t bytes, enum m6_map_loss why);
void m6_map_ranges_apply(struct m6_map_ranges *r, const struct m6_map_event *e, m6_map_lost *lost, void *arg);

/* All ranges in order of address; for tests. */
void m6_map_ranges_each(const struct m6_map_ranges *r, void (*each)(void *arg, const struct m6_map_event *range),
                        void *arg);

#endif
