/* links: collector/reservoir.c */
/* sanitizers: address */
/* test_reservoir - Algorithm R keeps each value with the same probability, merged reservoirs too; quantiles are right. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collector/reservoir.h"

enum { VALUES = 1280, BINS = 16, ROUNDS = 2000 };

/* chi-squared of how often the sample fell into BINS equal parts of the stream; 15 degrees of freedom: 99.9 % lie below 37.7,
 * and without replacement the true variance is smaller still. */
static double spread(const uint64_t bins[BINS], uint64_t total)
{
  double expected = (double)total / BINS, x = 0;
  for (int i = 0; i < BINS; i++) x += ((double)bins[i] - expected) * ((double)bins[i] - expected) / expected;
  return x;
}
static void count(const struct m6_reservoir *r, uint64_t bins[BINS])
{
  for (uint32_t i = 0; i < m6_reservoir_size(r); i++) bins[(int)r->sample[i] / (VALUES / BINS)]++;
}

static void every_value_has_the_same_chance(void **state)
{
  (void)state;
  struct m6_rng rng;
  uint64_t bins[BINS] = {0};
  m6_rng_seed(&rng, 7);
  for (int round = 0; round < ROUNDS; round++) {
    struct m6_reservoir r = {.seen = 0};
    for (int i = 0; i < VALUES; i++) m6_reservoir_add(&r, &rng, (float)i);
    assert_int_equal(r.seen, VALUES);
    count(&r, bins);
  }
  assert_true(spread(bins, (uint64_t)ROUNDS * M6_RESERVOIR) < 37.7);
}

/* Streams of different lengths, more and less than a reservoir: after the merge nobody's values weigh more. */
static void merging_is_fair(void **state)
{
  (void)state;
  static const int cuts[] = {40, 128, 129, 300, 640, 1000, 1200};
  struct m6_rng rng;
  m6_rng_seed(&rng, 11);
  for (size_t k = 0; k < sizeof cuts / sizeof cuts[0]; k++) {
    uint64_t bins[BINS] = {0};
    for (int round = 0; round < ROUNDS; round++) {
      struct m6_reservoir a = {.seen = 0}, b = {.seen = 0};
      for (int i = 0; i < cuts[k]; i++) m6_reservoir_add(&a, &rng, (float)i);
      for (int i = cuts[k]; i < VALUES; i++) m6_reservoir_add(&b, &rng, (float)i);
      m6_reservoir_merge(&a, &b, &rng);
      assert_int_equal(a.seen, VALUES);
      count(&a, bins);
    }
    assert_true(spread(bins, (uint64_t)ROUNDS * M6_RESERVOIR) < 37.7);
  }
}

static void small_streams_are_kept_whole(void **state)
{
  (void)state;
  struct m6_rng rng;
  struct m6_reservoir r = {.seen = 0}, empty = {.seen = 0};
  m6_rng_seed(&rng, 1);
  struct m6_quantiles q = m6_reservoir_quantiles(&r);
  assert_true(q.p10 == 0 && q.p50 == 0 && q.p90 == 0);
  m6_reservoir_add(&r, &rng, 5);
  q = m6_reservoir_quantiles(&r);
  assert_true(q.p10 == 5 && q.p50 == 5 && q.p90 == 5);
  for (int i = 1; i <= 100; i++) m6_reservoir_add(&r, &rng, (float)i * 10);
  m6_reservoir_merge(&r, &empty, &rng);
  assert_int_equal(r.seen, 101);
  q = m6_reservoir_quantiles(&r); /* 5, 10, 20, ... 1000 */
  assert_true(fabs(q.p10 - 100) < 0.01 && fabs(q.p50 - 500) < 0.01 && fabs(q.p90 - 900) < 0.01);
}

static void same_seed_same_sample(void **state)
{
  (void)state;
  struct m6_reservoir r[2];
  memset(r, 0, sizeof r);
  for (int k = 0; k < 2; k++) {
    struct m6_rng rng;
    m6_rng_seed(&rng, 99);
    for (int i = 0; i < 10000; i++) m6_reservoir_add(&r[k], &rng, (float)i);
  }
  assert_memory_equal(&r[0], &r[1], sizeof r[0]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_value_has_the_same_chance), cmocka_unit_test(merging_is_fair),
    cmocka_unit_test(small_streams_are_kept_whole), cmocka_unit_test(same_seed_same_sample)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
