/* test_kernel_pause.c - counters that rest and go on (kernel_pause.c): across full, lite and full again, and full, memory, lite and full, the
 * books of each thread close against /proc, calls are counted exactly while they are watched and nobody is charged for the time between;
 * with threads that run, sleep, are in a call, end, begin, and take an ended one's number meanwhile.
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
/* sanitizers: none */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "collector/kernel_counters.h"
#include "collector/kernel_counters_parts.h"
#include "collector/kernel_samples.h"
#include "collector/kernel_tasks.h"
#include "kernel_phases.h"

/* Threads: at work in each phase; asleep all the time; in one call from before the gap until after it; on a CPU all the time; ended in the
 * gap; begun in it; begun in it with the number of one that had ended. */
enum who { WORKER, SLEEPER, CALLER, SPINNER, ENDS, EARLY, BORN, REBORN, WHO };
static const char *const names[WHO] = {
  "one that works", "a sleeper",          "one in a call",   "one that runs through",
  "one that ends",  "one that had ended", "one that begins", "one with an old number"};
#define CALLS 3000
#define SLEEPS 40 /* switches, in each phase */

static struct shared {
  int phase, arrived, stop;
  pid_t tid[WHO];
  uint64_t began_ns[WHO];
} * shared;

static void arrive(void) { __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST); }
static void some_work(void)
{
  for (int i = 0; i < CALLS; i++) syscall(SYS_getppid);
  for (int i = 0; i < SLEEPS; i++) usleep(500);
  uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 30000000;
  while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until) continue;
}

static void *thread_main(void *arg)
{
  enum who w = (enum who)(intptr_t)arg;
  shared->tid[w] = (pid_t)syscall(SYS_gettid);
  shared->began_ns[w] = now_ns();
  if (w != BORN && w != REBORN) {
    arrive();
    await(&shared->phase, 1);
  }
  switch (w) {
  case WORKER:
    for (int phase = 1; phase <= 3; phase++) {
      await(&shared->phase, phase);
      some_work();
      arrive();
    }
    break;
  case CALLER: /* by another word of the kernel's than await: a call of its own kind */
    arrive();
    for (int p = 1; p < 3; p = __atomic_load_n(&shared->phase, __ATOMIC_ACQUIRE))
      syscall(SYS_futex, &shared->stop, 9 /* FUTEX_WAIT_BITSET */, 0, NULL, NULL, 1);
    break;
  case SPINNER:
    arrive();
    while (!__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE)) continue;
    break;
  case SLEEPER: arrive(); break;
  case ENDS:
    arrive();
    await(&shared->phase, 2);
    return NULL;
  case EARLY: arrive(); return NULL;
  default:
    some_work();
    arrive();
    break;
  }
  await(&shared->phase, 4);
  return NULL;
}

/* The next thread of this process gets this number, where one may say so. */
static void next_is(pid_t tid)
{
  int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
  if (fd >= 0) dprintf(fd, "%d", (int)tid - 1), close(fd);
}

