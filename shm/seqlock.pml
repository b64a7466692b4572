/* seqlock.pml - seqlock.h as a model for spin: one writer, which may die in the middle and be followed by another, and a
 * reader that may be anywhere.
 *
 *   spin -a seqlock.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * What is modelled: the sequence word, a block of two words that are written and read in any order, the fences as what they
 * forbid. Without the writer's release fence its odd sequence may become visible after words of the block; without the reader's
 * acquire fence its second look at the sequence may come before the words.
 *
 * What is asserted: a block that the reader accepts is one that a writer finished, never a mixture, and never older than the
 * one accepted before.
 *
 * Planted faults, each of which must be found: -DNO_ODD, -DNO_RELEASE_FENCE, -DNO_ACQUIRE_FENCE, -DNO_SECOND_LOOK,
 * -DODD_ACCEPTED, -DEARLY_END.
 */
#define WRITES 3
#define READS 3

byte seq;
byte block[2];        /* each word holds the number of the write that it is from */
bool finished[WRITES + 1] = true;

#define BLOCK(v)                                                                                                       \
  if                                                                                                                   \
  :: block[0] = v; block[1] = v                                                                                        \
  :: block[1] = v; block[0] = v                                                                                        \
  fi

active proctype writer()
{
  byte s, v = 1;
  d_step { finished[1] = false; finished[2] = false; finished[3] = false }
  do
  :: v > WRITES -> break
  :: v <= WRITES ->
    s = seq - seq % 2;
#if defined NO_ODD
    BLOCK(v);
#elif defined NO_RELEASE_FENCE
    if /* the odd sequence becomes visible before, between or after the words */
    :: seq = s + 1; BLOCK(v)
    :: block[0] = v; seq = s + 1; block[1] = v
    :: block[1] = v; seq = s + 1; block[0] = v
    :: BLOCK(v); seq = s + 1
    fi;
#elif defined EARLY_END
    seq = s + 1;
    block[0] = v;
    atomic { finished[v] = true; seq = s + 2 };
    block[1] = v;
#else
    seq = s + 1;
    if /* it may die here, or between the words; another comes after it */
    :: BLOCK(v)
    :: block[0] = v; v++; goto died
    :: v++; goto died
    fi;
#endif
#ifndef EARLY_END
    atomic { finished[v] = true; seq = s + 2 };
#endif
    v++;
died:
    skip
  od
}

#ifdef ODD_ACCEPTED
#define MAY_READ true
#else
#define MAY_READ (before % 2 == 0)
#endif
#define READ_BLOCK                                                                                                     \
  if                                                                                                                   \
  :: x = block[0]; y = block[1]                                                                                        \
  :: y = block[1]; x = block[0]                                                                                        \
  fi

active proctype reader()
{
  byte before, after, x, y, last, tries = READS;
  do
  :: tries == 0 -> break /* it gives up and says so */
  :: tries > 0 ->
    tries--;
    before = seq;
    if
    :: !MAY_READ
    :: MAY_READ ->
#if defined NO_SECOND_LOOK
       READ_BLOCK;
       after = before;
#elif defined NO_ACQUIRE_FENCE
       if
       :: READ_BLOCK; after = seq
       :: after = seq; READ_BLOCK
       :: x = block[0]; after = seq; y = block[1]
       fi;
#else
       READ_BLOCK;
       after = seq;
#endif
       if
       :: after == before ->
          assert(x == y);
          assert(finished[x]);
          assert(x >= last);
          last = x
       :: else
       fi
    fi
  od
}
