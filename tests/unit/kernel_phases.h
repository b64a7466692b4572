/* kernel_phases.h - for tests that compare the kernel's counts with a second source: phases that threads wait for in a futex, what
 * /proc says of a thread, and whether all of them stand still, so that both sources do. With kernel_tap.h.
 */
#ifndef KERNEL_PHASES_H
#define KERNEL_PHASES_H

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "kernel_tap.h"

static inline uint64_t clock_ns(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static inline void futex_wait(int *word, int value) { syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0); }
static inline void futex_wake(int *word) { syscall(SYS_futex, word, FUTEX_WAKE, 1000, NULL, NULL, 0); }
static inline void await(int *word, int at_least)
{
  for (int now; (now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < at_least;) futex_wait(word, now);
}
static inline void advance(int *word, int to)
{
  __atomic_store_n(word, to, __ATOMIC_RELEASE);
  futex_wake(word);
}

static inline void pin(int cpu)
{
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}
/* Two CPUs that this process may use; the same one twice where there is but one. */
static inline void two_cpus(int cpus[2])
{
  cpu_set_t set;
  int n = 0;
  sched_getaffinity(0, sizeof set, &set);
  for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
    if (CPU_ISSET(i, &set)) cpus[n++] = i;
  if (n < 2) cpus[1] = cpus[0];
}
static inline void compute(double seconds)
{
  while ((double)clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9 < seconds) continue;
}

/* ---- what /proc says -------------------------------------------------------------------------------------------- */
struct source {
  char state;
  unsigned long long run_ns, delay_ns, slices, voluntary, involuntary, minor, major;
};
static inline int source(pid_t pid, pid_t tid, struct source *s)
{
  char path[96], text[4096], *at;
  const char *files[] = {"stat", "status", "schedstat"};
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, tid, files[i]);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return 0;
    text[n] = 0;
    if (i == 0 && (at = strrchr(text, ')')))
      sscanf(at + 2, "%c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &s->state, &s->minor, &s->major);
    if (i == 1 && (at = strstr(text, "\nvoluntary_ctxt")))
      sscanf(at, " voluntary_ctxt_switches: %llu nonvoluntary_ctxt_switches: %llu", &s->voluntary, &s->involuntary);
    if (i == 2) sscanf(text, "%llu %llu %llu", &s->run_ns, &s->delay_ns, &s->slices);
  }
  return 1;
}
/* A task that says that it sleeps may still be on its way there, preempted, for long on a busy machine. The kernel gives the
 * syscall that a task is in only when it is off its run queue, and waits for that. */
static inline int really_asleep(pid_t pid, pid_t tid)
{
  char path[96], text[32] = "";
  struct source s;
  if (!source(pid, tid, &s) || s.state != 'S') return 0;
  snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", pid, tid);
  int fd = open(path, O_RDONLY);
  ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  return n > 0 && text[0] >= '0' && text[0] <= '9';
}
/* Until so many have arrived, and they and the process's first thread sleep. */
static inline int settled(pid_t pid, const int *arrived, int least, const pid_t *tids, int count)
{
  for (int tries = 0; tries < 3000; tries++, usleep(10000)) {
    if (__atomic_load_n(arrived, __ATOMIC_SEQ_CST) < least) continue;
    int asleep = 0;
    for (int i = 0; i < count; i++) asleep += really_asleep(pid, tids[i]);
    asleep += really_asleep(pid, pid);
    if (asleep == count + 1) return 1;
  }
  return 0;
}

/* ---- measurements ----------------------------------------------------------------------------------------------- */

/* Two sources are read one after the other, and a busy machine may preempt in between: a measurement that does not agree
 * is made again, whole, twice at most. What is wrong is wrong each time. In main: `if (!measuring()) return measured_again(argv);`
 * gives the status, after its TAP. */
#define ATTEMPTS 3
static inline int measuring(void) { return getenv("M6_ATTEMPT") != NULL; }
static inline int measured_again(char **argv)
{
  for (int attempt = 1;; attempt++) {
    FILE *out = tmpfile();
    if (!out) return 1;
    pid_t child = fork();
    if (child == 0) {
      setenv("M6_ATTEMPT", "1", 1);
      dup2(fileno(out), 1);
      execv("/proc/self/exe", argv);
      _exit(127);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
    if (status == 0 || attempt == ATTEMPTS) {
      rewind(out);
      for (int ch; (ch = getc(out)) != EOF;) putchar(ch);
      if (attempt > 1) printf("# attempt %d\n", attempt);
      fclose(out);
      return status != 0;
    }
    fclose(out);
  }
}

#endif
