/* sample.pml - the filter and the table of sampled blocks (sample.c, shm/sites.h) as a model for spin: two threads that allocate, hand
 * blocks on, free them, resize them and fail to, an allocator that gives an address again as soon as it is free, a collector that
 * reads their rings, each of which may lag by two records; and a session that ends and another that begins while they do it
 * (m6_site_forget), after which each call may still be in the middle of what it began before.
 *
 *   spin -a sample.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan        (and with spin -DONE_SESSION)
 *
 * What is modelled: every word that is shared is read and written by steps of its own, a compare-and-swap and an atomic addition are one.
 * All addresses have one hash and one bucket, the worst case; the filter's byte saturates at 2 instead of 255, and stays there. A block
 * goes from thread to thread by the program's own synchronisation, so what was written before is seen by whoever has it.
 *
 * What is asserted: a free of a sampled block is never missed: when the address goes back to the allocator its death is written; what a
 * free takes out of the table is the very block that is freed, and nothing when that is no sample; the collector ends each block by its
 * own death, though another has its address by then and the rings come in the wrong order; at the end, when it has asked the table who
 * is there, it holds those that live. A block whose resizing failed is what it was: a sample, whatever came into its bucket meanwhile.
 * What a former session's samples leave in the table never stays: of those nobody sees the end.
 *
 * Planted faults, each of which must be found: -DINSERT_LATE, -DREMOVE_LATE, -DFILTER_BIT, -DFILTER_PLAIN, -DGATE_LATE, -DINSERT_PLAIN,
 * -DADDRESS_KEYS, -DRESIZE_TAKES, -DHELD_FOUND, -DFORGET_WIPES, -DNO_SECOND_LOOK.
 */
#define ADDRESSES 3
#define SAMPLES 3 /* in all */
#ifdef RESIZE_TAKES
#define ONE_SESSION
#endif
#ifdef ONE_SESSION /* no other begins; then each thread can go further */
#define STEPS 3 /* of each thread */
#define LAST 1
#else
#define STEPS 2
#define LAST 2
#endif
#define WORDS 2   /* of the bucket: with three samples alive it is full */
#define NONE 7

bool used[ADDRESSES];
byte now[ADDRESSES]; /* the sample that lives there, as who knows all knows it; 0: none, or untracked */
bool died[SAMPLES + 1];
byte table[WORDS]; /* keys: 4 * number + address; 0 is free */
byte filter, numbers, over;
bool gate;
byte collecting = 1, session = 1; /* collecting: 0 between the two */
byte made_in[SAMPLES + 1];        /* the session that a sample is of */
byte box = NONE; /* a block on its way to another thread */
mtype = { site, death };
chan ring0 = [2] of { mtype, byte };
chan ring1 = [2] of { mtype, byte };

#define KEY(n, a) (4 * (n) + (a))
#define ADDRESS(key) ((key) % 4)
#define NUMBER(key) ((key) % 128 / 4)
#define HELD 128
/* Nobody promises anything about what a former session sampled. */
#define FORMER(n) (n != 0 && made_in[n] != session)
#define SAY(what, key)                                                                                                 \
  if                                                                                                                   \
  :: me == 0 -> ring0!what(key)                                                                                        \
  :: else -> ring1!what(key)                                                                                           \
  fi

#if defined FILTER_BIT /* no count: one leaves, and the others are gone with it */
#define FILTER_UP filter = 1
#define FILTER_DOWN filter = 0
#elif defined FILTER_PLAIN
#define FILTER_UP seen = filter; filter = seen + 1
#define FILTER_DOWN seen = filter; filter = (seen > 0 -> seen - 1 : 0)
#else
#define FILTER_UP atomic { filter = (filter == 2 -> 2 : filter + 1) }
#define FILTER_DOWN atomic { filter = (filter == 2 || filter == 0 -> filter : filter - 1) }
#endif

