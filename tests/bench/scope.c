/* scope - a scope (mark and done) against two clock reads. Run it under `mach6 run`.
 *
 * In bursts that a ring has room for, with pauses in which the collector drains: what is measured is a record written,
 * not one dropped. The clock reads come in bursts of the same length, in turns. A second line is of the first scopes
 * after each pause, when nothing is in the CPU's caches: what a game pays that has few scopes a frame.
 */
#include "bench.h"
#include "preload/mach6.h"
#include "shm/clock.h"

enum { COLD = 20, WARM = 100, SCOPES = 400, BURSTS = 5 };

static double scopes(unsigned n)
{
  uint64_t start = bench_ns();
  for (unsigned i = 0; i < n; i++) {
    mach6_mark("bench");
    __asm__ volatile("" : : : "memory");
    mach6_done();
  }
  return (double)(bench_ns() - start) / n;
}
static double clocks(unsigned n)
{
  uint64_t start = bench_ns();
  for (unsigned i = 0; i < n; i++) {
    uint64_t a = m6_clock_read(M6_CLOCK_TSC);
    __asm__ volatile("" : : "r"(a) : "memory");
    uint64_t b = m6_clock_read(M6_CLOCK_TSC);
    __asm__ volatile("" : : "r"(b) : "memory");
  }
  return (double)(bench_ns() - start) / n;
}

int main(void)
{
  double scope[BENCH_ROUNDS], clock[BENCH_ROUNDS], ratio[BENCH_ROUNDS], cold[BENCH_ROUNDS];
  scopes(WARM);
  bench_pause_ms(100);
  bench_start();
  for (unsigned r = 0; r < BENCH_ROUNDS; r++) {
    double s[BURSTS], c[BURSTS], first[BURSTS];
    for (unsigned b = 0; b < BURSTS; b++) {
      first[b] = scopes(COLD);
      scopes(WARM); /* the CPU is awake, and both are in its caches */
      clocks(WARM);
      if (b & 1) s[b] = scopes(SCOPES), c[b] = clocks(SCOPES);
      else c[b] = clocks(SCOPES), s[b] = scopes(SCOPES);
      bench_pause_ms(40);
    }
    scope[r] = bench_spread_of(s, BURSTS).median;
    clock[r] = bench_spread_of(c, BURSTS).median;
    ratio[r] = scope[r] / clock[r];
    cold[r] = bench_spread_of(first, BURSTS).median;
  }
  double ns = bench_spread_of(clock, BENCH_ROUNDS).median;
  bench_line("scope", bench_spread_of(ratio, BENCH_ROUNDS), "times two clock reads", "two clock reads, ns", ns,
             bench_spread_of(scope, BENCH_ROUNDS).median / ns, BENCH_AT_MOST, 1.25);
  struct bench_spread c = bench_spread_of(cold, BENCH_ROUNDS);
  bench_line("scope-cold", c, "ns a scope, the first 20 after a pause", "two clock reads, warm, ns", ns, c.median / ns,
             BENCH_NO_GOAL, 0);
  return 0;
}
