/* switches - what perf's switch records cost a thread for each time that it is switched out and in: two threads on one CPU pass a byte
 * through pipes, in a child, while nobody records, and while kernel_switches.c does; in turns. The reader sleeps meanwhile.
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "collector/kernel_switches.h"

enum { SWITCHES = 1000, ROUNDS = 40 }; /* of one burst; fewer records than a ring holds */
static int there[2], back[2];

static void *echo(void *unused)
{
  char c;
  (void)unused;
  while (read(there[0], &c, 1) == 1)
    if (write(back[1], &c, 1) != 1) break;
  return NULL;
}

static int child_main(int in, int out)
{
  char c;
  cpu_set_t one;
  pthread_t t;
  CPU_ZERO(&one);
  CPU_SET((unsigned)sched_getcpu(), &one);
  if (pipe(there) || pipe(back) || sched_setaffinity(0, sizeof one, &one) || pthread_create(&t, NULL, echo, NULL))
    return 1;
  double each = 0;
  if (write(out, &each, sizeof each) != sizeof each) return 1; /* both threads are there */
  while (read(in, &c, 1) == 1) {
    uint64_t from = bench_ns();
    for (unsigned i = 0; i < SWITCHES; i++)
      if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1) return 1;
    each = (double)(bench_ns() - from) / SWITCHES / 2;
    if (write(out, &each, sizeof each) != sizeof each) return 1;
  }
  return 0;
}

static double burst(const int to[2], const int from[2])
{
  double each = 0;
  if (write(to[1], "", 1) != 1 || read(from[0], &each, sizeof each) != sizeof each) exit(1);
  return each;
}

int main(void)
{
  int to[2], from[2];
  double times[2][ROUNDS], ready;
  bench_start();
  if (pipe(to) || pipe(from)) return 1;
  pid_t child = fork();
  if (child == 0) {
    close(to[1]);
    _exit(child_main(to[0], from[1]));
  }
  if (read(from[0], &ready, sizeof ready) != sizeof ready) return 1;
  uint64_t taken = 0;
  for (int r = 0; r < ROUNDS; r++) {
    struct m6_fault fault;
    struct m6_switches *s;
    char text[900];
    times[0][r] = burst(to, from);
    if (m6_switches_open(child, &s, &fault)) {
      fprintf(stderr, "switches: %s\n", m6_fault_text(&fault, text, sizeof text));
      return 1;
    }
    times[1][r] = burst(to, from);
    m6_switches_stop(s);
    m6_switches_poll(s);
    taken += m6_switches_taken(s);
    m6_switches_close(s);
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  if (taken < 4ull * SWITCHES * ROUNDS / 2) {
    fprintf(stderr, "switches: only %llu records\n", (unsigned long long)taken);
    return 1;
  }
  struct bench_spread none = bench_spread_of(times[0], ROUNDS), with = bench_spread_of(times[1], ROUNDS);
  with.median = with.p10;
  bench_line("switch-recorded", with, "ns", "the same without records, ns", none.p10, with.p10 / none.p10,
             BENCH_NO_GOAL, 0);
  return 0;
}
