/* test_ring - shm/ring.h: records come out as they went in, in order, or are counted as lost; also between two threads. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shm/ring.h"

#define CAPACITY 64u
struct pipe {
  struct m6_ring_head head;
  struct m6_record records[CAPACITY];
  struct m6_producer producer;
};
static void begin(struct pipe *p)
{
  memset(p, 0, sizeof *p);
  m6_producer_init(&p->producer, &p->head, p->records, CAPACITY);
}
static int put(struct pipe *p, uint64_t n)
{
  if (!m6_ring_room(&p->producer, 1)) return 0;
  m6_ring_commit(&p->producer, m6_ring_claim(&p->producer, 1), n, n * 3, n * 5 & M6_COUNT_MASK, M6_REC_MARK, 0,
                 n & 0xfff, n & 0xff);
  return 1;
}
static int get(struct pipe *p, uint64_t index, struct m6_record *r)
{
  return m6_ring_read(&p->head, p->records, CAPACITY, index, r);
}

static void in_order_over_many_laps(void **state)
{
  struct pipe p;
  struct m6_record r = {0};
  (void)state;
  begin(&p);
  for (uint64_t i = 0; i < 100000; i++) { /* more than 2^16 / 64 laps: the stamp comes round */
    assert_true(put(&p, i));
    assert_int_equal(get(&p, i, &r), M6_RING_RECORD);
    assert_int_equal(r.clock, i);
    assert_int_equal(r.live, i * 3);
    assert_int_equal(m6_word_label(r.word), i & 0xfff);
    assert_int_equal(get(&p, i + 1, &r), M6_RING_EMPTY);
    m6_ring_release(&p.head, i + 1);
  }
}
static void stamps_pass_zero(void **state)
{
  struct pipe p;
  struct m6_record r = {0};
  (void)state;
  begin(&p);
  uint64_t from = (uint64_t)CAPACITY * 0xfffe;
  p.head.claimed = p.head.consumed = from;
  m6_producer_init(&p.producer, &p.head, p.records, CAPACITY);
  for (uint64_t i = from; i < from + 4 * CAPACITY; i++) {
    assert_true(put(&p, i));
    assert_int_equal(get(&p, i, &r), M6_RING_RECORD);
    assert_int_equal(r.clock, i);
    m6_ring_release(&p.head, i + 1);
  }
}
static void full_drops_and_never_overwrites(void **state)
{
  struct pipe p;
  struct m6_record r = {0};
  uint64_t kept = 0;
  (void)state;
  begin(&p);
  for (uint64_t i = 0; i < 1000; i++) kept += (uint64_t)put(&p, i);
  assert_int_equal(kept, CAPACITY - M6_RING_MARGIN);
  for (uint64_t i = 0; i < kept; i++) {
    assert_int_equal(get(&p, i, &r), M6_RING_RECORD);
    assert_int_equal(r.clock, i);
  }
  assert_int_equal(get(&p, kept, &r), M6_RING_EMPTY);
  assert_false(m6_ring_room(&p.producer, 1));
  m6_ring_release(&p.head, 4);
  assert_true(m6_ring_room(&p.producer, 4));
  assert_false(m6_ring_room(&p.producer, 5));
}
static void a_hole_is_told_from_an_empty_ring(void **state)
{
  struct pipe p;
  struct m6_record r = {0};
  (void)state;
  begin(&p);
  assert_true(put(&p, 0));
  m6_ring_claim(&p.producer, 1); /* and its writer dies */
  assert_true(put(&p, 2));
  assert_int_equal(get(&p, 1, &r), M6_RING_HOLE);
  assert_int_equal(get(&p, 2, &r), M6_RING_RECORD);
  assert_int_equal(get(&p, 3, &r), M6_RING_EMPTY);
}
static void a_handler_between_claim_and_commit(void **state)
{
  struct pipe p;
  struct m6_record r = {0};
  (void)state;
  begin(&p);
  uint64_t mine = m6_ring_claim(&p.producer, 1);
  for (uint64_t i = 1; i <= M6_RING_MARGIN; i++) assert_true(put(&p, i)); /* the handler's */
  assert_int_equal(get(&p, mine, &r), M6_RING_HOLE);
  m6_ring_commit(&p.producer, mine, 99, 0, 0, M6_REC_DONE, 0, 0, 0);
  assert_int_equal(get(&p, mine, &r), M6_RING_RECORD);
  assert_int_equal(r.clock, 99);
  assert_int_equal(get(&p, mine + 1, &r), M6_RING_RECORD);
  assert_int_equal(r.clock, 1);
}

#define ROUNDS 200000u
static void *produce(void *arg)
{
  struct pipe *p = arg;
  uint64_t *lost = calloc(1, sizeof *lost);
  for (uint64_t i = 0; i < ROUNDS; i++)
    if (i % 7 == 0) { /* a frame: four records, committed by the first */
      if (!m6_ring_room(&p->producer, 4)) {
        ++*lost;
        continue;
      }
      uint64_t at = m6_ring_claim(&p->producer, 4);
      for (unsigned u = 1; u < 4; u++) m6_ring_commit(&p->producer, at + u, i, i + u, 0, M6_REC_CONTINUED, 0, 0, u);
      m6_ring_commit(&p->producer, at, i, i, 0, M6_REC_FRAME, 0, 0, 4);
    } else {
      *lost += !put(p, i);
    }
  m6_publish(&p->head.producer_free[0], 1); /* over */
  return lost;
}
static void between_two_threads(void **state)
{
  struct pipe *p = malloc(sizeof *p);
  struct m6_record r = {0};
  pthread_t t;
  uint64_t at = 0, got = 0, last = 0;
  void *lost;
  (void)state;
  begin(p);
  pthread_create(&t, NULL, produce, p);
  for (int over = 0;;) {
    if (get(p, at, &r) != M6_RING_RECORD) {
      m6_ring_release(&p->head, at);
      if (over && get(p, at, &r) == M6_RING_EMPTY) break;
      over = m6_observe(&p->head.producer_free[0]) != 0;
      continue;
    }
    assert_true(got == 0 || r.clock > last);
    last = r.clock;
    got++;
    at++;
    if (m6_word_type(r.word) == M6_REC_MARK) {
      assert_int_equal(r.live, r.clock * 3);
      continue;
    }
    assert_int_equal(m6_word_type(r.word), M6_REC_FRAME);
    for (unsigned u = 1; u < 4; u++, at++) { /* the first is there: so are the others */
      assert_int_equal(get(p, at, &r), M6_RING_RECORD);
      assert_int_equal(m6_word_type(r.word), M6_REC_CONTINUED);
      assert_int_equal(r.live, last + u);
    }
  }
  pthread_join(t, &lost);
  assert_int_equal(got + *(uint64_t *)lost, ROUNDS);
  assert_true(got > CAPACITY / 2);
  free(lost);
  free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(in_order_over_many_laps),
    cmocka_unit_test(stamps_pass_zero),
    cmocka_unit_test(full_drops_and_never_overwrites),
    cmocka_unit_test(a_hole_is_told_from_an_empty_ring),
    cmocka_unit_test(a_handler_between_claim_and_commit),
    cmocka_unit_test(between_two_threads),
  };
  return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
