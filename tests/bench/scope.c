/* scope NAME - a scope (mark and done) against two clock reads. Run it under `mach6 run`.
 *
 * In bursts that a ring has room for, with pauses in which the collector drains: what is measured is a record written, not
 * one dropped. The clock reads come in bursts of the same length, in turns.
 */
#include "bench.h"
#include "preload/mach6.h"
#include "shm/clock.h"

enum { SCOPES = 400, BURSTS = 5 };

static double scopes(void)
{
  uint64_t start = bench_ns();
  for (unsigned i = 0; i < SCOPES; i++) {
    mach6_mark("bench");
    __asm__ volatile("" : : : "memory");
    mach6_done();
  }
  return (double)(bench_ns() - start) / SCOPES;
}
static double clocks(void)
{
  uint64_t start = bench_ns();
  for (unsigned i = 0; i < SCOPES; i++) {
    uint64_t a = m6_clock_read(M6_CLOCK_TSC);
    __asm__ volatile("" : : "r"(a) : "memory");
    uint64_t b = m6_clock_read(M6_CLOCK_TSC);
    __asm__ volatile("" : : "r"(b) : "memory");
  }
  return (double)(bench_ns() - start) / SCOPES;
}

int main(int argc, char **argv)
{
  double scope[BENCH_ROUNDS], clock[BENCH_ROUNDS], ratio[BENCH_ROUNDS];
  if (argc != 2) return 2;
  bench_start();
  for (unsigned r = 0; r < BENCH_ROUNDS; r++) {
    double s[BURSTS], c[BURSTS];
    for (unsigned b = 0; b < BURSTS; b++) {
      clocks(); /* the CPU is awake */
      if (b & 1) s[b] = scopes(), c[b] = clocks();
      else c[b] = clocks(), s[b] = scopes();
      bench_pause_ms(25);
    }
    scope[r] = bench_spread_of(s, BURSTS).median;
    clock[r] = bench_spread_of(c, BURSTS).median;
    ratio[r] = scope[r] / clock[r];
  }
  double ns = bench_spread_of(clock, BENCH_ROUNDS).median;
  bench_line(argv[1], bench_spread_of(ratio, BENCH_ROUNDS), "times two clock reads", "two clock reads, ns", ns,
             bench_spread_of(scope, BENCH_ROUNDS).median / ns, BENCH_AT_MOST, 1.25);
  return 0;
}
