/* links: collector/trend.c collector/reservoir.c -lm */
/* sanitizers: address */
/* test_trend - a leak is found and measured under noise, odd sessions and noise that remembers; none is found where there is none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collector/reservoir.h"
#include "collector/trend.h"

enum { N = 18, RUNS = 400 };
static struct m6_rng rng;
static double uniform(void) { return (double)(m6_rng_next(&rng) >> 11) / (double)(1ull << 53); }
static double normal(void)
{
  return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
} /* Box and Muller 1958 */

struct shape {
  double slope, noise, remembers, odd; /* bytes a frame; bytes; autocorrelation; share of odd sessions */
};
static void make(const struct shape *s, double *x, double *y)
{
  double e = normal() * s->noise;
  for (int i = 0; i < N; i++) {
    x[i] = 1500.0 * i + 700;
    e = s->remembers * e + sqrt(1 - s->remembers * s->remembers) * s->noise * normal();
    y[i] = s->slope * x[i] + e + (uniform() < s->odd ? 400e3 : 0);
  }
}

static void a_leak_is_found_within_five_percent(void **state)
{
  (void)state;
  static const struct shape shapes[] = {
    {72, 3e3, 0, 0}, {72, 8e3, 0, 0}, {72, 5e3, 0.5, 0}, {72, 5e3, 0, 0.1}, {1e6, 1e6, 0.3, 0}};
  for (unsigned k = 0; k < sizeof shapes / sizeof *shapes; k++) {
    int found = 0, close = 0, covered = 0;
    m6_rng_seed(&rng, 100 + k);
    for (int r = 0; r < RUNS; r++) {
      double x[N], y[N];
      make(&shapes[k], x, y);
      struct m6_trend t = m6_trend_of(x, y, N, 1);
      found += t.verdict == M6_VERDICT_GROWS;
      close += fabs(t.slope / shapes[k].slope - 1) < 0.05;
      covered += t.low <= shapes[k].slope && shapes[k].slope <= t.high;
      assert_true(t.low <= t.slope && t.slope <= t.high);
    }
    assert_true(found >= RUNS * 99 / 100);
    assert_true(close >= RUNS * 95 / 100);
    assert_true(covered >= RUNS * (shapes[k].remembers > 0 ? 85 : 92) / 100);
  }
}
static void without_one_there_is_hardly_a_false_alarm(void **state)
{
  (void)state;
  static const struct shape shapes[] = {{0, 20e3, 0, 0}, {0, 20e3, 0, 0.2}, {0, 50e3, 0.4, 0}, {0.2, 1e3, 0, 0}};
  for (unsigned k = 0; k < sizeof shapes / sizeof *shapes; k++) {
    int grows = 0;
    m6_rng_seed(&rng, 200 + k);
    for (int r = 0; r < RUNS; r++) {
      double x[N], y[N];
      make(&shapes[k], x, y);
      grows += m6_trend_of(x, y, N, 1).verdict == M6_VERDICT_GROWS;
    }
    assert_true(grows <= RUNS * 8 / 100); /* one side of 95 %, and some for what remembers */
  }
}
static void what_warms_up_is_no_leak(void **state)
{
  (void)state;
  m6_rng_seed(&rng, 7);
  for (int r = 0; r < RUNS; r++) {
    double x[N], y[N];
    for (int i = 0; i < N; i++) {
      x[i] = 1500.0 * i;
      y[i] = 400e3 * (1 - exp(-i / 3.0)) + 1e3 * normal(); /* caches fill */
    }
    assert_int_not_equal(m6_trend_of(x, y, N, 1).verdict, M6_VERDICT_GROWS);
  }
}
static void what_shrinks_is_told_too(void **state)
{
  (void)state;
  double x[N], y[N];
  m6_rng_seed(&rng, 8);
  make(&(struct shape){-50, 1e3, 0, 0}, x, y);
  struct m6_trend t = m6_trend_of(x, y, N, 1);
  assert_int_equal(t.verdict, M6_VERDICT_SHRINKS);
  assert_true(fabs(t.slope + 50) < 2.5);
}
static void few_points_flat_points_and_odd_input(void **state)
{
  (void)state;
  double x[N], y[N];
  for (int i = 0; i < N; i++) x[i] = i, y[i] = 5;
  for (uint32_t n = 0; n < M6_TREND_MIN; n++) {
    struct m6_trend t = m6_trend_of(x, y, n, 1);
    assert_int_equal(t.verdict, M6_VERDICT_UNKNOWN);
    assert_true(isnan(t.slope));
  }
  struct m6_trend t = m6_trend_of(x, y, N, 1);
  assert_int_equal(t.verdict, M6_VERDICT_STEADY);
  assert_true(t.slope == 0);
  for (int i = 0; i < N; i++) x[i] = 3; /* no frames between them */
  t = m6_trend_of(x, y, N, 1);
  assert_int_not_equal(t.verdict, M6_VERDICT_GROWS);
  assert_int_not_equal(t.verdict, M6_VERDICT_SHRINKS);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_leak_is_found_within_five_percent),
    cmocka_unit_test(without_one_there_is_hardly_a_false_alarm),
    cmocka_unit_test(what_warms_up_is_no_leak),
    cmocka_unit_test(what_shrinks_is_told_too),
    cmocka_unit_test(few_points_flat_points_and_odd_input),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
