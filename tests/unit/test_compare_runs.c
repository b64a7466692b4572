/* links: collector/stats_check_kernel.c collector/stats_kernel.c tools/mach6/compare_runs.c */
/* links: tools/mach6/compare.c tools/mach6/rank.c collector/dump_table.c collector/dump_encode.c collector/dump_read.c */
/* links: collector/dump_skim.c collector/stats.c collector/stats_load.c collector/stats_check.c collector/reservoir.c -lmsgpackc -lm */
/* sanitizers: address */
/* test_compare_runs - mach6 diff with several runs a side: equal programs whose runs differ give no alarm, where a pair of runs does; a regression
 * beyond that is found; Student's t is what tables have. Games that never ran, from seeds; nothing is timed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dump_play.h"
#include "tools/mach6/compare_runs.h"

static const struct compare_options usual = {0.01, 0.01};

/* Runs of a program in which scope 04 takes `factor` as long, and differs from run to run by `sd`. */
static void runs(mach6_stats *out[], uint32_t n, uint64_t seed, double factor, double sd)
{
  struct m6_rng r;
  m6_rng_seed(&r, seed * 7919 + 3);
  for (uint32_t i = 0; i < n; i++) {
    struct dump_game g = {.seed = seed * 100 + i, .frames = 400, .scopes = 8, .slow = 4};
    g.slower = factor * exp(sd * dg_normal(&r));
    out[i] = dg_play(&g);
  }
}
static void close_all(mach6_stats *run[], uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) mach6_stats_close(run[i]);
}
static const struct runs_row *scope(const struct runs_comparison *c, const char *path)
{
  for (uint32_t i = 1; i < c->count; i++)
    if (strcmp(c->row[i].path, path) == 0) return &c->row[i];
  fail_msg("no row %s", path);
  return NULL;
}

static void equal_programs_give_at_most_one_false_alarm_in_20_comparisons(void **state)
{
  (void)state;
  int alarms = 0, of_pairs = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    mach6_stats *a[4], *b[4];
    struct runs_comparison c;
    struct comparison pair;
    runs(a, 4, 2 * seed, 1, 0.08);
    runs(b, 4, 2 * seed + 1, 1, 0.08);
    assert_int_equal(compare_runs(a, 4, b, 4, &usual, &c), 0);
    alarms += c.changed != 0;
    assert_int_equal(compare(a[0], b[0], &usual, &pair), 0);
    of_pairs += pair.changed != 0;
    compare_free(&pair);
    compare_runs_free(&c);
    close_all(a, 4);
    close_all(b, 4);
  }
  print_message("# %d of 20; of pairs of single runs %d\n", alarms, of_pairs);
  assert_true(alarms <= 1);
  assert_true(of_pairs >= 5); /* which is why several are needed */
}
static void a_regression_beyond_what_runs_differ_by_is_found(void **state)
{
  (void)state;
  int found = 0, elsewhere = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    mach6_stats *a[5], *b[5];
    struct runs_comparison c;
    runs(a, 5, 1000 + 2 * seed, 1, 0.02);
    runs(b, 5, 1001 + 2 * seed, 1.15, 0.02);
    assert_int_equal(compare_runs(a, 5, b, 5, &usual, &c), 0);
    const struct runs_row *r = scope(&c, "frame/scope 04");
    found += r->changed && r->low < 1.15 * 1.03 && r->high > 1.15 * 0.97;
    for (uint32_t i = 1; i < c.count; i++)
      elsewhere += &c.row[i] != r && c.row[i].changed && strcmp(c.row[i].path, "frame") != 0;
    assert_int_equal(r->runs_a, 5);
    compare_runs_free(&c);
    close_all(a, 5);
    close_all(b, 5);
  }
  print_message("# found in %d of 20; alarms elsewhere %d\n", found, elsewhere);
  assert_true(found >= 18);
  assert_true(elsewhere <= 1);
}
static void what_is_in_too_few_runs_is_not_compared(void **state)
{
  (void)state;
  mach6_stats *a[2], *b[2];
  struct runs_comparison c;
  struct dump_game few = {.seed = 9, .frames = 10, .scopes = 8}, many = {.seed = 10, .frames = 100, .scopes = 9};
  a[0] = dg_play(&few), a[1] = dg_play(&many), b[0] = dg_play(&many), b[1] = dg_play(&many);
  assert_int_equal(compare_runs(a, 2, b, 2, &usual, &c), 0);
  assert_int_equal(c.row[0].runs_a, 1);
  assert_int_equal(c.tested, 0);
  assert_int_equal(scope(&c, "frame/scope 09")->runs_a, 1);
  assert_int_equal(scope(&c, "frame/scope 09")->runs_b, 2);
  assert_int_equal(c.too_few, c.count - 1);
  compare_runs_free(&c);
  close_all(a, 2);
  close_all(b, 2);
}
static void runs_that_are_alike_are_no_proof(void **state)
{
  (void)state;
  mach6_stats *a[2], *b[2];
  struct runs_comparison c;
  struct dump_game g = {.seed = 20, .frames = 400, .scopes = 3};
  for (int i = 0; i < 2; i++) a[i] = dg_play(&g), b[i] = dg_play(&g);
  assert_int_equal(compare_runs(a, 2, b, 2, &usual, &c), 0);
  assert_true(c.tested > 0);
  assert_int_equal(c.changed, 0);
  for (uint32_t i = 0; i < c.count; i++) assert_true(c.row[i].p == 1 && c.row[i].ratio == 1 && c.row[i].low < 1);
  compare_runs_free(&c);
  close_all(a, 2);
  close_all(b, 2);
}
static void students_t(void **state)
{
  (void)state;
  static const struct { /* two-sided 5 % and 1 % points */
    double df, five, one;
  } table[] = {{1, 12.706, 63.657}, {2, 4.303, 9.925},  {4, 2.776, 4.604},
               {8, 2.306, 3.355},   {30, 2.042, 2.750}, {1e6, 1.960, 2.576}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    assert_true(fabs(student_t(0.05, table[i].df) - table[i].five) < 0.001);
    assert_true(fabs(student_t(0.01, table[i].df) - table[i].one) < 0.001);
    assert_true(fabs(student_p(table[i].five, table[i].df) - 0.05) < 0.0001);
  }
  assert_true(student_p(0, 3) == 1);
  assert_true(student_p(1e6, 3) < 1e-12);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_programs_give_at_most_one_false_alarm_in_20_comparisons),
    cmocka_unit_test(a_regression_beyond_what_runs_differ_by_is_found),
    cmocka_unit_test(what_is_in_too_few_runs_is_not_compared),
    cmocka_unit_test(runs_that_are_alike_are_no_proof),
    cmocka_unit_test(students_t),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
