/* links: collector/histogram.c -lm */
/* sanitizers: address */
/* test_histogram - quantiles within a bucket's width of the true order statistic, lows exact but for one bucket, no bad index. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/histogram.h"
#include "collector/reservoir.h"

static int ascending(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void buckets_follow_each_other(void **state)
{
  (void)state;
  uint32_t last = 0;
  for (uint64_t ns = 0; ns < 3000000; ns++) {
    uint32_t b = m6_histogram_bucket(ns);
    assert_true(b == last || b == last + 1);
    last = b;
  }
  for (int shift = 0; shift < 64; shift++) {
    assert_true(m6_histogram_bucket(1ull << shift) < M6_HIST_BUCKETS);
    assert_true(m6_histogram_bucket((1ull << shift) - 1) <= m6_histogram_bucket(1ull << shift));
  }
  assert_int_equal(m6_histogram_bucket(UINT64_MAX), M6_HIST_BUCKETS - 1);
}

static void quantiles_are_within_a_bucket(void **state)
{
  (void)state;
  enum { N = 5000 };
  static uint64_t values[N];
  struct m6_rng rng;
  m6_rng_seed(&rng, 3);
  for (int shape = 0; shape < 4; shape++) {
    static struct m6_histogram h;
    memset(&h, 0, sizeof h);
    for (int i = 0; i < N; i++) {
      uint64_t u = m6_rng_next(&rng) >> 11;
      double x = (double)u / (double)(1ull << 53);
      values[i] = shape == 0 ? 1000000 + (uint64_t)(x * 15e6) : shape == 1 ? (uint64_t)exp(x * 25)
                  : shape == 2 ? (i % 2 ? 1000000 : 4000000) : (uint64_t)(x * 40);
      m6_histogram_add(&h, values[i]);
    }
    qsort(values, N, sizeof values[0], ascending);
    for (double q = 0.01; q < 1; q += 0.01) {
      double is = (double)m6_histogram_quantile(&h, q), want = (double)values[(int)ceil(q * N) - 1];
      assert_true(fabs(is - want) <= want / M6_HIST_SUB + 1);
    }
    assert_int_equal(m6_histogram_quantile(&h, 1.0), values[N - 1]);
    for (double share = 0.01; share <= 0.1; share += 0.03) {
      double time = 0;
      int slowest = (int)floor(N * share);
      for (int i = N - slowest; i < N; i++) time += (double)values[i];
      double low = m6_histogram_low(&h, share, 100), want = slowest / (time * 1e-9);
      assert_true(fabs(low - want) <= want / M6_HIST_SUB);
    }
  }
}

static void too_few_frames_have_no_low(void **state)
{
  (void)state;
  static struct m6_histogram h;
  assert_int_equal(m6_histogram_quantile(&h, 0.5), 0);
  assert_true(isnan(m6_histogram_low(&h, 0.01, 100)));
  for (int i = 0; i < 99; i++) m6_histogram_add(&h, 1000000);
  assert_true(isnan(m6_histogram_low(&h, 0.01, 100)));
  m6_histogram_add(&h, 10000000);
  assert_true(fabs(m6_histogram_low(&h, 0.01, 100) - 100) < 0.01);
  assert_true(isnan(m6_histogram_low(&h, 0.001, 1000)));
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(buckets_follow_each_other), cmocka_unit_test(quantiles_are_within_a_bucket),
                                     cmocka_unit_test(too_few_frames_have_no_low)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
