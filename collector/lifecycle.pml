/* lifecycle.pml - lifecycle.c's table as a model for spin, between a target that grants, a user, time, and a shim that hears late.
 *
 *   spin -a lifecycle.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * What is modelled: the collector's machine, one transition at a time, with all the ends and with chains; the control line (want, session);
 * a shim that looks at it whenever it likes, starts at most as many sessions as were granted, and may miss its collector's heartbeat at any
 * moment; a target that may end, execute another program or have its segment spoiled at any moment; a collector that may be killed at any
 * moment, after which another comes, or none; a user who says on and off at any moment.
 *
 * What is asserted: the shim never collects without a grant, nor more sessions than it, chained ones among them; when the machine is inert
 * again after an end, the shim does not collect, nothing is left unflushed, and the end has a name; an end of a pending start leaves nothing
 * wished for; a chained session begins where the one before it was closed; who takes over a session that runs begins none; nothing
 * is read from a segment that is spoiled; the machine counts no session that the shim does not, but for the one of a chain that it has not
 * heard of yet.
 *
 * Planted faults, each of which must be found: -DNO_GRANT, -DNO_CANCEL, -DNO_STOP, -DNO_FLUSH, -DNO_NAME, -DGRANT_FOREVER, -DNEXT_FOREVER,
 * -DNEXT_BY_OWN_COUNT, -DNEXT_UNHEARD, -DNO_JOIN, -DNO_TAKEOVER, -DBLIND.
 */
#define GRANTS 2
#define WISHES 2
#define DEATHS 1

mtype = {inert, granted, pending, collecting, ended};
mtype state = inert;
mtype = {none, by_off, by_ttl, by_exit, by_exec, by_lost, by_failure, by_budget};
mtype end = none;

/* the control line: written by the collector */
bool want;
byte session;
/* the shim's word: written by the target */
byte allowed = GRANTS, started;
bool shim_collects, shim_lost;
byte seen;
bit boundary; /* its last frame's end: only whether that is the one that the collector knows */
/* the target */
bool alive = true, execed, broken;

bool records;     /* there is something that is not drained */
bit last;         /* the boundary that the collector drained last */
bool cycled;      /* the machine has come back from an end */
byte own_started; /* what the machine counts */
byte wishes = WISHES, deaths = DEATHS;
/* for the assertions alone */
byte ran;    /* sessions that were collected, by whomever */
bool joined; /* the last of them is one of a chain, of which the shim has not heard yet */
bool orphan; /* a collector has died, and what it wished for is still there */

#define RUNNING (shim_collects && started > 0)

#ifdef GRANT_FOREVER
#define MAY true
#else
#define MAY (started < allowed)
#endif
#ifdef NEXT_FOREVER
#define NEXT_MAY true
#else
#ifdef NEXT_BY_OWN_COUNT /* who takes over a session that ends in that moment, and begins another, has counted one too few */
#define NEXT_MAY (own_started < allowed)
#else
#define NEXT_MAY (own_started < allowed && started < allowed)
#endif
#endif
#ifdef NEXT_UNHEARD
#define NEXT_HEARD true
#else
#define NEXT_HEARD (seen == session) /* frames of this session were drained, and at each of them the shim looks */
#endif
#ifdef NO_JOIN
#define JOIN boundary
#else
#define JOIN last
#endif
#ifdef NO_TAKEOVER
#define TAKES_OVER false
#else
#define TAKES_OVER RUNNING
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
#define HEARD (!shim_collects || !alive || broken)
#endif
#ifdef BLIND
#define READABLE true
#else
#define READABLE (!broken)
#endif

active proctype collector()
{
  mtype why = none;
  do
  :: atomic { state == inert && alive && !broken ->
       if
#ifdef NO_GRANT
       :: state = granted
#else
       :: started - RUNNING < allowed -> own_started = started - RUNNING; state = granted /* that one is taken over */
       :: else -> break
#endif
       fi
     }
  :: state == inert && (!alive || broken) -> break
  :: state == granted && !alive -> state = inert
  :: state == granted && wishes == 0 -> break
  :: atomic { state == granted && alive && wishes > 0 -> /* on */
       assert(own_started < allowed);
       wishes--;
       end = none;
       if
       :: broken /* it cannot be written to; the next poll says so */
       :: !broken && TAKES_OVER -> want = true
       :: !broken && !TAKES_OVER ->
          if
          :: joined -> joined = false; ran-- /* the shim never heard of that one */
          :: else
          fi;
          session++;
          want = true;
          records = 0
       fi;
       orphan = false;
       state = pending
     }
  :: atomic { state == pending && READABLE && shim_collects -> own_started++; state = collecting }
  :: atomic { state == collecting && READABLE && records -> /* a poll */
       assert(!broken);
       records = 0;
       last = boundary
     }
  :: atomic { state == collecting && READABLE && NEXT_MAY && NEXT_HEARD -> /* this session's share is done */
       assert(JOIN == last);
       session++;
       own_started++;
       ran++;
       joined = true;
       assert(ran <= allowed)
     }
  :: state == pending || state == collecting ->
     if
     :: why = by_off
     :: why = by_ttl
     :: !alive && !execed -> why = by_exit
     :: !alive && execed -> why = by_exec
     :: shim_lost -> why = by_lost
     :: broken -> why = by_failure
     :: state == collecting -> why = by_budget
     fi;
     atomic { /* the shim is told; then the flush waits until it has heard, or cannot any more */
       if
       :: broken
       :: !broken && state == pending -> CANCEL
       :: !broken && state == collecting -> STOP
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
       assert(!want || broken);
       assert(!shim_collects || !alive || broken);
       assert(own_started <= started + joined)
     }
  :: atomic { state != inert && deaths > 0 -> /* it is killed; what it wrote stays */
       deaths--;
       orphan = true;
       state = inert;
       end = none;
       why = none;
       own_started = 0;
       cycled = true;
       if
       :: skip /* another comes */
       :: break
       fi
     }
  od
}

active proctype shim()
{
  do
  :: !alive -> break
  :: atomic { alive && !broken && !shim_collects && want && session != seen ->
       seen = session;
       if
       :: MAY ->
          started++;
          if
          :: joined -> joined = false /* it had missed the heartbeat before it heard of that one */
          :: else -> ran++; assert(state == pending || state == ended || orphan)
          fi;
          shim_collects = true;
          shim_lost = false;
          assert(started <= allowed);
          assert(ran <= allowed)
       :: !MAY
       :: orphan /* the heartbeat is an old one */
       fi
     }
  :: atomic { shim_collects && !broken && want && session != seen -> /* the next one of a chain */
       seen = session;
       assert(joined);
       joined = false;
       if
       :: MAY -> started++
       :: !MAY
       fi;
       assert(started <= allowed)
     }
  :: atomic { shim_collects && !broken -> records = 1; boundary = 1 - boundary }
  :: atomic { shim_collects && !broken && !want -> shim_collects = false }
  :: atomic { shim_collects -> shim_collects = false; shim_lost = true } /* it missed the heartbeat */
  :: atomic { alive -> alive = false } /* killed, or gone */
  :: atomic { alive -> alive = false; execed = true }
  :: atomic { alive && !broken -> broken = true } /* somebody cut its segment off, or wrote into it */
  :: atomic { state == inert && cycled && !shim_collects -> break } /* it plays on, and nobody comes any more */
  od
}
