/* test_site_queue - sampled allocations on their way: all come out in their order, whatever the queue has gone through; a stack comes out as
 * it went in, once for all that are alike; of a slim one what is code or of the stack itself is left, and what no shim writes is none.
 */
/* links: collector/site_queue.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/site_queue.h"

#define CODE 0x555555554000ull
#define SP 0x7ffc00001000ull
#define HEAP 0x602000000000ull
#define WORDS 200u

static uint64_t code_end = CODE + 0x3000;
static int made;
void m6_symbols_code(const struct m6_symbols *y, void (*each)(void *, uint64_t, uint64_t, int), void *arg)
{
  (void)y;
  each(arg, CODE, code_end, made);
}

static struct m6_site_queue q;
static struct {
  struct m6_site_stack head;
  uint64_t word[WORDS + WORDS / 64 + 1];
} stack;

/* As preload/sample.c packs it. */
static void pack(const uint64_t *word, uint32_t n)
{
  uint64_t *to = stack.word;
  memset(&stack, 0, sizeof stack);
  for (uint32_t i = 0; i < n; i += 64) {
    uint64_t *bits = to++;
    *bits = 0;
    for (uint32_t k = 0; k < 64 && i + k < n; k++)
      if (m6_site_may_be_address(word[i + k])) *bits |= 1ull << k, *to++ = word[i + k];
  }
  stack.head = (struct m6_site_stack){.ip = CODE + 16, .sp = SP, .bp = SP + 64, .bx = HEAP + 8, .r12 = 7};
  stack.head.bytes = n * 8;
  stack.head.words = (uint32_t)(to - stack.word);
}
static struct m6_site_queued *put(uint64_t key, int with_stack)
{
  struct m6_site_queued *to = m6_site_queue_add(&q,
                                                &(struct m6_site_queued){.key = key, .stack_at = M6_SITE_STACKLESS});
  if (with_stack) m6_site_queue_stack(&q, to, &stack.head, (sizeof stack + M6_STACK_GRANULE - 1) / M6_STACK_GRANULE);
  return to;
}
static int empty_queue(void **state)
{
  (void)state;
  m6_site_queue_close(&q);
  m6_site_queue_close(&q);
  m6_site_queue_prepared_free();
  return 0;
}

static void all_come_out_in_their_order(void **state)
{
  (void)state;
  uint64_t in = 0, out = 0;
  assert_int_equal(m6_site_queue_open(&q, 512 << 10), 0);
  srandom(1);
  while (out < 10 * M6_SITE_QUEUE_MAX) {
    for (long n = random() % (2 * M6_SITE_QUEUE_MAX); n > 0 && !m6_site_queue_full(&q); n--) put(++in, 0);
    for (long n = random() % (2 * M6_SITE_QUEUE_MAX); n > 0 && q.count; n--) {
      assert_int_equal(m6_site_queue_next(&q)->key, ++out);
      m6_site_queue_done(&q);
    }
  }
  assert_int_equal(q.count, in - out);
}

static void what_is_alike_is_kept_once(void **state)
{
  (void)state;
  static uint64_t word[WORDS], got[M6_SITE_STACK_BYTES / 8];
  struct m6_user_state is;
  assert_int_equal(m6_site_queue_open(&q, 512 << 10), 0);
  for (uint32_t i = 0; i < WORDS; i++) word[i] = i % 3 ? i : HEAP + i;
  pack(word, WORDS);
  struct m6_site_queued *a = put(1, 1);
  uint32_t words = q.words;
  struct m6_site_queued *b = put(2, 1);
  assert_int_equal(a->stack_at, b->stack_at);
  assert_int_equal(q.words, words);
  word[3] += 8;
  pack(word, WORDS);
  struct m6_site_queued *c = put(3, 1);
  assert_int_not_equal(c->stack_at, a->stack_at);
  assert_int_not_equal(m6_site_queue_hash(&q, c), m6_site_queue_hash(&q, a));
  assert_true(m6_site_queue_unpack(&q, c, got, &is));
  for (uint32_t i = 0; i < WORDS; i++)
    assert_int_equal(got[i], i % 3 ? 0 : word[i]); /* small numbers are no addresses */
  assert_true(is.ip == CODE + 16 && is.sp == SP && is.bp == SP + 64 && is.bx == HEAP + 8 && is.bytes == WORDS * 8);
  for (int i = 0; i < 3; i++) m6_site_queue_done(&q);
  assert_int_equal(q.words, 0); /* there is room again, */
  pack(word, WORDS);
  assert_int_equal(put(4, 1)->stack_at, 0); /* and nothing is alike to what was there */
}

