/* site_queue.h - sampled allocations on their way from the segment to statistics: what their records say, and their
 * stacks, in the collector's own memory. The drain puts in, as fast as it can; who unwinds takes out, when there is
 * time.
 *
 * A stack is kept once for all that have the same. Where every allocation is a sample, so that there are many, what an
 * unwinder can make no use of is left out first: words that are neither of code nor of the stack itself (pointers to
 * what the function works on), of which no two stacks have the same. For that it has to know which pages are code;
 * until it does, and in programs that make code, all stays.
 *
 * Promise: memory is bounded, and of the larger kind of queue there is one that is touched in advance: a page's first
 * touch takes as long as ten records. Stacks are as foreign as what they were copied from. One thread. Callers:
 * site_side.c; outlets.c, of the memory.
 */
#ifndef M6_SITE_QUEUE_H
#define M6_SITE_QUEUE_H

#include "../shm/sites.h"
#include "kernel_samples.h"
#include "symbols.h"

#define M6_SITE_QUEUE_MAX 32768u
#define M6_SITE_QUEUE_BYTES (4u << 20) /* of stacks */
#define M6_SITE_QUEUE_MAX_EVERY 786432u
#define M6_SITE_QUEUE_BYTES_EVERY (48u << 20)

enum m6_site_what { M6_SITE_BORN, M6_SITE_DIED, M6_SITE_MAPPED, M6_SITE_UNMAPPED };
struct m6_site_queued {
  uint64_t key, bytes, clock; /* of mappings: their address, and when */
  uint32_t frame, interval, scope, flags;
  uint32_t what;     /* enum m6_site_what */
  uint32_t stack_at; /* in `stacks`: what m6_site_stack has, and the words that follow */
};
#define M6_SITE_STACKLESS UINT32_MAX

#define M6_SITE_ALIKE 4096u
#define M6_SITE_CODE_BITS 16u
struct m6_site_queue {
  struct m6_site_queued *list;
  uint64_t *stacks;
  uint32_t list_max, stacks_max;                 /* entries; words */
  uint32_t first, count, words;                  /* first: the next to be taken out */
  uint32_t alike[M6_SITE_ALIKE];                 /* 1 + where a stack begins, by a hash of all that it holds */
  int slim;                                      /* leave out what is of no use */
  uint64_t code[(1u << M6_SITE_CODE_BITS) / 64]; /* bits by a hash of the page: there may be code */
};

/* Before a session with this interval: memory for one queue, where it is the larger one. And after it. */
void m6_site_queue_prepare(uint32_t interval);
void m6_site_queue_prepared_free(void);
int m6_site_queue_open(struct m6_site_queue *q, uint32_t interval); /* 0 or ENOMEM */
void m6_site_queue_close(struct m6_site_queue *q);                  /* twice as well */

/* Is there room for one more? And for its stack, if need be. */
int m6_site_queue_full(const struct m6_site_queue *q);
int m6_site_queue_stacks_full(const struct m6_site_queue *q);
struct m6_site_queued *m6_site_queue_add(struct m6_site_queue *q, const struct m6_site_queued *is);
/* Foreign. Copies the stack of the one that was just added. */
void m6_site_queue_stack(struct m6_site_queue *q, struct m6_site_queued *to, const struct m6_site_stack *from,
                         uint32_t granules);
static inline struct m6_site_queued *m6_site_queue_next(struct m6_site_queue *q) { return &q->list[q->first]; }
void m6_site_queue_done(struct m6_site_queue *q); /* with the next one */

/* One more word into a hash. */
static inline uint64_t m6_site_mix(uint64_t hash, uint64_t word)
{
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}
uint64_t m6_site_queue_hash(const struct m6_site_queue *q, const struct m6_site_queued *of);
/* The stack as it was, with 0 for what can be no address; 0 when that is not what a shim writes. `to`:
 * M6_SITE_STACK_BYTES. */
int m6_site_queue_unpack(const struct m6_site_queue *q, const struct m6_site_queued *of, uint64_t *to,
                         struct m6_user_state *state);
/* Which pages are code, as it is known now; NULL: nothing is known. */
void m6_site_queue_code(struct m6_site_queue *q, const struct m6_symbols *y);

#endif
