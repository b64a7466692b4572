/* links: collector/stats_check_kernel.c collector/stats_kernel.c */
/* links: tools/mach6/compare.c tools/mach6/rank.c collector/dump_table.c collector/dump_encode.c collector/dump_read.c */
/* links: collector/dump_skim.c collector/stats.c collector/stats_load.c collector/stats_check.c collector/reservoir.c -lmsgpackc -lm */
/* sanitizers: address */
/* test_compare - mach6 diff's judgement: a regression of 5 % of one scope's median is found, equal runs give no alarm, and the
 * statistics behind it are what they are called. Games that never ran, from seeds; nothing is timed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dump_play.h"
#include "tools/mach6/compare.h"

static const struct compare_options usual = {0.01, 0.01};

static struct comparison between(const struct dump_game *a, const struct dump_game *b)
{
  struct comparison c;
  mach6_stats *x = dg_play(a), *y = dg_play(b);
  assert_int_equal(compare(x, y, &usual, &c), 0);
  for (uint32_t i = 0; i < c.count; i++) { /* labels die with the handles: keep the number of the scope */
    const char *label = i ? c.row[i].b ? c.row[i].b->label : c.row[i].a->label : "";
    c.row[i].n_a = strncmp(label, "scope ", 6) ? 0 : (uint32_t)atoi(label + 6);
  }
  mach6_stats_close(x);
  mach6_stats_close(y);
  return c;
}

static void a_planted_regression_of_5_percent_is_found(void **state)
{
  (void)state;
  /* What 128 samples can see depends on how far calls spread: a spread of 6 % and more than that. */
  static const struct {
    double spread;
    int least;
  } spreads[] = {{0.06, 19}, {0.08, 13}};
  int found = 0, others = 0;
  for (size_t k = 0; k < 2; k++, found = others = 0) {
    for (uint64_t seed = 0; seed < 20; seed++) {
      struct dump_game a = {.seed = 1000 + seed, .frames = 1200, .scopes = 20, .spread = spreads[k].spread}, b = a;
      b.seed = 5000 + seed;
      b.slow = 1 + (uint32_t)seed;
      b.slower = 1.05;
      struct comparison c = between(&a, &b);
      assert_int_equal(c.tested, 22); /* frame times, the frame, its scopes */
      for (uint32_t i = 0; i < c.count; i++) {
        const struct compare_row *r = &c.row[i];
        if (r->n_a != b.slow) {
          others += r->changed && r->n_a != 0; /* the frame holds the slower scope: it may be seen */
          continue;
        }
        found += r->changed && r->rank.ratio > 1;
        assert_true(r->rank.low < r->rank.ratio && r->rank.ratio < r->rank.high);
        assert_true(r->rank.ratio > 1.01 && r->rank.ratio < 1.10);
      }
      compare_free(&c);
    }
    print_message("# spread %g: found in %d of 20 pairs; %d alarms elsewhere\n", spreads[k].spread, found, others);
    assert_true(found >= spreads[k].least);
    assert_true(others <= 1);
  }
}

static void equal_runs_give_at_most_one_false_alarm_in_20_pairs(void **state)
{
  (void)state;
  static const double drifts[] = {0.02, 0.08}; /* a run that wanders says less than its number of frames */
  for (int k = 0; k < 2; k++) {
    int alarms = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
      struct dump_game a = {.seed = 1 + 2 * seed, .frames = 1200, .scopes = 20, .drift = drifts[k]}, b = a;
      b.seed = 2 + 2 * seed;
      struct comparison c = between(&a, &b);
      alarms += c.changed != 0;
      compare_free(&c);
    }
    print_message("# drift %g: %d of 20 pairs\n", drifts[k], alarms);
    assert_true(alarms <= 1);
  }
}

static void a_recording_is_equal_to_itself(void **state)
{
  (void)state;
  struct dump_game g = {.seed = 7, .frames = 600, .scopes = 5};
  struct comparison c = between(&g, &g);
  assert_int_equal(c.changed, 0);
  for (uint32_t i = 0; i < c.count; i++) {
    assert_true(c.row[i].rank.ratio == 1);
    assert_true(c.row[i].p_all == 1);
  }
  compare_free(&c);
}

static void scopes_of_one_side_and_scopes_with_few_calls_are_told(void **state)
{
  (void)state;
  struct dump_game a = {.seed = 7, .frames = 600, .scopes = 5}, b = a;
  b.scopes = 8;
  struct comparison c = between(&a, &b);
  assert_int_equal(c.only_b, 3);
  assert_int_equal(c.only_a, 0);
  compare_free(&c);
  c = between(&b, &a);
  assert_int_equal(c.only_a, 3);
  compare_free(&c);
  a.frames = b.frames = 19;
  c = between(&a, &b);
  assert_int_equal(c.too_few, 6);
  assert_int_equal(c.tested, 0);
  assert_true(isnan(c.resolution));
  compare_free(&c);
}

