/* drive.c - mach6 on, off, dump: tell the collector of a process what to do; `on` starts one where there is none.
 *
 * The collector of a process is named in that process's segment; its control socket is named by its pid
 * (collector/stats_socket.h). One that `on` has started stays in the background as long as the grant allows another
 * session, and ends with the process.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../collector/stats_socket.h"
#include "../../collector/stats_targets.h"
#include "../../shm/budget.h"
#include "../../shm/clock.h"
#include "launch.h"
#include "reach.h"
#include "tool.h"

#define BEGIN_MS 10000 /* a collector that needs longer to speak is told of */

struct options {
  const char *level, *ttl, *file;
  pid_t pid;
  int takes_file;
};

/* ---- its collector --------------------------------------------------------------------------------------------------
 * */

static int unreachable(const struct m6_target *t, int error)
{
  if (error == EACCES || error == EPERM)
    return say("collector %u of process %d is another user's: ask as that user, or as root", t->collector_pid,
               (int)t->pid),
           EXIT_DENIED;
  return say("collector %u of process %d does not answer: %s; it can be ended with 'kill %u'", t->collector_pid,
             (int)t->pid, error == ENOENT ? "it has no control socket" : strerror(error), t->collector_pid),
         EXIT_OTHER;
}

static int command(const struct m6_target *t, int fd, const char *what)
{
  char text[M6_SOCKET_PACKET];
  int status = reach_ask(fd, what, text);
  close(fd);
  if (status < 0)
    return say("collector %u of process %d ended without an answer", t->collector_pid, (int)t->pid), EXIT_OTHER;
  say("process %d: %s", (int)t->pid, text);
  return status;
}

/* ---- starting one
 * ---------------------------------------------------------------------------------------------------- */

static pid_t start(const struct options *o, const char *collector, int err)
{
  pid_t child = fork();
  if (child != 0) return child;
  char pid[32];
  const char *args[16] = {collector, "--stay", "--quiet", "--pid", pid};
  int n = 5, null = open("/dev/null", O_RDWR);
  snprintf(pid, sizeof pid, "%d", (int)o->pid);
  if (o->level) args[n++] = "--level", args[n++] = o->level;
  if (o->ttl) args[n++] = "--ttl", args[n++] = o->ttl;
  setsid(); /* this terminal's end is not its own */
  dup2(null, 0);
  dup2(null, 1);
  dup2(err, 2);
  close_range(3, ~0u, 0);
  if (chdir("/")) {}
  unsetenv("LD_PRELOAD");
  execv(collector, (char **)args);
  dprintf(2, "mach6: cannot run %s: %s\n", collector, strerror(errno));
  _exit(EXIT_NOT_FOUND);
}

/* What a collector said that ended at once, to people. */
static int ended(int err, int status)
{
  char said[2048];
  ssize_t n = pread(err, said, sizeof said - 1, 0);
  if (n > 0) fwrite(said, 1, (size_t)n, stderr);
  else say("the collector ended at once");
  return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_OTHER;
}

static int begin(const struct options *o)
{
  char collector[PATH_MAX], text[M6_SOCKET_PACKET];
  int error = launch_find("MACH6_COLLECTOR", "mach6-collector", "lib/mach6", collector, sizeof collector), status;
  if (error)
    return say("the collector is missing (%s: %s); set MACH6_COLLECTOR to where mach6-collector is", collector,
               strerror(error)),
           EXIT_OTHER;
  int err = memfd_create("mach6-collector-stderr", MFD_CLOEXEC);
  pid_t child = err < 0 ? -1 : start(o, collector, err);
  if (child < 0) return say("cannot start a collector: %s", strerror(errno)), EXIT_OTHER;
  for (uint64_t from = m6_monotonic_ns(); m6_monotonic_ns() - from < BEGIN_MS * 1000000ull;) {
    if (waitpid(child, &status, WNOHANG) == child) return ended(err, status);
    int fd = reach_collector(child);
    status = fd < 0
               ? -1
               : reach_ask(fd, "on", text); /* it begins by itself: this tells when it has begun, or that it waits */
    if (fd >= 0) close(fd);
    if (status >= 0) {
      const char *news = strcmp(text, "collecting already") == 0 ? "collecting"
                                                                 : text; /* it was asked twice, once by us */
      say("process %d: %s; 'mach6 stat %d' shows it, 'mach6 off %d' ends it", (int)o->pid, news, (int)o->pid,
          (int)o->pid);
      return status;
    }
    nanosleep(&(struct timespec){0, 20000000}, NULL);
  }
  say("collector %d does not speak; it goes on in the background", (int)child);
  return EXIT_OTHER;
}

/* ---- options
 * --------------------------------------------------------------------------------------------------------- */

static int pid_of(struct argp_state *state, const char *arg)
{
  char *end;
  errno = 0;
  long n = strtol(arg, &end, 10);
  if (errno || *end || end == arg || n <= 0 || n > INT_MAX)
    argp_error(state, "'%s' is no process number; 'mach6 ps' lists them", arg);
  return (int)n;
}

