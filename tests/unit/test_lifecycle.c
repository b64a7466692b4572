/* links: collector/lifecycle.c */
/* test_lifecycle - each transition of a session's life, by name; what is not in the table changes nothing; TTL by injected time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collector/lifecycle.h"

#define S 1000000000ull
static struct m6_lifecycle l;

/* A machine in a state, with a grant of `allowed` of which `started` are used, asked for or begun at 100 s; TTL 5 s. */
static void in(enum m6_life state, uint32_t allowed, uint32_t started)
{
  m6_lifecycle_init(&l, 5 * S);
  if (state == M6_LIFE_INERT) return;
  m6_lifecycle_grant(&l, allowed, started);
  assert_int_equal(l.state, M6_LIFE_GRANTED);
  if (state == M6_LIFE_GRANTED) return;
  assert_int_equal(m6_lifecycle_event(&l, M6_EVENT_ON, 100 * S), M6_DO_ASK);
  if (state == M6_LIFE_PENDING) return;
  assert_int_equal(m6_lifecycle_event(&l, M6_EVENT_STARTED, 100 * S), 0);
  if (state == M6_LIFE_COLLECTING) return;
  assert_int_equal(m6_lifecycle_event(&l, M6_EVENT_OFF, 101 * S), M6_DO_STOP | M6_DO_FLUSH);
}
static void expect(enum m6_life_event event, unsigned todo, enum m6_life to, enum m6_end end)
{
  assert_int_equal(m6_lifecycle_event(&l, event, 102 * S), todo);
  assert_int_equal(l.state, to);
  assert_int_equal(l.end, end);
}

static void inert_grant_granted(void **state)
{
  (void)state;
  in(M6_LIFE_INERT, 0, 0);
  expect(M6_EVENT_GRANT, 0, M6_LIFE_GRANTED, M6_END_NONE);
}
static void inert_on_stays_inert_without_a_grant(void **state)
{
  (void)state;
  in(M6_LIFE_INERT, 0, 0);
  expect(M6_EVENT_ON, 0, M6_LIFE_INERT, M6_END_NONE);
  m6_lifecycle_grant(&l, 0, 0);
  expect(M6_EVENT_ON, 0, M6_LIFE_INERT, M6_END_NONE);
  m6_lifecycle_grant(&l, 1, 1); /* used up */
  expect(M6_EVENT_ON, 0, M6_LIFE_INERT, M6_END_NONE);
  expect(M6_EVENT_STARTED, 0, M6_LIFE_INERT, M6_END_NONE);
}
static void granted_refuse_inert(void **state)
{
  (void)state;
  in(M6_LIFE_GRANTED, 1, 0);
  m6_lifecycle_grant(&l, 1, 1);
  assert_int_equal(l.state, M6_LIFE_INERT);
}
static void granted_on_pending(void **state)
{
  (void)state;
  in(M6_LIFE_GRANTED, 1, 0);
  expect(M6_EVENT_ON, M6_DO_ASK, M6_LIFE_PENDING, M6_END_NONE);
  assert_int_equal(l.started, 0);
}
static void pending_started_collecting(void **state)
{
  (void)state;
  in(M6_LIFE_PENDING, 1, 0);
  expect(M6_EVENT_STARTED, 0, M6_LIFE_COLLECTING, M6_END_NONE);
  assert_int_equal(l.started, 1);
  assert_int_equal(l.began, 1);
}
static void collecting_next_joins_while_the_grant_allows(void **state)
{
  (void)state;
  in(M6_LIFE_COLLECTING, 2, 0);
  expect(M6_EVENT_NEXT, M6_DO_JOIN, M6_LIFE_COLLECTING, M6_END_NONE);
  assert_int_equal(l.started, 2);
  assert_int_equal(l.since_ns, 102 * S); /* its TTL begins anew */
  expect(M6_EVENT_NEXT, 0, M6_LIFE_COLLECTING, M6_END_NONE);
  assert_int_equal(l.started, 2);
}

