/* other MACH6 ROUNDS - what a process that is no target pays while another one is watched: a system call that does nothing, and a
 * switch from one thread to another over a pipe, with no session, with one at lite and with one at full, in turns.
 *
 * The target of those sessions sleeps, so that it is the programs in the kernel that cost and nothing else. A session is given
 * SETTLE_MS to be up. What is printed is the lowest tenth of all batches, which other load disturbs least.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { BATCHES = 40, CALLS = 4000, SWITCHES = 500, SETTLE_MS = 2500, ROUNDS_MAX = 20, LEVELS = 3 };
static const char *const levels[LEVELS] = {"none", "lite", "full"};
static double call_ns[LEVELS][ROUNDS_MAX * BATCHES], switch_ns[LEVELS][ROUNDS_MAX * BATCHES];
static unsigned count[LEVELS];
static int there[2], back[2];

static void *echo(void *unused)
{
  char c;
  (void)unused;
  while (read(there[0], &c, 1) == 1)
    if (write(back[1], &c, 1) != 1) break;
  return NULL;
}

static pid_t session(const char *mach6, const char *level)
{
  pid_t p = fork();
  if (p == 0) {
    int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    dup2(null, 2);
    execl(mach6, mach6, "run", "--quiet", "--level", level, "--", "sleep", "120", (char *)NULL);
    _exit(127);
  }
  return p;
}

static void measure(unsigned level)
{
  char c = 0;
  for (unsigned b = 0; b < BATCHES; b++) {
    uint64_t from = bench_ns();
    for (unsigned i = 0; i < CALLS; i++) syscall(SYS_getppid);
    uint64_t middle = bench_ns();
    for (unsigned i = 0; i < SWITCHES; i++)
      if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1) exit(1);
    uint64_t end = bench_ns();
    call_ns[level][count[level]] = (double)(middle - from) / CALLS;
    switch_ns[level][count[level]++] = (double)(end - middle) / SWITCHES / 2;
  }
}

static void print(const char *name, double (*times)[ROUNDS_MAX * BATCHES])
{
  double none = bench_spread_of(times[0], count[0]).p10;
  for (unsigned l = 1; l < LEVELS; l++) {
    struct bench_spread s = bench_spread_of(times[l], count[l]);
    char whole[128];
    snprintf(whole, sizeof whole, "%s-elsewhere-%s", name, levels[l]);
    s.median = s.p10;
    bench_line(whole, s, "ns", "the same without a session, ns", none, s.p10 / none, BENCH_NO_GOAL, 0);
  }
}

int main(int argc, char **argv)
{
  unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
  if (rounds < 1 || rounds > ROUNDS_MAX) return 2;
  bench_start();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((unsigned)sched_getcpu(), &one); /* both threads: each byte is a switch */
  pthread_t t;
  if (pipe(there) || pipe(back)) return 1;
  for (unsigned r = 0; r < rounds; r++)
    for (unsigned i = 0; i < LEVELS; i++) {
      unsigned level = (r + i) % LEVELS;
      pid_t p = level ? session(argv[1], levels[level]) : 0;
      if (p < 0) return 1;
      bench_pause_ms(SETTLE_MS);
      if (r == 0 && i == 0) {
        if (sched_setaffinity(0, sizeof one, &one) || pthread_create(&t, NULL, echo, NULL)) return 1;
      }
      measure(level);
      if (p) {
        kill(p, SIGTERM);
        waitpid(p, NULL, 0);
      }
    }
  print("syscall", call_ns);
  print("switch", switch_ns);
  return 0;
}
