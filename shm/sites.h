/* sites.h - sampled allocations: what a thread's ring says of one, where its stack lies, which of them are alive. And
 * mappings.
 *
 * The shim samples bytes as a Poisson process (preload/poisson.h): a block of s bytes is taken with probability
 * 1 - exp(-s / interval). What it writes:
 *   - a record in the thread's own ring, M6_REC_SITE. It stands where the thread was: between the marks and dones that
 *     it lies between. There is no room for readings in it, and nobody needs them: with every allocation recorded a
 *     ring is full in less than a millisecond, so that one record must do.
 *         word 0 = the sample's key; word 1 = usable size (48 bits) and granules << 48; word 2 = frame << 32 |
 *         interval; label = innermost open scope (flags: whether there is one); depth = 1 + first granule of its stack,
 *         0: there was no room
 *   - its stack, into granules of the pool: registers, then the words from the stack pointer upwards that may be
 *     addresses: an unwinder needs return addresses and saved frame pointers, and large frames are full of other
 *     things. For each 64 words of stack one word whose bits say which of them follow;
 *   - its key, into the table of live samples;
 *   - when the block is given back, its key out of the table, then M6_REC_FREE: clock, word 1 = key, count = frame.
 * A key is an address and a number: (address / 8) << 19 | number of the sample. Two blocks that have one address at
 * different times have different keys, so whichever ring is read first, a death is never another block's. The bit
 * between the two, M6_SITE_HELD, is 0 in every key; in the table it says that the block's end is being tried (a
 * realloc, an munmap), which may fail.
 *
 * Who may write what, without a lock and without waiting:
 *   granules  bit set = taken. A thread takes a run of bits of one word by compare-and-swap (a few tries, then it goes without),
 *             the collector clears it when it has copied the stack. A thread that dies in between leaves its bits set;
 *             the collector clears what was taken for M6_GRANULE_LOST_S without a record.
 *   table     a bucket of M6_SITE_BUCKET words by the address; 0 = free. Insert: compare-and-swap 0 -> key in the first word that is
 *             free. Remove: compare-and-swap key -> 0. One address is in one word at most, but for held ones, because a
 *             block is removed before it is given back and inserted after it was got; so words of different blocks
 *             never need to agree on anything. What may fail to end is held instead: key -> key | M6_SITE_HELD, which
 *             is nobody's address and keeps the word; then -> key, or -> 0. A new session takes everything out, word by
 *             word.
 * Mappings that the program makes itself (mmap, mremap, the break) are recorded each of them, and what of them goes
 * (munmap, mremap, the break): ranges of whole pages, which need not be those that were mapped. They are rare, and
 * threads that have no ring map as well, so all of them use one ring, `maps_ring`, which has many producers (ring.h):
 *   - M6_REC_MAP: clock, after the call; word 1 = address, with granules in its low 12 bits and the number of pages >>
 *     32 in its high 16; word 2 = frame << 32 | the number's low half; label, flags and depth as above;
 *   - M6_REC_UNMAP: clock, before the call, which has succeeded by then; words 1 and 2 as above.
 * What is mapped is said before the call returns, so before anybody can give it back: in this ring no end comes before
 * its birth. It may come after the birth of what got the place next; then its clock is the earlier one. So the range
 * that was mapped last holds a place, and an end ends what is older than itself: all that a reader needs, and nothing
 * needs to be undone when a call fails. A mapping takes over what its place held, as MAP_FIXED does.
 * A death that could not be recorded is counted; the collector then looks into the table for who is still there. Losses
 * cost resolution, never truth. The collector copies, then checks.
 */
#ifndef M6_SITES_H
#define M6_SITES_H

#include "layout.h"
#include "order.h"

/* flags of M6_REC_SITE and M6_REC_MAP */
#define M6_SITE_SCOPED 1u     /* label is a scope that was open */
#define M6_SITE_UNTRACKED 2u  /* its bucket was full: its death will not be known */
#define M6_SITE_PLACED 2u     /* of a mapping: where the caller said (MAP_FIXED), and so of no bytes in the books */
#define M6_SITE_LOADS_SHIFT 2 /* above: the low bits of header.loads, for whoever looks up what was mapped then */
#define M6_SITE_LOADS_MASK 63u

#define M6_SITE_NUMBER_BITS 18
#define M6_SITE_HELD (1ull << M6_SITE_NUMBER_BITS)
#define M6_SITE_ADDRESS_SHIFT (M6_SITE_NUMBER_BITS + 1)

static inline uint64_t m6_site_key_of(uint64_t address, uint64_t number)
{
  return address >> 3 << M6_SITE_ADDRESS_SHIFT | (number & (M6_SITE_HELD - 1));
}
static inline uint64_t m6_site_address(uint64_t key) { return key >> M6_SITE_ADDRESS_SHIFT << 3; }
/* Bytes that a sample stands for at most: s / (1 - exp(-s / interval)) <= s + interval; all of it, where every block is
 * one. */
