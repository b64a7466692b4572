/* ring.pml - ring.h as a model for spin: a producer that a signal handler interrupts, and a consumer in another process.
 *
 *   spin -a ring.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 *
 * What is modelled: the room check with its cached limit, the claim (one instruction), the words of a record in any order, the stamp
 * after them, frames of two units that the first one's stamp commits, laps with stamps that wrap, the margin, a producer
 * that leaves between claim and commit (dies, is cancelled, or the handler jumps out) and a next one that goes on with the
 * same ring, a consumer that reads word by word and gives room back when it likes.
 * A release store and the acquire load that sees it are program order here; everything that they do not order is chosen freely.
 *
 * What is asserted: no record is read stale, torn or twice; every index is read or passed exactly once; and at the end
 * taken + passed + refused = produced. Spin's own check for invalid end states says that the consumer never gets stuck.
 *
 * An assumption, and what keeps it true: the consumer passes a hole only when its claimer has left it. M6_HOLE_PATIENCE polls stand for
 * that; -DIMPATIENT shows that without it a late commit can tear a record of the next lap.
 *
 * Planted faults, each of which must be found: -DCOMMIT_FIRST, -DMARGIN=0, -DIMPATIENT, -DNO_STAMP, -DRELEASE_EARLY, -DFRAME_FIRST, -DNO_PASS.
 */
#define CAP 4
#ifndef MARGIN
#define MARGIN 2 /* one level of handlers, two units each */
#endif
#define STAMPS 3 /* stamps are lap numbers modulo this; 65,536 in ring.h */
#define MAIN_TRIES 3
#define HANDLER_TRIES 2

#define ONE 0
#define FRAME 1
#define CONTINUED 2
#define WORD(i, type) ((((i) / CAP + 1) % STAMPS) * 4 + (type))
#define STAMPED(i) (word[(i) % CAP] / 4 == ((i) / CAP + 1) % STAMPS)
#define EMPTY 255 /* no stamp at all */
#define NEVER 0 /* where a producer leaves a record: not at all, after the claim, after a frame's second unit */
#define CLAIMED 1
#define HALF 2
#define PLACE(i) ((i) % CAP)

byte claimed, consumed;
byte limit = CAP - MARGIN;    /* the producer's cached one, shared with its handlers */
byte word[CAP] = EMPTY;       /* stamp and type: one word */
byte clock[CAP], live[CAP];   /* the other words: each must hold its index */
bool abandoned[CAP];               /* its claimer will never commit it */
bool inside;                  /* the handler runs, and what it interrupted stands still */
byte producing = 2;           /* producers that have not ended */
byte produced, refused;       /* in units */

#define GO (handler || !inside) /* may this level take its next step? */

/* One record's words in either order, then its stamp (or, as a planted fault, before them). */
#define WORDS(i)                                                                                                       \
  if                                                                                                                   \
  :: atomic { GO -> clock[PLACE(i)] = i }; atomic { GO -> live[PLACE(i)] = i }                                         \
  :: atomic { GO -> live[PLACE(i)] = i }; atomic { GO -> clock[PLACE(i)] = i }                                         \
  fi
#define STAMP(i, type) atomic { GO -> word[PLACE(i)] = WORD(i, type) }
#ifdef COMMIT_FIRST
#define COMMIT(i, type) STAMP(i, type); WORDS(i)
#else
#define COMMIT(i, type) WORDS(i); STAMP(i, type)
#endif

proctype producer(bool handler; byte tries)
{
  byte index, units, next, seen, stop;
  do
  :: tries == 0 -> break
  :: tries > 0 ->
    /* m6_ring_room, for a record or a frame; a handler begins by stopping what it interrupts */
    atomic {
      !inside -> inside = handler;
      tries--;
      if
      :: units = 1
      :: units = 2
      fi;
      produced = produced + units;
      next = claimed
    };
    if
    :: atomic { GO && next + units <= limit }
    :: atomic { GO && next + units > limit -> seen = consumed };
       atomic { GO -> limit = seen + CAP - MARGIN };
       if
       :: atomic { GO && next + units <= limit }
       :: atomic { GO && next + units > limit -> refused = refused + units; goto over }
       fi
    fi;
    /* m6_ring_claim; and perhaps it will leave the record as it is, at one of these points */
    atomic {
      GO -> index = claimed;
      claimed = claimed + units;
      if
      :: stop = NEVER
      :: stop = CLAIMED
      :: units == 2 -> stop = HALF
      fi
    };
    if
    :: stop == CLAIMED -> skip
    :: stop != CLAIMED && units == 1 -> COMMIT(index, ONE)
#ifdef FRAME_FIRST
    :: stop != CLAIMED && units == 2 -> COMMIT(index, FRAME); COMMIT(index + 1, CONTINUED)
#else
    :: stop != CLAIMED && units == 2 -> COMMIT(index + 1, CONTINUED);
       if
       :: stop == NEVER -> COMMIT(index, FRAME)
       :: else
       fi
#endif
    fi;
over:
    atomic {
      GO ->
      if
      :: stop != NEVER ->
         abandoned[PLACE(index)] = true;
         if
         :: units == 2 && stop == CLAIMED -> abandoned[PLACE(index + 1)] = true
         :: else
         fi
      :: else
      fi;
      if
      :: handler -> inside = false
      :: else
      fi;
      index = 0; next = 0; seen = 0; units = 0; stop = NEVER /* one state, not many */
    }
  od;
  producing--
}

/* May the consumer pass `at`? Claimed, uncommitted, and a later one has been committed or nobody will come. */
#define LATER(i) ((i) < claimed && STAMPED(i))
#define FOLLOWED (LATER(at + 1) || LATER(at + 2) || LATER(at + 3) || producing == 0)
#if defined NO_PASS
#define HOLE false
#elif defined IMPATIENT
#define HOLE (claimed > at && !STAMPED(at) && FOLLOWED)
#else
#define HOLE (claimed > at && !STAMPED(at) && FOLLOWED && abandoned[PLACE(at)])
#endif

active proctype consumer()
{
  byte at, type, x, y, taken, passed;
  do
#ifdef NO_STAMP
  :: atomic { claimed > at -> type = word[PLACE(at)] % 4 };
#else
  :: atomic { STAMPED(at) -> type = word[PLACE(at)] % 4 };
#endif
#ifdef RELEASE_EARLY
    consumed = at + 1 + (type == FRAME);
#endif
    x = clock[PLACE(at)];
    y = live[PLACE(at)];
    assert(x == at && y == at);
    if
    :: type == FRAME ->
       x = clock[PLACE(at + 1)];
       y = live[PLACE(at + 1)];
       assert(x == at + 1 && y == at + 1);
       taken = taken + 2;
       at = at + 2
    :: type == CONTINUED -> passed++; at++ /* its frame was a hole */
    :: else -> taken++; at++
    fi;
    atomic {
      type = 0; x = 0; y = 0;
      if
      :: consumed = at
      :: skip
      fi
    }
  :: atomic { HOLE -> passed++; abandoned[PLACE(at)] = false; at++; consumed = at }
  :: atomic { producing == 0 && at == claimed -> break }
  od;
  assert(taken + passed + refused == produced)
}

init
{
  atomic { run producer(false, MAIN_TRIES); run producer(true, HANDLER_TRIES) }
}
