/* other MACH6 ROUNDS - what a system call that does nothing and a switch from one thread to another over a pipe cost, with no session,
 * with one at lite and with one at full, in turns: of a process that is no target ("elsewhere"), and of the target itself ("inside":
 * this program once more, under mach6 run).
 *
 * The target of those sessions sleeps, so that it is the programs in the kernel that cost and nothing else. A session is given
 * SETTLE_MS to be up. What is printed is the lowest tenth of all batches, which other load disturbs least.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "preload/mach6.h"

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

static int begin_measuring(void)
{
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((unsigned)sched_getcpu(), &one); /* both threads: each byte is a switch */
  pthread_t t;
  return pipe(there) || pipe(back) || sched_setaffinity(0, sizeof one, &one) || pthread_create(&t, NULL, echo, NULL);
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
    snprintf(whole, sizeof whole, "%s-%s", name, levels[l]);
    s.median = s.p10;
    bench_line(whole, s, "ns", "the same without a session, ns", none, s.p10 / none, BENCH_NO_GOAL, 0);
  }
}

/* In the target: waits until the kernel side is up, measures, writes the times of one round. */
static int inside(void)
{
  mach6_mark("inside"); /* a session begins at such a moment */
  bench_pause_ms(SETTLE_MS);
  if (begin_measuring()) return 1;
  measure(0);
  mach6_done();
  for (unsigned b = 0; b < BATCHES; b++) printf("%f %f\n", call_ns[0][b], switch_ns[0][b]);
  return 0;
}

static int run_inside(const char *mach6, const char *self, unsigned level)
{
  char command[8192];
  if (level)
    snprintf(command, sizeof command, "'%s' run --quiet --level %s -- '%s' inside", mach6, levels[level], self);
  else snprintf(command, sizeof command, "'%s' inside", self);
  FILE *f = popen(command, "r");
  for (unsigned b = 0; f && b < BATCHES; b++, count[level]++)
    if (fscanf(f, "%lf %lf", &call_ns[level][count[level]], &switch_ns[level][count[level]]) != 2) return -1;
  return f ? pclose(f) : -1;
}

static int run_elsewhere(const char *mach6, unsigned level)
{
  pid_t p = level ? session(mach6, levels[level]) : 0;
  if (p < 0) return -1;
  bench_pause_ms(SETTLE_MS);
  measure(level);
  if (p) {
    kill(p, SIGTERM);
    waitpid(p, NULL, 0);
  }
  return 0;
}

int main(int argc, char **argv)
{
  bench_start();
  if (argc == 2 && !strcmp(argv[1], "inside")) return inside();
  unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
  if (rounds < 1 || rounds > ROUNDS_MAX) return 2;
  for (unsigned r = 0; r < rounds; r++)
    for (unsigned i = 0; i < LEVELS; i++)
      if (run_inside(argv[1], argv[0], (r + i) % LEVELS)) return 1;
  print("syscall-inside", call_ns);
  print("switch-inside", switch_ns);
  memset(count, 0, sizeof count);
  if (begin_measuring()) return 1;
  for (unsigned r = 0; r < rounds; r++)
    for (unsigned i = 0; i < LEVELS; i++)
      if (run_elsewhere(argv[1], (r + i) % LEVELS)) return 1;
  print("syscall-elsewhere", call_ns);
  print("switch-elsewhere", switch_ns);
  return 0;
}
