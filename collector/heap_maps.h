/* heap_maps.h - which of a process's mappings are the allocator's, and how much of them is there: /proc/PID/smaps.
 *
 * The break ("[heap]", and what glibc calls "[anon: glibc: malloc...]") is; so is private, writable, unnamed memory,
 * but for thread stacks, which libc puts above a guard page that cannot be read, and for a library's .bss, which lies
 * next to its file. What the program maps itself cannot be told from that by looking; the mapped account bounds it.
 * Pure: text in, bytes out. One thread. Caller: heap.c.
 */
#ifndef M6_HEAP_MAPS_H
#define M6_HEAP_MAPS_H

#include <stdint.h>

#define M6_ARENA_BYTES (64ull << 20) /* glibc's arenas of threads begin at a multiple of this */

struct m6_heap_maps {
  uint64_t held; /* bytes that are resident or swapped, in what may be the allocator's */
  uint64_t rss, anonymous,
    swap; /* bytes, of all mappings: read in the same pass, so that `held` is no more than the last two together */
  uint64_t last_end;
  int last_file, last_guard; /* what the mapping before this one was; it ended at last_end */
  int counts;                /* the lines that follow are of an allocator's mapping */
};

/* One line of smaps, with or without its end; zeroed before the first. */
void m6_heap_maps_line(struct m6_heap_maps *m, const char *line);

#endif