static inline uint64_t m6_site_stands_for(uint64_t bytes, uint32_t interval)
{
  return interval > 1 ? bytes + interval : bytes;
}
/* Only such addresses have a key that leads back to them, and is not 0. */
static inline int m6_site_can_key(uint64_t address) { return address >> 48 == 0 && (address & 7) == 0 && address != 0; }

/* Neighbours in memory go to different buckets, and so do blocks that lie a power of two apart (Fibonacci hashing,
 * Knuth, TAOCP 6.4). */
static inline uint32_t m6_site_bucket(uint64_t address)
{
  return (uint32_t)((address >> 3) * 0x9e3779b97f4a7c15ull >> 32) % (M6_SITE_TABLE / M6_SITE_BUCKET) * M6_SITE_BUCKET;
}

struct m6_site_head {                     /* one page */
  uint64_t taken[M6_STACK_GRANULES / 64]; /* both sides */
  uint64_t taken_free[16 - M6_STACK_GRANULES / 64];
  uint64_t samples; /* taken; also the next one's number. From here on: shared adds by the shim */
  uint64_t dropped; /* that found no room in their thread's ring, or whose thread has none */
  uint64_t stackless;
  uint64_t untracked;
  uint64_t deaths_lost;
  uint64_t maps; /* mappings that were made */
  uint64_t maps_dropped;
  uint64_t dropped_bytes; /* what the dropped ones stand for, at most: m6_site_stands_for */
  uint64_t maps_dropped_bytes;
  uint64_t unmaps_dropped; /* ends of ranges that found no room */
  uint64_t unmaps_dropped_bytes;
  uint64_t counters_free[5];
  struct m6_ring_head maps_ring; /* its records: M6_OFF_MAPS; claimed only where they are there */
  uint8_t page_free[4096 - 256 - 128];
};

struct m6_site_stack { /* what a stack's first granule begins with */
  uint64_t ip, sp, bp, bx, r12, r13, r14, r15;
  uint32_t bytes; /* of stack that is described, from sp upwards; a multiple of 8 */
  uint32_t words; /* that follow, the words of bits included */
};
/* Can it be an address of user space? Small numbers, floating-point numbers, colours and text are not. */
static inline int m6_site_may_be_address(uint64_t word) { return word - 65536 < (1ull << 47) - 65536; }

static inline struct m6_site_head *m6_site_head(void *segment)
{
  return (struct m6_site_head *)((char *)segment + M6_OFF_SITE_HEAD);
}
static inline uint64_t *m6_site_table(void *segment) { return (uint64_t *)((char *)segment + M6_OFF_SITE_TABLE); }
static inline struct m6_record *m6_site_maps(void *segment)
{
  return (struct m6_record *)((char *)segment + M6_OFF_MAPS);
}
static inline struct m6_site_stack *m6_site_stack(void *segment, uint32_t granule)
{
  return (struct m6_site_stack *)((char *)segment + M6_OFF_STACKS + granule * M6_STACK_GRANULE);
}

struct m6_map_range { /* what words 1 and 2 of M6_REC_MAP and M6_REC_UNMAP say */
  uint64_t address, bytes;
  uint32_t frame, granules;
};
static inline uint64_t m6_map_word1(const struct m6_map_range *r)
{
  return r->address | r->granules | r->bytes / M6_PAGE >> 32 << 48;
}
static inline uint64_t m6_map_word2(const struct m6_map_range *r)
{
  return (uint64_t)r->frame << 32 | (uint32_t)(r->bytes / M6_PAGE);
}
static inline struct m6_map_range m6_map_range(uint64_t word1, uint64_t word2)
{
  uint64_t pages = word1 >> 48 << 32 | (uint32_t)word2, address = word1 << 16 >> 16 & ~(uint64_t)(M6_PAGE - 1);
  uint64_t most = (1ull << 48) - address;
  return (struct m6_map_range){address, pages < most / M6_PAGE ? pages * M6_PAGE : most, (uint32_t)(word2 >> 32),
                               (uint32_t)word1 & (M6_PAGE - 1)};
}

/* A run of n (1..64) clear bits in word, as a mask; 0 when there is none. */
static inline uint64_t m6_site_run(uint64_t word, uint32_t n)
{
  uint64_t starts = ~word;
  for (uint32_t have = 1; have < n;) {
    uint32_t step = n - have < have ? n - have : have;
    starts &= starts >> step;
    have += step;
  }
  if (!starts) return 0;
  return (n == 64 ? ~0ull : (1ull << n) - 1) << __builtin_ctzll(starts);
}

_Static_assert(sizeof(struct m6_site_head) == M6_PAGE, "the head is one page");
_Static_assert(sizeof(struct m6_site_stack) == 72, "registers and lengths");
M6_AT(struct m6_site_head, samples, 128);
M6_AT(struct m6_site_head, maps_ring, 256);

#endif
