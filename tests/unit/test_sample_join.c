/* test_sample_join.c - the join of samples with scopes: each sample once, in the order of time, to the scope that was open. */
/* links: collector/sample_join.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "collector/sample_join.h"

static void add(struct m6_join *j, uint32_t tid, uint64_t ns)
{
  struct m6_sample s = {.tid = tid, .time_ns = ns, .user = tid * 1000 + ns};
  m6_join_add(j, &s);
}

static void of_one_thread_before_a_record_in_order(void **state)
{
  struct m6_join *j = m6_join_new();
  struct m6_sample s;
  add(j, 7, 10), add(j, 8, 11), add(j, 7, 20), add(j, 7, 30);
  assert_false(m6_join_take(j, 7, 10, &s)); /* at the record's time is not before it */
  assert_true(m6_join_take(j, 7, 21, &s));
  assert_int_equal(s.time_ns, 10);
  assert_int_equal(s.user, 7010);
  assert_true(m6_join_take(j, 7, 21, &s));
  assert_int_equal(s.time_ns, 20);
  assert_false(m6_join_take(j, 7, 21, &s));
  assert_false(m6_join_take(j, 9, 1000, &s)); /* a thread that was not sampled */
  assert_true(m6_join_take(j, 8, 1000, &s));
  assert_int_equal(s.tid, 8);
  assert_true(m6_join_take_any(j, &s));
  assert_int_equal(s.time_ns, 30);
  assert_false(m6_join_take_any(j, &s));
  m6_join_free(j);
}

static void what_came_out_of_order_is_put_in_order(void **state)
{
  struct m6_join *j = m6_join_new();
  struct m6_sample s;
  add(j, 1, 50), add(j, 1, 40), add(j, 1, 60), add(j, 1, 45), add(j, 1, 10);
  static const uint64_t want[] = {10, 40, 45, 50, 60};
  for (int i = 0; i < 5; i++) {
    assert_true(m6_join_take(j, 1, 100, &s));
    assert_int_equal(s.time_ns, want[i]);
  }
  add(j, 1, 70); /* the queue works on */
  assert_true(m6_join_take(j, 1, 71, &s));
  assert_false(m6_join_take_any(j, &s));
  m6_join_free(j);
}

static void full_is_counted_and_room_is_used_again(void **state)
{
  struct m6_join *j = m6_join_new();
  struct m6_sample s;
  for (int round = 0; round < 3; round++) {
    for (uint32_t i = 0; i < M6_SAMPLES_RETAINED + 5; i++) add(j, i % 100, i);
    assert_int_equal(m6_join_refused(j), 5 * (uint64_t)(round + 1));
    uint32_t n = 0;
    while (m6_join_take_any(j, &s)) n++;
    assert_int_equal(n, M6_SAMPLES_RETAINED);
  }
  m6_join_free(j);
}

/* Against a plain reference: scopes of several threads at random, samples at random, credited by the protocol of
 * kernel_samples.h in polls of random length; each must have fallen to the scope that was open at its time. */
#define THREADS 5
#define RECORDS 3000
static void every_sample_falls_into_the_scope_that_was_open(void **state)
{
  static uint64_t records[THREADS][RECORDS]; /* times at which a scope opens or closes */
  uint64_t now[THREADS] = {0};
  int next[THREADS] = {0}, at[THREADS] = {0};
  srand(6);
  for (int t = 0; t < THREADS; t++) {
    for (int i = 0; i < RECORDS; i++) records[t][i] = now[t] += 1 + (uint64_t)rand() % 50;
  }
  struct m6_join *j = m6_join_new();
  struct m6_sample s;
  uint64_t taken = 0, credited = 0;
  for (uint64_t begin = 0, end; begin < 80000; begin = end) {
    end = begin + 1 + (uint64_t)rand() % 300;
    for (uint64_t ns = begin; ns < end; ns++)
      if (rand() % 3 == 0) add(j, (uint32_t)(rand() % THREADS), ns), taken++;
    for (int t = 0; t < THREADS; t++) {
      while (next[t] < RECORDS && records[t][next[t]] < end) {
        while (m6_join_take(j, (uint32_t)t, records[t][next[t]], &s)) {
          /* The reference: how many records of the thread are not later than the sample. */
          while (at[t] < RECORDS && records[t][at[t]] <= s.time_ns) at[t]++;
          assert_int_equal(at[t], next[t]);
          credited++;
        }
        next[t]++;
      }
    }
    while (m6_join_take_any(j, &s)) {
      int t = (int)s.tid;
      while (at[t] < RECORDS && records[t][at[t]] <= s.time_ns) at[t]++;
      assert_int_equal(at[t], next[t]);
      credited++;
    }
  }
  assert_int_equal(credited, taken);
  assert_true(taken > 20000);
  m6_join_free(j);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(of_one_thread_before_a_record_in_order),
    cmocka_unit_test(what_came_out_of_order_is_put_in_order),
    cmocka_unit_test(full_is_counted_and_room_is_used_again),
    cmocka_unit_test(every_sample_falls_into_the_scope_that_was_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
