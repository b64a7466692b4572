/* seqlock.h - one writer publishes a block of memory to any number of readers, none of whom can disturb it.
 *
 * Promise: a reader either copies a block that the writer finished, or learns that it must try again (Lamport's
 * sequence lock). The writer never waits. Blocks are copied word by word with relaxed accesses, so the race is defined
 * and ThreadSanitizer can check it (Boehm 2012, "Can seqlocks get along with programming language memory models?").
 * A writer that dies in the middle leaves the sequence odd: readers give up after their tries and say so.
 * Signal-safety: reading is; writing is for one thread.
 */
#ifndef M6_SEQLOCK_H
#define M6_SEQLOCK_H

#include <stddef.h>

#include "order.h"

/* n: bytes, a multiple of 8; both sides 8-aligned. */
static inline void m6_seqlock_write(uint64_t *seq, uint64_t *to, const uint64_t *from, size_t n)
{
  uint64_t s = m6_peek(seq) & ~1ull;
  m6_poke(seq, s + 1);
  m6_fence_release();
  for (size_t i = 0; i < n / 8; i++) m6_poke(&to[i], from[i]);
  m6_publish(seq, s + 2);
}

/* 1 = copied; 0 = the writer was at it. */
static inline int m6_seqlock_try_read(uint64_t *seq, uint64_t *to, uint64_t *from, size_t n)
{
  uint64_t before = m6_observe(seq);
  if (before & 1) return 0;
  for (size_t i = 0; i < n / 8; i++) to[i] = m6_peek(&from[i]);
  m6_fence_acquire();
  return m6_peek(seq) == before;
}

#endif
