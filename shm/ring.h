/* ring.h - one thread's single-producer single-consumer ring of fixed records.
 *
 * The producer never waits and may be interrupted by a signal handler that produces into the same ring; the consumer is
 * another process. There is no published head: each record's last word carries a stamp, the low 16 bits of its lap
 * number (index / capacity + 1), and is stored last, with release. The argument:
 *
 *   1. Claiming is one instruction (m6_own_fetch_add), so a handler claims a different index than the code it
 *      interrupts.
 *   2. A record is readable when its stamp is the one that its index must have. An older lap's stamp means "not yet".
 *      (16 bits: a consumer would have to sleep through 65,536 laps, and the producer never laps it.)
 *   3. The producer claims only while fewer than capacity - M6_RING_MARGIN records are unread, read from `consumed`
 *      with acquire; the margin pays for handlers that claim between the check and the claim.
 *   4. A producer that dies or is cancelled between claim and commit leaves a hole. The consumer passes a hole when a
 *      later record has been committed and the hole has stood for M6_HOLE_PATIENCE of its own polls, or when the target
 *      is dead, and counts it as lost.
 *   5. Frames take several units: all are written, and the first unit's stamp goes last; units 1.. are stamped by plain
 *      release stores before it.
 * Checked by ring.pml (spin) and tests/ under ThreadSanitizer.
 *
 * Ring heads and ring memory are apart: each side passes both, at its own addresses.
 */
#ifndef M6_RING_H
#define M6_RING_H

#include "layout.h"
#include "order.h"

#define M6_RING_MARGIN 16u
#define M6_HOLE_PATIENCE 5u

/* A producer's private view; lives in thread-local storage. */
struct m6_producer {
  struct m6_ring_head *head;
  struct m6_record *records;
  uint64_t limit; /* claims below this index are known to fit */
  uint32_t mask;  /* capacity - 1 */
  uint32_t shift; /* log2(capacity) */
};

static inline unsigned m6_ring_stamp(uint64_t index, uint32_t shift)
{
  return (unsigned)((index >> shift) + 1) & 0xffff;
}

static inline void m6_producer_init(struct m6_producer *p, struct m6_ring_head *head, struct m6_record *records,
                                    uint32_t capacity)
{
  p->head = head;
  p->records = records;
  p->mask = capacity - 1;
  p->shift = (uint32_t)__builtin_ctz(capacity);
  p->limit = m6_observe(&head->consumed) + capacity - M6_RING_MARGIN;
}

/* Is there room for n (<= M6_FRAME_UNITS) records? Looks at the consumer's line only when the cached limit is
 * reached. */
static inline int m6_ring_room(struct m6_producer *p, unsigned n)
{
  uint64_t next = m6_peek(&p->head->claimed);
  if (m6_likely(next + n <= p->limit)) return 1;
  p->limit = m6_observe(&p->head->consumed) + p->mask + 1 - M6_RING_MARGIN;
  return next + n <= p->limit;
}

/* Claim n records in a row; gives the first index. Only after m6_ring_room said yes. */
static inline uint64_t m6_ring_claim(struct m6_producer *p, unsigned n)
{
  return m6_own_fetch_add(&p->head->claimed, n);
}

/* The same for a ring with many producers (the mappings': sites.h): claims one record where there is room. The index is
 * claimed by compare-and-swap, after a few that others won it is given up. Such a producer has no limit of its own, and
 * needs no margin. */
#define M6_RING_TRIES 16
static inline int m6_ring_claim_shared(struct m6_ring_head *head, uint32_t capacity, uint64_t *index)
{
  *index = m6_peek(&head->claimed);
  for (int i = 0; i < M6_RING_TRIES; i++) {
    if ((int64_t)(*index - m6_observe(&head->consumed)) >= (int64_t)capacity) return 0;
    if (m6_claim(&head->claimed, index, *index + 1)) return 1;
  }
  return 0;
}

/* Write one claimed record and commit it. */
static inline void m6_ring_commit(struct m6_producer *p, uint64_t index, uint64_t clock, uint64_t live, uint64_t count,
                                  unsigned type, unsigned flags, unsigned label, unsigned depth)
{
  struct m6_record *r = &p->records[index & p->mask];
  m6_poke(&r->clock, clock);
  m6_poke(&r->live, live);
  m6_poke(&r->count, count);
  m6_publish(&r->word, m6_word(m6_ring_stamp(index, p->shift), type, flags, label, depth));
}

enum m6_ring_read { M6_RING_EMPTY, M6_RING_RECORD, M6_RING_HOLE };

/* Read record `index` into *out (a copy; the caller checks its contents). Does not advance. HOLE: claimed,
 * uncommitted. */
static inline enum m6_ring_read m6_ring_read(struct m6_ring_head *head, struct m6_record *records, uint32_t capacity,
                                             uint64_t index, struct m6_record *out)
{
  struct m6_record *r = &records[index & (capacity - 1)];
  uint64_t word = m6_observe(&r->word);
  if (m6_word_stamp(word) != m6_ring_stamp(index, (uint32_t)__builtin_ctz(capacity)))
    return m6_peek(&head->claimed) > index ? M6_RING_HOLE : M6_RING_EMPTY;
  out->clock = m6_peek(&r->clock);
  out->live = m6_peek(&r->live);
  out->count = m6_peek(&r->count);
  out->word = word;
  return M6_RING_RECORD;
}

/* Give everything before `index` back to the producer. */
static inline void m6_ring_release(struct m6_ring_head *head, uint64_t index) { m6_publish(&head->consumed, index); }

#endif
