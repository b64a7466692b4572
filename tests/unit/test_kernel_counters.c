/* test_kernel_counters.c - each counter by thread against a second source in the same run: /proc's schedstat, status and
 * stat, getrusage, perf's software counters, a known number of calls. Counts exactly, times within 2 %.
 *
 * A child process works in phases; all its threads are asleep in a futex when they are compared, so both sources stand still.
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
/* sanitizers: none */
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "collector/kernel_counters.h"
#include "collector/kernel_faults.h"
#include "collector/kernel_object.h"
#include "kernel_phases.h"

/* ---- the child -------------------------------------------------------------------------------------------------- */
enum worker { OLD, BUSY_A, BUSY_B, SLEEPER, FAULTER, CALLER, MOVER, WORKERS };
static const char *const worker_names[WORKERS] = {
  "a thread from before", "a busy thread", "its neighbour on the CPU", "a sleeper", "one that faults",
  "one that calls",       "one that moves"};
#define CALLS 5000
#define SLEEPS 25
#define MOVES 200
#define YIELDS 321

static struct shared {
  int phase, arrived;
  pid_t tid[WORKERS];
  struct rusage end[WORKERS];
  uint64_t slept_ns, start_ns[WORKERS];
} * shared;
static char cold_file[4096];

static int cpus[2];

static void touch_all(char *at, size_t bytes)
{
  volatile char sum = 0;
  for (size_t i = 0; at != MAP_FAILED && i < bytes; i += 4096) sum = (char)(sum + at[i]);
}

static void work(enum worker w)
{
  switch (w) {
  case OLD:
    for (int i = 0; i < 50; i++) usleep(500);
    break;
  case BUSY_A:
  case BUSY_B:
    pin(cpus[0]);
    compute(0.25);
    for (int i = 0; i < YIELDS; i++) sched_yield();
    break;
  case SLEEPER: {
    uint64_t from = now_ns();
    for (int i = 0; i < SLEEPS; i++) usleep(20000);
    shared->slept_ns = now_ns() - from;
    break;
  }
  case FAULTER: {
    size_t bytes = 16 << 20;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(at, bytes, MADV_NOHUGEPAGE);
    memset(at, 1, bytes);
    munmap(at, bytes);
    int fd = open(cold_file, O_RDONLY);
    at = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) madvise(at, 1 << 20, MADV_RANDOM);
    touch_all(at, 1 << 20);
    close(fd);
    break;
  }
  case CALLER:
    for (int i = 0; i < CALLS; i++) syscall(SYS_getppid);
    break;
  case MOVER: pin(cpus[0]); break;
  default: break;
  }
}

static void *worker_main(void *arg)
{
  enum worker w = (enum worker)(intptr_t)arg;
  shared->tid[w] = (pid_t)syscall(SYS_gettid);
  shared->start_ns[w] = now_ns();
  if (w == OLD) {
    __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
    await(&shared->phase, 1);
  }
  work(w);
  __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  await(&shared->phase, 2);
  if (w == MOVER)
    for (int i = 0; i < MOVES; i++) pin(cpus[(i + 1) & 1]);
  getrusage(RUSAGE_THREAD, &shared->end[w]);
  return NULL;
}

static void child_main(void)
{
  pthread_t thread[WORKERS];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pthread_create(&thread[OLD], NULL, worker_main, (void *)(intptr_t)OLD);
  await(&shared->phase, 1);
  for (intptr_t w = OLD + 1; w < WORKERS; w++) pthread_create(&thread[w], NULL, worker_main, (void *)w);
  await(&shared->phase, 2);
  for (int w = 0; w < WORKERS; w++) pthread_join(thread[w], NULL);
  __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  await(&shared->phase, 3);
  _exit(0);
}

/* ---- the second sources ----------------------------------------------------------------------------------------- */
static int perf_count(pid_t tid, uint64_t what)
{
  struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = what, .inherit = 1};
  return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}
