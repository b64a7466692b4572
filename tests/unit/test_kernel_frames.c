/* test_kernel_frames.c - what the kernel tells at a frame boundary against second sources in the same run: a thread plants each cause a
 * known number of times, reads its own clocks, getrusage and schedstat beside each boundary, and both agree: counts
 * exactly, times within 2 %. By a function of the program, and by the shim's places.
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
/* sanitizers: none */
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "collector/kernel_frames.h"
#include "collector/kernel_probe.h"
#include "kernel_frames_kept.h"
#include "kernel_phases.h"
#include "preload/mach6.h"

/* ---- what is planted -------------------------------------------------------------------------------------------- */
enum plant { COMPUTE, LOCK, SLEEP, POLL, IO, DRIVER, FAULT, WAIT, CALLS, PLANTS };
static const char *const names[PLANTS] = {
  "computing",          "a held lock",   "a sleep",     "a poll",
  "a slow pipe",        "a slow driver", "page faults", "a busy neighbour on the CPU",
  "a storm of syscalls"};
static const int causes[PLANTS] = {-1, M6_OFF_LOCK, M6_OFF_SLEEP, M6_OFF_POLL, M6_OFF_IO, M6_OFF_DRIVER, M6_OFF_FAULT,
                                   -1, -1};
#define ROUNDS 10
#define MS 15
#define STORM 4000
#define PRESENTS 20
#define FLOOD 20000 /* more than the ring holds */

static struct shared {
  int phase, arrived, no_driver, no_fault, rounds;
  struct note start, note[PLANTS][ROUNDS];
  pid_t tid;
  int lock;
  long failed_presents;
} * shared;

/* ---- the child -------------------------------------------------------------------------------------------------- */
static int commands[2], data[2], faults = -1, calls = -1, listening;
static char *pages,
  *cold; /* whose faults the helper serves; of a file that is not in memory, where it lies on a disk */
static int with_shim, schedstat = -1, spin;

static void boundary(void)
{
  if (with_shim) mach6_frame();
  else frame_tick();
}

static struct note noted(void)
{
  struct note n;
  n.before = word(schedstat);
  boundary();
  n.after = word(schedstat);
  return n;
}

/* Some time after it is asked, does what the other thread waits for. */
static void *helper(void *arg)
{
  char what;
  struct uffd_msg message;
  while (read(commands[0], &what, 1) == 1) {
    struct timespec t = {0, MS * 1000000};
    if (what == FAULT && read(faults, &message, sizeof message) != sizeof message) _exit(3);
    nanosleep(&t, NULL);
    if (what == LOCK) {
      __atomic_store_n(&shared->lock, 0, __ATOMIC_RELEASE);
      futex_wake(&shared->lock);
    }
    if (what == IO && write(data[1], "x", 1) != 1) _exit(3);
    if (what == DRIVER) syscall(SYS_getpgid, 0);
    if (what == FAULT) {
      struct uffdio_zeropage z = {.range = {message.arg.pagefault.address & ~4095ull, 4096}};
      if (ioctl(faults, UFFDIO_ZEROPAGE, &z) != 0) _exit(3);
    }
  }
  return arg;
}
static void ask(enum plant what)
{
  char byte = (char)what;
  if (write(commands[1], &byte, 1) != 1) _exit(3);
}

/* A driver that lets its caller wait: the listener of a seccomp filter, on which the helper's getpgid arrives. The filter is the
 * helper's alone. */
