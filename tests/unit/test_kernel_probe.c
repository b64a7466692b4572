/* test_kernel_probe.c - the probe is taken down in the right order on every way out, and whatever fails: each system call that the
 * kernel side makes is made to fail in turn; each way to end `mach6 probe` is taken.
 *
 * close and syscall are this program's own, for libbpf too: close sees to it that no program and no map is closed while a
 * link or a perf event is open, syscall fails when it is told to.
 */
/* links: collector/budgets.c tools/mach6/probe.c build/libmach6kernel.a -lbpf -ldw -lelf -lm */
/* sanitizers: none */
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "collector/kernel_place.h"
#include "collector/kernel_probe.h"
#include "kernel_tap.h"
#include "tools/mach6/tool.h"

/* ---- the two interposed calls ----------------------------------------------------------------------------------- */
static int calls, fail_at, fail_on, fail_with, refuse_multi, disorder, watch;

static long raw(long nr, long a, long b, long c, long d, long e, long f)
{
#ifdef __x86_64__
  long result;
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
#else
#error "one line of assembly is missing for this architecture"
#endif
}

long syscall(long nr, ...)
{
  va_list args;
  va_start(args, nr);
  long a = va_arg(args, long), b = va_arg(args, long), c = va_arg(args, long), d = va_arg(args, long),
       e = va_arg(args, long), f = va_arg(args, long);
  va_end(args);
  if (nr == SYS_bpf || nr == SYS_perf_event_open) {
    const uint32_t *attr = (const uint32_t *)b;
    calls++;
    if (fail_at && (calls == fail_at || (fail_on && calls > fail_at))) {
      errno = fail_with;
      return -1;
    }
    if (refuse_multi && nr == SYS_bpf && a == BPF_LINK_CREATE && attr[2] == M6_BPF_TRACE_UPROBE_MULTI) {
      errno = EINVAL;
      return -1;
    }
  }
  return raw(nr, a, b, c, d, e, f);
}

