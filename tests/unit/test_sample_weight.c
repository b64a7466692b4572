/* links: collector/kernel_side_level.c collector/budgets.c collector/profile.c collector/sample_join.c -lm */
/* sanitizers: address */
/* test_sample_weight - CPU samples across the governor's steps: each stands for the periods of the rung at which it was taken, so that the
 * sums are CPU time whatever was sampled when. Steps are injected; the sampler is a thread that always runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/budgets.h"
#include "collector/kernel_side.h"

#define S 1000000000ull
#define LOOK 200000000ull
#define PERIOD_US 10101u

/* ---- what kernel_side_level.c asks of the others ------------------------------------------------------------------ */

static uint64_t now;
static struct m6_sample_weights weights;
static int paused, stopped, calls_stopped;

/* kernel_side_hold.c, as far as samples go: they are paused at level memory, and paused when it is left. */
uint32_t m6_kernel_hold(struct m6_kernel_side *side, uint32_t level)
{
  stopped = side->resting = level == M6_LEVEL_MEMORY;
  calls_stopped = level < M6_LEVEL_FULL;
  if (stopped) paused = side->paused = 1, side->looks = 0;
  return side->level;
}
void m6_samples_pause(struct m6_samples *s, int pause) { (void)s, paused = pause; }
void m6_samples_weight(struct m6_samples *s, uint32_t weight) { (void)s, m6_sample_weigh(&weights, now, weight); }
uint64_t m6_samples_ring_bytes(const struct m6_samples *s) { return (void)s, 0; }
uint64_t m6_switches_dropped(const struct m6_switches *s) { return (void)s, 0; }
uint64_t m6_switches_ring_bytes(const struct m6_switches *s) { return (void)s, 0; }

/* Symbols: addresses are the functions' numbers. */
static const char *const names[] = {"", "early", "late", "main"};
const char *m6_symbols_intern(struct m6_symbols *y, const char *text) { return (void)y, text; }
int m6_symbols_is_return(struct m6_symbols *y, uint64_t ip) { return (void)y, ip != 0; }
int m6_symbols_names(struct m6_symbols *y, uint64_t ip, unsigned int flags, struct m6_sym_name *out, int most)
{
  (void)y, (void)flags, (void)most;
  out[0] = (struct m6_sym_name){.function = names[ip], .module = "game", .named = 1};
  return 1;
}

/* ---- a session -------------------------------------------------------------------------------------------------------- */

static struct m6_kernel_side k;
static struct m6_profile *profile;
static uint64_t taken, periods, of_function[3], cpu_function[3];

static int setup(void **state)
{
  (void)state;
  memset(&k, 0, sizeof k);
  memset(&weights, 0, sizeof weights);
  memset(of_function, 0, sizeof of_function);
  memset(cpu_function, 0, sizeof cpu_function);
  k.level = k.level_now = M6_LEVEL_FULL;
  k.duty = 1;
  k.samples = (struct m6_samples *)&k; /* never looked into */
  k.counters = (struct m6_counters *)&k;
  k.sampling.period_us = PERIOD_US;
  profile = m6_profile_new(NULL);
  now = 0, taken = periods = 0, paused = stopped = calls_stopped = 0;
  m6_budget_begin();
  return profile == NULL;
}
static int teardown(void **state)
{
  (void)state;
  m6_profile_free(profile);
  return 0;
}

/* The thread runs `late` for the last third of each second and from 25 s on, else `early`. */
static unsigned running(uint64_t t) { return t % S > S * 2 / 3 || t >= 25 * S ? 2 : 1; }

/* Goes on until then on one rung: a look each 200 ms, and a sample after each period of sampled CPU time. */
static void run_to(uint64_t until, uint32_t level, uint32_t interval)
{
  static uint64_t left;
  if (now == 0) left = PERIOD_US * 1000ull;
  for (; now < until; now += LOOK) {
    m6_kernel_level(&k, level, interval);
    for (uint64_t t = now; t < now + LOOK; t += 1000000) {
      cpu_function[running(t)] += 1000000;
      if (paused || stopped) continue;
      left = left > 1000000 ? left - 1000000 : PERIOD_US * 1000ull + left - 1000000;
      if (left <= PERIOD_US * 1000ull - 1000000) continue;
      uint32_t weight = m6_sample_weight(&weights, t);
      uint64_t stack[2] = {running(t), 3};
      taken++, periods += weight, of_function[running(t)] += weight;
      assert_int_equal(m6_profile_add(profile, "main", stack, 2, NULL, 0, weight), 0);
    }
  }
}

static void near(uint64_t got, double want, double part)
{
  if (fabs((double)got - want) > want * part) fail_msg("%llu, and not %.0f", (unsigned long long)got, want);
}
static const struct m6_profile_row *row(const char *function)
{
  uint32_t n;
  const struct m6_profile_row *r = m6_profile_rows(profile, &n);
  for (uint32_t i = 0; i < n; i++)
    if (!strcmp(r[i].function, function)) return &r[i];
  fail_msg("no %s", function);
  return NULL;
}

/* ---- tests ------------------------------------------------------------------------------------------------------------ */

