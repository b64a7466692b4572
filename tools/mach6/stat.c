/* stat.c - mach6 stat: the live statistics of one target, once or again and again. */
#include <argp.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../collector/mach6_stats.h"
#include "../../shm/clock.h"
#include "../../shm/layout.h"
#include "../../shm/snapshot.h"
#include "report.h"
#include "tool.h"

struct options {
  const char *who;
  int json, msgpack;
  double watch; /* seconds; 0 = once */
};

/* ---- who is meant ------------------------------------------------------------------------------------------------ */

static int has_file(const char *prefix, pid_t pid)
{
  char start[64];
  size_t n = (size_t)snprintf(start, sizeof start, "%s%d.", prefix, (int)pid);
  DIR *d = opendir(M6_SEGMENT_DIR);
  int found = 0;
  for (struct dirent *e; d && !found && (e = readdir(d));) found = !strncmp(e->d_name, start, n);
  if (d) closedir(d);
  return found;
}

static int lives(pid_t pid)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d", (int)pid);
  return access(path, F_OK) == 0 || kill(pid, 0) == 0 || errno == EPERM;
}

/* Is this the process's name, as ps shows it (15 bytes at most), or the name of its program? */
static int is_named(pid_t pid, const char *name)
{
  char path[64], text[PATH_MAX];
  snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
  FILE *f = fopen(path, "r");
  if (f) {
    char *got = fgets(text, sizeof text, f);
    fclose(f);
    if (got) {
      text[strcspn(text, "\n")] = 0;
      if (!strcmp(text, name)) return 1;
    }
  }
  snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
  ssize_t n = readlink(path, text, sizeof text - 1);
  if (n <= 0) return 0;
  text[n] = 0;
  char *base = strrchr(text, '/');
  return base && !strcmp(base + 1, name);
}

/* The pid that a word means: a number, or the name of a process. Captured ones are meant first, then loaded ones.
 * 0 and the exit status in *status when there is no answer. */
static pid_t resolve(const char *who, int *status)
{
  char *end;
  errno = 0;
  long n = strtol(who, &end, 10);
  if (*who && !*end) {
    if (errno || n <= 0 || n > INT_MAX) return say("'%s' is no process id", who), *status = EXIT_USAGE, 0;
    return (pid_t)n;
  }
  pid_t best = 0;
  int best_rank = -1, equals = 0;
  char also[256] = "";
  DIR *d = opendir("/proc");
  for (struct dirent *e; d && (e = readdir(d));) {
    pid_t pid = (pid_t)atoi(e->d_name);
    if (pid <= 0 || pid == getpid() || !is_named(pid, who)) continue;
    int rank = has_file(M6_STATS_PREFIX, pid) * 2 + has_file(M6_SEGMENT_PREFIX, pid);
    size_t used = strlen(also);
    if (rank > best_rank) best = pid, best_rank = rank, equals = 0, used = 0;
    if (rank < best_rank) continue;
    equals++;
    snprintf(also + used, sizeof also - used, "%s%d", used ? ", " : "", (int)pid);
  }
  if (d) closedir(d);
  if (!best)
    return say("no process is named '%s'; 'mach6 ps' lists those that mach6 is loaded in", who),
           *status = EXIT_NO_PROCESS, 0;
  if (equals > 1 && best_rank > 0)
    return say("'%s' could be any of %s: name one by its number", who, also), *status = EXIT_USAGE, 0;
  return best;
}

/* ---- showing it -------------------------------------------------------------------------------------------------- */

static size_t first_lines(const char *text, size_t n, unsigned lines)
{
  for (size_t i = 0; i < n; i++)
    if (text[i] == '\n' && --lines == 0) return i + 1;
  return n;
}

static int show(const mach6_stats *s, const struct options *o)
{
  char *text = NULL;
  size_t n = 0;
  if (o->json || o->msgpack) {
    int error = mach6_stats_convert(s, o->json ? MACH6_JSON : MACH6_MSGPACK, &text, &n);
    if (error) return say("%s", mach6_stats_strerror(error)), EXIT_OTHER;
    fwrite(text, 1, n, stdout);
    if (o->json) putchar('\n');
  } else {
    FILE *f = open_memstream(&text, &n);
    if (!f) return say("out of memory"), EXIT_OTHER;
    struct page p = page_on(f, STDOUT_FILENO);
    report(&p, s, REPORT_LIVE, NULL);
    fclose(f);
    /* One write; home, then what is left of the picture before goes. What does not fit would push the head away. */
    if (o->watch > 0 && isatty(STDOUT_FILENO)) {
      struct winsize w;
      if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 1) n = first_lines(text, n, w.ws_row - 1u);
      fputs("\033[H\033[J", stdout);
    }
    fwrite(text, 1, n, stdout);
    if (o->watch > 0 && !isatty(STDOUT_FILENO)) putchar('\n');
  }
  free(text);
  if (fflush(stdout) || ferror(stdout)) return say("writing to stdout: %s", strerror(errno)), EXIT_OTHER;
  return EXIT_FINE;
}

