/* map_check.h - what of the mappings that are known is still there, by the kernel's own list: for when ends are
 * missing. Reads /proc. One thread. Caller: site_side.c. */
#ifndef M6_MAP_CHECK_H
#define M6_MAP_CHECK_H

#include <sys/types.h>

#include "map_ranges.h"

/* Ends all that is older than `clock`, which was read before, and that process `pid` has not mapped. 0 or an errno. */
int m6_map_check(struct m6_map_ranges *r, pid_t pid, uint64_t clock, m6_map_lost *lost, void *arg);

#endif