static void totals_rescale_over_every_step(void **state)
{
  (void)state;
  static const struct {
    uint32_t until_s, level, interval;
  } rungs[] = {{10, M6_LEVEL_FULL, 1}, {30, M6_LEVEL_FULL, 2}, {50, M6_LEVEL_LITE, 1},
               {80, M6_LEVEL_LITE, 2}, {90, M6_LEVEL_LITE, 1}, {100, M6_LEVEL_FULL, 1}};
  for (size_t i = 0; i < sizeof rungs / sizeof *rungs; i++) {
    uint64_t before = taken, from = now, stood = periods;
    run_to(rungs[i].until_s * S, rungs[i].level, rungs[i].interval);
    /* Each rung's samples stand for its own time, and there are as few of them as it says. */
    double all = (double)(now - from) / (PERIOD_US * 1e3);
    near(periods - stood, all, 0.03);
    near(taken - before, all / m6_kernel_duty(PERIOD_US, rungs[i].level, rungs[i].interval), 0.03);
  }
  near(periods, 100 * 1e6 / PERIOD_US, 0.01);
  assert_true(taken < periods / 2);
  /* By function: self, total and folded stacks are CPU time, where a plain count would lean to what ran at the dense rungs. */
  for (unsigned f = 1; f <= 2; f++) {
    near(of_function[f], (double)cpu_function[f] / (PERIOD_US * 1e3), 0.03);
    assert_int_equal(row(names[f])->self, of_function[f]);
    assert_int_equal(row(names[f])->total, of_function[f]);
  }
  assert_int_equal(row("main")->self, 0);
  assert_int_equal(row("main")->total, periods);
  assert_int_equal(m6_profile_sum(profile).samples, periods);
  char *text = NULL, early[64], late[64];
  size_t bytes;
  FILE *f = open_memstream(&text, &bytes);
  assert_int_equal(m6_profile_folded(profile, f), 0);
  fclose(f);
  snprintf(early, sizeof early, "main;main;early %llu\n", (unsigned long long)of_function[1]);
  snprintf(late, sizeof late, "main;main;late %llu\n", (unsigned long long)of_function[2]);
  assert_non_null(strstr(text, early));
  assert_non_null(strstr(text, late));
  free(text);
}

static void without_a_step_each_sample_is_one_period(void **state)
{
  (void)state;
  run_to(20 * S, M6_LEVEL_FULL, 1);
  assert_int_equal(taken, periods);
  assert_int_equal(weights.steps, 0);
}

/* A rate is a budget: after the step to lite the events still have full's period, and pauses must make up for it. */
static void a_lower_level_has_its_own_rate(void **state)
{
  (void)state;
  struct m6_snap_budget b[M6_SNAP_BUDGETS];
  run_to(10 * S, M6_LEVEL_FULL, 1);
  m6_kernel_budgets(&k, 0);
  m6_budget_snap(b);
  assert_int_equal(b[M6_BUDGET_SAMPLES_FULL].used, 99);
  uint64_t before = taken, from = now;
  run_to(110 * S, M6_LEVEL_LITE, 1);
  assert_true((double)(taken - before) / ((double)(now - from) / 1e9) <= M6_SAMPLES_HZ_LITE);
  m6_kernel_budgets(&k, 0);
  m6_budget_snap(b);
  assert_int_equal(b[M6_BUDGET_SAMPLES_FULL].used, 0);
  assert_in_range(b[M6_BUDGET_SAMPLES_LITE].used, 30, M6_SAMPLES_HZ_LITE);
  assert_true(calls_stopped);
  /* Opened at lite, it has that rate from the start, and no pauses. */
  k.sampling.period_us = m6_kernel_period(0);
  assert_int_equal(m6_kernel_duty(k.sampling.period_us, M6_LEVEL_LITE, 1), 1);
  assert_int_equal(m6_kernel_duty(k.sampling.period_us, M6_LEVEL_LITE, 2), 2);
}

static void nothing_is_sampled_at_level_memory(void **state)
{
  (void)state;
  run_to(5 * S, M6_LEVEL_LITE, 2);
  uint64_t before = taken;
  run_to(10 * S, M6_LEVEL_MEMORY, 1);
  assert_true(stopped);
  assert_int_equal(taken, before);
  /* And again when there is room, with lite's weights. */
  uint64_t from = now, stood = periods;
  run_to(110 * S, M6_LEVEL_LITE, 1);
  near(periods - stood, (double)(now - from) / (PERIOD_US * 1e3), 0.03);
}

/* A sample of before a step is looked at after it. */
static void a_sample_has_the_weight_of_its_own_time(void **state)
{
  (void)state;
  struct m6_sample_weights w = {.steps = 0};
  assert_int_equal(m6_sample_weight(&w, 5), 1);
  m6_sample_weigh(&w, 100, 2);
  m6_sample_weigh(&w, 200, 6);
  m6_sample_weigh(&w, 300, 1);
  static const struct {
    uint64_t at;
    uint32_t weight;
  } want[] = {{0, 1}, {99, 1}, {100, 2}, {199, 2}, {200, 6}, {299, 6}, {300, 1}, {UINT64_MAX, 1}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++)
    assert_int_equal(m6_sample_weight(&w, want[i].at), want[i].weight);
  for (uint32_t i = 0; i < 100; i++) m6_sample_weigh(&w, 1000 + i, 2 + i % 2);
  assert_int_equal(m6_sample_weight(&w, 1099), 3);
  assert_int_equal(m6_sample_weight(&w, 1098), 2);
  assert_int_equal(m6_sample_weight(&w, 1083), 3); /* the oldest that is not kept: what the next one replaced */
  m6_sample_weigh(&w, 2000, 0);                    /* no sample stands for nothing */
  assert_int_equal(m6_sample_weight(&w, 2000), 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(totals_rescale_over_every_step, setup, teardown),
    cmocka_unit_test_setup_teardown(without_a_step_each_sample_is_one_period, setup, teardown),
    cmocka_unit_test_setup_teardown(a_lower_level_has_its_own_rate, setup, teardown),
    cmocka_unit_test_setup_teardown(nothing_is_sampled_at_level_memory, setup, teardown),
    cmocka_unit_test_setup_teardown(a_sample_has_the_weight_of_its_own_time, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