/* Over, or left by its writer: nobody publishes, and the target or the collector is gone. */
static int is_over(const mach6_stats *s, pid_t pid)
{
  const struct m6_snapshot *n = mach6_stats_snapshot(s);
  if (mach6_stats_ended(s)) return 1;
  uint64_t now = m6_monotonic_ns();
  return now > n->published_ns && now - n->published_ns > M6_HEARTBEAT_LOST_MS * 1000000ull && !lives(pid);
}

/* Seconds since the last publication of a session that is not over, when they are too many; else 0. */
static unsigned silent_for(const mach6_stats *s)
{
  uint64_t now = m6_monotonic_ns(), then = mach6_stats_snapshot(s)->published_ns;
  if (mach6_stats_ended(s) || now <= then || now - then <= M6_HEARTBEAT_LOST_MS * 1000000ull) return 0;
  return (unsigned)((now - then) / 1000000000u);
}

static int watch(mach6_stats *s, pid_t pid, const struct options *o)
{
  uint64_t shown = 0;
  for (int silent = 0;;) {
    const struct m6_snapshot *n = mach6_stats_snapshot(s);
    if (n->publishes != shown || shown == 0) {
      int status = show(s, o);
      if (status) return status;
      shown = n->publishes;
      silent = 0;
    } else if (silent_for(s) && !silent++) {
      say("the collector of process %d has been silent for %d s", (int)pid, M6_HEARTBEAT_LOST_MS / 1000);
    }
    if (is_over(s, pid)) break;
    struct timespec t = {(time_t)o->watch, (long)(fmod(o->watch, 1) * 1e9)};
    nanosleep(&t, NULL);
    int over = is_over(s, pid), error = mach6_stats_refresh(s);
    if (error && error != MACH6_EBUSY) return over ? EXIT_FINE : explain_stats(pid, error);
    if (over && mach6_stats_snapshot(s)->publishes == shown) break;
  }
  if (!o->json && !o->msgpack) say("the session of process %d is over", (int)pid);
  return EXIT_FINE;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  char *end;
  switch (key) {
  case 'j': o->json = 1; break;
  case 'm': o->msgpack = 1; break;
  case 'w':
    o->watch = arg ? strtod(arg, &end) : 1;
    if ((arg && (end == arg || *end)) || !(o->watch >= 0.05 && o->watch <= 86400))
      argp_error(state, "--watch takes seconds from 0.05 to 86400, not '%s'", arg);
    break;
  case ARGP_KEY_ARG:
    if (o->who) argp_error(state, "one process at a time");
    o->who = arg;
    break;
  case ARGP_KEY_NO_ARGS: argp_error(state, "which process? 'mach6 ps' lists them"); break;
  case ARGP_KEY_END:
    if (o->json && o->msgpack) argp_error(state, "--json or --msgpack, not both");
    break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

int m6_stat(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"json", 'j', 0, 0, "One JSON object; with --watch one a line", 0},
    {"msgpack", 'm', 0, 0, "The same as msgpack", 0},
    {"watch", 'w', "SECONDS", OPTION_ARG_OPTIONAL, "Again every so many seconds (1), until the session is over", 0},
    {0},
  };
  static const struct argp argp = {
    table, parse, "PID|NAME", "Show the live statistics of a process that a collector captures.", NULL, NULL, NULL};
  struct options o = {0};
  int status = EXIT_OTHER;
  argv[0] = (char *)"mach6 stat";
  argp_err_exit_status = EXIT_USAGE;
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  if (o.msgpack && isatty(STDOUT_FILENO))
    return say("msgpack is for programs: send it to a file or a pipe"), EXIT_USAGE;
  pid_t pid = resolve(o.who, &status);
  if (!pid) return status;
  mach6_stats *s;
  int error = mach6_stats_open(pid, &s);
  if (error) return explain_stats(pid, error);
  unsigned silent = silent_for(s);
  status = o.watch > 0 ? watch(s, pid, &o) : show(s, &o);
  if (!o.watch && !status && silent)
    say("the collector of process %d has been silent for %u s: this is the last that it published", (int)pid, silent);
  mach6_stats_close(s);
  return status;
}
