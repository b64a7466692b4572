/* books.h - the zero-sum books of a session: where the heap reading went, to the byte.
 *
 * With present k's entry and return readings E_k and R_k, the session's first reading S and its last one L:
 *   startup  D = E_1 - S     its I = R_1 - E_1 (the first gap)
 *   frame    D_k = E_{k+1} - R_k, I_k = R_{k+1} - E_{k+1}, for k = 1 .. N-1
 *   shutdown D = L - R_N
 * Everything between S and L cancels, so sum D + sum I = L - S whatever is lost. Boundaries that were lost make one lump: its D is the
 * whole stretch's, it stands for as many frames as presents are missing.
 * A frame's D splits in three: its thread's scopes + the rest of its thread + the other threads; where the thread is not the
 * same at both ends, or not known, all of it is the others'.
 *
 * Promise: sums are 128 bits wide inside, so the identity holds for any 64-bit readings, INT64_MIN and UINT64_MAX included; what is
 * published is clamped, and says so. Boundaries may come in any order from several threads; each number counts once.
 * Times in ticks, memory in bytes. No allocation. Callers: capture.c, publish.c. One thread.
 */
#ifndef M6_BOOKS_H
#define M6_BOOKS_H

#include <stdint.h>

#include "reservoir.h"

#define M6_BOUNDARIES_WAITING 128 /* boundaries held back because an earlier number has not arrived */
#define M6_BOUNDARY_PATIENCE 8   /* polls that they wait: longer than another ring's hole is waited for */
#define M6_CAUSES 3

struct m6_point { /* readings at one moment: the process's */
  uint64_t clock;
  int64_t live;
  uint64_t allocs; /* 48 bits, wrapping */
};
struct m6_cause {
  uint32_t node, calls;
  uint64_t time, allocs;
};
struct m6_boundary {
  uint64_t number;   /* of the present in this session, from 1 */
  uint64_t previous; /* number of the same thread's boundary before it; 0 = none */
  struct m6_point entry, ret;
  __int128 d_scopes, d_thread; /* of that thread since `previous` */
  struct m6_cause cause[M6_CAUSES];
  uint32_t polls;
};

/* What one applied boundary ended: a frame, a lump, or startup (frames 0). */
struct m6_ended {
  uint64_t number, frames;
  struct m6_point mark, done;
  uint64_t interval; /* entry to entry; 0 for startup */
  uint64_t gap;      /* of the present that ended it */
  __int128 d, i;
  uint64_t allocs;
  int64_t live; /* process reading at the return */
  const struct m6_cause *cause;
};

struct m6_account { /* one of startup, frame, shutdown */
  uint64_t count, time_sum, time_max, allocs;
  __int128 d, i, d_max;
};
struct m6_books {
  struct m6_point start;
  struct m6_boundary last; /* number 0: none yet */
  uint64_t first_entry;    /* clock of the first present that is known */
  uint64_t first_number;
  struct m6_account startup, frame;
  __int128 d_scopes, d_thread_rest, d_others;
  uint64_t recorded;    /* boundaries that arrived */
  uint64_t late;        /* boundaries that came after their place, or twice */
  struct m6_reservoir times; /* of frames that are no lumps, in ticks */
  struct m6_rng rng;
  struct m6_boundary waiting[M6_BOUNDARIES_WAITING];
  uint32_t waiting_count;
  void (*ended)(void *, const struct m6_ended *);
  void *ended_arg;
};

void m6_books_open(struct m6_books *b, struct m6_point start, void (*ended)(void *, const struct m6_ended *), void *arg);
void m6_books_boundary(struct m6_books *b, const struct m6_boundary *new);
/* End of a poll: boundaries that waited long enough are applied over what is missing; all of them when `all`. */
void m6_books_poll(struct m6_books *b, int all);

/* The books closed at `now`, with `presents` (exact, from the stream's counter). Changes nothing. */
struct m6_closing {
  struct m6_account startup, frame, shutdown;
  __int128 d_scopes, d_thread_rest, d_others;
  __int128 sum_d, sum_i;
  uint64_t presents, frames_lost; /* lost: presents whose boundary never arrived */
  int closed; /* the sums and the split agree */
};
struct m6_closing m6_books_close(const struct m6_books *b, struct m6_point now, uint64_t presents);

/* Clamped to int64; *saturated is set when it had to be. */
int64_t m6_clamp(__int128 v, uint32_t *saturated);

#endif
