/* bounds.h - what bounds the session that runs, in one place for the loop: budgets in use, the governor, the whole-heap
 * measurement, the chain of sessions.
 *
 * Promise: nothing here costs more than a few reads at each publication. Callers: outlets.c (before and after a
 * snapshot), session.c, control.c. One thread.
 */
#ifndef M6_BOUNDS_H
#define M6_BOUNDS_H

#include "chain.h"
#include "governor.h"
#include "heap.h"
#include "lifecycle.h"

struct m6_bounds {
  struct m6_governor governor;
  struct m6_heap heap;
  struct m6_chain chain;
  struct m6_snap_govern snap;                   /* what the next snapshot says */
  uint64_t start_ns, heap_at_ns, held_until_ns; /* held: how long at which level is in the snapshot */
  uint64_t shim_before, shim_ns;                /* of the links that are closed; of all, at the last look */
  int priced, heap_told, lives_on;              /* lives_on: the session ended, the target did not */
  uint32_t site_interval;                       /* that was asked for; set before a session begins */
  uint32_t sessions;                            /* that this collector has begun */
};

/* A session begins: budgets count from zero, the governor from the level that was asked for. Chained ones go on: see
 * chain.h. */
void m6_bounds_begin(struct m6_bounds *b, uint32_t level, uint32_t sessions_wanted, uint64_t now_ns);
/* Before a snapshot of this image: what is used, what was measured. */
void m6_bounds_fill(struct m6_bounds *b, const struct m6_image *i, int final, uint64_t now_ns);
/* After it: was it too much? `spent.shim` is the snapshot's own, `priced`: the price was known. Gives M6_EVENT_BUDGET
 * or M6_EVENT_NOTHING; a step has been taken then, and the segment says so. */
enum m6_life_event m6_bounds_look(struct m6_bounds *b, struct m6_image *i, struct m6_spent spent, int priced);
/* The kernel's side has no more than this level any longer, though more was asked for. */
void m6_bounds_refused(struct m6_bounds *b, struct m6_image *i, uint32_t level, uint64_t now_ns);
/* The links of this session's chain: joined to the next; closed for good. 0, -1 or an errno as m6_chain_join. */
int m6_bounds_join(struct m6_bounds *b, struct m6_image *i);
void m6_bounds_end(struct m6_bounds *b, struct m6_image *i, uint32_t reason);

/* Caps of a capture that was just opened. */
void m6_capture_bounds(struct m6_capture *c);

#endif
