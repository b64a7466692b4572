/* hotsplit.c - burns CPU in functions with known names, seven tenths of it in one of them, and says afterwards how much it was.
 *   hotsplit [--threads N] [--late N] [--churn] [--leader-exits] [--fork] [--unlink] [--replace FILE] [--lib FILE] [--jit] [--phases] [--syscalls]
 * Ends on SIGTERM with one line: "hot NS warm NS cpu NS threads N", CPU time as the program itself measured it. Which function is called is
 * drawn by chance for each slice, so the samples of one are binomial. Prints "ready" first.
 *   --threads N     N more threads that do the same          --late N       N more, created half a second later
 *   --churn         threads that live for 30 ms each         --leader-exits the first thread ends, one other burns
 *   --fork          child processes that burn in child()    --unlink       removes its own file
 *   --replace FILE  puts FILE in the place of its own file   --lib FILE     burns in lib_hot() of FILE, and removes that
 *   --jit           burns in code made at run time, with a perf map
 *   --phases        a tenth of a second in each by turns; prints "phase NS NAME" (CLOCK_MONOTONIC) when one begins
 *   --syscalls      spends its time in the kernel
 */
/* flags: -fno-omit-frame-pointer */
/* links: -ldl */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))
typedef long (*burn_fn)(long);

static volatile sig_atomic_t ended;
static uint64_t hot_ns, warm_ns;
static unsigned thread_count = 1;
static burn_fn hot_is;

KEEP long burn_hot(long n)
{
  volatile long x = 0;
  for (long i = 0; i < n; i++) x += i;
  return x;
}
KEEP long burn_warm(long n)
{
  volatile long x = 0;
  for (long i = 0; i < n; i++) x -= i;
  return x;
}
static KEEP long child(long n)
{
  volatile long x = 0;
  for (long i = 0; i < n; i++) x ^= i;
  return x;
}
static KEEP long in_kernel(long n)
{
  static char page[1 << 16];
  int fd = memfd_create("hotsplit", 0);
  long k = 0;
  for (long i = 0; i < n / 10000; i++) k += pwrite(fd, page, sizeof page, 0);
  close(fd);
  return k;
}

static void on_term(int signal)
{
  (void)signal;
  ended = 1;
}
static uint64_t cpu_ns(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The clock's own reads are in neither sum; a slice is about a quarter of a millisecond. */
KEEP void slices(uint64_t seed, uint64_t cpu_limit_ns)
{
  uint64_t begun = cpu_ns(CLOCK_THREAD_CPUTIME_ID), hot = 0, warm = 0, now = begun;
  while (!ended && (!cpu_limit_ns || now - begun < cpu_limit_ns)) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    int is_hot = seed % 1000 < 700;
    if (is_hot) hot_is(150000);
    else burn_warm(150000);
    uint64_t after = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    *(is_hot ? &hot : &warm) += after - now;
    now = after;
  }
  __atomic_fetch_add(&hot_ns, hot, __ATOMIC_RELAXED);
  __atomic_fetch_add(&warm_ns, warm, __ATOMIC_RELAXED);
}
static void phases(void)
{
  for (int k = 0; !ended; k++) {
    uint64_t begun = cpu_ns(CLOCK_MONOTONIC);
    printf("phase %llu %s\n", (unsigned long long)begun, k % 2 ? "burn_warm" : "burn_hot");
    while (!ended && cpu_ns(CLOCK_MONOTONIC) - begun < 100000000u) k % 2 ? burn_warm(150000) : burn_hot(150000);
  }
}
static void *thread(void *arg)
{
  prctl(PR_SET_NAME, arg);
  slices((uintptr_t)&arg ^ cpu_ns(CLOCK_MONOTONIC), 0);
  return NULL;
}
/* One child process after the other, so that some are born while sampling goes on. */
static void *parent(void *arg)
{
  (void)arg;
  while (!ended) {
    pid_t pid = fork();
    if (!pid) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (int i = 0; i < 500; i++) child(150000);
      _exit(0);
    }
    waitpid(pid, NULL, 0);
  }
  return NULL;
}
static void *short_life(void *arg)
{
  (void)arg;
  slices((uintptr_t)&arg ^ cpu_ns(CLOCK_MONOTONIC), 30000000);
  return NULL;
}
static pthread_t begin(void *(*run)(void *), const char *name)
{
  pthread_t t;
  if (pthread_create(&t, NULL, run, (void *)name)) abort();
  thread_count++;
  return t;
}

