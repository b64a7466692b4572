/* lifecycle.h - the life of a session, as one table: from inert, over granted, pending and collecting, to an end that
 * has a name.
 *
 *   inert -> granted -> pending -> collecting -> ended -> inert
 *
 * Promise: nothing collects without a grant; a start that is still pending is cancelled by any end; one grant starts
 * one session; whatever ends a session, it is told to the shim, what there is is flushed, and the machine is inert
 * again with the end's name in `end`. An event that a state does not know changes nothing and asks for nothing. The
 * model is lifecycle.pml.
 * A dump is part of flushing (or is written on demand, while it collects), and no state of its own; an analysis is of
 * what was flushed, by another process, after (tools/mach6/analysis.h).
 * Pure: time is an argument (CLOCK_MONOTONIC, ns), no system call, no allocation. Callers: session.c. One thread.
 */
#ifndef M6_LIFECYCLE_H
#define M6_LIFECYCLE_H

#include <stdint.h>

#include "../shm/layout.h"

enum m6_life { M6_LIFE_INERT, M6_LIFE_GRANTED, M6_LIFE_PENDING, M6_LIFE_COLLECTING, M6_LIFE_ENDED, M6_LIFE_STATES };

enum m6_life_event {
  M6_EVENT_NOTHING,
  M6_EVENT_GRANT,   /* the target's grant allows a session, or one more */
  M6_EVENT_REFUSE,  /* it allows none */
  M6_EVENT_ON,      /* somebody wants one */
  M6_EVENT_STARTED, /* the shim collects */
  M6_EVENT_NEXT,    /* this session's share is done; the grant allows the next, which begins where this one stands */
  M6_EVENT_OFF,     /* the ends, in the order of enum m6_end */
  M6_EVENT_TTL,
  M6_EVENT_EXIT,
  M6_EVENT_EXEC,
  M6_EVENT_LOST, /* the shim missed the collector's heartbeat */
  M6_EVENT_FAILURE,
  M6_EVENT_BUDGET,  /* mach6 costs more than it may, and no level is left below */
  M6_EVENT_FLUSHED, /* the shim is inert, its rings are drained, what was to be written is written */
  M6_EVENTS
};

/* What a transition asks its caller to do. */
#define M6_DO_ASK 1u    /* write the wish for a session to the control line */
#define M6_DO_CANCEL 2u /* take it back */
#define M6_DO_STOP 4u   /* tell the shim that the session is over */
#define M6_DO_FLUSH 8u  /* drain what is left, write the last snapshot, then say M6_EVENT_FLUSHED */
#define M6_DO_JOIN 16u  /* close the books at the last boundary, and open the next session's there */

struct m6_transition {
  uint8_t from, event, to, todo;
};
/* The table itself, for whoever wants to see all of it (tests, the model's check). */
const struct m6_transition *m6_lifecycle_table(unsigned *count);

struct m6_lifecycle {
  enum m6_life state;
  enum m6_end end;           /* how the last session ended; M6_END_NONE while one is wanted or runs */
  int began;                 /* the last session did collect */
  uint32_t allowed, started; /* the grant, and how much of it is used */
  uint64_t ttl_ns;           /* bounds the wait for a start, and the session, each by itself */
  uint64_t since_ns;         /* when it was asked for; when it began to collect */
};

void m6_lifecycle_init(struct m6_lifecycle *l, uint64_t ttl_ns);
/* The grant as the target says it now: feeds M6_EVENT_GRANT or M6_EVENT_REFUSE. */
void m6_lifecycle_grant(struct m6_lifecycle *l, uint32_t allowed, uint32_t started);
/* One event, at a time; what is to be done: M6_DO_*, or 0. For M6_EVENT_STARTED the time is that of the session's first
 * moment. */
unsigned m6_lifecycle_event(struct m6_lifecycle *l, enum m6_life_event event, uint64_t now_ns);
/* Time passes: the TTL's end, when it has come. */
unsigned m6_lifecycle_tick(struct m6_lifecycle *l, uint64_t now_ns);
/* The event that an end is. */
enum m6_life_event m6_lifecycle_end(enum m6_end end);

const char *m6_life_name(enum m6_life state);

#endif
