/* scope.h - the scopes of one thread, rebuilt from its records.
 *
 * A thread's records come in program order from one ring. Marks push, dones pop; both carry the number of open scopes,
 * so that after any loss the stack is put right by depth: what is missing is remembered by a placeholder, what is too
 * much is closed as lost. A scope that was open across a loss is uncertain (it may have ended and another begun in its
 * place): it never enters the sums, it is counted in its node's `lost`.
 *
 * Promise: whatever comes, no scope is counted with a mark or a done that is not its own; bounded by
 * M6_SCOPE_DEPTH_MAX; durations are never negative. No malloc a record. Callers: capture.c. Calls: tree.h.
 */
#ifndef M6_SCOPE_H
#define M6_SCOPE_H

#include "tree.h"

struct m6_open { /* one open scope */
  uint64_t clock, live, allocs;
  uint64_t child_time, child_allocs;
  uint64_t frame; /* the thread's frame number in which it was opened */
  uint32_t node;  /* 0: a placeholder, its mark was lost */
  uint8_t uncertain;
  uint8_t top_level; /* directly under the frame: its D is part of the frame's d_scopes */
};

/* A thread while it holds a ring. */
struct m6_thread {
  struct m6_tree *tree;
  uint32_t top;  /* of its private tree */
  uint32_t node; /* its own thread node in the settled tree while that is not shared; 0 = none */
  uint32_t tid;
  uint32_t name;         /* label of its name */
  uint32_t presenting;   /* it made the main stream's last present */
  uint32_t first_top;    /* settled top of scopes that were marked before its first present, once there was one */
  uint32_t counted;      /* it is in its thread node's count */
  uint32_t height, room; /* of the stack */
  struct m6_open *stack;
  uint64_t frame;                   /* grows at each main boundary of this thread */
  __int128 d_scopes;                /* D of the top-level scopes inside the current frame */
  uint64_t top_time;                /* time of them, too */
  uint64_t frame_clock;             /* when the current frame began: its last main present's return */
  uint64_t number;                  /* its last main present's number; 0 = none */
  int64_t present_live;             /* its own reading at that present's return */
  uint64_t first_clock, last_clock; /* of its records since it was last settled into its thread node */
  uint64_t first_live, last_live, first_allocs, last_allocs;
  uint64_t named_ns;      /* when its name was last looked up */
  uint64_t sample_at;     /* clock of its next CPU sample that waits; UINT64_MAX = none */
  struct m6_thread *next; /* in a list of threads that ended */
};

struct m6_thread *m6_thread_new(struct m6_tree *tree, uint32_t tid); /* NULL: no memory */
void m6_thread_free(struct m6_thread *s);                            /* and its private tree */

void m6_scope_mark(struct m6_thread *s, uint32_t label, uint32_t depth, uint64_t clock, uint64_t live, uint64_t count);
void m6_scope_done(struct m6_thread *s, uint32_t depth, int abandoned, uint64_t clock, uint64_t live, uint64_t count);
/* The CPU was seen in this thread, for so many periods: that falls to the innermost open scope that is known. */
void m6_scope_sample(struct m6_thread *s, uint32_t weight);
/* Records are missing here. */
void m6_scope_loss(struct m6_thread *s);
/* The thread is gone, or the session is over: what is open is closed as abandoned. */
void m6_scope_end(struct m6_thread *s);

#endif