/* Every end, of a pending start (which is cancelled) and of a session (which is stopped); both are flushed and come to inert. */
static void ends(enum m6_life_event event, enum m6_end end)
{
  in(M6_LIFE_PENDING, 1, 0);
  expect(event, M6_DO_CANCEL | M6_DO_FLUSH, M6_LIFE_ENDED, end);
  assert_int_equal(l.began, 0);
  expect(M6_EVENT_FLUSHED, 0, M6_LIFE_INERT, end);
  in(M6_LIFE_COLLECTING, 1, 0);
  expect(event, M6_DO_STOP | M6_DO_FLUSH, M6_LIFE_ENDED, end);
  assert_int_equal(l.began, 1);
  expect(M6_EVENT_FLUSHED, 0, M6_LIFE_INERT, end);
}
#define END_TEST(name, event, end)                                                                                     \
  static void name(void **state)                                                                                       \
  {                                                                                                                    \
    (void)state;                                                                                                       \
    ends(event, end);                                                                                                  \
  }
END_TEST(off_ends_and_during_a_pending_start_cancels, M6_EVENT_OFF, M6_END_OFF)
END_TEST(ttl_ends, M6_EVENT_TTL, M6_END_TTL)
END_TEST(target_exit_ends, M6_EVENT_EXIT, M6_END_EXIT)
END_TEST(exec_ends, M6_EVENT_EXEC, M6_END_EXEC)
END_TEST(a_lost_collector_ends, M6_EVENT_LOST, M6_END_COLLECTOR_LOST)
END_TEST(failure_ends, M6_EVENT_FAILURE, M6_END_FAILURE)