static void a_slim_one_has_what_unwinding_needs(void **state)
{
  (void)state;
  static uint64_t word[WORDS], got[M6_SITE_STACK_BYTES / 8];
  const uint64_t kept[] = {CODE + 1, CODE + 0x2fff, CODE + 0x3000 /* after a call that is the last there */, SP,
                           SP + WORDS * 8 - 8};
  struct m6_user_state is;
  m6_site_queue_prepare(1);
  assert_int_equal(m6_site_queue_open(&q, 1), 0);
  m6_site_queue_code(&q, (const struct m6_symbols *)&q);
  for (uint32_t i = 0; i < WORDS; i++) word[i] = i % 40 == 39 ? kept[i / 40] : HEAP + 4096 * i;
  pack(word, WORDS);
  struct m6_site_queued *a = put(1, 1);
  assert_true(m6_site_queue_unpack(&q, a, got, &is));
  uint32_t others = 0; /* two pages may have one hash */
  for (uint32_t i = 0; i < WORDS; i++) {
    if (i % 40 == 39) assert_int_equal(got[i], word[i]);
    else others += got[i] != 0;
  }
  assert_true(others < 4);
  assert_true(is.bp == SP + 64 && is.bx == 0);
  for (uint32_t i = 0; i < WORDS; i++)
    if (i % 40 != 39 && !got[i]) word[i] += 1 << 30;
  uint32_t words = q.words;
  pack(word, WORDS);
  struct m6_site_queued *b = put(2, 1);
  assert_true(b->stack_at == a->stack_at ||
              q.words > words); /* alike, but for what happens to have the hash of code now */
  made = 1;
  m6_site_queue_code(&q, (const struct m6_symbols *)&q);
  assert_int_equal(q.slim, 0); /* a program that makes code: more of it may come at any time */
  made = 0;
}

static void what_no_shim_writes_is_none(void **state)
{
  (void)state;
  static uint64_t word[WORDS], got[M6_SITE_STACK_BYTES / 8];
  struct m6_user_state is;
  for (int every = 0; every < 2; every++) {
    assert_int_equal(m6_site_queue_open(&q, every ? 1 : 512), 0);
    if (every) m6_site_queue_code(&q, (const struct m6_symbols *)&q);
    for (uint32_t i = 0; i < WORDS; i++) word[i] = SP + i;
    pack(word, WORDS);
    stack.head.words -= 1; /* the last word is missing */
    assert_false(m6_site_queue_unpack(&q, put(1, 1), got, &is));
    stack.head.words = 0;
    assert_false(m6_site_queue_unpack(&q, put(2, 1), got, &is));
    stack.head.words = UINT32_MAX;
    assert_int_equal(put(3, 1)->stack_at, M6_SITE_STACKLESS);
    stack.head.words = 1;
    stack.head.bytes = M6_SITE_STACK_BYTES + 8;
    assert_int_equal(put(4, 1)->stack_at, M6_SITE_STACKLESS);
    stack.head.bytes = 12;
    assert_int_equal(put(5, 1)->stack_at, M6_SITE_STACKLESS);
    m6_site_queue_close(&q);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(all_come_out_in_their_order, empty_queue),
    cmocka_unit_test_teardown(what_is_alike_is_kept_once, empty_queue),
    cmocka_unit_test_teardown(a_slim_one_has_what_unwinding_needs, empty_queue),
    cmocka_unit_test_teardown(what_no_shim_writes_is_none, empty_queue),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
