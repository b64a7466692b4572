/* launch.c - starts the game and its collector, and stands in for the game until it has ended.
 *
 * Promises to the game: its descriptors, signal mask and dispositions, process group and terminal are those that it
 * would have had from the shell; it inherits no descriptor of ours; it runs whether the collector starts or not.
 * Promise to the caller: what is sent to mach6 reaches the game, once.
 * Order: the game is forked first and held at a pipe, so that the collector knows its pid and watches before it runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../collector/stats_targets.h"
#include "../../shm/clock.h"
#include "launch.h"
#include "tool.h"

#define READY_MS 5000     /* a collector that needs longer to be ready is told of, and done without */
#define FINISH_MS 20000   /* and one that needs longer to finish */
#define GROUP_GRACE_MS 15 /* between timeout(1)'s signal to its child and the one to its group */
#define GROUP_ECHO_MS 50  /* the same signal from the same sender is that one's second arrival here */

/* ---- where our parts are ----------------------------------------------------------------------------------------- */

int launch_find(const char *variable, const char *file, const char *below_prefix, char *out, size_t room)
{
  const char *given = getenv(variable);
  if (given && *given) {
    char *whole = realpath(given, NULL);
    snprintf(out, room, "%s", whole ? whole : given);
    free(whole);
    return access(out, R_OK) ? errno : 0;
  }
  char self[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return snprintf(out, room, "/proc/self/exe"), errno; /* that says where this is */
  self[n] = 0;
  char *slash = strrchr(self, '/');
  if (slash) *slash = 0;
  snprintf(out, room, "%s/%s", self, file);
  if (!access(out, R_OK)) return 0;
  if ((slash = strrchr(self, '/'))) *slash = 0;
  snprintf(out, room, "%s/%s/%s", self, below_prefix, file);
  return access(out, R_OK) ? errno : 0;
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* All that a process can wait for instead of dying of: faults of our own stay as they are. */
static void waited_for(sigset_t *set)
{
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
  sigfillset(set);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(set, faults[i]);
}

/* The witness: a process of our group that only notes which signals it got. A signal that reached it was sent to the
 * group, so the game has it already (timeout(1) signals its child and then its whole group). It answers each byte
 * with a mask. */
static void witness(int fd)
{
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* Whoever looks for mach6 by name shall not find this one. */
  prctl(PR_SET_NAME, "signal-witness");
  tool_hide_arguments();
  if (fd != 0) dup2(fd, 0);
  close_range(1, ~0u, 0);
  for (char byte; read(0, &byte, 1) == 1;) {
    uint64_t mask = 0;
    for (int s; (s = sigtimedwait(&all, NULL, &(struct timespec){0, 0})) > 0;) mask |= 1ull << (s - 1);
    if (write(0, &mask, sizeof mask) != sizeof mask) break;
  }
  _exit(0);
}

static uint64_t witnessed(const struct launch *l)
{
  uint64_t mask = 0;
  if (l->witness <= 0 || write(l->witness_fd, "", 1) != 1) return 0;
  struct pollfd p = {l->witness_fd, POLLIN, 0};
  if (poll(&p, 1, 200) != 1 || read(l->witness_fd, &mask, sizeof mask) != sizeof mask) return 0;
  return mask;
}

/* Was it sent to the whole group, so that the game has it? */
static int sent_to_group(const struct launch *l, const siginfo_t *i)
{
  static struct {
    uint64_t until;
    pid_t by;
  } seen[65];
  uint64_t now = m6_monotonic_ns();
  if (seen[i->si_signo].by == i->si_pid && now < seen[i->si_signo].until) return 1;
  nanosleep(&(struct timespec){0, GROUP_GRACE_MS * 1000000}, NULL);
  uint64_t mask = witnessed(l);
  if (!(mask & 1ull << (i->si_signo - 1))) return 0;
  seen[i->si_signo].by = i->si_pid;
  seen[i->si_signo].until = m6_monotonic_ns() + GROUP_ECHO_MS * 1000000ull;
  return 1;
}

static char game_state(pid_t pid)
{
  char path[64], text[512], *p;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  p = strrchr(text, ')');
  return p && p[1] ? p[2] : 0;
}

/* What has been sent to us, to the game: unless it has it already. */
static void pass_on(const struct launch *l, const siginfo_t *i)
{
  int same_group = getpgid(l->game) == getpgrp();
  if (i->si_signo == SIGPIPE || i->si_signo == SIGURG) return; /* our own broken pipe, not the game's */
  /* From the terminal: the whole group got it. But a terminal that goes away tells the session's leader alone, which is
   * us where mach6 was started as the terminal's own program. */
  if (i->si_code > 0 && same_group && i->si_signo != SIGHUP) return;
  if (i->si_signo == SIGCONT) {
    if (game_state(l->game) == 'T') kill(l->game, SIGCONT);
    return;
  }
  if (same_group && sent_to_group(l, i)) return;
  if (i->si_code == SI_QUEUE) sigqueue(l->game, i->si_signo, i->si_value);
  else kill(l->game, i->si_signo);
}

/* Has the game ended? Notes its status; *stopped follows its stops. */
static void look(struct launch *l, int *stopped)
{
  int status;
  pid_t got;
  while ((got = waitpid(l->game, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0 || (got < 0 && errno == EINTR)) {
    if (got < 0) continue;
    if (WIFSTOPPED(status)) *stopped = 1;
    else if (WIFCONTINUED(status)) *stopped = 0;
    else l->status = status, l->gone = 1;
  }
  if (got < 0 && !l->gone) l->status = 0, l->gone = 1; /* nothing to wait for: cannot happen while SIGCHLD is ours */
}

void launch_wait(struct launch *l)
{
  int stopped = 0, stop_wanted = 0;
  sigset_t set;
  waited_for(&set);
  for (;;) {
    siginfo_t i;
    look(l, &stopped);
    if (l->gone) return;
    /* Ctrl-Z stops the game; when it stands, so do we, and the shell sees a stopped job. */
    if (stopped && stop_wanted) {
      stop_wanted = 0;
      kill(getpid(), SIGSTOP);
      continue;
    }
    int s = sigwaitinfo(&set, &i);
    if (s <= 0 || s == SIGCHLD) continue;
    if (s == SIGTSTP || s == SIGTTIN || s == SIGTTOU) stop_wanted = 1;
    if (s == SIGCONT) stop_wanted = 0;
    look(l, &stopped);
    if (!l->gone) pass_on(l, &i);
  }
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void set_environment(const struct launch *l, const char *shim, uint64_t token)
{
  const char *old = getenv("LD_PRELOAD");
  char path[PATH_MAX], *all, run[32];
  /* The loader splits at spaces and colons and expands dollars; then the file goes by another name. */
  if (l->shim_fd >= 0) snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getppid(), l->shim_fd);
  else snprintf(path, sizeof path, "%s", shim);
  if (asprintf(&all, "%s%s%s%s%s", l->program->sanitizer, *l->program->sanitizer ? ":" : "", path,
               old && *old ? ":" : "", old ? old : "") < 0)
    return;
  snprintf(run, sizeof run, "%llx", (unsigned long long)token);
  setenv("LD_PRELOAD", all, 1);
  setenv("MACH6_RUN", run, 1);
  const char *granted = getenv(
    "MACH6_SESSIONS"); /* a chain is more than the one that is granted by default; none stays none */
  if (l->sessions && (!granted || (atol(granted) > 0 && atol(granted) < atol(l->sessions))))
    setenv("MACH6_SESSIONS", l->sessions, 1);
  if (l->sites) { /* the shim begins before the collector can tell it */
    snprintf(run, sizeof run, "%u", l->sites);
    setenv("MACH6_SITES", run, 1);
  }
  free(all);
}

static int cannot_run(const struct launch *l, int error)
{
  const char *path = l->program->path;
  if (error == ENOENT && access(path, F_OK) == 0)
    return say("cannot run %s: the interpreter that it names is not there", path), EXIT_NOT_FOUND;
  say("cannot run %s: %s", path, strerror(error));
  return error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* In the forked child: becomes the game. */
static void become_game(const struct launch *l, const char *shim, uint64_t token, int go, int failed, void (*chld)(int))
{
  char there_is_a_collector = 0;
  signal(SIGCHLD, chld);
  sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
  while (read(go, &there_is_a_collector, 1) < 0 && errno == EINTR) {}
  /* Without one the shim would write for nobody, and leave its segment to nobody. */
  if (l->profile && there_is_a_collector && !l->frame_symbol) set_environment(l, shim, token);
  execv(l->program->path, l->argv);
  int error = errno;
  if (error == ENOEXEC) { /* a script without #!: a shell's, as execvp has it */
    size_t n = 0;
    while (l->argv[n]) n++;
    char **again = calloc(n + 2, sizeof *again);
    if (again) {
      again[0] = (char *)"/bin/sh";
      again[1] = (char *)l->program->path;
      for (size_t i = 1; i < n; i++) again[i + 1] = l->argv[i];
      execv(again[0], again);
    }
  }
  if (failed < 0) _exit(cannot_run(l, error));
  if (write(failed, &error, sizeof error) < 0) {}
  _exit(EXIT_NOT_FOUND);
}

/* In the forked child: becomes the collector, on its own, with descriptors 3 (final), 4 (end), 5 (ready) and no
 * others. */
static void become_collector(const struct launch *l, const char *shim, const char *collector, uint64_t token, int end,
                             int ready)
{
  int from[3] = {l->final_fd, end, ready};
  char run[32], pid[32], ttl[32], sites[32];
  setsid();
  unsetenv("LD_PRELOAD");
  unsetenv("MACH6_RUN");
  for (int i = 0; i < 3; i++) from[i] = fcntl(from[i], F_DUPFD, 16);
  int err = fcntl(l->collector_err, F_DUPFD, 16), null = open("/dev/null", O_RDWR);
  if (null >= 0) {
    dup2(null, 0);
    dup2(null, 1);
  }
  dup2(err, 2);
  for (int i = 0; i < 3; i++) dup2(from[i], 3 + i);
  close_range(6, ~0u, 0);
  if (!l->frame_symbol && chdir("/")) {} /* the symbol's file may be named from here */
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  snprintf(run, sizeof run, "%llx", (unsigned long long)token);
  snprintf(pid, sizeof pid, "%d", (int)l->game);
  snprintf(ttl, sizeof ttl, "%u", l->ttl);
  snprintf(sites, sizeof sites, "--sites=%u", l->sites);
  const char *args[48] = {collector, "--run", run, "--pid", pid, "--final-fd", "3", "--end-fd", "4", "--ready-fd", "5"};
  int n = 11;
  if (l->frame_symbol) args[1] = "--frame-symbol", args[2] = l->frame_symbol;
  else args[n++] = "--shim", args[n++] = shim;
  if (l->level) args[n++] = "--level", args[n++] = l->level;
  if (l->ttl) args[n++] = "--ttl", args[n++] = ttl;
  if (l->sessions) args[n++] = "--sessions", args[n++] = l->sessions;
  if (l->session_frames) args[n++] = "--session-frames", args[n++] = l->session_frames;
  for (int i = 0; l->budgets[i]; i++) args[n++] = "--budget", args[n++] = l->budgets[i];
  if (l->out) args[n++] = "--out", args[n++] = l->out;
  if (l->sites == 1) args[n++] = "--every-allocation";
  else if (l->sites) args[n++] = sites;
  execv(collector, (char **)args);
  dprintf(2, "mach6: cannot run %s: %s\n", collector, strerror(errno));
  _exit(EXIT_NOT_FOUND);
}

/* Waits until the collector is ready to see the game begin. One that ended instead gives its reason at the end. */
static void wait_ready(int fd)
{
  char byte;
  struct pollfd p = {fd, POLLIN, 0};
  int n;
  while ((n = poll(&p, 1, READY_MS)) < 0 && errno == EINTR) {}
  if (n == 1 && read(fd, &byte, 1) == 1) return;
  if (n == 1) say("the collector ended at once; the program runs without a report");
  else say("the collector did not get ready; the report may miss the beginning, or all");
}

static void start_collector(struct launch *l, const char *shim, const char *collector, uint64_t token)
{
  int end[2] = {-1, -1}, ready[2] = {-1, -1};
  l->final_fd = memfd_create("mach6-final", MFD_CLOEXEC);
  l->collector_err = memfd_create("mach6-collector-stderr", MFD_CLOEXEC);
  if (l->final_fd < 0 || l->collector_err < 0 || pipe2(end, O_CLOEXEC) || pipe2(ready, O_CLOEXEC)) {
    say("no collector: %s. The game runs without a report.", strerror(errno));
    return;
  }
  l->collector = fork();
  if (l->collector == 0) become_collector(l, shim, collector, token, end[0], ready[1]);
  close(end[0]);
  close(ready[1]);
  l->end_fd = end[1];
  if (l->collector < 0) say("no collector: %s. The game runs without a report.", strerror(errno));
  else wait_ready(ready[0]);
  close(ready[0]);
}

int launch_start(struct launch *l, const char *shim, const char *collector)
{
  uint64_t token = 0;
  int go[2] = {-1, -1}, failed[2] = {-1, -1}, pair[2], error = 0;
  l->final_fd = l->end_fd = l->collector_err = l->shim_fd = l->witness_fd = -1;
  l->collector = l->witness = 0;
  while (!token)
    if (getrandom(&token, sizeof token, 0) != sizeof token) token = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
  if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC)) { /* then without: it can still be run */
    say("%s is not profiled: cannot make a pipe: %s", l->argv[0], strerror(errno));
    l->profile = 0;
    if (go[0] >= 0) close(go[0]), close(go[1]);
    go[0] = go[1] = -1;
  }
  if (l->profile && !l->frame_symbol && strpbrk(shim, " \t\n:;$")) {
    l->shim_fd = open(shim, O_RDONLY | O_CLOEXEC);
    if (l->shim_fd < 0) say("%s: %s; the game runs without it", shim, strerror(errno)), l->profile = 0;
  }
  sigset_t set;
  waited_for(&set);
  void (*chld)(int) = signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &set, &l->old_mask);
  l->token = token;
  fflush(NULL);
  l->game = fork();
  if (l->game == 0) become_game(l, shim, token, go[0], failed[1], chld == SIG_IGN ? SIG_IGN : SIG_DFL);
  if (l->game < 0) return say("cannot start a process: %s", strerror(errno)), EXIT_RUN_FAILED;
  if (go[0] >= 0) close(go[0]), close(failed[1]);
  if (!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
    l->witness = fork();
    if (l->witness == 0) witness(pair[1]);
    close(pair[1]);
    l->witness_fd = pair[0];
  }
  if (l->profile) start_collector(l, shim, collector, token);
  if (go[1] < 0) return 0;
  char there_is_a_collector = l->collector > 0;
  if (write(go[1], &there_is_a_collector, 1) != 1) {}
  close(go[1]);
  ssize_t n;
  while ((n = read(failed[0], &error, sizeof error)) < 0 && errno == EINTR) {}
  close(failed[0]);
  if (n != sizeof error) return 0;
  waitpid(l->game, NULL, 0);
  l->gone = 1;
  launch_finish(l);
  return cannot_run(l, error);
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* Waits for a child of ours until a deadline; an impatient user (INT, TERM) ends the wait. 1 when it is gone. */
static int wait_child(pid_t pid, int ms, int *status)
{
  sigset_t set;
  waited_for(&set);
  struct timespec began, now;
  clock_gettime(CLOCK_MONOTONIC, &began);
  for (;;) {
    pid_t got = waitpid(pid, status, WNOHANG);
    if (got == pid || (got < 0 && errno == ECHILD)) return 1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long left = ms - (now.tv_sec - began.tv_sec) * 1000 - (now.tv_nsec - began.tv_nsec) / 1000000;
    if (left <= 0) return 0;
    int s = sigtimedwait(&set, NULL, &(struct timespec){left / 1000, left % 1000 * 1000000});
    if (s == SIGINT || s == SIGTERM || s == SIGQUIT || s == SIGHUP) return 0;
  }
}

static volatile sig_atomic_t impatient;
static void on_impatience(int s)
{
  (void)s;
  impatient = 1;
}
int launch_impatient(void) { return impatient; }

/* From now on mach6 itself may be what waits: for a reader of its report. INT, TERM, QUIT and HUP end such a wait, and
 * change neither the status nor anything that does not wait. Others stay blocked: those that were for the game end
 * nobody now. */
static void let_interrupt(void)
{
  static const int ends[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};
  sigset_t set;
  struct sigaction old, a = {.sa_handler = on_impatience}; /* no SA_RESTART: the call is to return */
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    if (sigaction(ends[i], NULL, &old) || old.sa_handler == SIG_IGN) continue;
    sigaction(ends[i], &a, NULL);
    sigaddset(&set, ends[i]);
  }
  /* What arrived while the game or the collector ended meant them. */
  while (sigtimedwait(&set, NULL, &(struct timespec){0, 0}) > 0) {}
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* What the collector had to say, for people. */
static void repeat_collector(int fd)
{
  char text[4096];
  off_t at = 0;
  for (ssize_t n; at < (off_t)sizeof text * 4 && (n = pread(fd, text, sizeof text, at)) > 0; at += n)
    fwrite(text, 1, (size_t)n, stderr);
}

int launch_finish(struct launch *l)
{
  int have = 0;
  if (l->witness > 0) {
    close(l->witness_fd);
    kill(l->witness, SIGKILL);
    waitpid(l->witness, NULL, 0);
    l->witness = 0;
  }
  if (l->end_fd >= 0) {
    /* How it ended, for the dump. A collector that died before: SIGPIPE is blocked. */
    if (write(l->end_fd, &l->status, sizeof l->status) != sizeof l->status) {}
    close(l->end_fd);
    l->end_fd = -1;
  }
  if (l->collector > 0) {
    int status = 0;
    if (!wait_child(l->collector, FINISH_MS, &status)) {
      kill(l->collector, SIGTERM);
      if (!wait_child(l->collector, 2000, &status)) {
        kill(l->collector, SIGKILL);
        waitpid(l->collector, &status, 0);
      }
    }
    if (WIFSIGNALED(status)) l->collector_signal = WTERMSIG(status);
    m6_reap();                           /* of others, too: most people never call anything but `mach6 run` */
    m6_reap_run(l->token, l->collector); /* nothing, unless the collector was killed */
    l->collector = 0;
  }
  let_interrupt();
  if (l->collector_err >= 0) repeat_collector(l->collector_err);
  if (l->final_fd >= 0) have = lseek(l->final_fd, 0, SEEK_END) > 0;
  return have ? 0 : -1;
}
