/* probe.c - `mach6 probe`: counts how often one function is called, for a bounded time.
 *
 * Promise: one uprobe, counters by CPU, at most one read a second, no listener, no ring buffer, no file. It ends by its
 * TTL, ^C (or SIGTERM, SIGHUP, SIGQUIT), the end of the process it was for, or the end of whoever reads its output. On
 * each of those ways, and on each failure, the link is closed before the programs and the map; a SIGKILL leaves
 * nothing, because all of it is descriptors. A stopped probe does not outlive its TTL either: the kernel kills it.
 * Calls collector/kernel_place.h and collector/kernel_probe.h.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../collector/budgets.h"
#include "../../collector/kernel_place.h"
#include "../../collector/kernel_probe.h"
#include "tool.h"

#define STOPPED_GRACE_S 5 /* after the TTL, a probe that cannot end itself is killed */

enum ending { RUNNING, BY_TTL, BY_SIGNAL, BY_TARGET, BY_OUTPUT, BY_ERROR };
static const char *const ending_text[] = {
  "", "its time is over", "a signal", "the process has ended", "nobody reads its output", "an error"};

static double seconds_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- what is printed -------------------------------------------------------------------------------------------- */

/* A JSON string's inside: quotes, backslashes and control characters escaped; bytes above 127 as they are. */
static void print_escaped(const char *text)
{
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') printf("\\%c", c);
    else if (c < 0x20) printf("\\u%04x", c);
    else putchar(c);
  }
}

static void print_start(const struct m6_place *p, const struct m6_probe *probe, unsigned ttl, int json)
{
  char plain[512];
  const char *kind = probe->kind == M6_UPROBE_MULTI ? "uprobe_multi" : "perf";
  if (json) {
    printf("{\"probe\":{\"file\":\"");
    print_escaped(p->file);
    printf("\",\"symbol\":\"");
    print_escaped(p->symbol.name);
    printf("\",\"offset\":%" PRIu64 ",\"after_endbr64\":%s,\"pid\":%d,\"ttl_s\":%u,\"kind\":\"%s\"}}\n", p->offset,
           p->after_endbr ? "true" : "false", (int)p->pid, ttl, kind);
    return;
  }
  printf("probing %s+0x%" PRIx64, p->file, p->offset);
  if (p->symbol.name[0]) {
    int readable = m6_symbol_demangle(p->symbol.name, plain, sizeof plain);
    printf(" (%s%s)", readable ? plain : p->symbol.name, p->after_endbr ? ", after endbr64" : "");
  }
  if (p->pid) printf(", process %d", (int)p->pid);
  printf(", by a %s link, for %u s at most\n", kind, ttl);
}

static void print_line(double at, uint64_t hits, uint64_t before, double since, int json)
{
  double rate = since > 0 ? (double)(hits - before) / since : 0;
  if (json) printf("{\"t\":%.3f,\"hits\":%" PRIu64 ",\"per_s\":%.1f}\n", at, hits, rate);
  else printf("%7.0f s %14" PRIu64 " hits %12.1f/s\n", at, hits, rate);
}

static void print_end(const struct m6_probe *probe, double took, enum ending ending, int json)
{
  uint64_t by_cpu[probe->cpus], hits = m6_probe_read(probe, by_cpu), missed = m6_probe_missed(probe);
  double rate = took > 0 ? (double)hits / took : 0;
  if (json) {
    printf("{\"end\":{\"hits\":%" PRIu64 ",\"missed\":%" PRIu64
           ",\"seconds\":%.3f,\"per_s\":%.1f,\"by\":\"%s\",\"cpus\":[",
           hits, missed, took, rate, ending_text[ending]);
    for (unsigned i = 0; i < probe->cpus; i++) printf("%s%" PRIu64, i ? "," : "", by_cpu[i]);
    printf("]}}\n");
    return;
  }
  printf("%" PRIu64 " hits in %.1f s (%.1f/s); ended by: %s\n", hits, took, rate, ending_text[ending]);
  for (unsigned i = 0; i < probe->cpus; i++)
    if (by_cpu[i]) printf("  CPU %-3u %14" PRIu64 "\n", i, by_cpu[i]);
  if (missed) printf("  not counted %9" PRIu64 " (the kernel was in a program already)\n", missed);
  if (!hits) printf("  never called, inlined where it is called, or nothing ran the file\n");
}

/* ---- until it ends ---------------------------------------------------------------------------------------------- */

/* What the loop waits for beside the time: signals that ask it to end, the process's end. */
struct waits {
  int signals, target;
};
static void waits_close(struct waits *w)
{
  m6_close_fd(&w->signals);
  m6_close_fd(&w->target);
}

static int waits_open(struct waits *w, pid_t pid, struct m6_fault *fault)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGQUIT);
  sigprocmask(SIG_BLOCK, &set, NULL);
  signal(SIGPIPE, SIG_IGN);
  w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (w->signals < 0) return m6_fault_set(fault, errno, M6_AREA_NONE, "wait for", "signals");
  if (!pid) return 0;
  w->target = (int)syscall(SYS_pidfd_open, pid, 0);
  if (w->target < 0) return m6_fault_set(fault, errno, M6_AREA_PROC, "follow process", "%d", (int)pid);
  return 0;
}