enum { KEY_LEVEL = 256, KEY_TTL };

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  char *end;
  switch (key) {
  case KEY_LEVEL:
    if (strcmp(arg, "memory") != 0 && strcmp(arg, "lite") != 0 && strcmp(arg, "full") != 0)
      argp_error(state, "--level is memory, lite or full, not '%s'", arg);
    o->level = arg;
    break;
  case KEY_TTL: {
    unsigned long ttl = strtoul(arg, &end, 10);
    if (*end || end == arg || *arg == '-' || ttl < 1 || ttl > M6_SESSION_TTL_S)
      argp_error(state, "--ttl takes 1 to %d seconds, not '%s'", M6_SESSION_TTL_S, arg);
    o->ttl = arg;
    break;
  }
  case ARGP_KEY_ARG:
    if (o->pid && (!o->takes_file || o->file))
      argp_error(state, o->takes_file ? "one process and one file" : "one process at a time");
    if (o->pid) o->file = arg;
    else o->pid = pid_of(state, arg);
    break;
  case ARGP_KEY_END:
    if (!o->pid) argp_error(state, "which process? 'mach6 ps' lists them");
    break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static int options(int argc, char **argv, const struct argp *argp, const char *name, struct options *o,
                   struct m6_target *t)
{
  argv[0] = (char *)name;
  argp_err_exit_status = EXIT_USAGE;
  argp_parse(argp, argc, argv, 0, NULL, o);
  return explain_find(o->pid, t);
}

int m6_on(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"level", KEY_LEVEL, "LEVEL", 0, "What to collect: memory (default), lite or full", 0},
    {"ttl", KEY_TTL, "SECONDS", 0, "End after so long (300)", 0},
    {0},
  };
  static const struct argp argp = {table,
                                   parse,
                                   "PID",
                                   "Begin a session in a process that has loaded mach6. Its collector is told; where "
                                   "it has none, one is started in the background, and "
                                   "stays as long as the process grants another session (MACH6_SESSIONS).",
                                   NULL,
                                   NULL,
                                   NULL};
  struct options o = {0};
  struct m6_target t;
  int status = options(argc, argv, &argp, "mach6 on", &o, &t);
  if (status) return status;
  int fd = reach_collector((pid_t)t.collector_pid);
  if (fd == -ENOENT || fd == -ECONNREFUSED) return begin(&o);
  if (fd < 0) return unreachable(&t, -fd);
  if (o.level || o.ttl)
    say("process %d has a collector already: --level and --ttl are those that it was started with; for others end it "
        "('kill %u') and say this again",
        (int)t.pid, t.collector_pid);
  return command(&t, fd, "on");
}

int m6_off(int argc, char **argv)
{
  static const struct argp argp = {
    NULL, parse, "PID", "End the session of a process that is captured; a start that is still pending is cancelled.",
    NULL, NULL,  NULL};
  struct options o = {0};
  struct m6_target t;
  int status = options(argc, argv, &argp, "mach6 off", &o, &t);
  if (status) return status;
  int fd = reach_collector((pid_t)t.collector_pid);
  if (fd == -ENOENT && t.collector_pid == 0) return explain_no_capture(&t);
  if (fd < 0) return unreachable(&t, -fd);
  return command(&t, fd, "off");
}

/* The file as the collector, which is somewhere else, must know it. NULL when its folder is not there. */
static char *absolute(const char *file, char out[PATH_MAX])
{
  char folder[PATH_MAX], whole[PATH_MAX];
  const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file) + 1 : 1, slash ? file : ".");
  if (!realpath(folder, whole)) return NULL;
  return snprintf(out, PATH_MAX, "%s/%s", strcmp(whole, "/") ? whole : "", name) < PATH_MAX ? out : NULL;
}

int m6_dump(int argc, char **argv)
{
  static const struct argp argp = {NULL,
                                   parse,
                                   "PID [FILE]",
                                   "Write what the session of a process has collected until now into FILE "
                                   "(mach6-PID.dump): see mach6 report, export, diff, gate, analyze. "
                                   "The session goes on. FILE is replaced when all of the new one is there.",
                                   NULL,
                                   NULL,
                                   NULL};
  struct options o = {.takes_file = 1};
  struct m6_target t;
  char name[64], path[PATH_MAX], text[PATH_MAX + 16];
  int status = options(argc, argv, &argp, "mach6 dump", &o, &t);
  if (status) return status;
  snprintf(name, sizeof name, "mach6-%d.dump", (int)o.pid);
  if (!absolute(o.file ? o.file : name, path)) return say("%s: %s", o.file, strerror(errno)), EXIT_OTHER;
  int fd = reach_collector((pid_t)t.collector_pid);
  if (fd == -ENOENT && t.collector_pid == 0) return explain_no_capture(&t);
  if (fd < 0) return unreachable(&t, -fd);
  snprintf(text, sizeof text, "dump %s", path);
  return command(&t, fd, text);
}
