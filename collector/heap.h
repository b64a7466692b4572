/* heap.h - the whole heap as the kernel sees it: /proc/PID/smaps_rollup and smaps, at most once in M6_HEAP_INTERVAL_S,
 * one at a time.
 *
 * Reading it walks the target's page tables and holds its mappings for as long, so it is rare; and it can take
 * milliseconds, so a thread of the collector reads it and draining goes on. mallinfo2() is not asked: it takes the
 * allocator's locks, in the game, from a thread of the game or one that we should have to put there. What it would say
 * is to be had without: what is live is the heap reading, exact, and what the kernel holds for it is `anonymous`,
 * stacks and libraries' data included. `held` is what of it may be the allocator's (heap_maps.h): what it holds above
 * the reading, less what the program mapped itself, is fragmentation: free blocks, headers, what rounding wastes.
 * When: a session's first one tells nothing while the program still begins, and would disturb its first frames; but a
 * program that ends cannot be measured at its end. So the first is due M6_HEAP_FIRST_S after the session's beginning,
 * the next an interval after each; and at the end of a session whose target lives on, one that is due by then, or the
 * first. No two are closer than the interval, whichever sessions they belong to. Time is an argument. One thread calls;
 * the measurement itself runs in another.
 */
#ifndef M6_HEAP_H
#define M6_HEAP_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "../shm/snapshot.h"

struct m6_heap_measured {
  uint64_t rss, pss, anonymous, swap, held, took_ns; /* bytes */
  int error;                                         /* errno, or 0 */
};
struct m6_heap {
  uint64_t interval_ns, due_ns, asked_ns;
  int pending;
  int64_t mapped; /* what the program itself has mapped since the session's start, as of now; the caller keeps it */
  int64_t live, mapped_then; /* when it was asked for */
  pthread_t thread;
  pid_t pid;
  uint32_t ready; /* published by the measuring thread when `got` is whole */
  struct m6_heap_measured got;
  struct m6_snap_heap last;
  /* What measures; replaced in tests. */
  void (*measure)(pid_t pid, struct m6_heap_measured *out);
};

/* A session begins: the first one is due as said above, and when the interval since the last one of a session before is
 * over. */
void m6_heap_begin(struct m6_heap *h, uint64_t interval_ns, uint64_t now_ns);
/* Starts one when it is due, takes the answer when it is there. 1 when `last` is new. */
int m6_heap_poll(struct m6_heap *h, pid_t pid, int64_t live, uint64_t now_ns, uint64_t session_start_ns);
/* Waits for one that is under way, and takes it. 1 when `last` is new. */
int m6_heap_end(struct m6_heap *h, uint64_t session_start_ns);
/* At the end of a session whose target lives on: the same, and one more when the interval since the last one is over;
 * by the calling thread, as nothing is drained any more. One that fails leaves the last one as it is. */
int m6_heap_last(struct m6_heap *h, pid_t pid, int64_t live, uint64_t now_ns, uint64_t session_start_ns);
/* Reads the text of smaps_rollup. 0, or -1 when it is none. */
int m6_heap_parse(const char *text, struct m6_heap_measured *out);

#endif