static void *helper_filtered(void *arg)
{
  struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {4, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  calls = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (calls < 0) shared->no_driver = errno;
  advance(&listening, 1);
  return helper(arg);
}

static void *neighbour(void *arg)
{
  pin(*(int *)arg);
  for (;;) {
    await(&spin, 1);
    while (__atomic_load_n(&spin, __ATOMIC_RELAXED)) {}
  }
  return arg;
}

static void open_faults(void)
{
  struct uffdio_api api = {.api = UFFD_API};
  pages = mmap(NULL, ROUNDS * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_register range = {.range = {(uintptr_t)pages, ROUNDS * 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);
  if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0 || ioctl(faults, UFFDIO_REGISTER, &range) != 0)
    shared->no_fault = errno;
}

static void open_cold(void)
{
  const char *dir = getenv("TMPDIR");
  char name[4096], page[4096] = {1};
  snprintf(name, sizeof name, "%s/mach6-cold.XXXXXX", dir ? dir : "/tmp");
  int fd = mkstemp(name);
  unlink(name);
  for (int i = 0; i < ROUNDS; i++)
    if (write(fd, page, sizeof page) != sizeof page) _exit(3);
  fsync(fd);
  cold = mmap(NULL, ROUNDS * 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (cold == MAP_FAILED) _exit(3);
  madvise(cold, ROUNDS * 4096, MADV_RANDOM);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
}

static void plant(enum plant p, int round)
{
  struct timespec t = {0, MS * 1000000};
  char byte;
  uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + MS * 1000000ull / 2;
  switch (p) {
  case LOCK:
    shared->lock = 1;
    ask(LOCK);
    while (__atomic_load_n(&shared->lock, __ATOMIC_ACQUIRE)) futex_wait(&shared->lock, 1);
    break;
  case SLEEP: nanosleep(&t, NULL); break;
  case POLL: poll(NULL, 0, MS); break;
  case IO:
    ask(IO);
    if (read(data[0], &byte, 1) != 1) _exit(3);
    break;
  case DRIVER: {
    struct seccomp_notif n = {0};
    if (shared->no_driver) break;
    ask(DRIVER);
    if (ioctl(calls, SECCOMP_IOCTL_NOTIF_RECV, &n) != 0) _exit(3);
    struct seccomp_notif_resp answer = {.id = n.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    if (ioctl(calls, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0) _exit(3);
    break;
  }
  case FAULT:
    if (shared->no_fault) break;
    ask(FAULT);
    *(volatile char *)(pages + round * 4096) = 1;
    (void)*(volatile char *)(cold + round * 4096);
    break;
  case WAIT:
    advance(&spin, 1);
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until) {}
    spin = 0;
    break;
  case CALLS:
    for (int i = 0; i < STORM; i++) syscall(SYS_getppid);
    break;
  default:
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until) {}
  }
}

static void inside_present(void)
{
  struct timespec t = {0, 3000000};
  nanosleep(&t, NULL);
}

/* Presents of a graphics library that sleeps inside, by the shim; one in two fails. */
static void present(void)
{
  unsigned (*swap)(void *, void *) = (unsigned (*)(void *, void *))dlsym(RTLD_DEFAULT, "eglSwapBuffers");
  void (**inside)(void) = dlsym(RTLD_DEFAULT, "fake_inside");
  if (!swap || !inside) _exit(4);
  *inside = inside_present;
  for (int i = 0; i < 2 * PRESENTS; i++)
    shared->failed_presents += !swap((void *)1, (void *)(uintptr_t)(i & 1 ? 0xbad : 2));
}

static void child_main(int shim)
{
  static int cpu;
  cpu_set_t set;
  pthread_t t;
  with_shim = shim;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
  if (pipe(commands) != 0 || pipe(data) != 0) _exit(3);
  sched_getaffinity(0, sizeof set, &set);
  while (!CPU_ISSET(cpu, &set)) cpu++;
  open_faults();
  open_cold();
  pthread_create(&t, NULL, helper_filtered, NULL);
  await(&listening, 1);
  pthread_create(&t, NULL, neighbour, &cpu);
  shared->tid = (pid_t)syscall(SYS_gettid);
  advance(&shared->arrived, 1);
  await(&shared->phase, 1);
  shared->start = noted();
  for (int p = 0; p < PLANTS; p++) {
    if (p == WAIT) pin(cpu);
    for (int r = 0; r < shared->rounds; r++) {
      plant((enum plant)p, r);
      shared->note[p][r] = noted();
    }
    if (p == WAIT) sched_setaffinity(0, sizeof set, &set);
  }
  advance(&shared->arrived, 2);
  await(&shared->phase, 2);
  for (int i = 0; i < FLOOD; i++) boundary();
  advance(&shared->arrived, 3);
  await(&shared->phase, 3);
  boundary();
  if (shim) present();
  advance(&shared->arrived, 4);
  await(&shared->phase, 4);
  _exit(0);
}

/* ---- what came -------------------------------------------------------------------------------------------------- */
#define MAX_FRAMES (PLANTS * ROUNDS + 1 + FLOOD + 1 + PRESENTS + 100)
struct sums {
  double time, on, wait, off[M6_OFF_CAUSES], cpu, delay, mono, calls, call;
  double loose_ns; /* what went by between the thread's readings around the first and the last boundary */
  long minor, major, voluntary, involuntary;
  int exact, compared;
};
static struct sums sum_of(int p, const struct m6_kernel_frame *f)
{
  struct sums s = {0};
  const struct note *before = p ? &shared->note[p - 1][ROUNDS - 1] : &shared->start,
                    *ends[2] = {before, &shared->note[p][ROUNDS - 1]};
  for (int i = 0; i < 2; i++) s.loose_ns += (double)(ends[i]->after.mono_ns - ends[i]->before.begun_ns);
  for (int r = 0; r < ROUNDS; before = &shared->note[p][r], r++, f++) {
    const struct m6_kernel_reading *a = &f[-1].entry, *b = &f->entry;
    const struct note *n = &shared->note[p][r];
    s.time += (double)(b->time_ns - a->time_ns);
    s.on += (double)(b->on_ns - a->on_ns);
    s.wait += (double)(b->wait_ns - a->wait_ns);
    for (int c = 0; c < M6_OFF_CAUSES; c++) s.off[c] += (double)(b->off_ns[c] - a->off_ns[c]);
    s.calls += (double)(b->calls - a->calls);
    s.call += (double)(b->call_ns - a->call_ns);
    s.mono += (double)(n->before.mono_ns - before->before.mono_ns);
    s.cpu += (double)(n->before.cpu_ns - before->before.cpu_ns);
    s.delay += (double)(n->before.delay_ns - before->before.delay_ns);
    /* Comparable to the count when nothing happened between the thread's own readings around both boundaries. */
    const struct word *w[4] = {&before->before, &before->after, &n->before, &n->after};
    if (memcmp(&w[0]->minor, &w[1]->minor, 4 * sizeof(long)) || memcmp(&w[2]->minor, &w[3]->minor, 4 * sizeof(long)))
      continue;
    s.compared++;
    s.exact += (long)(b->minor - a->minor) == w[2]->minor - w[0]->minor &&
               (long)(b->major - a->major) == w[2]->major - w[0]->major &&
               (long)(b->voluntary - a->voluntary) == w[2]->voluntary - w[0]->voluntary &&
               (long)(b->involuntary - a->involuntary) == w[2]->involuntary - w[0]->involuntary;
    s.major += (long)(b->major - a->major);
    s.voluntary += (long)(b->voluntary - a->voluntary);
  }
  return s;
}

static void compare(const char *mode, int p, const struct m6_kernel_frame *f, int syscalls)
{
  struct sums s = sum_of(p, f);
  double off = s.mono - s.cpu - s.delay, others = s.time - s.on - s.wait;
  /* The clocks of CPUs and CLOCK_MONOTONIC may differ by some in a thousand; a boundary lies between two clock reads; what a
   * hypervisor took from a run is known when the run is over, which may be a frame later. */
  double stolen = s.off[M6_OFF_STOLEN] + (p ? sum_of(p - 1, f - ROUNDS).off[M6_OFF_STOLEN] : 0);
  double slack = 2e5 + 0.002 * s.mono + s.loose_ns + stolen;
  if (stolen > 1e6) diag("%.2f ms were stolen", stolen / 1e6);
  check(within(s.time, s.mono, 2, slack), "%s: %s: the time is the clock's (%.2f ms, %.2f ms)", mode, names[p],
        s.time / 1e6, s.mono / 1e6);
  check(within(s.on, s.cpu, 2, slack), "%s: %s: on CPU as the thread's own clock (%.2f ms, %.2f ms)", mode, names[p],
        s.on / 1e6, s.cpu / 1e6);
  check(within(s.wait, s.delay, 2, slack), "%s: %s: waiting as in schedstat (%.2f ms, %.2f ms)", mode, names[p],
        s.wait / 1e6, s.delay / 1e6);
  if (causes[p] >= 0) {
    double mine = s.off[causes[p]];
    others -= mine;
    check(mine >= ROUNDS * MS * 1e6 / 2 && within(mine, off, 2, slack), "%s: %s: off CPU by %s (%.2f ms, %.2f ms)",
          mode, names[p], m6_off_cause_name((enum m6_off_cause)causes[p]), mine / 1e6, off / 1e6);
  }
  /* Stolen time is what the clocks do not agree on. */
  others -= s.off[M6_OFF_STOLEN];
  if (!check(others <= 0.02 * s.mono + slack, "%s: %s: and by nothing else (%.2f ms)", mode, names[p], others / 1e6))
    for (int c = 0; c < M6_OFF_CAUSES; c++) diag("%s %.2f ms", m6_off_cause_name((enum m6_off_cause)c), s.off[c] / 1e6);
  check(s.exact == s.compared && s.compared > ROUNDS / 4, "%s: %s: faults and switches are getrusage's in %d of %d",
        mode, names[p], s.exact, s.compared);
  if (p == FAULT) diag("%ld major", s.major);
  if (p == WAIT) check(s.wait >= 0.2 * s.on, "%s: %s: it did wait (%.2f ms)", mode, names[p], s.wait / 1e6);
  if (p == CALLS && syscalls)
    check(s.calls >= ROUNDS * STORM && s.calls < ROUNDS * (STORM + 60) && s.call > 0.05 * s.on && s.call <= s.on,
          "%s: %s: counted (%.0f of %d planted), with their part of the CPU (%.2f of %.2f ms)", mode, names[p], s.calls,
          ROUNDS * STORM, s.call / 1e6, s.on / 1e6);
  if (p == CALLS && !syscalls) check(s.calls == 0, "%s: %s: not counted, as it was not asked for", mode, names[p]);
}

/* ---- one run ---------------------------------------------------------------------------------------------------- */
static char folder[4096];
static pid_t start_child(const char *how)
{
  char fd[16], preload[9000];
  int memory = memfd_create("frames", 0);
  if (memory < 0 || ftruncate(memory, sizeof *shared) != 0) exit(1);
  if (shared) munmap(shared, sizeof *shared);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  snprintf(fd, sizeof fd, "%d", memory);
  snprintf(preload, sizeof preload, "%s/../../libmach6.so:%s/../programs/libfakegfx1.so", folder, folder);
  pid_t child = fork();
  if (child == 0) {
    if (strcmp(how, "shim") == 0) {
      setenv("LD_PRELOAD", preload, 1);
      setenv("MACH6_RUN", "f4a3e5", 1);
    }
    execl("/proc/self/exe", "test_kernel_frames", "child", fd, how, (char *)NULL);
    _exit(127);
  }
  close(memory);
  return child;
}
static void end_child(pid_t child)
{
  char pattern[64];
  glob_t g;
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  snprintf(pattern, sizeof pattern, "/dev/shm/mach6.%d.*", (int)child);
  if (glob(pattern, 0, NULL, &g) == 0) {
    for (size_t i = 0; i < g.gl_pathc; i++) unlink(g.gl_pathv[i]);
    globfree(&g);
  }
}

/* `rounds` of each cause: ROUNDS, and all is compared; or 1, where only the way to attach is another. */
static void run(const char *mode, int rounds, int shim, int syscalls, int raw, int pmu)
{
  char place[64], text[900];
  struct m6_fault fault = {0};
  struct m6_counters *c;
  int fds = tap_fds(NULL);
  pid_t child = start_child(shim ? "shim" : "place");
  frame_count = 0;
  if (!check(arrive(child, &shared->arrived, 1), "%s: the child is up", mode)) return end_child(child);
  snprintf(place, sizeof place, "%d:frame_tick", (int)child);
  struct m6_counters_options o = {.tgids = &child,
                                  .count = 1,
                                  .syscalls = syscalls,
                                  .raw = raw,
                                  .frames_pmu = pmu,
                                  .frames = shim ? M6_FRAMES_SHIM : M6_FRAMES_PLACE,
                                  .frame_place = shim ? NULL : place};
  if (m6_counters_open(&c, &o, &fault) != 0) {
    end_child(child);
    if (pmu && fault.err != EINVAL) skip_named(mode, m6_fault_text(&fault, text, sizeof text));
    else check(0, "%s: opens: %s", mode, m6_fault_text(&fault, text, sizeof text));
    return;
  }
  shared->rounds = rounds;
  advance(&shared->phase, 1);
  unsigned want = 1 + (unsigned)(PLANTS * rounds);
  int here = arrive(child, &shared->arrived, 2), came = m6_counters_frames(c, keep, NULL);
  check(came == (int)want && here && frame_count == want, "%s: %u of %u boundaries came, none was polled for before",
        mode, frame_count, want);
  check(m6_counters_frames(c, keep, NULL) == 0 && m6_counters_frames_lost(c) == 0, "%s: each once, none lost", mode);
  int numbered = 1;
  for (unsigned i = 0; i < frame_count; i++)
    numbered &= frames[i].number == i + 1 && (pid_t)frames[i].tid == shared->tid &&
                (pid_t)frames[i].own_tid == shared->tid && frames[i].stream == 0;
  check(numbered, "%s: numbered from 1, of the thread", mode);
  check_books(mode, "planted causes", 0, frame_count);
  if (frame_count == want && rounds == ROUNDS)
    for (int p = 0; p < PLANTS; p++) {
      if (p == DRIVER && shared->no_driver) skip_named(names[p], strerrorname_np(shared->no_driver));
      else if (p == FAULT && shared->no_fault) skip_named(names[p], strerrorname_np(shared->no_fault));
      else compare(mode, p, &frames[1 + p * ROUNDS], syscalls);
    }

  /* Nobody polls: what finds no room is counted, the rest is whole, and what comes after is as if nothing had happened. */
  unsigned from = frame_count;
  advance(&shared->phase, 2);
  arrive(child, &shared->arrived, 3);
  m6_counters_frames(c, keep, NULL);
  uint64_t lost = m6_counters_frames_lost(c);
  check(lost > 0 && frame_count - from + lost == FLOOD, "%s: nobody polled: %u came, %llu are counted as lost, of %d",
        mode, frame_count - from, (unsigned long long)lost, FLOOD);
  check_books(mode, "a flood", from, frame_count);
  advance(&shared->phase, 3);
  arrive(child, &shared->arrived, 4);
  m6_counters_frames(c, keep, NULL);
  unsigned after = from + FLOOD - (unsigned)lost;
  check(frame_count > after && frames[after].number == want + FLOOD + 1, "%s: after the loss the number goes on", mode);
  check_books(mode, "across the loss", after - 1, after + 1);
  if (shim) {
    int good = 1;
    unsigned presents = frame_count - after - 1;
    uint64_t asleep = 0;
    for (unsigned i = after + 1; i < frame_count; i++) {
      good &= frames[i].stream == 1 && frames[i].number == i - after;
      if (i == after + 1) continue;
      /* Two slept meanwhile: the one before, and one that failed. Pushed off its CPU on the way to sleep, it waits for one first. */
      const struct m6_kernel_reading *a = &frames[i - 1].entry, *b = &frames[i].entry;
      uint64_t took = b->time_ns - a->time_ns, slept = b->off_ns[M6_OFF_SLEEP] - a->off_ns[M6_OFF_SLEEP];
      uint64_t late = b->wait_ns - a->wait_ns + b->off_ns[M6_OFF_STOLEN] - a->off_ns[M6_OFF_STOLEN];
      asleep += slept;
      int here = took >= 6000000 && slept + late >= 5800000;
      if (!here)
        diag("%.3f ms, of which %.3f asleep, %.3f waiting or stolen", (double)took / 1e6, (double)slept / 1e6,
             (double)late / 1e6);
      good &= here;
    }
    good &= asleep >= (PRESENTS - 1) * 5800000ull / 2;
    check(presents == PRESENTS && good && shared->failed_presents == PRESENTS,
          "%s: %u of %d presents came, in a stream of their own, and slept inside; %ld failed and are none", mode,
          presents, PRESENTS, shared->failed_presents);
    check_books(mode, "presents", after + 1, frame_count);
  }
  struct m6_thread_counters total = {0};
  check(m6_counters_read(c, 1, &fault) == 0, "%s: the counters are read beside", mode);
  for (unsigned i = 0; i < c->thread_count; i++)
    if (c->threads[i].tid == shared->tid) total = c->threads[i];
  if (c->lost[M6_LOST_EVENTS])
    diag("the kernel did not deliver %llu events", (unsigned long long)c->lost[M6_LOST_EVENTS]);
  uint64_t by = 0;
  for (int i = 0; i < M6_OFF_CAUSES; i++) by += total.off_by[i];
  check(total.tid == shared->tid && total.own_tid == shared->tid && by == total.off_ns &&
          total.off_by[M6_OFF_SLEEP] >= (uint64_t)(rounds * MS) * 1000000 / 2,
        "%s: by thread, too, off is divided by cause", mode);
  m6_counters_close(c);
  end_child(child);
  check(tap_fds(NULL) == fds, "%s: no descriptor is left", mode);
}

int main(int argc, char **argv)
{
  if (argc == 4 && strcmp(argv[1], "child") == 0) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[2]), 0);
    child_main(strcmp(argv[3], "shim") == 0);
  }
  if (!measuring()) return measured_again(argv);
  ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
  folder[n < 0 ? 0 : n] = 0;
  dirname(folder);
  keep_most(MAX_FRAMES);

  struct m6_fault fault = {0};
  struct m6_counters *c;
  char text[900], place[64];
  pid_t self = getpid();
  snprintf(place, sizeof place, "%d:frame_tick", (int)self);
  struct m6_counters_options o = {.tgids = &self, .count = 1, .frames = M6_FRAMES_PLACE, .frame_place = place};
  if (m6_counters_open(&c, &o, &fault) != 0) {
    skip_named("frames by a function of the program, and by the shim", m6_fault_text(&fault, text, sizeof text));
    return tap_done();
  }
  m6_counters_close(c);
  o.frame_place = "/nowhere:frame_tick";
  int err = m6_counters_open(&c, &o, &fault);
  check(err == ENOENT && !c, "a place that is not there: %s", m6_fault_text(&fault, text, sizeof text));
  o.frames = M6_FRAMES_SHIM;
  err = m6_counters_open(&c, &o, &fault);
  check(err == ENOENT && !c, "a process without the shim: %s", m6_fault_text(&fault, text, sizeof text));
  run("place", ROUNDS, 0, 0, 0, 0);
  run("place, raw, syscalls", ROUNDS, 0, 1, 1, 0);
  run("shim", ROUNDS, 1, 1, 0, 0);
  run("shim, by perf events", 1, 1, 0, 0, 1);
  /* As on kernels whose links with a process reach one thread alone. */
  m6_probe_one_thread = 1;
  run("shim, by everybody's hits", 1, 1, 0, 0, 0);
  return tap_done();
}