/* key into the first word that is free; `ok` tells whether there was one, and its session is still on. */
inline insert(key)
{
  i = 0; ok = false;
  FILTER_UP;
  do
  :: i == WORDS || ok -> break
  :: else ->
    if
    :: table[i] != 0
#ifdef INSERT_PLAIN
    :: table[i] == 0 -> table[i] = key; ok = true
#else
    :: table[i] == 0 ->
      atomic {
        if /* it was free when it was looked at */
        :: table[i] == 0 -> table[i] = key; ok = true
        :: else
        fi
      }
#endif
    fi;
    i++
  od;
  if
  :: ok ->
#ifndef GATE_LATE
    gate = true;
#endif
#ifndef NO_SECOND_LOOK
    if
    :: collecting == here
    :: else -> ok = false; withdraw(key, 0)
    fi
#else
    skip
#endif
  :: else -> FILTER_DOWN
  fi
}

/* The word that is `key` becomes `to`, if it is still there: `found`. */
inline turn(from, to)
{
  i = 0; found = false;
  do
  :: i == WORDS || found -> break
  :: else ->
    atomic {
      if
      :: table[i] == (from) -> table[i] = (to); found = true
      :: else
      fi
    }
    i++
  od
}
inline withdraw(key, to)
{
  turn(key, to);
  if
  :: found -> FILTER_DOWN
  :: else
  fi
}

/* What is in the table of address a: `key`, 0 for nothing. Its word becomes `mark` more, or free. */
inline take(a, mark)
{
  i = 0; key = 0;
  if
  :: gate && filter > 0 ->
    do
    :: i == WORDS || key != 0 -> break
    :: else ->
      seen = table[i];
      if
#ifdef HELD_FOUND
      :: seen != 0 && ADDRESS(seen) == a ->
#else
      :: seen != 0 && seen < HELD && ADDRESS(seen) == a ->
#endif
        atomic {
          if
          :: table[i] == seen -> table[i] = (mark != 0 -> seen | mark : 0); key = seen
          :: else
          fi
        }
      :: else
      fi;
      i++
    od;
    if
    :: key != 0 && mark == 0 -> FILTER_DOWN
    :: else
    fi
  :: else
  fi
}
/* It is the very block's, or nothing where that is no sample, or a former session's. */
#define RIGHT (NUMBER(key) == now[mine] || (key == 0 && FORMER(now[mine])))

/* The real free: from here on the address may be anybody's. */
inline give_back(a)
{
  atomic {
    assert(now[a] == 0 || died[now[a]] || FORMER(now[a]) || here == 0);
    now[a] = 0;
    used[a] = false
  }
}

inline allocate()
{
  atomic { /* the real malloc */
    mine = (!used[0] -> 0 : (!used[1] -> 1 : 2)); /* the lowest: at once again */
    used[mine] = true
  }
  if
  :: atomic { here != 0 && numbers < SAMPLES -> numbers++; key = KEY(numbers, mine); made_in[numbers] = here } /* its turn */
#ifdef INSERT_LATE
    now[mine] = NUMBER(key); /* the block is the program's, and may go on */
    atomic { if :: box == NONE -> box = mine; mine = NONE :: else fi }
    insert(key);
#else
    insert(key);
    if
    :: ok -> now[mine] = NUMBER(key)
    :: else /* untracked */
    fi;
#endif
    SAY(site, key)
#ifdef GATE_LATE
    ; atomic { if :: box == NONE -> box = mine; mine = NONE :: else fi }
    gate = true
#endif
  :: true /* not this one */
  fi
}

inline release()
{
#ifdef REMOVE_LATE
  atomic {
    expect = now[mine];
    used[mine] = false; now[mine] = 0
  }
  take(mine, 0);
  assert(NUMBER(key) == expect || here == 0 || FORMER(expect));
#else
  if
  :: here != 0 -> take(mine, 0); assert(RIGHT)
  :: else /* nobody looks */
  fi;
#endif
  if
  :: key != 0 -> died[NUMBER(key)] = true; SAY(death, key)
  :: else
  fi;
#ifndef REMOVE_LATE
  give_back(mine);
#endif
  mine = NONE
}