/* The kernel ends this process when it could not end itself: SIGKILL reaches a stopped process, too. */
static void kill_me_after(unsigned seconds)
{
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
  struct itimerspec once = {.it_value = {seconds, 0}};
  timer_t timer;
  if (timer_create(CLOCK_BOOTTIME, &event, &timer) == 0) timer_settime(timer, 0, &once, NULL);
}

/* The time of the next read counts from the last one: however late that was, no two are less than a second apart. */
static enum ending follow(const struct m6_probe *probe, const struct waits *w, double start, unsigned ttl, int json)
{
  uint64_t before = 0;
  double last = start, end = start + ttl;
  for (;;) {
    if (fflush(stdout) != 0 || ferror(stdout)) return BY_OUTPUT;
    struct pollfd on[] = {{w->signals, POLLIN, 0}, {w->target, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    double due = last + M6_PROBE_READ_MS / 1000.0, left = (due < end ? due : end) - seconds_now();
    if (poll(on, 3, left > 0 ? (int)(left * 1000) + 1 : 0) < 0 && errno != EINTR) return BY_ERROR;
    if (on[0].revents) return BY_SIGNAL;
    if (on[1].revents) return BY_TARGET;
    if (on[2].revents & (POLLERR | POLLHUP)) return BY_OUTPUT;
    double now = seconds_now();
    if (now >= end) return BY_TTL; /* the last second is in the summary */
    if (now < due) continue;
    uint64_t hits = m6_probe_read(probe, NULL);
    print_line(now - start, hits, before, now - last, json);
    before = hits;
    last = now;
  }
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

struct options {
  const char *place;
  unsigned ttl;
  int json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  char *rest;
  unsigned long ttl;
  switch (key) {
  case 't':
    ttl = strtoul(arg, &rest, 10);
    if (*rest || *arg == '-' || ttl < 1 || ttl > m6_budget_cap(M6_BUDGET_PROBE_TTL) / 1000)
      argp_error(state, "--ttl is 1 to %d seconds, not '%s'", (int)(m6_budget_cap(M6_BUDGET_PROBE_TTL) / 1000), arg);
    o->ttl = (unsigned)ttl;
    break;
  case 'j': o->json = 1; break;
  case ARGP_KEY_ARG:
    if (o->place) argp_error(state, "one function at a time; '%s' is one too many", arg);
    o->place = arg;
    break;
  case ARGP_KEY_END:
    if (!o->place) argp_error(state, "which function?");
    break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

int m6_probe(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"ttl", 't', "SECONDS", 0, "How long at most (30; 300 at most); ^C ends it earlier", 0},
    {"json", 'j', 0, 0, "A line of JSON at the start, each second, and at the end", 0},
    {0},
  };
  static const struct argp argp = {
    table,
    parse,
    "BINARY:SYMBOL\nBINARY+OFFSET\nPID:SYMBOL",
    "Count how often a function is called: in every process that runs BINARY, or in process PID."
    "\vSYMBOL may be mangled, or demangled with or without its parameters. OFFSET is one in the file.",
    NULL,
    NULL,
    NULL};
  struct options o = {.ttl = M6_PROBE_TTL_S};
  argv[0] = (char *)"mach6 probe";
  argp_err_exit_status = EXIT_USAGE;
  argp_parse(&argp, argc, argv, 0, NULL, &o);

  struct m6_place place;
  struct m6_fault fault;
  char why[1024];
  int err = m6_place_find(o.place, &place, why, sizeof why);
  if (err) {
    fprintf(stderr, "mach6 probe: %s\n", why);
    return err == EINVAL ? 2 : 1;
  }
  if (place.note[0]) fprintf(stderr, "mach6 probe: %s\n", place.note);

  /* Closed in the reverse order: the probe (its link first of all), then what the loop waits for. */
  __attribute__((cleanup(waits_close))) struct waits waits = {-1, -1};
  __attribute__((cleanup(m6_probe_close))) struct m6_probe probe = M6_PROBE_NONE;
  err = waits_open(&waits, place.pid, &fault);
  if (!err) {
    kill_me_after(o.ttl + STOPPED_GRACE_S);
    err = m6_probe_open(&probe, place.path, place.offset, place.pid, &fault);
  }
  if (err) {
    fprintf(stderr, "mach6 probe: %s\n", m6_fault_text(&fault, why, sizeof why));
    return 1;
  }
  double start = seconds_now();
  print_start(&place, &probe, o.ttl, o.json);
  enum ending ending = follow(&probe, &waits, start, o.ttl, o.json);
  m6_probe_detach(&probe); /* what is printed next is then the last word */
  print_end(&probe, seconds_now() - start, ending, o.json);
  fflush(stdout);
  return ending == BY_ERROR;
}
