/* sample.pml - the filter and the table of sampled blocks (sample.c, shm/sites.h) as a model for spin: two threads that allocate, hand
 * blocks on, free them and fail to resize them, an allocator that gives an address again as soon as it is free, and a collector that
 * reads their rings, each of which may lag by two records.
 *
 *   spin -a sample.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * What is modelled: every word that is shared is read and written by steps of its own, a compare-and-swap and an atomic addition are one.
 * All addresses have one hash and one bucket, the worst case; the filter's byte saturates at 2 instead of 255, and stays there. A block
 * goes from thread to thread by the program's own synchronisation, so what was written before is seen by whoever has it.
 *
 * What is asserted: a free of a sampled block is never missed: when the address goes back to the allocator its death is written; what a
 * free takes out of the table is the very block that is freed, and nothing when that is no sample; the collector ends each block by its
 * own death, though another has its address by then and the rings come in the wrong order; at the end it holds those that live.
 *
 * Planted faults, each of which must be found: -DINSERT_LATE, -DREMOVE_LATE, -DFILTER_BIT, -DFILTER_PLAIN, -DGATE_LATE, -DINSERT_PLAIN,
 * -DADDRESS_KEYS.
 */
#define ADDRESSES 3
#define SAMPLES 3 /* in all */
#define STEPS 3   /* of each thread */
#define WORDS 2   /* of the bucket: with three samples alive it is full */
#define NONE 7

bool used[ADDRESSES];
byte now[ADDRESSES]; /* the sample that lives there, as who knows all knows it; 0: none, or untracked */
bool died[SAMPLES + 1];
byte table[WORDS]; /* keys: 4 * number + address; 0 is free */
byte filter, numbers, over;
bool gate;
byte box = NONE; /* a block on its way to another thread */
mtype = { site, death };
chan ring0 = [2] of { mtype, byte };
chan ring1 = [2] of { mtype, byte };

#define KEY(n, a) (4 * (n) + (a))
#define ADDRESS(key) ((key) % 4)
#define NUMBER(key) ((key) / 4)
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

/* key into the first word that is free; `ok` tells whether there was one. */
inline insert(key)
{
  i = 0; ok = false;
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
    FILTER_UP;
#ifndef GATE_LATE
    gate = true
#endif
  :: else
  fi
}

/* What is in the table of address a: `key`, 0 for nothing. */
inline take(a)
{
  i = 0; key = 0;
  if
  :: gate && filter > 0 ->
    do
    :: i == WORDS || key != 0 -> break
    :: else ->
      seen = table[i];
      if
      :: seen != 0 && ADDRESS(seen) == a ->
        atomic {
          if
          :: table[i] == seen -> table[i] = 0; key = seen
          :: else
          fi
        }
      :: else
      fi;
      i++
    od;
    if
    :: key != 0 -> FILTER_DOWN
    :: else
    fi
  :: else
  fi
}

/* The real free: from here on the address may be anybody's. */
inline give_back(a)
{
  atomic {
    assert(now[a] == 0 || died[now[a]]);
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
  :: atomic { numbers < SAMPLES -> numbers++; key = KEY(numbers, mine) } /* its turn to be sampled */
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
  take(mine);
  assert(NUMBER(key) == expect);
#else
  take(mine);
  assert(NUMBER(key) == now[mine]);
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

/* realloc, which fails: the sample goes before, and comes back after. */
inline resize_in_vain()
{
  take(mine);
  assert(NUMBER(key) == now[mine]);
  if
  :: key != 0 ->
    insert(key);
    if
    :: ok
    :: else -> now[mine] = 0; died[NUMBER(key)] = true; SAY(death, key) /* no room any more: from now on it is none */
    fi
  :: else
  fi
}

#define DONE d_step { steps++; key = 0; i = 0; seen = 0; expect = 0; ok = false } /* what is left of it would be states */

proctype thread(byte me)
{
  byte mine = NONE, key, i, seen, steps, expect;
  bool ok;
  do
  :: steps == STEPS -> break
  :: steps < STEPS && mine == NONE -> allocate(); DONE
  :: steps < STEPS && mine != NONE -> release(); DONE
  :: steps < STEPS && mine != NONE -> resize_in_vain(); DONE
  :: atomic { steps < STEPS && mine != NONE && box == NONE -> box = mine; mine = NONE; steps++ }
  :: atomic { steps < STEPS && mine == NONE && box != NONE -> mine = box; box = NONE; steps++ }
  od;
  atomic { over++; mine = NONE; steps = 0 }
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

init
{
  byte key, n;
  atomic { run thread(0); run thread(1) }
  do
  :: atomic { ring0?site(key) -> born(); key = 0 }
  :: atomic { ring0?death(key) -> ended(); key = 0 }
  :: atomic { ring1?site(key) -> born(); key = 0 }
  :: atomic { ring1?death(key) -> ended(); key = 0 }
  :: atomic { over == 2 && empty(ring0) && empty(ring1) -> break }
  od;
  n = 1;
  do
  :: n > SAMPLES -> break
  :: else ->
    assert(early[n] == 0);
    assert(!died[n] || alive[n] == 0);
    n++
  od
}