/* realloc: the sample is held before, and goes, or is let go, after. */
inline resize()
{
#ifdef RESIZE_TAKES
  take(mine, 0);
#else
  take(mine, HELD);
#endif
  assert(RIGHT);
  if
  :: true -> /* it fails */
    if
    :: key == 0
#ifdef RESIZE_TAKES
    :: key != 0 ->
      insert(key);
      if
      :: ok || FORMER(NUMBER(key))
      :: else -> SAY(death, key)
      fi
#else
    :: key != 0 -> turn(key | HELD, key); assert(found || FORMER(NUMBER(key)))
#endif
    fi
  :: true -> /* it moves: the place is anybody's from here on */
    atomic { now[mine] = 0; used[mine] = false }
    if
    :: key == 0
    :: key != 0 ->
      withdraw(key | HELD, 0);
      if
      :: found -> died[NUMBER(key)] = true; SAY(death, key)
      :: else
      fi
    fi;
    mine = NONE
  fi
}

#define DONE d_step { steps++; key = 0; i = 0; seen = 0; expect = 0; ok = false; found = false; here = 0 } /* what is left of it would be states */

proctype thread(byte me)
{
  byte mine = NONE, key, i, seen, steps, expect, here; /* here: the session that a call found on */
  bool ok, found;
  do
  :: steps == STEPS -> break
  :: atomic { steps < STEPS && mine == NONE -> here = collecting } allocate(); DONE
  :: atomic { steps < STEPS && mine != NONE -> here = collecting } release(); DONE
  :: atomic { steps < STEPS && mine != NONE && collecting -> here = collecting } resize(); DONE
  :: atomic { steps < STEPS && mine != NONE && box == NONE -> box = mine; mine = NONE; steps++ }
  :: atomic { steps < STEPS && mine == NONE && box != NONE -> mine = box; box = NONE; steps++ }
  od;
  atomic { over++; mine = NONE; steps = 0 }
}

/* A session ends; what it left is forgotten; another one begins. */
proctype control()
{
  byte i, seen;
  bool out;
  collecting = 0;
  atomic { gate = false; session = 2 }
  do
  :: i == WORDS -> break
  :: else ->
    seen = table[i];
    do
    :: seen == 0 -> break
    :: else ->
      atomic {
        if
        :: table[i] == seen -> table[i] = 0; out = true
        :: else -> seen = table[i]
        fi
      }
      if
      :: out -> out = false; seen = 0;
#ifndef FORGET_WIPES
        FILTER_DOWN
#endif
      :: else
      fi
    od;
    i++
  od;
#ifdef FORGET_WIPES
  filter = 0;
#endif
  collecting = 2
}

#ifdef ADDRESS_KEYS /* no number in a key */
#define ID(key) (ADDRESS(key) + 1)
#else
#define ID(key) NUMBER(key)
#endif
byte alive[SAMPLES + 1], early[SAMPLES + 1]; /* by id: the sample that the collector believes in */

inline born()
{
  if
  :: early[ID(key)] != 0 -> assert(early[ID(key)] == NUMBER(key)); early[ID(key)] = 0
  :: else -> alive[ID(key)] = NUMBER(key)
  fi
}
inline ended()
{
  if
  :: alive[ID(key)] != 0 -> assert(alive[ID(key)] == NUMBER(key)); alive[ID(key)] = 0
  :: else -> early[ID(key)] = NUMBER(key)
  fi
}

/* The table is asked: what is not there has ended. */
#define THERE(n, w) (table[w] != 0 && NUMBER(table[w]) == n)
#define LIVES(n) (now[0] == n || now[1] == n || now[2] == n)

init
{
  byte key, n;
  atomic { run thread(0); run thread(1) }
#ifndef ONE_SESSION
  run control();
#endif
  do
  :: atomic { ring0?site(key) -> born(); key = 0 }
  :: atomic { ring0?death(key) -> ended(); key = 0 }
  :: atomic { ring1?site(key) -> born(); key = 0 }
  :: atomic { ring1?death(key) -> ended(); key = 0 }
  :: atomic { over == 2 && collecting == LAST && empty(ring0) && empty(ring1) -> break }
  od;
  n = 1;
  do
  :: n > SAMPLES -> break
  :: else ->
    assert(early[n] == 0);
    assert(!died[n] || alive[n] == 0);
    assert(!LIVES(n) || made_in[n] != LAST || (alive[ID(KEY(n, 0))] == n && (THERE(n, 0) || THERE(n, 1))));
    assert(LIVES(n) || !(THERE(n, 0) || THERE(n, 1)));
    n++
  od
}
