/* bench.h - what the measurements share: rounds, their middle and spread, one JSON object a line.
 *
 * A measurement runs beside what it is compared with: round by round, in turns, in the same process; what is printed is
 * the median over the rounds, with p10 and p90. Goals are printed with the value, and whether it was met; a bench never
 * fails because a goal was missed.
 */
#ifndef BENCH_H
#define BENCH_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define BENCH_ROUNDS 101

static inline uint64_t bench_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Sleeps for short times mean what they say. */
static inline void bench_start(void) { prctl(PR_SET_TIMERSLACK, 1000); }
static inline void bench_pause_ms(unsigned ms)
{
  struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
  nanosleep(&t, NULL);
}

static inline int bench_less(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
struct bench_spread {
  double p10, median, p90;
};
static inline struct bench_spread bench_spread_of(const double *samples, unsigned n)
{
  double sorted[BENCH_ROUNDS * 8];
  if (n > sizeof sorted / sizeof *sorted || n == 0) abort();
  for (unsigned i = 0; i < n; i++) sorted[i] = samples[i];
  qsort(sorted, n, sizeof *sorted, bench_less);
  return (struct bench_spread){sorted[n / 10], sorted[n / 2], sorted[n * 9 / 10]};
}

enum bench_goal { BENCH_AT_MOST, BENCH_AT_LEAST };

/* value: what the goal speaks of. what, what_value: the thing it is compared with, measured in the same rounds. */
static inline void bench_line(const char *name, struct bench_spread value, const char *unit, const char *what,
                              double what_value, double ratio, enum bench_goal kind, double goal)
{
  int met = kind == BENCH_AT_MOST ? value.median <= goal : value.median >= goal;
  printf("{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", \"p10\": %.4g, \"p90\": %.4g, \"comparison\": \"%s\", "
         "\"comparison_value\": %.4g, \"ratio\": %.4g, \"goal\": \"%s %g\", \"met\": %s}\n",
         name, value.median, unit, value.p10, value.p90, what, what_value, ratio,
         kind == BENCH_AT_MOST ? "at most" : "at least", goal, met ? "true" : "false");
  fflush(stdout);
}

#endif
