/* links: collector/kernel_side_price.c build/libmach6kernel.a -lbpf -ldw -lelf -lm */
/* sanitizers: none */
/* test_kernel_price - what the kernel's side cost: events times prices; measured prices count, others are scaled by them, and what was
 * disturbed or not measured does no harm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "collector/kernel_side.h"

static struct m6_kernel_price of(double record, double sample, double stack, double probe, int unwound)
{
  struct m6_kernel_measured m = {record, sample, stack, probe};
  return m6_kernel_prices(&m, unwound);
}

static void what_was_not_measured_has_a_price(void **state)
{
  (void)state;
  struct m6_kernel_price nan = of(NAN, NAN, NAN, NAN, 0), zero = of(0, 0, 0, 0, 0);
  assert_memory_equal(&nan, &zero, sizeof nan);
  assert_true(nan.record_ns > 0 && nan.switch_ns > 0 && nan.call_ns > 0 && nan.boundary_ns > 0 && nan.sample_ns > 0);
  assert_true(of(NAN, NAN, NAN, NAN, 1).sample_ns > nan.sample_ns); /* a stack is copied */
}

static void what_was_measured_counts(void **state)
{
  (void)state;
  struct m6_kernel_price p = of(2000, 30000, 40000, 1400, 0);
  assert_true(p.record_ns == 1000); /* out and in are two records */
  assert_true(p.sample_ns == 30000 && of(2000, 30000, 40000, 1400, 1).sample_ns == 40000);
  struct m6_kernel_price twice = of(4000, 30000, 40000, 1400, 0);
  assert_true(fabs(twice.switch_ns - 2 * p.switch_ns) < 1e-6 && fabs(twice.call_ns - 2 * p.call_ns) < 1e-6);
  assert_true(of(2000, 1, 1, 2400, 0).boundary_ns - p.boundary_ns > 999); /* one hit */
}

static void a_disturbed_measurement_is_bounded(void **state)
{
  (void)state;
  double usual = of(NAN, NAN, NAN, NAN, 0).switch_ns;
  assert_true(of(1e9, NAN, NAN, NAN, 0).switch_ns <= 4 * usual && of(1e-3, NAN, NAN, NAN, 0).switch_ns >= usual / 4);
}

static void the_cost_is_events_times_prices(void **state)
{
  (void)state;
  struct m6_thread_counters threads[2] = {{.calls = 7}, {.calls = 3}};
  struct m6_counters counters = {.threads = threads, .thread_count = 2};
  struct m6_kernel_side k = {.measured = {1300, 50000, 60000, 1400}};
  struct m6_kernel_price p = m6_kernel_prices(&k.measured, 0);
  threads[0].counted[M6_SLICES] = 100, threads[1].counted[M6_SLICES] = 50;
  assert_int_equal(m6_kernel_cost(&k, 0, 0), 0);
  assert_int_equal(m6_kernel_cost(&k, 20, 0), 20 * 50000);
  assert_int_equal(m6_kernel_cost(&k, 20, 1), 20 * 60000);
  k.boundaries = 60; /* without counters they are nobody's cost */
  assert_int_equal(m6_kernel_cost(&k, 20, 0), 20 * 50000);
  k.counters = &counters;
  double want = 20 * p.sample_ns + 60 * p.boundary_ns + 150 * p.switch_ns + 10 * p.call_ns;
  assert_true(fabs((double)m6_kernel_cost(&k, 20, 0) - want) <= 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_not_measured_has_a_price),
    cmocka_unit_test(what_was_measured_counts),
    cmocka_unit_test(a_disturbed_measurement_is_bounded),
    cmocka_unit_test(the_cost_is_events_times_prices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
