/* links: collector/governor.c -lm */
/* test_governor - the governor by injected time and spending: it measures a share, steps down after its patience, up with hysteresis, ends
 * below the last rung, never swings, never goes above what was asked for; and samples weigh what their interval was. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collector/governor.h"

#define S 1000000000ull
static const double budget[3] = {0.005, 0.01, 0.03};
static struct m6_governor g;
static struct m6_spent spent;
static uint64_t start;
static uint32_t sites;      /* that are asked for */
static double sites_demand; /* what they cost at that, and less the more seldom they are */

/* A target that costs `demand` (a share of a core) at each rung; by level and interval. */
static double demand[3][2];

static void begin(enum m6_level level)
{
  start = 1000 * S;
  spent = (struct m6_spent){.now = start};
  m6_governor_begin(&g, level, budget, sites, start);
}
static void demands(double memory, double lite, double full)
{
  for (int i = 0; i < 2; i++) {
    demand[0][i] = memory / (1 + i);
    demand[1][i] = lite / (1 + i);
    demand[2][i] = full / (1 + i);
  }
}
/* Half a second passes; a third of the cost each in the shim, the kernel, the collector. */
static enum m6_governor_says tick(double target_cores)
{
  double ns = 0.5e9 * demand[g.at.level][g.at.interval - 1];
  spent.now += S / 2;
  spent.shim += (uint64_t)(ns / 3);
  spent.kernel += (uint64_t)(ns / 3);
  spent.collector += (uint64_t)(ns / 3);
  spent.target_cpu += (uint64_t)(0.5e9 * target_cores);
  double of_sites = sites ? 0.5e9 * sites_demand * (sites > 1 ? sites : 16) / (g.at.sites > 1 ? g.at.sites : 16) : 0;
  spent.sites += (uint64_t)of_sites;
  spent.shim += (uint64_t)(of_sites / 2);
  spent.collector += (uint64_t)(of_sites / 2);
  return m6_governor_look(&g, &spent);
}
/* Seconds until it says something else than STAY, `most` at most; 0 when it did not. */
static double until(enum m6_governor_says *says, double most)
{
  for (double s = 0.5; s <= most; s += 0.5)
    if ((*says = tick(0.5)) != M6_GOVERNOR_STAY) return s;
  *says = M6_GOVERNOR_STAY;
  return 0;
}