/* ---- the statistics ------------------------------------------------------------------------------------------------- */

static void ranks_agree_with_a_count_of_pairs(void **state)
{
  (void)state;
  double a[40], b[30];
  struct m6_rng r;
  m6_rng_seed(&r, 5);
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < 40; i++) a[i] = (double)m6_rng_below(&r, round < 25 ? 12 : 1000000);
    for (int i = 0; i < 30; i++) b[i] = (double)m6_rng_below(&r, round < 25 ? 12 : 1000000) + round % 3;
    double wins = 0, all = 70, ties = 0;
    for (int i = 0; i < 40; i++)
      for (int k = 0; k < 30; k++) wins += b[k] > a[i] ? 1 : b[k] == a[i] ? 0.5 : 0;
    for (int v = 0; v < 20 && round < 25; v++) {
      double t = 0;
      for (int i = 0; i < 40; i++) t += a[i] == v;
      for (int i = 0; i < 30; i++) t += b[i] == v;
      ties += t * t * t - t;
    }
    double z = (wins - 600) / sqrt(1200.0 / 12 * (71 - ties / (all * (all - 1))));
    qsort(a, 40, sizeof *a, dg_by_double);
    qsort(b, 30, sizeof *b, dg_by_double);
    struct rank_result got = rank_compare(&(struct rank_side){a, 40, 40}, &(struct rank_side){b, 30, 30});
    if (round < 25) assert_true(fabs(got.z - z) < 1e-9);
    else assert_true(fabs(got.z - z) < 0.02); /* ties among a million are few */
  }
}

static void p_values_of_equal_samples_are_uniform(void **state)
{
  (void)state;
  struct m6_rng r;
  m6_rng_seed(&r, 11);
  int below_1 = 0, below_10 = 0, covered = 0, rounds = 1500;
  for (int i = 0; i < rounds; i++) {
    double a[128], b[128];
    for (int k = 0; k < 128; k++) a[k] = dg_normal(&r), b[k] = dg_normal(&r);
    qsort(a, 128, sizeof *a, dg_by_double);
    qsort(b, 128, sizeof *b, dg_by_double);
    struct rank_result got = rank_compare(&(struct rank_side){a, 128, 128}, &(struct rank_side){b, 128, 128});
    below_1 += got.p < 0.01;
    below_10 += got.p < 0.1;
    covered += got.low <= 1 && got.high >= 1;
  }
  print_message("# of %d: %d below 0.01, %d below 0.1, %d intervals cover\n", rounds, below_1, below_10, covered);
  assert_in_range(below_1, 3, 30);
  assert_in_range(below_10, 105, 195);
  assert_in_range(covered, 1390, 1460);
}

static void dependence_inflates(void **state)
{
  (void)state;
  static double v[20000];
  struct m6_rng r;
  m6_rng_seed(&r, 3);
  for (int i = 0; i < 20000; i++) v[i] = dg_normal(&r);
  assert_true(rank_inflation(v, 20000) < 2);
  double x = 0;
  for (int i = 0; i < 20000; i++) v[i] = x = 0.9 * x + dg_normal(&r);
  double f = rank_inflation(v, 20000); /* (1 + 0.9) / (1 - 0.9) = 19 for the mean */
  assert_true(f > 8 && f < 35);
  assert_true(rank_inflation(v, 63) == 1);
  assert_true(fabs(rank_effective(128, 128, 0, 1) - 128) < 1e-9);
  assert_true(fabs(rank_effective(128, 1000000000, 1000000000, 1) - 128) < 0.1);
  assert_true(fabs(rank_effective(1000, 1000, 1000, 19) - 1000.0 / 19) < 1e-9);
  assert_true(rank_effective(128, 1000, 1000, 19) < 1000.0 / 19);
}

static void holm_is_holm(void **state)
{
  (void)state;
  double p[] = {0.01, NAN, 0.04, 0.03, 0.005};
  assert_int_equal(rank_holm(p, 5), 0);
  assert_true(fabs(p[4] - 0.02) < 1e-12 && fabs(p[0] - 0.03) < 1e-12 && fabs(p[3] - 0.06) < 1e-12);
  assert_true(fabs(p[2] - 0.06) < 1e-12 && isnan(p[1]));
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_agree_with_a_count_of_pairs),
                                     cmocka_unit_test(p_values_of_equal_samples_are_uniform),
                                     cmocka_unit_test(dependence_inflates),
                                     cmocka_unit_test(holm_is_holm),
                                     cmocka_unit_test(a_recording_is_equal_to_itself),
                                     cmocka_unit_test(scopes_of_one_side_and_scopes_with_few_calls_are_told),
                                     cmocka_unit_test(a_planted_regression_of_5_percent_is_found),
                                     cmocka_unit_test(equal_runs_give_at_most_one_false_alarm_in_20_pairs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
