/* frame THREADS - what a frame boundary costs with that many live threads. Run it under `mach6 run`.
 *
 * The other threads have allocated, so each has a slot that a boundary reads, and then sleep. Bursts with pauses, as in
 * scope.c; two clock reads beside it.
 */
#include <pthread.h>

#include "bench.h"
#include "preload/mach6.h"
#include "shm/clock.h"

enum { FRAMES = 200, ROUNDS = 61 };

static pthread_barrier_t ready;
static pthread_mutex_t hold = PTHREAD_MUTEX_INITIALIZER;
static void *sleeper(void *arg)
{
  char *volatile block = malloc(64);
  free(block);
  pthread_barrier_wait(&ready);
  pthread_mutex_lock(&hold);
  pthread_mutex_unlock(&hold);
  return arg;
}

static double frames(void)
{
  uint64_t start = bench_ns();
  for (unsigned i = 0; i < FRAMES; i++) mach6_frame();
  return (double)(bench_ns() - start) / FRAMES;
}
static double clocks(void)
{
  uint64_t start = bench_ns();
  for (unsigned i = 0; i < FRAMES; i++) {
    uint64_t a = m6_clock_read(M6_CLOCK_TSC), b;
    __asm__ volatile("" : : "r"(a) : "memory");
    b = m6_clock_read(M6_CLOCK_TSC);
    __asm__ volatile("" : : "r"(b) : "memory");
  }
  return (double)(bench_ns() - start) / FRAMES;
}

int main(int argc, char **argv)
{
  unsigned threads = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
  double frame[ROUNDS], clock[ROUNDS];
  char name[64];
  if (threads < 1 || threads > 512) return 2;
  pthread_t *t = calloc(threads, sizeof *t);
  if (!t) return 1;
  bench_start();
  pthread_barrier_init(&ready, NULL, threads);
  pthread_mutex_lock(&hold);
  for (unsigned i = 1; i < threads; i++)
    if (pthread_create(&t[i], NULL, sleeper, NULL)) return 1;
  pthread_barrier_wait(&ready);
  frames();
  bench_pause_ms(100);
  for (unsigned r = 0; r < ROUNDS; r++) {
    clocks();
    if (r & 1) frame[r] = frames(), clock[r] = clocks();
    else clock[r] = clocks(), frame[r] = frames();
    bench_pause_ms(30);
  }
  pthread_mutex_unlock(&hold);
  for (unsigned i = 1; i < threads; i++) pthread_join(t[i], NULL);
  free(t);
  double ns = bench_spread_of(clock, ROUNDS).median;
  struct bench_spread cost = bench_spread_of(frame, ROUNDS);
  snprintf(name, sizeof name, "frame-boundary-%u-threads", threads);
  bench_line(name, cost, "ns a frame boundary", "two clock reads, ns", ns, cost.median / ns, BENCH_AT_MOST,
             200 + 20.0 * threads);
  return 0;
}