static void within_its_budget_nothing_happens(void **state)
{
  (void)state;
  enum m6_governor_says says;
  begin(M6_LEVEL_FULL);
  demands(0.004, 0.009, 0.029);
  assert_true(until(&says, 300) == 0);
  assert_int_equal(g.steps_total, 0);
  assert_true(fabs(g.cost - 0.029) < 1e-4);
  assert_true(fabs(g.shim + g.kernel + g.collector - g.cost) < 1e-9);
  assert_int_equal(g.overs[M6_LEVEL_FULL], 0);
}
static void the_share_is_of_one_core_or_of_the_targets_time_when_that_is_more(void **state)
{
  (void)state;
  begin(M6_LEVEL_FULL);
  demands(0, 0, 0.08);
  for (int i = 0; i < 6; i++) tick(0.1);
  assert_true(fabs(g.cost - 0.08) < 1e-3);
  begin(M6_LEVEL_FULL);
  for (int i = 0; i < 6; i++) tick(4); /* four cores busy */
  assert_true(fabs(g.cost - 0.02) < 1e-3);
}
static void over_for_a_moment_is_no_step(void **state)
{
  (void)state;
  begin(M6_LEVEL_FULL);
  for (int round = 0; round < 50; round++) {
    demands(0, 0, 0.05);
    for (int i = 0; i < 4; i++) assert_int_equal(tick(0.5), M6_GOVERNOR_STAY);
    demands(0, 0, 0.005);
    for (int i = 0; i < 8; i++) assert_int_equal(tick(0.5), M6_GOVERNOR_STAY);
  }
  assert_int_equal(g.steps_total, 0);
  assert_true(g.overs[M6_LEVEL_FULL] > 0); /* each measurement over it is counted */
}
static void it_steps_down_interval_first_then_level(void **state)
{
  (void)state;
  static const struct m6_rung want[] = {{2, 2, 0}, {1, 1, 0}, {1, 2, 0}, {0, 1, 0}, {0, 2, 0}};
  enum m6_governor_says says;
  begin(M6_LEVEL_FULL);
  demands(1, 1, 1);
  for (unsigned i = 0; i < 5; i++) {
    double s = until(&says, 20);
    assert_int_equal(says, M6_GOVERNOR_DOWN);
    assert_true(s >= M6_GOVERNOR_OVER_NS / 1e9 && s <= (M6_GOVERNOR_OVER_NS + M6_GOVERNOR_WINDOW_NS) / 1e9 + 0.5);
    assert_int_equal(g.at.level, want[i].level);
    assert_int_equal(g.at.interval, want[i].interval);
  }
  until(&says, 20);
  assert_int_equal(says, M6_GOVERNOR_END); /* nothing is left below */
  struct m6_snap_step steps[M6_SNAP_STEPS];
  assert_int_equal(m6_governor_steps(&g, steps), 5);
  for (unsigned i = 0; i < 5; i++) {
    assert_int_equal(steps[i].to_level, want[i].level);
    assert_int_equal(steps[i].to_interval, want[i].interval);
    assert_true(steps[i].cost > steps[i].budget);
    assert_true(i == 0 || steps[i].at_ns > steps[i - 1].at_ns);
  }
}
static void it_ends_at_a_level_whose_budget_holds(void **state)
{
  (void)state;
  for (int n = 0; n < 400; n++) { /* any costs, monotone from level to level */
    double m = 0.0001 * (1 + n % 20), l = m * (1 + n % 7), f = l * (1 + n / 20 % 5);
    enum m6_governor_says says = M6_GOVERNOR_STAY;
    begin(M6_LEVEL_FULL);
    demands(m, l, f);
    for (int i = 0; i < 400 && says != M6_GOVERNOR_END; i++) says = tick(0.5);
    /* A step up is tried now and then: it must not stay where it does not fit. */
    unsigned over = 0;
    for (int i = 0; i < 1200 && says != M6_GOVERNOR_END; i++) {
      says = tick(0.5);
      over += g.cost > g.budget[g.at.level];
    }
    assert_int_not_equal(says, M6_GOVERNOR_END);
    assert_true(over < 120); /* a tenth of the time */
  }
}
static void on_the_last_rung_a_little_more_is_counted_and_no_end(void **state)
{
  (void)state;
  enum m6_governor_says says;
  begin(M6_LEVEL_MEMORY);
  demands(0.02, 0, 0); /* 0.01 on the last rung: twice the budget */
  until(&says, 20);
  assert_int_equal(says, M6_GOVERNOR_DOWN);
  uint64_t before = g.overs[0];
  assert_true(until(&says, 300) == 0);
  assert_true(g.overs[0] > before + 500);
  demands(0.05, 0, 0); /* five times */
  double s = until(&says, 20);
  assert_int_equal(says, M6_GOVERNOR_END);
  assert_true(s >= M6_GOVERNOR_OVER_NS / 1e9);
}
static void it_steps_up_again_when_there_is_room(void **state)
{
  (void)state;
  enum m6_governor_says says;
  begin(M6_LEVEL_LITE);
  demands(0.001, 0.5, 0.5);
  while (g.at.level != M6_LEVEL_MEMORY) tick(0.5);
  demands(0.001, 0.002, 0.002);
  double s = until(&says, 60);
  assert_int_equal(says, M6_GOVERNOR_UP);
  assert_true(s >= M6_GOVERNOR_UNDER_NS / 1e9);
  assert_int_equal(g.at.level, M6_LEVEL_LITE);
  assert_int_equal(g.at.interval, 2);
  until(&says, 60);
  assert_int_equal(g.at.interval, 1);
  assert_true(until(&says, 300) == 0); /* what was asked for is the top, whatever room there is */
  assert_int_equal(g.at.level, M6_LEVEL_LITE);
}
static void all_levels_come_back_one_by_one_and_not_before_their_time(void **state)
{
  (void)state;
  static const struct m6_rung want[] = {{1, 2, 0}, {1, 1, 0}, {2, 2, 0}, {2, 1, 0}};
  enum m6_governor_says says;
  begin(M6_LEVEL_FULL);
  demands(0.001, 0.5, 0.5);
  while (g.at.level != M6_LEVEL_MEMORY) tick(0.5);
  demands(0.001, 0.004, 0.008);
  for (unsigned i = 0; i < 4; i++) {
    double s = until(&says, 60);
    assert_int_equal(says, M6_GOVERNOR_UP);
    assert_true(s >= M6_GOVERNOR_UNDER_NS / 1e9 && s <= (M6_GOVERNOR_UNDER_NS + M6_GOVERNOR_WINDOW_NS) / 1e9 + 0.5);
    assert_int_equal(g.at.level, want[i].level);
    assert_int_equal(g.at.interval, want[i].interval);
  }
  assert_true(until(&says, 300) == 0);
  /* One that did not hold has to wait for twice as long. */
  demands(0.001, 0.004, 0.1);
  while (g.at.level != M6_LEVEL_LITE) tick(0.5);
  demands(0.001, 0.004, 0.004);
  until(&says, 60);
  assert_int_equal(g.at.level, M6_LEVEL_FULL);
  demands(0.001, 0.004, 0.1);
  until(&says, 9);
  assert_int_equal(says, M6_GOVERNOR_DOWN);
  demands(0.001, 0.004, 0.004);
  assert_true(until(&says, 60) >= 2 * M6_GOVERNOR_UNDER_NS / 1e9);
  assert_int_equal(g.at.level, M6_LEVEL_FULL);
}
static void a_level_that_cannot_be_had_is_the_end_of_the_ladder(void **state)
{
  (void)state;
  enum m6_governor_says says;
  begin(M6_LEVEL_FULL);
  demands(0.001, 0.5, 0.5);
  while (g.at.level != M6_LEVEL_MEMORY) tick(0.5);
  demands(0.001, 0.004, 0.008);
  until(&says, 60);
  m6_governor_refused(&g, M6_LEVEL_MEMORY, spent.now);
  assert_int_equal(g.at.level, M6_LEVEL_MEMORY);
  assert_int_equal(g.at.interval, 1);
  assert_true(until(&says, 600) == 0);
  uint64_t steps = g.steps_total;
  m6_governor_refused(&g, M6_LEVEL_MEMORY, spent.now);
  assert_int_equal(g.steps_total, steps);
}
static void between_half_the_budget_and_all_of_it_it_stays(void **state)
{
  (void)state;
  enum m6_governor_says says;
  begin(M6_LEVEL_MEMORY);
  demands(0.011, 0, 0);
  until(&says, 20);
  assert_int_equal(says, M6_GOVERNOR_DOWN); /* to the longer interval: 0.0055 is still too much */
  demands(0.008, 0, 0);                     /* 0.004: fits here, is no room for more */
  assert_true(until(&says, 300) == 0);
}
static void steps_up_that_do_not_hold_come_more_and_more_seldom(void **state)
{
  (void)state;
  uint64_t ups = 0, last = 0, gap = 0;
  begin(M6_LEVEL_LITE);
  demands(0.001, 0.5, 0.5); /* lite never fits */
  for (int i = 0; i < 7200; i++) {
    if (tick(0.5) != M6_GOVERNOR_UP) continue;
    if (last) gap = spent.now - last;
    last = spent.now;
    ups++;
  }
  assert_true(ups > 3 && ups < 40); /* in an hour */
  assert_true(gap >= M6_GOVERNOR_UNDER_NS * M6_GOVERNOR_BACKOFF_MAX);
}
static void a_counter_that_falls_back_is_no_cost(void **state)
{
  (void)state;
  begin(M6_LEVEL_MEMORY);
  demands(0.001, 0, 0);
  for (int i = 0; i < 20; i++) tick(0.5);
  spent.shim = 0;
  for (int i = 0; i < 20; i++) assert_int_equal(tick(0.5), M6_GOVERNOR_STAY);
  assert_true(g.cost >= 0 && g.cost < 0.005);
}
static void sites_are_sampled_more_seldom_before_a_level_goes(void **state)
{
  (void)state;
  enum m6_governor_says says;
  sites = 512 << 10;
  sites_demand = 0.06;
  begin(M6_LEVEL_LITE);
  demands(0.001, 0.004, 0.004);
  for (unsigned i = 1; i <= 4; i++) { /* 0.06 / 16 and 0.004 are within 0.01 */
    until(&says, 20);
    if (says == M6_GOVERNOR_STAY) break;
    assert_int_equal(says, M6_GOVERNOR_DOWN);
    assert_int_equal(g.at.level, M6_LEVEL_LITE);
    assert_int_equal(g.at.interval, 1);
    assert_int_equal(g.at.sites, sites << i);
  }
  assert_int_equal(g.at.sites, sites << 4);
  assert_true(until(&says, 100) == 0);
  struct m6_snap_step steps[M6_SNAP_STEPS];
  assert_int_equal(m6_governor_steps(&g, steps), 4);
  assert_int_equal(steps[3].from_sites, sites << 3);
  assert_int_equal(steps[3].to_sites, sites << 4);
  /* There is room: first they come back, one doubling at a time. */
  sites_demand = 0.001;
  for (unsigned i = 4; i-- > 0;) {
    until(&says, 400);
    assert_int_equal(says, M6_GOVERNOR_UP);
    assert_int_equal(g.at.sites, sites << i);
  }
  assert_true(until(&says, 100) == 0);
  sites = 0;
}
static void sites_that_cost_nothing_are_left_alone(void **state)
{
  (void)state;
  enum m6_governor_says says;
  sites = 512 << 10;
  sites_demand = 0.0001;
  begin(M6_LEVEL_LITE);
  demands(0.001, 0.5, 0.5);
  until(&says, 20);
  assert_int_equal(says, M6_GOVERNOR_DOWN);
  assert_int_equal(g.at.interval, 2);
  assert_int_equal(g.at.sites, sites);
  sites = 0;
}
static void every_allocation_becomes_a_sample_and_the_last_is_the_longest_distance(void **state)
{
  (void)state;
  static const uint32_t want[] = {1024, 2048, 4096, 8192, 16384, 32768, 65536, 256u << 20};
  enum m6_governor_says says;
  sites = 1;
  sites_demand = 1000;
  begin(M6_LEVEL_MEMORY);
  demands(0.001, 0, 0);
  for (unsigned i = 0; i < sizeof want / sizeof *want; i++) {
    until(&says, 20);
    assert_int_equal(says, M6_GOVERNOR_DOWN);
    assert_int_equal(g.at.sites, want[i]);
    assert_int_equal(g.at.interval, 1);
  }
  sites_demand = 1e-6;
  for (unsigned i = sizeof want / sizeof *want - 1; i-- > 0;) {
    until(&says, 4000);
    assert_int_equal(says, M6_GOVERNOR_UP);
    assert_int_equal(g.at.sites, want[i]);
  }
  until(&says, 4000);
  assert_int_equal(g.at.sites, 1);
  sites = 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(within_its_budget_nothing_happens),
    cmocka_unit_test(the_share_is_of_one_core_or_of_the_targets_time_when_that_is_more),
    cmocka_unit_test(over_for_a_moment_is_no_step),
    cmocka_unit_test(it_steps_down_interval_first_then_level),
    cmocka_unit_test(it_ends_at_a_level_whose_budget_holds),
    cmocka_unit_test(on_the_last_rung_a_little_more_is_counted_and_no_end),
    cmocka_unit_test(it_steps_up_again_when_there_is_room),
    cmocka_unit_test(all_levels_come_back_one_by_one_and_not_before_their_time),
    cmocka_unit_test(a_level_that_cannot_be_had_is_the_end_of_the_ladder),
    cmocka_unit_test(between_half_the_budget_and_all_of_it_it_stays),
    cmocka_unit_test(steps_up_that_do_not_hold_come_more_and_more_seldom),
    cmocka_unit_test(a_counter_that_falls_back_is_no_cost),
    cmocka_unit_test(sites_are_sampled_more_seldom_before_a_level_goes),
    cmocka_unit_test(sites_that_cost_nothing_are_left_alone),
    cmocka_unit_test(every_allocation_becomes_a_sample_and_the_last_is_the_longest_distance),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