int close(int fd)
{
  if (watch) {
    char path[64], link[128];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, link, sizeof link - 1);
    link[n < 0 ? 0 : n] = 0;
    watch = 0;
    if (strstr(link, "bpf-prog") || strstr(link, "bpf-map")) disorder += tap_fds("bpf_link") + tap_fds("perf_event");
    if (strstr(link, "perf_event")) disorder += tap_fds("bpf_link");
    watch = 1;
  }
  return (int)raw(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* ---- what is probed --------------------------------------------------------------------------------------------- */
__attribute__((noinline, noclone)) int probed_function(int x)
{
  __asm__ volatile("" : "+r"(x));
  return x + 1;
}
static char self[4096], place_text[4200];

static const char *const names[] = {
  "counts each call by a uprobe_multi link",        "counts each call by a perf uprobe",
  "every failing call leaves nothing open (multi)", "every failing call leaves nothing open (perf)",
  "200 starts and stops leave no descriptor",       "ways out of mach6 probe"};

static int open_here(struct m6_probe *p, struct m6_fault *fault)
{
  struct m6_place place;
  char why[1024];
  if (m6_place_find(place_text, &place, why, sizeof why) != 0) {
    diag("%s", why);
    return ENOENT;
  }
  return m6_probe_open(p, place.path, place.offset, getpid(), fault);
}

static void counts(const char *name, enum m6_uprobe_kind kind)
{
  struct m6_probe p;
  struct m6_fault fault;
  char text[512];
  int err = open_here(&p, &fault);
  if (err) {
    if (kind == M6_UPROBE_PMU && (err == EACCES || err == EPERM))
      skip_named(name, m6_fault_text(&fault, text, sizeof text));
    else check(0, "%s: %s", name, m6_fault_text(&fault, text, sizeof text));
    return;
  }
  for (int i = 0; i < 12345; i++) probed_function(i);
  uint64_t hits = m6_probe_read(&p, NULL);
  m6_probe_detach(&p);
  probed_function(1);
  check(p.kind == kind && hits == 12345 && m6_probe_read(&p, NULL) == 12345,
        "%s, and none once detached (%llu of 12345)", name, (unsigned long long)hits);
  m6_probe_close(&p);
}

/* Calls from three threads, and from another process: a pid means all of the one and none of the other. */
static void *calls_100(void *argument)
{
  for (int i = 0; i < 100; i++) probed_function(i);
  return argument;
}
static void by_process(const char *name)
{
  struct m6_probe p;
  struct m6_fault fault;
  pthread_t t[2];
  int err = open_here(&p, &fault);
  for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, calls_100, NULL);
  calls_100(NULL);
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  pid_t child = fork();
  if (child == 0) {
    calls_100(NULL);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  uint64_t hits = m6_probe_read(&p, NULL);
  check(err == 0 && hits == 300, "%s (%llu of 300)", name, (unsigned long long)hits);
  m6_probe_close(&p);
}

/* Fails the 1st, 2nd, ... call, alone and with all that follow, until all have had their turn. */
static void failures(const char *name)
{
  static const int errors[] = {EPERM, EINVAL, ENOMEM};
  int before = tap_fds(NULL), tried = 0, refused = 0, leaked = 0;
  disorder = 0;
  watch = 1;
  for (unsigned e = 0; e < 2 * sizeof errors / sizeof errors[0]; e++)
    for (int n = 1;; n++) {
      struct m6_probe p;
      struct m6_fault fault;
      calls = 0;
      fail_at = n;
      fail_on = e & 1;
      fail_with = errors[e / 2];
      refused += open_here(&p, &fault) != 0;
      fail_at = 0;
      m6_probe_close(&p);
      int now = tap_fds(NULL);
      leaked += now != before;
      if (calls < n) break;
      tried++;
    }
  watch = fail_on = 0;
  check(tried >= 24 && refused >= 12 && leaked == 0 && disorder == 0,
        "%s: %d calls made to fail, %d openings refused, %d leaks, %d closed out of order", name, tried, refused,
        leaked, disorder);
}

/* ---- ways out of the command ------------------------------------------------------------------------------------ */
enum way { TTL, INTERRUPT, TERMINATE, HANGUP, QUIT, TARGET_ENDS, OUTPUT_CLOSED, FAILS, WAYS };
static const struct {
  const char *name, *says;
  int signal, status;
} ways[WAYS] = {
  [TTL] = {"its TTL", "its time is over", 0, 0},
  [INTERRUPT] = {"^C", "a signal", SIGINT, 0},
  [TERMINATE] = {"SIGTERM", "a signal", SIGTERM, 0},
  [HANGUP] = {"SIGHUP", "a signal", SIGHUP, 0},
  [QUIT] = {"SIGQUIT", "a signal", SIGQUIT, 0},
  [TARGET_ENDS] = {"the end of the process", "the process has ended", 0, 0},
  [OUTPUT_CLOSED] = {"a closed output", NULL, 0, 0},
  [FAILS] = {"a failure to attach", NULL, 0, 1},
};

/* In a child: runs the command with its descriptors watched. 0 when the status is right, nothing is left open, and the order was. */
static int run_way(enum way w, int out, pid_t target)
{
  char pid_place[64];
  snprintf(pid_place, sizeof pid_place, "%d:probed_function", (int)target);
  char *argv[] = {"probe", "--ttl", w == TTL ? "1" : "20", pid_place, NULL};
  dup2(out, STDOUT_FILENO);
  close(out);
  if (w == FAILS && !freopen("/dev/null", "w", stderr)) return 4;
  watch = 1;
  disorder = 0;
  /* The link is the last call but those of perf; each earlier one was made to fail above. */
  if (w == FAILS) fail_at = 3, fail_on = 1, fail_with = ENOMEM;
  int status = m6_probe(4, argv);
  watch = 0;
  if (status != ways[w].status) return 1;
  if (tap_fds("bpf") || tap_fds("perf_event")) return 2;
  return disorder ? 3 : 0;
}

static void way_out(enum way w)
{
  int out[2];
  char said[8192] = "";
  size_t n = 0;
  pid_t target = fork();
  if (target == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0;; i++) {
      probed_function(i);
      usleep(1000);
    }
  }
  if (pipe(out) != 0) abort();
  pid_t child = fork();
  if (child == 0) {
    close(out[0]);
    _exit(run_way(w, out[1], target));
  }
  close(out[1]);
  ssize_t got = 0;
  /* It has begun when it says so. */
  while (w != FAILS && !strchr(said, '\n') && (got = read(out[0], said + n, sizeof said - 1 - n)) > 0) n += (size_t)got;
  if (ways[w].signal) kill(child, ways[w].signal);
  if (w == TARGET_ENDS) kill(target, SIGKILL), waitpid(target, NULL, 0);
  if (w == OUTPUT_CLOSED) close(out[0]);
  else {
    while ((got = read(out[0], said + n, sizeof said - 1 - n)) > 0) n += (size_t)got;
    close(out[0]);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (w != TARGET_ENDS) kill(target, SIGKILL), waitpid(target, NULL, 0);
  int good = WIFEXITED(status) && WEXITSTATUS(status) == 0 && (!ways[w].says || strstr(said, ways[w].says));
  check(good, "mach6 probe ends by %s: link first, nothing left open", ways[w].name);
  if (!good) diag("status %x (1 exit status, 2 left open, 3 order); it said: %s", status, said);
}

int main(void)
{
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n < 0 ? 0 : n] = 0;
  snprintf(place_text, sizeof place_text, "%s:probed_function", self);
  struct m6_probe p;
  struct m6_fault fault;
  char text[512];
  if (open_here(&p, &fault) != 0) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
      skip_named(names[i], m6_fault_text(&fault, text, sizeof text));
    return tap_done();
  }
  int multi = p.kind == M6_UPROBE_MULTI;
  m6_probe_close(&p);
  if (multi) counts(names[0], M6_UPROBE_MULTI);
  else skip_named(names[0], "this kernel has no uprobe_multi links (EINVAL)");
  refuse_multi = 1;
  counts(names[1], M6_UPROBE_PMU);
  refuse_multi = 0;
  if (multi) {
    check(m6_probe_one_thread >= 0, "whether a link with a pid reaches all threads was found out (%s)",
          m6_probe_one_thread ? "one alone" : "all");
    by_process("a pid is all its threads, and no other process");
    int found = m6_probe_one_thread;
    m6_probe_one_thread = 1;
    by_process("the same where links reach one thread alone");
    m6_probe_one_thread = found;
  } else skip_named("a pid is all its threads, and no other process", "this kernel has no uprobe_multi links (EINVAL)");
  failures(names[2]);
  refuse_multi = 1;
  failures(names[3]);
  refuse_multi = 0;

  int before = tap_fds(NULL), bad = 0;
  for (int i = 0; i < 200; i++) {
    bad += open_here(&p, &fault) != 0;
    m6_probe_close(&p);
  }
  check(bad == 0 && tap_fds(NULL) == before, "%s", names[4]);
  for (int w = 0; w < WAYS; w++) way_out((enum way)w);
  return tap_done();
}
