/* lifecycle.pml - lifecycle.c's table as a model for spin, between a target that grants, a user, time, and a shim that hears late.
 *
 *   spin -a lifecycle.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * What is modelled: the collector's machine, one transition at a time; the control line (want, session); a shim that looks at it whenever
 * it likes, starts at most as many sessions as were granted, and may die or lose its collector at any moment; a user who says on and off at
 * any moment.
 *
 * What is asserted: the shim never collects without a grant, nor more sessions than it; when the machine is inert or granted again after
 * an end, the shim does not collect, nothing is left unflushed, and the end has a name; an end of a pending start leaves nothing wished for;
 * the machine counts the sessions that the shim counts.
 *
 * Planted faults, each of which must be found: -DNO_GRANT, -DNO_CANCEL, -DNO_STOP, -DNO_FLUSH, -DNO_NAME, -DGRANT_FOREVER.
 */
#define GRANTS 2
#define WISHES 3

mtype = {inert, granted, pending, collecting, ended};
mtype state = inert;
mtype = {none, by_off, by_ttl, by_exit, by_lost};
mtype end = none;

/* the control line: written by the collector */
bool want;
byte session;
/* the shim's word: written by the target */
byte allowed = GRANTS, started;
bool shim_collects, shim_lost, alive = true;
byte seen;

byte records;     /* 1: there is something that is not drained */
bool cycled;      /* the machine has come back from an end */
byte own_started; /* what the machine counts */
byte wishes = WISHES;

#ifdef GRANT_FOREVER
#define MAY true
#else
#define MAY (started < allowed)
#endif

#ifdef NO_CANCEL
#define CANCEL skip
#else
#define CANCEL want = false
#endif
#ifdef NO_STOP
#define STOP skip
#else
#define STOP want = false
#endif
#ifdef NO_NAME
#define NAME skip
#else
#define NAME end = why
#endif
#ifdef NO_FLUSH
#define FLUSH skip
#define HEARD true
#else
#define FLUSH records = 0
#define HEARD (!shim_collects || !alive)
#endif

active proctype collector()
{
  mtype why = none;
  do
  :: state == inert && alive ->
     atomic {
       if
#ifdef NO_GRANT
       :: state = granted
#else
       :: MAY -> own_started = started; state = granted
       :: !MAY -> break
#endif
       fi
     }
  :: state == inert && !alive -> break
  :: state == granted && !alive -> state = inert
  :: state == granted && alive && wishes > 0 -> /* on */
     atomic { assert(own_started < allowed); wishes--; end = none; session++; want = true; state = pending }
  :: state == granted && wishes == 0 -> break
  :: atomic { state == pending && shim_collects -> own_started++; state = collecting }
  :: state == pending || state == collecting ->
     if
     :: why = by_off
     :: why = by_ttl
     :: !alive -> why = by_exit
     :: shim_lost -> why = by_lost
     fi;
     atomic { /* the shim is told; then the flush waits until it has heard, or is dead */
       if
       :: state == pending -> CANCEL
       :: state == collecting -> STOP
       fi;
       NAME;
       state = ended
     }
  :: atomic {
       state == ended && HEARD ->
       FLUSH;
       state = inert;
       cycled = true;
       assert(end != none);
       assert(records == 0);
       assert(!want);
       assert(!shim_collects || !alive)
     }
  od
}

active proctype shim()
{
  do
  :: !alive -> break
  :: atomic { alive && !shim_collects && want && session != seen ->
       seen = session;
       if
       :: MAY ->
          started++;
          shim_collects = true;
          shim_lost = false;
          assert(started <= allowed);
          assert(state == pending || state == ended)
       :: !MAY
       fi
     }
  :: shim_collects -> records = 1
  :: atomic { shim_collects && !want -> shim_collects = false }
  :: atomic { shim_collects -> shim_collects = false; shim_lost = true } /* it missed the heartbeat */
  :: alive = false /* killed, or gone */
  :: atomic { state == inert && cycled && !shim_collects -> break } /* it plays on, and nobody comes any more */
  od
}