static void budget_ends_a_session_and_no_pending_start(void **state)
{
  (void)state;
  in(M6_LIFE_COLLECTING, 1, 0);
  expect(M6_EVENT_BUDGET, M6_DO_STOP | M6_DO_FLUSH, M6_LIFE_ENDED, M6_END_BUDGET);
  expect(M6_EVENT_FLUSHED, 0, M6_LIFE_INERT, M6_END_BUDGET);
  in(M6_LIFE_PENDING, 1, 0);
  expect(M6_EVENT_BUDGET, 0, M6_LIFE_PENDING, M6_END_NONE);
}
static void ended_flushed_inert_and_the_first_end_counts(void **state)
{
  (void)state;
  in(M6_LIFE_ENDED, 1, 0);
  expect(M6_EVENT_TTL, 0, M6_LIFE_ENDED, M6_END_OFF);
  expect(M6_EVENT_ON, 0, M6_LIFE_ENDED, M6_END_OFF);
  expect(M6_EVENT_FLUSHED, 0, M6_LIFE_INERT, M6_END_OFF);
}
static void one_session_unless_the_grant_allows_more(void **state)
{
  (void)state;
  for (uint32_t allowed = 0; allowed < 4; allowed++) {
    uint32_t ran = 0;
    m6_lifecycle_init(&l, 5 * S);
    for (int tries = 0; tries < 6; tries++) {
      m6_lifecycle_grant(&l, allowed, ran);
      m6_lifecycle_event(&l, M6_EVENT_ON, S);
      m6_lifecycle_event(&l, M6_EVENT_STARTED, S);
      ran += l.state == M6_LIFE_COLLECTING;
      m6_lifecycle_event(&l, M6_EVENT_OFF, S);
      m6_lifecycle_event(&l, M6_EVENT_FLUSHED, S);
      assert_int_equal(l.state, M6_LIFE_INERT);
    }
    assert_int_equal(ran, allowed);
  }
}
static void time_ends_a_session_and_a_wait_at_their_ttl(void **state)
{
  (void)state;
  in(M6_LIFE_PENDING, 1, 0);
  assert_int_equal(m6_lifecycle_tick(&l, 105 * S - 1), 0);
  assert_int_equal(m6_lifecycle_tick(&l, 105 * S), M6_DO_CANCEL | M6_DO_FLUSH);
  assert_int_equal(l.end, M6_END_TTL);
  in(M6_LIFE_PENDING, 1, 0);
  m6_lifecycle_event(&l, M6_EVENT_STARTED, 103 * S); /* from here on */
  assert_int_equal(m6_lifecycle_tick(&l, 107 * S), 0);
  assert_int_equal(m6_lifecycle_tick(&l, 50 * S), 0); /* a clock that is behind ends nothing */
  assert_int_equal(m6_lifecycle_tick(&l, 108 * S), M6_DO_STOP | M6_DO_FLUSH);
  for (int s = 0; s < M6_LIFE_STATES; s++) {
    if (s == M6_LIFE_PENDING || s == M6_LIFE_COLLECTING) continue;
    in((enum m6_life)s, 1, 0);
    assert_int_equal(m6_lifecycle_tick(&l, 1000 * S), 0);
    assert_int_equal(l.state, s);
  }
}
static void what_is_not_in_the_table_changes_nothing(void **state)
{
  (void)state;
  unsigned count;
  const struct m6_transition *t = m6_lifecycle_table(&count);
  for (int s = 0; s < M6_LIFE_STATES; s++)
    for (int e = 0; e < M6_EVENTS; e++) {
      unsigned known = 0;
      for (unsigned i = 0; i < count; i++) known += t[i].from == s && t[i].event == e;
      assert_true(known <= 1);
      if (known) continue;
      in((enum m6_life)s, 2, 0);
      struct m6_lifecycle before = l;
      assert_int_equal(m6_lifecycle_event(&l, (enum m6_life_event)e, 7 * S), 0);
      assert_memory_equal(&before, &l, sizeof l);
    }
}
static void every_way_out_is_flushed(void **state)
{
  (void)state;
  unsigned count, out = 0;
  const struct m6_transition *t = m6_lifecycle_table(&count);
  for (unsigned i = 0; i < count; i++) {
    if (t[i].to != M6_LIFE_ENDED) continue;
    out++;
    assert_true(t[i].todo & M6_DO_FLUSH);
    assert_true(t[i].todo & (t[i].from == M6_LIFE_PENDING ? M6_DO_CANCEL : M6_DO_STOP));
  }
  assert_int_equal(out, 13);
  for (int end = M6_END_OFF; end <= M6_END_BUDGET; end++) {
    enum m6_life_event e = m6_lifecycle_end((enum m6_end)end);
    in(M6_LIFE_COLLECTING, 1, 0);
    m6_lifecycle_event(&l, e, S);
    assert_int_equal(l.end, end);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(inert_grant_granted),
    cmocka_unit_test(inert_on_stays_inert_without_a_grant),
    cmocka_unit_test(granted_refuse_inert),
    cmocka_unit_test(granted_on_pending),
    cmocka_unit_test(pending_started_collecting),
    cmocka_unit_test(collecting_next_joins_while_the_grant_allows),
    cmocka_unit_test(off_ends_and_during_a_pending_start_cancels),
    cmocka_unit_test(ttl_ends),
    cmocka_unit_test(target_exit_ends),
    cmocka_unit_test(exec_ends),
    cmocka_unit_test(a_lost_collector_ends),
    cmocka_unit_test(failure_ends),
    cmocka_unit_test(budget_ends_a_session_and_no_pending_start),
    cmocka_unit_test(ended_flushed_inert_and_the_first_end_counts),
    cmocka_unit_test(one_session_unless_the_grant_allows_more),
    cmocka_unit_test(time_ends_a_session_and_a_wait_at_their_ttl),
    cmocka_unit_test(what_is_not_in_the_table_changes_nothing),
    cmocka_unit_test(every_way_out_is_flushed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
