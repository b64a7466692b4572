/* flags: -fno-builtin */
/* pair NAME GOAL - what the shim adds to a malloc and a free, in ns. Run it with the shim, inert or collecting.
 *
 * One process: malloc and free as the game calls them (through the shim), and glibc's own by the names __libc_malloc and __libc_free, in turns.
 * The same sizes, the same order; blocks are touched. The pair is freed at once, so glibc's fast path answers: the added
 * cost is largest against what is measured here.
 */
#include "bench.h"

void *__libc_malloc(size_t);
void __libc_free(void *);

enum { PAIRS = 4000, ROUNDS = 801 }; /* short rounds: whoever takes the CPU meanwhile spoils few of them */

#define LOOP(name, MALLOC, FREE)                                                                                       \
  static __attribute__((noinline)) double name(void)                                                                   \
  {                                                                                                                    \
    uint64_t start = bench_ns();                                                                                       \
    for (unsigned i = 0; i < PAIRS; i++) {                                                                             \
      char *p = MALLOC(16 + (i & 7) * 16);                                                                             \
      __asm__ volatile("" : "+r"(p) : : "memory");                                                                     \
      FREE(p);                                                                                                         \
    }                                                                                                                  \
    return (double)(bench_ns() - start) / PAIRS;                                                                       \
  }
LOOP(hooked, malloc, free)
LOOP(plain, __libc_malloc, __libc_free)

int main(int argc, char **argv)
{
  double with[ROUNDS], without[ROUNDS], added[ROUNDS];
  if (argc != 3) return 2;
  bench_start();
  for (int warm = 0; warm < 20; warm++) hooked(), plain();
  for (unsigned r = 0; r < ROUNDS; r++) {
    if (r & 1) with[r] = hooked(), without[r] = plain();
    else without[r] = plain(), with[r] = hooked();
    added[r] = with[r] - without[r];
  }
  double base = bench_spread_of(without, ROUNDS).median;
  bench_line(argv[1], bench_spread_of(added, ROUNDS), "ns added to a malloc+free pair", "the pair without hooks, ns",
             base, bench_spread_of(with, ROUNDS).median / base, BENCH_AT_MOST, atof(argv[2]));
  return 0;
}
