/* test_kernel_switches.c - switch records, as a user without a capability gets them, against what /proc says of the same threads:
 * switches exactly, time on a CPU within 2 %; threads that come and go; and records that find no room cost no truth.
 *
 * Root gives up its rights first. A child works in phases; its threads are asleep in a futex when both sources are read.
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
/* sanitizers: none */
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "collector/kernel_switches.h"
#include "kernel_phases.h"

enum worker { SLEEPER, BUSY_A, BUSY_B, YIELDER, PING, PONG, WORKERS };
static const char *const names[WORKERS] = {"a sleeper",       "a busy thread", "its neighbour on the CPU",
                                           "one that yields", "ping",          "pong"};
#define SLEEPS 50
#define YIELDS 300
#define ROUNDS 20000 /* of ping and pong: more records than a ring holds */
#define SHORT 50     /* threads that come and go */

static struct shared {
  int phase, arrived, ball;
  pid_t tid[WORKERS], last_short;
  uint64_t short_cpu_ns;
} * shared;
static pid_t staying[WORKERS - 1]; /* all but the one that yields, which ends after the gap */
static int cpus[2];                /* all that must be on one CPU is on the first */

static void *short_main(void *arg)
{
  (void)arg;
  compute(0.002);
  shared->last_short = (pid_t)syscall(SYS_gettid);
  shared->short_cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID);
  return NULL;
}

static void rally(int me)
{
  pin(cpus[0]);
  for (int i = 0; i < ROUNDS; i++) {
    for (int now; (now = __atomic_load_n(&shared->ball, __ATOMIC_ACQUIRE)) % 2 != me;) futex_wait(&shared->ball, now);
    __atomic_add_fetch(&shared->ball, 1, __ATOMIC_RELEASE);
    futex_wake(&shared->ball);
  }
}

static void *worker_main(void *arg)
{
  enum worker w = (enum worker)(intptr_t)arg;
  shared->tid[w] = (pid_t)syscall(SYS_gettid);
  __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  await(&shared->phase, 1);
  if (w == SLEEPER)
    for (int i = 0; i < SLEEPS; i++) usleep(1000);
  if (w == BUSY_A || w == BUSY_B) pin(cpus[0]), compute(0.2);
  for (int i = 0; w == YIELDER && i < YIELDS; i++) sched_yield();
  __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  await(&shared->phase, 3); /* nobody records */
  if (w == SLEEPER)
    for (int i = 0; i < SLEEPS; i++) usleep(1000);
  __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  await(&shared->phase, 4);
  if (w == YIELDER) return NULL;
  __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  await(&shared->phase, 5);
  if (w == PING || w == PONG) rally(w == PONG);
  __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  await(&shared->phase, 6);
  return NULL;
}