static void child_main(void)
{
  pthread_t thread[WHO];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (intptr_t w = 0; w < BORN; w++) pthread_create(&thread[w], NULL, thread_main, (void *)w);
  await(&shared->phase, 1);
  pthread_join(thread[EARLY], NULL);
  await(&shared->phase, 2);
  pthread_join(thread[ENDS], NULL);
  pthread_create(&thread[BORN], NULL, thread_main, (void *)BORN);
  next_is(shared->tid[EARLY]);
  pthread_create(&thread[REBORN], NULL, thread_main, (void *)REBORN);
  await(&shared->phase, 4);
  for (int w = 0; w < WHO; w++)
    if (w != ENDS && w != EARLY) pthread_join(thread[w], NULL);
  _exit(0);
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */

static const struct m6_thread_counters *find(const struct m6_counters *c, pid_t tid)
{
  static const struct m6_thread_counters none = {.tid = -1};
  for (unsigned i = 0; i < c->thread_count; i++)
    if (c->threads[i].tid == tid) return &c->threads[i];
  return &none;
}
static uint64_t calls_of(const struct m6_counters *c, pid_t tid, unsigned number)
{
  for (unsigned i = 0; i < c->call_count; i++)
    if (c->calls[i].tid == tid && c->calls[i].number == number) return c->calls[i].count;
  return 0;
}
static uint64_t longest_call(const struct m6_counters *c, pid_t tid)
{
  uint64_t most = 0;
  for (unsigned i = 0; i < c->call_count; i++)
    if (c->calls[i].tid == tid && c->calls[i].max_ns > most) most = c->calls[i].max_ns;
  return most;
}

static void compare(const char *mode, enum who w, const struct m6_thread_counters *t, const struct source *s,
                    const struct source *before, uint64_t lived_ns)
{
  double run = (double)(s->run_ns - before->run_ns), delay = (double)(s->delay_ns - before->delay_ns);
  check(t->on_ns + t->off_ns + t->wait_ns == t->elapsed_ns && within((double)t->elapsed_ns, (double)lived_ns, 1, 12e6),
        "%s: %s: on + off + waiting is its life (%.1f ms, %.1f ms by the clock)", mode, names[w],
        (double)t->elapsed_ns / 1e6, (double)lived_ns / 1e6);
  /* One that was on its CPU when it was born to us is known as of the last tick. */
  check(within((double)t->on_ns, run, 2, 1e6) && within((double)t->wait_ns, delay, 2, 1e6),
        "%s: %s: on CPU and waiting as in schedstat (%.3f and %.3f ms, %.3f and %.3f there)", mode, names[w],
        (double)t->on_ns / 1e6, (double)t->wait_ns / 1e6, run / 1e6, delay / 1e6);
  int same = t->counted[M6_VOLUNTARY] == s->voluntary - before->voluntary &&
             t->counted[M6_INVOLUNTARY] == s->involuntary - before->involuntary &&
             t->counted[M6_MINOR] == s->minor - before->minor && t->counted[M6_MAJOR] == s->major - before->major &&
             t->counted[M6_SLICES] == s->slices - before->slices;
  check(same, "%s: %s: switches, faults and slices are /proc's (%llu slices)", mode, names[w],
        s->slices - before->slices);
  if (!same)
    diag("counted %llu %llu, %llu %llu, %llu; there %llu %llu, %llu %llu, %llu", (long long)t->counted[M6_VOLUNTARY],
         (long long)t->counted[M6_INVOLUNTARY], (long long)t->counted[M6_MINOR], (long long)t->counted[M6_MAJOR],
         (long long)t->counted[M6_SLICES], s->voluntary - before->voluntary, s->involuntary - before->involuntary,
         s->minor - before->minor, s->major - before->major, s->slices - before->slices);
}

static const char *ms_since(uint64_t ns)
{
  static char text[4][32];
  static int at;
  at = (at + 1) % 4;
  snprintf(text[at], sizeof text[at], "%.1f ms", (double)(now_ns() - ns) / 1e6);
  return text[at];
}

static void must(int err, const char *mode, const char *what, const struct m6_fault *fault)
{
  char text[900];
  if (check(err == 0, "%s: %s", mode, what)) return;
  diag("%s", m6_fault_text(fault, text, sizeof text));
  exit(1);
}

/* Programs that cannot be attached: room for one descriptor, which the first link takes. It rests on, and goes on when there is room. */
static void refused(const char *mode, struct m6_counters *c, pid_t pid, pid_t tid, uint64_t opened)
{
  struct m6_fault fault;
  struct rlimit full, few;
  int fds = tap_fds(NULL), next = dup(1);
  close(next);
  getrlimit(RLIMIT_NOFILE, &full);
  few = (struct rlimit){(rlim_t)next + 1, full.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  int err = m6_counters_resume(c, 1, &fault);
  setrlimit(RLIMIT_NOFILE, &full);
  check(err == EMFILE && fault.err == EMFILE && strcmp(fault.tried, "attach") == 0,
        "%s: programs that are refused are an error", mode);
  check(tap_fds(NULL) == fds, "%s: and none of them is left attached", mode);
  m6_counters_read(c, 1, &fault);
  uint64_t before = find(c, tid)->elapsed_ns;
  usleep(20000);
  m6_counters_read(c, 1, &fault);
  check(before && find(c, tid)->elapsed_ns == before && find(c, tid)->state != M6_COUNTERS_ENDED, "%s: it rests on",
        mode);
  must(m6_counters_resume(c, 1, &fault), mode, "goes on when they are not", &fault);
  m6_counters_read(c, 1, &fault);
  const struct m6_thread_counters *t = find(c, tid);
  check(within((double)t->elapsed_ns, (double)(c->read_ns - opened), 1, 15e6) &&
          t->on_ns + t->off_ns + t->wait_ns == t->elapsed_ns && m6_counters_total(c, pid).calls > 0,
        "%s: with its books closed", mode);
  m6_counters_pause(c);
}

/* `all`: nothing is counted in the gap; else no calls are. */
static void run(const char *mode, int raw, int all)
{
  struct m6_fault fault;
  struct m6_counters *c;
  struct source before[WHO], s, spun = {0};
  memset(before, 0, sizeof before);
  memset(shared, 0, sizeof *shared);
  pid_t pid = fork();
  if (pid == 0) child_main();
  int fds = tap_fds(NULL);
  struct m6_counters_options options = {.tgids = &pid, .count = 1, .syscalls = 1, .raw = raw};
  if (!check(settled(pid, &shared->arrived, BORN, shared->tid, BORN), "%s: the threads are there", mode)) exit(1);
  must(m6_counters_open(&c, &options, &fault), mode, "opens", &fault);
  uint64_t opened = now_ns(), at;
  for (int w = 0; w < BORN; w++) source(pid, shared->tid[w], &before[w]);

  advance(&shared->phase, 1); /* the spinner never sleeps, and the early one has ended */
  const pid_t asleep[] = {shared->tid[WORKER], shared->tid[SLEEPER], shared->tid[CALLER], shared->tid[ENDS]};
  if (!check(settled(pid, &shared->arrived, BORN + 6, asleep, 4), "%s: the first work is done", mode)) exit(1);
  m6_counters_read(c, 1, &fault);
  check(calls_of(c, shared->tid[WORKER], SYS_getppid) == CALLS, "%s: %d calls are counted", mode, CALLS);
  check(find(c, shared->tid[CALLER])->call == SYS_futex, "%s: the call that a thread is in is known", mode);

  uint64_t paused = at = now_ns();
  if (all) m6_counters_pause(c);
  else m6_counters_calls_stop(c);
  diag("%s: detaching took %s", mode, ms_since(at));
  m6_counters_read(c, 1, &fault);
  struct m6_thread_counters rest = *find(c, shared->tid[SPINNER]);
  check(find(c, shared->tid[CALLER])->call == -1, "%s: then it is not", mode);

  advance(&shared->phase, 2);
  const pid_t asleep_2[] = {shared->tid[WORKER], shared->tid[SLEEPER], shared->tid[CALLER]};
  if (!check(settled(pid, &shared->arrived, BORN + 9, asleep_2, 3), "%s: the work of the gap is done", mode)) exit(1);
  usleep(50000);
  m6_counters_read(c, 1, &fault);
  const struct m6_thread_counters *t = find(c, shared->tid[SPINNER]);
  check(all == (t->elapsed_ns == rest.elapsed_ns), "%s: what rests stands still (%.1f ms, %.1f ms later)", mode,
        (double)rest.elapsed_ns / 1e6, (double)t->elapsed_ns / 1e6);

  at = now_ns();
  if (all) must(m6_counters_resume(c, 0, &fault), mode, "goes on", &fault);
  if (all) diag("%s: attaching took %s", mode, ms_since(at));
  uint64_t resumed = now_ns(), took = resumed - at; /* somewhere in there */
  if (all) {
    m6_counters_read(c, 1, &fault);
    t = find(c, shared->tid[SPINNER]);
    check(within((double)t->elapsed_ns, (double)(c->read_ns - opened), 1, 15e6) &&
            t->on_ns + t->off_ns + t->wait_ns == t->elapsed_ns && t->elapsed_ns > rest.elapsed_ns,
          "%s: a thread that runs through has no hole in its life", mode);
    source(pid, shared->tid[SPINNER], &spun);
    check(within((double)t->on_ns, (double)(spun.run_ns - before[SPINNER].run_ns), 2, 12e6),
          "%s: and was on its CPU for as long as schedstat says, to a tick (%.1f ms)", mode, (double)t->on_ns / 1e6);
  }
  at = now_ns();
  must(m6_counters_calls_resume(c, &fault), mode, "counts calls again", &fault);
  diag("%s: attaching to calls took %s", mode, ms_since(at));

  advance(&shared->phase, 3);
  __atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
  futex_wake(&shared->stop);
  pid_t last[] = {shared->tid[WORKER],  shared->tid[SLEEPER], shared->tid[CALLER],
                  shared->tid[SPINNER], shared->tid[BORN],    shared->tid[REBORN]};
  if (!check(settled(pid, &shared->arrived, BORN + 10, last, 6), "%s: the last work is done", mode)) exit(1);
  usleep(20000);
  m6_counters_read(c, 1, &fault);
  for (int i = 0; i < 6; i++) {
    enum who w = (const enum who[]){WORKER, SLEEPER, CALLER, SPINNER, BORN, REBORN}[i];
    source(pid, shared->tid[w], &s);
    t = find(c, shared->tid[w]);
    uint64_t lived = c->read_ns - (w >= BORN ? shared->began_ns[w] : opened);
    if (w != REBORN || shared->tid[w] != shared->tid[EARLY]) compare(mode, w, t, &s, &before[w], lived);
  }
  t = find(c, shared->tid[WORKER]);
  check(calls_of(c, shared->tid[WORKER], SYS_getppid) == 2 * CALLS,
        "%s: %d calls are counted, those of the gap are not (%llu)", mode, 2 * CALLS,
        (unsigned long long)calls_of(c, shared->tid[WORKER], SYS_getppid));
  check(t->call_on_ns <= t->on_ns, "%s: it was no longer in calls than on a CPU", mode);
  check(longest_call(c, shared->tid[CALLER]) < 100000000 && longest_call(c, shared->tid[WORKER]) < c->read_ns - paused,
        "%s: nobody is charged for a call that was entered before the gap", mode);
  t = find(c, shared->tid[CALLER]);
  check(within((double)t->off_by[M6_OFF_LOCK], (double)t->off_ns, 1, 1e6),
        "%s: one that sleeps through waits for what it waited for (%.1f of %.1f ms)", mode,
        (double)t->off_by[M6_OFF_LOCK] / 1e6, (double)t->off_ns / 1e6);
  t = find(c, shared->tid[SLEEPER]); /* it was woken once in the gap, and slept again */
  uint64_t gap = all ? resumed - paused : 0;
  check(within((double)t->off_by[M6_OFF_OTHER], (double)gap, 5, 15e6 + (double)took) &&
          within((double)t->off_by[M6_OFF_LOCK], (double)(t->off_ns - gap), 5, 15e6 + (double)took),
        "%s: what one that was woken in the gap waited for there is not known, and what it did before and after is "
        "(%.1f of %.1f ms, %.1f between)",
        mode, (double)t->off_by[M6_OFF_OTHER] / 1e6, (double)t->off_ns / 1e6, (double)gap / 1e6);
  t = find(c, shared->tid[ENDS]);
  check(t->state == M6_COUNTERS_ENDED && t->on_ns + t->off_ns + t->wait_ns == t->elapsed_ns &&
          t->elapsed_ns <= paused - opened + (all ? 20000000 : 200000000),
        "%s: one that ended in the gap has ended, at its beginning (%.1f ms)", mode, (double)t->elapsed_ns / 1e6);
  t = find(c, shared->tid[REBORN]);
  if (shared->tid[REBORN] == shared->tid[EARLY] && m6_tasks_namespace() == 0) {
    source(pid, shared->tid[REBORN], &s);
    check(t->lives == 2 && t->state != M6_COUNTERS_ENDED && t->on_ns + t->off_ns + t->wait_ns == t->elapsed_ns &&
            within((double)t->elapsed_ns, (double)(c->read_ns - opened), 1, 15e6) && t->on_ns >= s.run_ns - 1000000 &&
            t->counted[M6_VOLUNTARY] >= s.voluntary,
          "%s: a number that another thread took counts on (%u lives, %.1f ms of %.1f, %.1f by the clock)", mode,
          t->lives, (double)t->on_ns / 1e6, (double)t->elapsed_ns / 1e6, (double)(c->read_ns - opened) / 1e6);
  } else
    skip_named("a number that another thread took counts on", "the number that the kernel counts by cannot be set");
  check(all == (c->unseen_slices >= SLEEPS), "%s: slices that no program saw are told (%llu)", mode,
        (unsigned long long)c->unseen_slices);
  check(c->lost[M6_LOST_THREADS] == 0 && c->lost[M6_LOST_CALLS] == 0, "%s: nothing was lost", mode);
  /* Again, with nothing between, and at rest at the end. */
  for (int i = 0; i < 3; i++) {
    m6_counters_pause(c);
    must(m6_counters_resume(c, 1, &fault), mode, "once more", &fault);
  }
  m6_counters_pause(c);
  if (m6_tasks_namespace() == 0) refused(mode, c, pid, shared->tid[SLEEPER], opened);
  else skip_named("programs that are refused", "in a pid namespace more than programs wants a descriptor");
  advance(&shared->phase, 4);
  waitpid(pid, NULL, 0);
  m6_counters_read(c, 1, &fault);
  check(m6_counters_total(c, pid).elapsed_ns > 0, "%s: what was counted outlives the process", mode);
  check(m6_counters_resume(c, 1, &fault) != 0 && fault.err == ESRCH, "%s: and does not go on without it", mode);
  m6_counters_close(c);
  check(tap_fds(NULL) == fds, "%s: no descriptor is left", mode);
}

/* A child's CPU time, until it has had so much more; this thread's patience is 5 s. */
static uint64_t cpu_until(clockid_t clock, uint64_t more)
{
  uint64_t from = clock_ns(clock);
  for (int tries = 0; tries < 1000 && clock_ns(clock) < from + more; tries++) usleep(5000);
  return clock_ns(clock) - from;
}

/* CPU samples rest: none is taken, and the time counts for nothing. */
static void samples_rest(void)
{
  struct m6_samples *s;
  struct m6_samples_status before, after;
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) continue;
  }
  clockid_t clock;
  clock_getcpuclockid(pid, &clock);
  int e = m6_samples_open(&(struct m6_samples_options){.pid = pid, .period_us = 10000}, &s, &before);
  if (e) skip_named("samples that rest and go on", strerror(e));
  else {
    uint64_t sampled = cpu_until(clock, 150000000);
    m6_samples_rest(s, 1);
    m6_samples_poll(s, NULL, NULL);
    m6_samples_status(s, &before);
    uint64_t between = cpu_until(clock, 300000000);
    m6_samples_poll(s, NULL, NULL);
    m6_samples_status(s, &after);
    check(before.samples >= 10 && after.samples == before.samples && after.cpu_ns == before.cpu_ns,
          "samples at rest: none is taken in %.0f ms (%llu before)", (double)between / 1e6,
          (unsigned long long)before.samples);
    m6_samples_rest(s, 0);
    m6_samples_pause(s, 0);
    sampled += cpu_until(clock, 150000000);
    m6_samples_stop(s);
    m6_samples_poll(s, NULL, NULL);
    m6_samples_status(s, &after);
    check(after.samples >= before.samples + 10 && within((double)after.cpu_ns, (double)sampled, 5, 20e6),
          "and they go on, of %.0f ms of CPU time (%.0f by its clock): %llu", (double)after.cpu_ns / 1e6,
          (double)sampled / 1e6, (unsigned long long)after.samples);
    m6_samples_close(s);
  }
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

static void *sleeps(void *arg)
{
  (void)arg;
  shared->tid[BORN] = (pid_t)syscall(SYS_gettid);
  for (int i = 0; i < SLEEPS; i++) usleep(500);
  arrive();
  await(&shared->phase, 2);
  return NULL;
}

/* Detaching takes long on a busy machine, and programs run meanwhile: here it took as long as the thread has lived. */
static void born_while_detaching(void)
{
  struct m6_fault fault;
  struct m6_counters *c;
  struct source s = {0};
  memset(shared, 0, sizeof *shared);
  pid_t pid = fork();
  if (pid == 0) {
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    await(&shared->phase, 1);
    pthread_create(&thread, NULL, sleeps, NULL);
    await(&shared->phase, 3);
    _exit(0);
  }
  struct m6_counters_options options = {.tgids = &pid, .count = 1};
  must(m6_counters_open(&c, &options, &fault), "slowly", "opens", &fault);
  uint64_t asked = now_ns();
  usleep(20000); /* its beginning is known to a tick */
  advance(&shared->phase, 1);
  check(settled(pid, &shared->arrived, 1, &shared->tid[BORN], 1), "slowly: a thread begins");
  m6_counters_pause(c);
  c->inside->paused_ns = asked;
  must(m6_counters_resume(c, 0, &fault), "slowly", "goes on", &fault);
  m6_counters_read(c, 1, &fault);
  const struct m6_thread_counters *t = find(c, shared->tid[BORN]);
  source(pid, shared->tid[BORN], &s);
  check(t->lives == 1 && t->counted[M6_VOLUNTARY] == s.voluntary && t->on_ns <= s.run_ns,
        "slowly: one that began while programs were detached has begun once (%u lives, %llu of %llu switches)",
        t->lives, (unsigned long long)t->counted[M6_VOLUNTARY], s.voluntary);
  m6_counters_close(c);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
  (void)argc;
  if (!measuring()) return measured_again(argv);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  samples_rest();
  struct m6_fault fault;
  struct m6_counters *c;
  pid_t self = getpid();
  struct m6_counters_options options = {.tgids = &self, .count = 1, .syscalls = 1};
  if (m6_counters_open(&c, &options, &fault)) {
    char text[900];
    skip_named("counters that rest and go on", m6_fault_text(&fault, text, sizeof text));
    return tap_done();
  }
  int raw = c->raw;
  m6_counters_close(c);
  run("without calls for a while", raw, 0);
  run("at rest for a while", raw, 1);
  born_while_detaching();
  if (!raw) run("at rest, by raw tracepoints", 1, 1);
  return tap_done();
}
