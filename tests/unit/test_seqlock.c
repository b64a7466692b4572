/* test_seqlock - shm/seqlock.h: a reader has a block that the writer finished, or knows that it has none. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "shm/seqlock.h"

#define WORDS 64
struct shared {
  uint64_t seq, block[WORDS], over;
};

static void at_rest(void **state)
{
  struct shared s = {0};
  uint64_t in[WORDS], out[WORDS];
  (void)state;
  for (int i = 0; i < WORDS; i++) in[i] = (uint64_t)i * 7;
  m6_seqlock_write(&s.seq, s.block, in, sizeof in);
  assert_int_equal(s.seq, 2);
  assert_true(m6_seqlock_try_read(&s.seq, out, s.block, sizeof out));
  assert_memory_equal(in, out, sizeof in);
}
static void a_writer_that_died_is_seen(void **state)
{
  struct shared s = {.seq = 5};
  uint64_t out[WORDS], in[WORDS] = {1};
  (void)state;
  assert_false(m6_seqlock_try_read(&s.seq, out, s.block, sizeof out));
  m6_seqlock_write(&s.seq, s.block, in, sizeof in); /* the next one repairs it */
  assert_true(m6_seqlock_try_read(&s.seq, out, s.block, sizeof out));
}
static void *writer(void *arg)
{
  struct shared *s = arg;
  uint64_t in[WORDS];
  for (uint64_t n = 1; n <= 20000; n++) {
    for (int i = 0; i < WORDS; i++) in[i] = n;
    m6_seqlock_write(&s->seq, s->block, in, sizeof in);
  }
  m6_publish(&s->over, 1);
  return NULL;
}
static void never_torn(void **state)
{
  struct shared *s = calloc(1, sizeof *s);
  uint64_t out[WORDS], last = 0, good = 0;
  pthread_t t;
  (void)state;
  pthread_create(&t, NULL, writer, s);
  for (int over = 0; !over || good == 0;) {
    over = m6_observe(&s->over) != 0;
    if (!m6_seqlock_try_read(&s->seq, out, s->block, sizeof out)) continue;
    good++;
    for (int i = 1; i < WORDS; i++) assert_int_equal(out[i], out[0]);
    assert_true(out[0] >= last);
    last = out[0];
  }
  pthread_join(t, NULL);
  assert_true(m6_seqlock_try_read(&s->seq, out, s->block, sizeof out));
  assert_int_equal(out[WORDS - 1], 20000);
  free(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(at_rest), cmocka_unit_test(a_writer_that_died_is_seen),
                                     cmocka_unit_test(never_torn)};
  return cmocka_run_group_tests_name("seqlock", tests, NULL, NULL);
}