static void child_main(void)
{
  pthread_t thread[WORKERS];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (intptr_t w = 0; w < WORKERS; w++) pthread_create(&thread[w], NULL, worker_main, (void *)w);
  await(&shared->phase, 2);
  for (int i = 0; i < SHORT; i++) {
    pthread_t t;
    pthread_create(&t, NULL, short_main, NULL);
    pthread_join(t, NULL);
  }
  __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  await(&shared->phase, 6);
  for (int w = 0; w < WORKERS; w++) pthread_join(thread[w], NULL);
  _exit(0);
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */
static void take_all(struct m6_switches *s)
{
  usleep(2 * M6_SWITCHES_HOLD_NS / 1000); /* what is too young waits for the next poll */
  m6_switches_poll(s);
  m6_switches_until(s, m6_switches_known(s));
}

static struct m6_thread_counters row_of(struct m6_switches *s, pid_t tid)
{
  uint32_t n;
  const struct m6_thread_counters *rows = m6_switches_rows(s, &n);
  for (uint32_t i = 0; i < n; i++)
    if (rows[i].tid == tid) return rows[i];
  return (struct m6_thread_counters){.tid = -1};
}

static int books_close(struct m6_switches *s)
{
  uint32_t n;
  const struct m6_thread_counters *rows = m6_switches_rows(s, &n);
  for (uint32_t i = 0; i < n; i++)
    if (rows[i].on_ns + rows[i].off_ns + rows[i].wait_ns != rows[i].elapsed_ns ||
        rows[i].off_ns != rows[i].off_by[M6_OFF_OTHER])
      return 0;
  return n > 0;
}

static void compare(struct m6_switches *s, int w, const struct source *a, const struct source *b)
{
  struct m6_thread_counters t = row_of(s, shared->tid[w]);
  unsigned long long voluntary = b->voluntary - a->voluntary, involuntary = b->involuntary - a->involuntary;
  if (!check(t.tid == shared->tid[w], "%s has a row", names[w])) return;
  /* /proc counts a switch as voluntary that the record calls a preemption when the thread was woken on its way out. */
  check(t.counted[M6_VOLUNTARY] + t.counted[M6_INVOLUNTARY] == voluntary + involuntary,
        "%s: %llu + %llu switches, /proc %llu + %llu", names[w], (unsigned long long)t.counted[M6_VOLUNTARY],
        (unsigned long long)t.counted[M6_INVOLUNTARY], voluntary, involuntary);
  check(within((double)t.counted[M6_VOLUNTARY], (double)voluntary, 0, 2), "%s: of them voluntary", names[w]);
  /* A switch's own time, some 10 to 30 us on a virtual machine, lies outside of the records, and inside of schedstat's. */
  double on = (double)(b->run_ns - a->run_ns), between = 100e3 * (double)(voluntary + involuntary);
  if (w == BUSY_A || w == BUSY_B) between /= 10;
  check((double)t.on_ns < on * 1.02 + 1e5 && (double)t.on_ns + between > on * 0.98,
        "%s: %.2f ms on a CPU, schedstat %.2f ms", names[w], (double)t.on_ns / 1e6, on / 1e6);
  check((double)t.wait_ns <= (double)(b->delay_ns - a->delay_ns) * 1.02 + 20e3 * (double)(involuntary + 5),
        "%s: preempted for %.2f ms, which is part of the run queue's %.2f ms", names[w], (double)t.wait_ns / 1e6,
        (double)(b->delay_ns - a->delay_ns) / 1e6);
}

/* A moment inside of each phase: the readings at two moments add up to the time between them. */
static void moments(struct m6_switches *s, pid_t tid)
{
  struct m6_kernel_reading a, b;
  uint32_t lives[2] = {0, 0};
  usleep(2 * M6_SWITCHES_HOLD_NS / 1000);
  m6_switches_poll(s);
  uint64_t known = m6_switches_known(s), before = known - 500000;
  int had = m6_switches_at(s, (uint32_t)tid, before, &a, &lives[0]) &&
            m6_switches_at(s, (uint32_t)tid, known, &b, &lives[1]);
  check(had && lives[0] == lives[1], "a thread's readings at two moments");
  check(had && b.on_ns + b.wait_ns + b.off_ns[M6_OFF_OTHER] - a.on_ns - a.wait_ns - a.off_ns[M6_OFF_OTHER] == 500000,
        "what is between them adds up, to the nanosecond");
  check(had && !m6_switches_at(s, (uint32_t)tid, before, &a, &lives[0]), "and there is no way back");
}

/* A time in which nobody records what threads do; one of them ends after it. */
static void gap(struct m6_switches *s, pid_t child)
{
  struct m6_kernel_reading r;
  uint32_t lives[2] = {0, 0};
  pid_t tid = shared->tid[SLEEPER];
  take_all(s);
  check(m6_switches_at(s, (uint32_t)tid, m6_switches_known(s), &r, &lives[0]), "a thread is known before the gap");
  m6_switches_stop(s);
  m6_switches_poll(s);
  m6_switches_until(s, m6_switches_known(s));
  uint64_t from = now_ns();
  struct m6_thread_counters before = row_of(s, tid), yielder = row_of(s, shared->tid[YIELDER]), after;
  advance(&shared->phase, 3);
  check(settled(child, &shared->arrived, 3 * WORKERS + 1, shared->tid, WORKERS), "work of which there is no record");
  after = row_of(s, tid);
  check(memcmp(&before, &after, sizeof before) == 0, "its row stands still meanwhile");
  m6_switches_resume(s);
  uint64_t to = now_ns();
  after = row_of(s, tid);
  check(within((double)(after.elapsed_ns - before.elapsed_ns), (double)(to - from), 1, 10e6) && books_close(s),
        "then the gap is in its time (%.1f ms, %.1f by the clock), and the books close",
        (double)(after.elapsed_ns - before.elapsed_ns) / 1e6, (double)(to - from) / 1e6);
  check(after.off_ns - before.off_ns == after.elapsed_ns - before.elapsed_ns &&
          after.counted[M6_VOLUNTARY] == before.counted[M6_VOLUNTARY],
        "off its CPU, and without a switch");
  usleep(2 * M6_SWITCHES_HOLD_NS / 1000);
  m6_switches_poll(s);
  check(!m6_switches_at(s, (uint32_t)tid, m6_switches_known(s), &r, &lives[1]), "its moments are not known yet");
  advance(&shared->phase, 4);
  check(settled(child, &shared->arrived, 4 * WORKERS, staying, WORKERS - 1), "it is woken, and one ends");
  usleep(20000);
  take_all(s);
  check(m6_switches_at(s, (uint32_t)tid, m6_switches_known(s), &r, &lives[1]) && lives[0] != lives[1],
        "from its first switch on they are, and of another life than before");
  check(row_of(s, tid).counted[M6_VOLUNTARY] > before.counted[M6_VOLUNTARY] && m6_switches_lost(s) == 0 &&
          books_close(s),
        "it is counted again, nothing was lost, and the books close");
  check(row_of(s, shared->tid[YIELDER]).state == M6_COUNTERS_ENDED && yielder.state != M6_COUNTERS_ENDED,
        "one that ends is seen to end");
}

static void run(struct m6_switches *s, pid_t child)
{
  memcpy(staying, shared->tid, YIELDER * sizeof *staying);
  memcpy(staying + YIELDER, shared->tid + YIELDER + 1, (WORKERS - 1 - YIELDER) * sizeof *staying);
  struct source before[WORKERS], after[WORKERS];
  for (int w = 0; w < WORKERS; w++) check(source(child, shared->tid[w], &before[w]), "%s is there", names[w]);
  advance(&shared->phase, 1);
  check(settled(child, &shared->arrived, 2 * WORKERS, shared->tid, WORKERS), "the threads did their work");
  take_all(s);
  for (int w = 0; w < WORKERS; w++) source(child, shared->tid[w], &after[w]);
  for (int w = 0; w <= YIELDER; w++) compare(s, w, &before[w], &after[w]);
  check(row_of(s, shared->tid[SLEEPER]).counted[M6_VOLUNTARY] >= SLEEPS, "each sleep is a voluntary switch");
  check(row_of(s, shared->tid[BUSY_A]).wait_ns > 20000000, "two on one CPU wait for each other");
  check(m6_switches_lost(s) == 0, "nothing was lost");
  check(books_close(s), "on, off and waiting are the time, for each thread");
  moments(s, shared->tid[SLEEPER]);

  advance(&shared->phase, 2);
  check(settled(child, &shared->arrived, 2 * WORKERS + 1, shared->tid, WORKERS), "threads came and went");
  take_all(s);
  uint32_t n, ended = 0;
  uint64_t on = 0;
  const struct m6_thread_counters *rows = m6_switches_rows(s, &n);
  for (uint32_t i = 0; i < n; i++)
    if (rows[i].state == M6_COUNTERS_ENDED) ended += rows[i].lives, on += rows[i].on_ns;
  check(ended == SHORT, "each of %d is there, ended (%u)", SHORT, ended);
  /* Their own clocks were read before they had ended, and after they had begun. */
  check((double)on > (double)shared->short_cpu_ns * 0.98 &&
          (double)on < (double)shared->short_cpu_ns * 1.02 + SHORT * 1e6,
        "with its time: %.2f ms, by their own clocks %.2f ms", (double)on / 1e6, (double)shared->short_cpu_ns / 1e6);
  check(m6_switches_lost(s) == 0 && books_close(s), "nothing was lost, and the books close");

  gap(s, child);
  struct m6_kernel_reading a, b;
  uint32_t lives[2] = {0, 0};
  int had = m6_switches_at(s, (uint32_t)shared->tid[PING], m6_switches_known(s), &a, &lives[0]);
  advance(&shared->phase, 5);
  check(settled(child, &shared->arrived, 5 * WORKERS - 1, staying, WORKERS - 1), "more switches than a ring holds");
  take_all(s);
  had &= m6_switches_at(s, (uint32_t)shared->tid[PING], m6_switches_known(s), &b, &lives[1]);
  check(had && lives[0] != lives[1], "what lies between is not said to be known");
  check(books_close(s), "the books close all the same");
  advance(&shared->phase, 6); /* a record that fits tells how many did not */
  for (int tries = 0; tries < 1000 && m6_switches_lost(s) == 0; tries++) take_all(s);
  check(m6_switches_lost(s) + m6_switches_taken(s) > 2 * ROUNDS && m6_switches_lost(s) > ROUNDS / 2,
        "what found no room is counted: %llu", (unsigned long long)m6_switches_lost(s));
}

static void one_child(void)
{
  struct m6_fault fault;
  struct m6_switches *s;
  char text[900];
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_DUMPABLE, 1);
    child_main();
  }
  int fds = tap_fds(NULL);
  check(settled(child, &shared->arrived, WORKERS, shared->tid, WORKERS), "the threads are there");
  int err = m6_switches_open(child, &s, &fault);
  if (err == EACCES || err == EPERM || err == ENOSYS || err == ENOENT) {
    skip_named("switch records against /proc", m6_fault_text(&fault, text, sizeof text));
  } else if (check(!err, "switch records of one's own process: %s",
                   err ? m6_fault_text(&fault, text, sizeof text) : "")) {
    run(s, child);
    m6_switches_stop(s);
    m6_switches_close(s);
    check(tap_fds(NULL) == fds, "no descriptor is left");
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  err = m6_switches_open(child, &s, &fault);
  check(err == ESRCH && !s, "a process that is gone: %s", m6_fault_text(&fault, text, sizeof text));
}

/* Root becomes nobody; under a "/" that nobody may enter, where /proc is out of reach then, it stays root without a capability. */
static int lose_rights(void)
{
  struct stat top;
  if (stat("/", &top) == 0 && (top.st_mode & S_IXOTH))
    return setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534);
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
  return (int)syscall(SYS_capset, &head, none);
}

int main(int argc, char **argv)
{
  (void)argc;
  if (!measuring()) return measured_again(argv);
  if (geteuid() == 0 && lose_rights()) diag("as root: %s", strerror(errno));
  prctl(PR_SET_DUMPABLE, 1);
  two_cpus(cpus);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  one_child();
  return tap_done();
}