static uint64_t value_of(int fd)
{
  uint64_t v = 0;
  return read(fd, &v, sizeof v) == sizeof v ? v : ~0ull;
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */
static const struct m6_thread_counters *find(const struct m6_counters *c, pid_t tid)
{
  static const struct m6_thread_counters none = {.tid = -1};
  for (unsigned i = 0; i < c->thread_count; i++)
    if (c->threads[i].tid == tid) return &c->threads[i];
  return &none;
}
static struct m6_call_counters call_of(const struct m6_counters *c, pid_t tid, unsigned number)
{
  struct m6_call_counters none = {0};
  for (unsigned i = 0; i < c->call_count; i++)
    if (c->calls[i].tid == tid && c->calls[i].number == number) return c->calls[i];
  return none;
}

static void compare(const char *mode, const char *name, const struct m6_thread_counters *t, const struct source *s,
                    const struct source *before, uint64_t lived_ns)
{
  int switches = t->counted[M6_VOLUNTARY] == s->voluntary - before->voluntary &&
                 t->counted[M6_INVOLUNTARY] == s->involuntary - before->involuntary;
  int faults = t->counted[M6_MINOR] == s->minor - before->minor && t->counted[M6_MAJOR] == s->major - before->major;
  double run = (double)(s->run_ns - before->run_ns), delay = (double)(s->delay_ns - before->delay_ns);
  check(switches, "%s: %s: switches are status's (%llu voluntary, %llu involuntary)", mode, name,
        s->voluntary - before->voluntary, s->involuntary - before->involuntary);
  if (!switches)
    diag("counted %llu and %llu", (long long)t->counted[M6_VOLUNTARY], (long long)t->counted[M6_INVOLUNTARY]);
  check(faults, "%s: %s: faults are stat's (%llu minor, %llu major)", mode, name, s->minor - before->minor,
        s->major - before->major);
  if (!faults) diag("counted %llu and %llu", (long long)t->counted[M6_MINOR], (long long)t->counted[M6_MAJOR]);
  /* A new thread is queued some us, and on a virtual machine now and then 0.1 ms, before the kernel says that it was woken. */
  check(within((double)t->on_ns, run, 2, 2e4), "%s: %s: on CPU as in schedstat (%.3f ms, %.3f ms there)", mode, name,
        (double)t->on_ns / 1e6, run / 1e6);
  check(within((double)t->wait_ns, delay, 2, 2e5), "%s: %s: waiting to run as in schedstat (%.3f ms, %.3f ms there)",
        mode, name, (double)t->wait_ns / 1e6, delay / 1e6);
  check(t->counted[M6_SLICES] == s->slices - before->slices, "%s: %s: slices are schedstat's (%llu)", mode, name,
        s->slices - before->slices);
  uint64_t sum = 0, low = 0, high = 0;
  for (int i = 0; i < M6_COUNTERS_BUCKETS; i++) {
    sum += t->latency[i];
    low += (uint64_t)t->latency[i] << i;
    high += (uint64_t)t->latency[i] << (i + 1);
  }
  /* The kernel may keep an event to itself, one in twenty at worst; each latency is measured some us beside the
   * kernel's. */
  check(
    sum == t->waits && sum <= t->counted[M6_SLICES] && sum + 2 + t->counted[M6_SLICES] / 20 >= t->counted[M6_SLICES] &&
      (double)low <= (double)t->wait_ns + 2e4 * (double)(sum + 1),
    "%s: %s: the histogram holds the latency of each slice (%llu of %llu), and their time (%.3f to %.3f ms)", mode,
    name, (unsigned long long)sum, (unsigned long long)t->counted[M6_SLICES], (double)low / 1e6, (double)high / 1e6);
  /* Its own clock begins with its first instruction, for which it may have waited long. */
  check(t->on_ns + t->off_ns + t->wait_ns == t->elapsed_ns && (double)t->elapsed_ns >= (double)lived_ns * 0.98 - 1e6 &&
          (double)t->elapsed_ns <= (double)lived_ns * 1.02 + 1e6 + (double)t->wait_ns,
        "%s: %s: on + off + waiting is its life (%.1f ms, %.1f ms by the clock)", mode, name,
        (double)t->elapsed_ns / 1e6, (double)lived_ns / 1e6);
}

static void run(const char *mode, int raw, struct m6_fault *fault)
{
  memset(shared, 0, sizeof *shared);
  int fd = open(cold_file, O_RDONLY);
  fdatasync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
  pid_t pid = fork();
  if (pid == 0) child_main();
  while (__atomic_load_n(&shared->arrived, __ATOMIC_SEQ_CST) < 1) usleep(1000);
  if (!check(settled(pid, &shared->arrived, 1, shared->tid, 1), "%s: the child is ready", mode)) exit(1);

  struct source before[WORKERS], s;
  memset(before, 0, sizeof before);
  struct m6_counters *c;
  /* Wake-ups are seen where the kernel keeps no wait for a CPU: one of the two runs is as there. */
  struct m6_counters_options options = {.tgids = &pid, .count = 1, .syscalls = 1, .raw = raw, .wakeups = raw};
  int fds = tap_fds(NULL);
  if (m6_counters_open(&c, &options, fault) != 0) {
    char text[900];
    check(0, "%s: opens: %s", mode, m6_fault_text(fault, text, sizeof text));
    exit(1);
  }
  check(c->raw == raw, "%s: is attached that way", mode);
  struct m6_faults page_faults;
  int no_faults = m6_faults_open(&page_faults, pid, fault);
  int switches = perf_count(pid, PERF_COUNT_SW_CONTEXT_SWITCHES), moves = perf_count(pid, PERF_COUNT_SW_CPU_MIGRATIONS);
  uint64_t opened = now_ns();
  source(pid, shared->tid[OLD], &before[OLD]);
  struct source main_before;
  source(pid, pid, &main_before);

  advance(&shared->phase, 1);
  if (!check(settled(pid, &shared->arrived, 1 + WORKERS, shared->tid, WORKERS), "%s: the work is done", mode)) exit(1);
  uint64_t perf_switches = value_of(switches), minor = 0, major = 0;
  if (!no_faults) m6_faults_read(&page_faults, &minor, &major);
  check(m6_counters_read(c, 0, fault) == 0, "%s: reads", mode);
  uint64_t read_ns = c->read_ns;
  check(m6_counters_read(c, 0, fault) == EAGAIN && c->read_ns == read_ns, "%s: not twice in a second", mode);
  uint64_t all_switches = 0;
  for (int w = 0; w < WORKERS; w++) {
    const struct m6_thread_counters *t = find(c, shared->tid[w]);
    if (!source(pid, shared->tid[w], &s)) exit(1);
    compare(mode, worker_names[w], t, &s, &before[w], read_ns - (w == OLD ? opened : shared->start_ns[w]));
    if (w != OLD) all_switches += t->counted[M6_VOLUNTARY] + t->counted[M6_INVOLUNTARY];
  }
  source(pid, pid, &s);
  const struct m6_thread_counters *m = find(c, pid);
  compare(mode, "the main thread", m, &s, &main_before, read_ns - opened);
  all_switches += m->counted[M6_VOLUNTARY] + m->counted[M6_INVOLUNTARY];
  /* Perf's counters were inherited by all but the thread from before. Its own event is off when the task is switched out the last time. */
  if (switches >= 0)
    check(perf_switches == all_switches, "%s: switches are perf's (%llu, %llu there)", mode,
          (unsigned long long)all_switches, (unsigned long long)perf_switches);
  else skip_named("switches are perf's", strerrorname_np(errno));
  struct m6_thread_counters total = m6_counters_total(c, pid);
  if (!no_faults)
    check(minor == total.counted[M6_MINOR] && major == total.counted[M6_MAJOR],
          "%s: faults are perf's (%llu and %llu, %llu and %llu there)", mode,
          (unsigned long long)total.counted[M6_MINOR], (unsigned long long)total.counted[M6_MAJOR],
          (unsigned long long)minor, (unsigned long long)major);
  else skip_named("faults are perf's", strerrorname_np(no_faults));
  check(total.counted[M6_MINOR] >= 4096, "%s: the planted 4096 first touches are among them", mode);

  /* A known number of calls, and their time. */
  struct m6_call_counters k = call_of(c, shared->tid[CALLER], SYS_getppid);
  check(k.count == CALLS, "%s: %llu of %d calls of getppid", mode, (unsigned long long)k.count, CALLS);
  k = call_of(c, shared->tid[SLEEPER], SYS_clock_nanosleep);
  check(k.count == SLEEPS, "%s: %llu of %d sleeps", mode, (unsigned long long)k.count, SLEEPS);
  check(within((double)k.ns, (double)shared->slept_ns, 2, 0), "%s: and their time (%.3f ms, %.3f ms by the clock)",
        mode, (double)k.ns / 1e6, (double)shared->slept_ns / 1e6);
  k = call_of(c, shared->tid[BUSY_A], SYS_sched_yield);
  check(k.count == YIELDS, "%s: %llu of %d yields", mode, (unsigned long long)k.count, YIELDS);
  check(find(c, shared->tid[SLEEPER])->call == SYS_futex && find(c, shared->tid[SLEEPER])->call_ns > 0,
        "%s: the call that a thread is in is said", mode);

  /* The end: a known number of moves, and totals that outlive the threads. */
  uint64_t moved = find(c, shared->tid[MOVER])->counted[M6_MIGRATIONS], perf_moved = moves < 0 ? 0 : value_of(moves);
  advance(&shared->phase, 2);
  if (!check(settled(pid, &shared->arrived, 2 + WORKERS, NULL, 0), "%s: the threads have ended", mode)) exit(1);
  /* Joined is not yet switched out for the last time. */
  int ended = 0;
  for (int tries = 0; tries < 200 && ended < WORKERS; tries++, usleep(10000)) {
    m6_counters_read(c, 1, fault);
    ended = 0;
    for (int w = 0; w < WORKERS; w++) ended += find(c, shared->tid[w])->state == M6_COUNTERS_ENDED;
  }
  check(ended == WORKERS, "%s: %d of %d are known to have ended", mode, ended, WORKERS);
  if (cpus[0] != cpus[1]) {
    uint64_t now = find(c, shared->tid[MOVER])->counted[M6_MIGRATIONS] - moved;
    check(now == MOVES, "%s: %llu of %d moves to another CPU", mode, (unsigned long long)now, MOVES);
    if (moves >= 0) {
      uint64_t perf_now = value_of(moves) - perf_moved;
      check(perf_now >= MOVES, "%s: perf has them, too (%llu)", mode, (unsigned long long)perf_now);
    }
  } else skip_named("moves to another CPU", "there is one CPU alone");
  for (int w = 0; w < WORKERS; w++) {
    const struct m6_thread_counters *t = find(c, shared->tid[w]);
    const struct rusage *r = &shared->end[w];
    /* It was switched out at least once after it asked: for good. Until then it can have waited for a lock of its own exit. */
    uint64_t voluntary = (uint64_t)r->ru_nvcsw - before[w].voluntary,
             minor_now = (uint64_t)r->ru_minflt - before[w].minor;
    check(t->counted[M6_VOLUNTARY] >= voluntary + 1 && t->counted[M6_VOLUNTARY] <= voluntary + 20 &&
            t->counted[M6_MINOR] >= minor_now && t->counted[M6_MINOR] <= minor_now + 20 &&
            t->counted[M6_MAJOR] == (uint64_t)r->ru_majflt - before[w].major,
          "%s: %s: its totals outlive it, and are getrusage's", mode, worker_names[w]);
  }
  check(c->lost[M6_LOST_THREADS] == 0 && c->lost[M6_LOST_CALLS] == 0, "%s: nothing was lost", mode);
  advance(&shared->phase, 3);
  waitpid(pid, NULL, 0);
  m6_counters_close(c);
  if (!no_faults) m6_faults_close(&page_faults);
  if (switches >= 0) close(switches);
  if (moves >= 0) close(moves);
  check(tap_fds(NULL) == fds, "%s: no descriptor is left", mode);
}

int main(int argc, char **argv)
{
  (void)argc;
  if (!measuring()) return measured_again(argv);
  two_cpus(cpus);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const char *dir = getenv("TMPDIR");
  snprintf(cold_file, sizeof cold_file, "%s/mach6-cold.XXXXXX", dir ? dir : "/tmp");
  int fd = mkstemp(cold_file);
  char page[4096] = {1};
  for (int i = 0; i < 256; i++)
    if (write(fd, page, sizeof page) != sizeof page) return 1;
  fsync(fd);
  close(fd);

  struct m6_fault fault;
  struct m6_counters *c;
  pid_t self = getpid();
  struct m6_counters_options options = {.tgids = &self, .count = 1, .syscalls = 1};
  int err = m6_counters_open(&c, &options, &fault);
  if (err) {
    char text[900];
    skip_named("counters by thread, by the kernel's types", m6_fault_text(&fault, text, sizeof text));
    skip_named("counters by thread, by raw tracepoints", text);
  } else {
    int raw = c->raw;
    m6_counters_close(c);
    if (!raw) run("btf", 0, &fault);
    else skip_named("counters by thread, by the kernel's types", "refused; raw tracepoints are not");
    run("raw", 1, &fault);
  }
  unlink(cold_file);
  return tap_done();
}
