/* site_queue.c - see site_queue.h. */
#include "site_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAD_WORDS (sizeof(struct m6_site_stack) / 8)
#define STACK_WORDS (M6_SITE_GRANULES_MAX * M6_STACK_GRANULE / 8) /* of the longest */

/* ---- memory
 * -----------------------------------------------------------------------------------------------------------------------
 * */

static struct {
  struct m6_site_queued *list;
  uint64_t *stacks;
} spare;

static void *touched(size_t bytes)
{
  void *p = NULL;
  if (posix_memalign(&p, M6_PAGE, bytes)) return NULL;
  if (madvise(p, bytes, MADV_POPULATE_WRITE)) memset(p, 0, bytes);
  return p;
}

void m6_site_queue_prepare(uint32_t interval)
{
  if (interval != 1 || spare.list) return;
  spare.list = touched(M6_SITE_QUEUE_MAX_EVERY * sizeof *spare.list);
  spare.stacks = touched(M6_SITE_QUEUE_BYTES_EVERY);
}

void m6_site_queue_prepared_free(void)
{
  free(spare.list);
  free(spare.stacks);
  memset(&spare, 0, sizeof spare);
}

int m6_site_queue_open(struct m6_site_queue *q, uint32_t interval)
{
  int every = interval == 1;
  memset(q, 0, sizeof *q);
  q->list_max = every ? M6_SITE_QUEUE_MAX_EVERY : M6_SITE_QUEUE_MAX;
  q->stacks_max = (every ? M6_SITE_QUEUE_BYTES_EVERY : M6_SITE_QUEUE_BYTES) / 8;
  if (every && spare.list && spare.stacks) {
    q->list = spare.list;
    q->stacks = spare.stacks;
    memset(&spare, 0, sizeof spare);
  } else {
    q->list = malloc(q->list_max * sizeof *q->list);
    q->stacks = malloc(q->stacks_max * sizeof *q->stacks);
  }
  return q->list && q->stacks ? 0 : ENOMEM;
}

void m6_site_queue_close(struct m6_site_queue *q)
{
  if (q->list_max == M6_SITE_QUEUE_MAX_EVERY && !spare.list && q->list && q->stacks) {
    spare.list = q->list;
    spare.stacks = q->stacks;
  } else {
    free(q->list);
    free(q->stacks);
  }
  q->list = NULL;
  q->stacks = NULL;
  q->count = q->words = 0;
}

/* ---- in and out
 * ---------------------------------------------------------------------------------------------------------------------
 * */

int m6_site_queue_full(const struct m6_site_queue *q) { return q->count == q->list_max; }
int m6_site_queue_stacks_full(const struct m6_site_queue *q) { return q->stacks_max - q->words < STACK_WORDS; }

struct m6_site_queued *m6_site_queue_add(struct m6_site_queue *q, const struct m6_site_queued *is)
{
  struct m6_site_queued *to = &q->list[(q->first + q->count++) % q->list_max];
  *to = *is;
  return to;
}

void m6_site_queue_done(struct m6_site_queue *q)
{
  q->first = (q->first + 1) % q->list_max;
  if (--q->count) return;
  if (q->words) memset(q->alike, 0, sizeof q->alike);
  q->words = 0;
}

/* ---- stacks
 * -------------------------------------------------------------------------------------------------------------------------
 * */

static uint64_t hash_of(const uint64_t *word, uint32_t words)
{
  uint64_t hash = words;
  for (uint32_t i = 0; i < words; i++) hash = m6_site_mix(hash, word[i]);
  return hash;
}

static uint32_t code_bit(uint64_t address)
{
  return (uint32_t)((address / M6_PAGE * 0x9e3779b97f4a7c15ull) >> (64 - M6_SITE_CODE_BITS));
}