/* x += i in a loop, as bytes: mov %rdi,%rcx; 1: dec %rcx; jne 1b; ret - with a frame, as a JIT that wants to be profiled makes it. */
static burn_fn make_code(void)
{
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9,
                                       0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};
  unsigned char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) abort();
  memcpy(p + 4096, code, sizeof code);
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  FILE *f = fopen(path, "w");
  if (!f) abort();
  fprintf(f, "%lx %x Old:thrownAway\nnonsense\n%lx %zx Script:update;~1\n%lx 10 Script:other\n", (unsigned long)p,
          65536, (unsigned long)p + 4096, sizeof code, (unsigned long)p + 8192);
  fclose(f);
  return (burn_fn)(void *)(p + 4096);
}

static void report(void)
{
  printf("hot %llu warm %llu cpu %llu threads %u\n", (unsigned long long)hot_ns, (unsigned long long)warm_ns,
         (unsigned long long)cpu_ns(CLOCK_PROCESS_CPUTIME_ID), thread_count);
  fflush(stdout);
}
static void *last_one(void *arg)
{
  thread(arg);
  report();
  _exit(0);
}

int main(int argc, char **argv)
{
  char self[4096] = "";
  int jit = 0, churn = 0, leader_exits = 0, in_phases = 0, forks = 0;
  long more = 0, late = 0;
  signal(SIGTERM, on_term);
  hot_is = burn_hot;
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) abort();
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--threads")) more = atol(argv[++i]);
    if (!strcmp(argv[i], "--late")) late = atol(argv[++i]);
    if (!strcmp(argv[i], "--churn")) churn = 1;
    if (!strcmp(argv[i], "--leader-exits")) leader_exits = 1;
    if (!strcmp(argv[i], "--unlink") && unlink(self)) abort();
    if (!strcmp(argv[i], "--replace") && rename(argv[++i], self)) abort();
    if (!strcmp(argv[i], "--jit")) jit = 1;
    if (!strcmp(argv[i], "--phases")) in_phases = 1;
    if (!strcmp(argv[i], "--syscalls")) hot_is = in_kernel;
    if (!strcmp(argv[i], "--lib")) {
      void *h = dlopen(argv[++i], RTLD_NOW);
      if (!h || !(hot_is = (burn_fn)dlsym(h, "lib_hot")) || unlink(argv[i])) abort();
    }
    if (!strcmp(argv[i], "--fork")) forks = 1;
  }
  if (jit) hot_is = make_code();
  pthread_t threads[256];
  unsigned n = 0;
  for (long i = 0; i < more && n < 256; i++) threads[n++] = begin(thread, "worker");
  puts("ready");
  fflush(stdout);
  if (leader_exits) {
    begin(last_one, "survivor");
    pthread_exit(NULL);
  }
  if (forks) threads[n++] = begin(parent, "parent");
  if (late) {
    struct timespec half = {0, 500000000};
    nanosleep(&half, NULL);
    for (long i = 0; i < late && n < 256; i++) threads[n++] = begin(thread, "late");
  }
  if (in_phases) {
    phases();
  } else if (churn) {
    while (!ended) pthread_join(begin(short_life, NULL), NULL);
  } else {
    slices((uint64_t)getpid() * 2654435761u + 1, 0);
  }
  for (unsigned i = 0; i < n; i++) pthread_join(threads[i], NULL);
  if (jit) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    unlink(path);
  }
  report();
  return 0;
}
