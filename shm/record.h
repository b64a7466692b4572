/* record.h - what a ring holds: fixed records of 32 bytes, each a set of absolute readings.
 *
 * Promise: a record never carries a difference; whoever reads makes the differences, so a lost record costs resolution
 * and never truth. The last word is written last and carries the stamp that says "committed" (see ring.h).
 *
 *   word 0  clock    ticks of the session's clock (header.clock_kind)
 *   word 1  live     heap reading, bytes; signed, stored as two's complement
 *   word 2  count    low 48 bits: cumulative allocations; high 16 bits: caller's stack pointer / 16 (MARK and DONE)
 *   word 3  stamp 16 | type 8 | flags 8 | label 16 | depth 16     (from the high end to the low)
 *
 * A frame boundary takes four records in a row, committed by the first one's stamp:
 *   FRAME          clock and the PROCESS's readings on entry to the present; label = stream, depth = number of units
 *   CONTINUED  1   clock and the PROCESS's readings on return
 *   CONTINUED  2   word 0 = this stream's present number, from 1; the presenting THREAD's readings on entry
 *   CONTINUED  3   word 0 = 0; the presenting THREAD's readings on return
 */
#ifndef M6_RECORD_H
#define M6_RECORD_H

#include <stdint.h>

struct m6_record {
  uint64_t clock;
  uint64_t live;
  uint64_t count;
  uint64_t word;
};
_Static_assert(sizeof(struct m6_record) == 32, "a record is half a cache line");

enum m6_record_type {
  M6_REC_NONE = 0,
  M6_REC_MARK = 1,      /* a scope opens: label, depth = open scopes before it */
  M6_REC_DONE = 2,      /* scopes close: depth = open scopes that remain; normally one closes */
  M6_REC_FRAME = 3,     /* a frame boundary, four units */
  M6_REC_CONTINUED = 4, /* what follows the first unit of a frame */
  M6_REC_START = 5,     /* a thread takes the ring: label unused, count = its tid */
  M6_REC_END = 6,       /* the thread gives it back */
  M6_REC_LOSS = 7,      /* count = records that did not fit since the last one that did */
  M6_REC_SITE = 8,      /* a sampled allocation; its words are of its own, without a clock: sites.h */
  M6_REC_FREE = 9,      /* it was given back */
  M6_REC_MAP = 10,      /* a mapping, and the end of a range; in the mappings' own ring, clock first: sites.h */
  M6_REC_UNMAP = 11,
};

/* flags */
#define M6_FLAG_ABANDONED 1 /* DONE: scopes above this one were left by longjmp, a throw or a missing done */
#define M6_FLAG_EXPLICIT 2  /* FRAME: made by mach6_frame(), not by a present */

#define M6_FRAME_UNITS 4

#define M6_COUNT_BITS 48
#define M6_COUNT_MASK ((1ull << M6_COUNT_BITS) - 1)

static inline uint64_t m6_word(unsigned stamp, unsigned type, unsigned flags, unsigned label, unsigned depth)
{
  return (uint64_t)(stamp & 0xffff) << 48 | (uint64_t)(type & 0xff) << 40 | (uint64_t)(flags & 0xff) << 32 |
         (uint64_t)(label & 0xffff) << 16 | (depth & 0xffff);
}
static inline unsigned m6_word_stamp(uint64_t w) { return (unsigned)(w >> 48); }
static inline unsigned m6_word_type(uint64_t w) { return (unsigned)(w >> 40) & 0xff; }
static inline unsigned m6_word_flags(uint64_t w) { return (unsigned)(w >> 32) & 0xff; }
static inline unsigned m6_word_label(uint64_t w) { return (unsigned)(w >> 16) & 0xffff; }
static inline unsigned m6_word_depth(uint64_t w) { return (unsigned)w & 0xffff; }

#endif