/* The last stack, at `at`, without what is of no use; one that is not what a shim writes becomes one that is none. */
static void slim(struct m6_site_queue *q, uint32_t at)
{
  struct m6_site_stack *head = (struct m6_site_stack *)(q->stacks + at);
  uint64_t *in = q->stacks + at + HEAD_WORDS, *end = q->stacks + q->words, *out = in, *saved = &head->bp;
  for (int i = 0; i < 6; i++) /* bp to r15 */
    if (saved[i] - head->sp >= head->bytes) saved[i] = 0;
  for (uint32_t i = 0; i < head->bytes / 8; i += 64) {
    if (in == end) goto none;
    uint64_t bits = *in++, *kept = out++, seen = 0;
    for (; bits; bits &= bits - 1) {
      if (in == end) goto none;
      uint64_t word = *in++;
      uint32_t bit = code_bit(word - 1); /* a return address may be the first one behind */
      if (word - head->sp >= head->bytes && !(q->code[bit / 64] >> bit % 64 & 1)) continue;
      *out++ = word;
      seen |= bits & -bits;
    }
    *kept = seen;
  }
  q->words = (uint32_t)(out - q->stacks);
  head->words = (uint32_t)(out - q->stacks) - at - (uint32_t)HEAD_WORDS;
  return;
none:
  head->words = 0;
  q->words = at + (uint32_t)HEAD_WORDS;
}

/* The last words are a stack; where one of the same content begins, which may be an earlier one. */
static uint32_t alike(struct m6_site_queue *q, uint32_t at)
{
  const uint64_t *word = q->stacks + at;
  uint32_t words = q->words - at, *before = &q->alike[hash_of(word, words) % M6_SITE_ALIKE];
  if (*before && *before - 1 + words <= at && !memcmp(q->stacks + *before - 1, word, words * 8)) {
    q->words = at;
    return *before - 1;
  }
  *before = at + 1;
  return at;
}

void m6_site_queue_stack(struct m6_site_queue *q, struct m6_site_queued *to, const struct m6_site_stack *from,
                         uint32_t granules)
{
  struct m6_site_stack head;
  memcpy(&head, from, sizeof head);
  uint32_t most = granules * M6_STACK_GRANULE - (uint32_t)sizeof head, at = q->words;
  if (head.words > most / 8 || head.bytes > M6_SITE_STACK_BYTES || head.bytes % 8) return;
  if (HEAD_WORDS + head.words > q->stacks_max - at) return;
  memcpy(q->stacks + at, &head, sizeof head);
  memcpy(q->stacks + at + HEAD_WORDS, from + 1, head.words * 8);
  q->words += (uint32_t)HEAD_WORDS + head.words;
  if (q->slim) slim(q, at);
  to->stack_at = alike(q, at);
}

uint64_t m6_site_queue_hash(const struct m6_site_queue *q, const struct m6_site_queued *of)
{
  const struct m6_site_stack *head = (const struct m6_site_stack *)(q->stacks + of->stack_at);
  return hash_of(q->stacks + of->stack_at, (uint32_t)HEAD_WORDS + head->words);
}

int m6_site_queue_unpack(const struct m6_site_queue *q, const struct m6_site_queued *of, uint64_t *to,
                         struct m6_user_state *state)
{
  struct m6_site_stack head;
  memcpy(&head, q->stacks + of->stack_at, sizeof head);
  const uint64_t *at = q->stacks + of->stack_at + HEAD_WORDS, *end = at + head.words;
  uint32_t words = head.bytes / 8;
  for (uint32_t i = 0; i < words; i += 64) {
    if (at == end) return 0;
    uint64_t bits = *at++;
    for (uint32_t k = 0; k < 64 && i + k < words; k++) {
      int there = bits >> k & 1;
      if (there && at == end) return 0;
      to[i + k] = there ? *at++ : 0;
    }
  }
  *state = (struct m6_user_state){.ip = head.ip,
                                  .sp = head.sp,
                                  .bp = head.bp,
                                  .bx = head.bx,
                                  .r12 = head.r12,
                                  .r13 = head.r13,
                                  .r14 = head.r14,
                                  .r15 = head.r15,
                                  .bytes = head.bytes,
                                  .stack = (const unsigned char *)to};
  return 1;
}

/* ---- what is code
 * -------------------------------------------------------------------------------------------------------------------
 * */

static void code_range(void *arg, uint64_t start, uint64_t end, int made)
{
  struct m6_site_queue *q = arg;
  if (made) q->slim = 0;
  for (uint64_t page = start; q->slim && page < end; page += M6_PAGE) {
    uint32_t bit = code_bit(page);
    q->code[bit / 64] |= 1ull << bit % 64;
  }
}

void m6_site_queue_code(struct m6_site_queue *q, const struct m6_symbols *y)
{
  memset(q->code, 0, sizeof q->code);
  q->slim = y && q->list_max == M6_SITE_QUEUE_MAX_EVERY;
  if (q->slim) m6_symbols_code(y, code_range, q);
}
