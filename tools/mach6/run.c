/* run.c - mach6 run: starts a game with the shim and a collector, and reports when it has ended.
 *
 * The exit status is the game's. mach6's own failures have the numbers that env(1) and timeout(1) use: 125, 126, 127.
 */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../collector/budgets.h"
#include "../../collector/dump.h"
#include "../../collector/stats_internal.h"
#include "../../collector/stats_kernel.h"
#include "../../shm/budget.h"
#include "../../shm/site_option.h"
#include "analysis.h"
#include "dumpfile.h"
#include "launch.h"
#include "report.h"
#include "save.h"
#include "tool.h"

struct options {
  const char *json, *out, *analyze, *level, *sessions, *session_frames, *budgets[8], *folded, *frame_symbol;
  unsigned ttl, budget_count;
  uint32_t sites;
  int quiet;
  char **argv; /* the program and what belongs to it */
};

/* ---- how it ended ------------------------------------------------------------------------------------------------ */

/* Ends as the game did. */
static int leave(const struct launch *l)
{
  fflush(NULL);
  if (!WIFSIGNALED(l->status)) return WEXITSTATUS(l->status);
  int s = WTERMSIG(l->status);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* the game's core says more than ours would */
  prctl(PR_SET_DUMPABLE, 0);
  signal(s, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, s);
  kill(getpid(), s);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  return 128 + s;
}

/* ---- what it looked like ----------------------------------------------------------------------------------------- */

static json_t *not_attached(const struct launch *l, const char *why)
{
  static const char *const nothing[] = {"presents", "frame_source", "frame_time", "books",
                                        "allocs",   "losses",       "overhead",   "root"};
  json_t *o = json_pack("{s:s, s:i, s:{s:i, s:s, s:s, s:[]}, s:{s:s, s:s}}", "mach6", MACH6_VERSION, "format",
                        (int)M6_SNAPSHOT_VERSION, "target", "pid", (int)l->game, "name", l->argv[0], "exe",
                        l->program->path, "unseen", "session", "state", "not attached", "reason", why);
  for (size_t i = 0; o && i < sizeof nothing / sizeof *nothing; i++) json_object_set_new(o, nothing[i], json_null());
  return o;
}

static int save_as(const char *option, const char *path, json_t *value, enum mach6_format format)
{
  char *bytes = NULL;
  size_t n = 0;
  int error = m6_payload_encode(value, format, &bytes, &n);
  if (error) return say("%s %s: %s", option, path, mach6_stats_strerror(error)), -1;
  if (format == MACH6_JSON) bytes[n++] = '\n'; /* where the NUL was */
  error = save(option, path, bytes, n);
  free(bytes);
  return error;
}

/* What we know and the collector cannot: how the game ended, and, when it lived too briefly to be looked at, its
 * file. */
static json_t *with_ending(json_t *o, const struct launch *l)
{
  int status = l->status;
  json_t *target = json_object_get(o, "target"), *name = json_object_get(target, "name");
  const char *slash = strrchr(l->program->path, '/'), *base = slash ? slash + 1 : l->program->path;
  if (json_is_null(json_object_get(target, "exe")) && json_is_string(name) && !strcmp(json_string_value(name), base) &&
      json_integer_value(json_object_get(target, "pid")) == l->game)
    json_object_set_new(target, "exe", json_string(l->program->path)); /* null for a path that is no UTF-8 */
  json_t *session = json_object_get(o, "session");
  if (session) {
    json_object_set_new(session, "exit_status", WIFEXITED(status) ? json_integer(WEXITSTATUS(status)) : json_null());
    json_object_set_new(session, "signal", WIFSIGNALED(status) ? json_integer(WTERMSIG(status)) : json_null());
  }
  return o;
}

/* To what is no file of its own (a pipe, a device, '-'): the collector writes files, beside which it can make another.
 * */
static void save_dump(const char *path, const struct launch *l, const mach6_stats *s)
{
  struct m6_snapshot *copy = malloc(s->snap->bytes);
  char *bytes = NULL;
  size_t n = 0;
  const char *object;
  FILE *f = open_memstream(&bytes, &n);
  if (!copy || !f) return free(copy), say("--out %s: %s", path, strerror(ENOMEM));
  memcpy(copy, s->snap, s->snap->bytes);
  copy->ending_known = 1;
  copy->ending = l->status;
  struct m6_encoder *e = m6_dump_encoder(copy, m6_budget_cap(M6_BUDGET_DUMP), m6_budget_cap(M6_BUDGET_DUMP_OBJECT));
  ssize_t got = -1;
  while (e && (got = m6_dump_next(e, &object)) > 0) fwrite(object, 1, (size_t)got, f);
  m6_dump_encoder_free(e);
  if (fclose(f) || got < 0) say("--out %s: %s", path, strerror(ENOMEM));
  else save("--out", path, bytes, n);
  free(bytes);
  free(copy);
}

/* The session is over and all is written: what does a command of the user's shell say of it? Its status is not ours. */
static void ask(const struct launch *l, const struct options *o, const mach6_stats *s)
{
  char *const command[] = {(char *)"sh", (char *)"-c", (char *)o->analyze, NULL};
  struct analysis a = {.command = command, .mask = &l->old_mask, .to = stderr, .quiet = o->quiet};
  struct summary summary;
  int ended;
  if (analysis_sum_up(s, l->argv[0], ending_words(l->status), 0, &summary)) return;
  if (!o->quiet) fprintf(stderr, "\n");
  analysis_ask(&a, &summary, &ended);
  free(summary.text);
}

static void finish(const struct launch *l, const struct options *o, mach6_stats *s, const char *why_not)
{
  struct page p = page_on(stderr, STDERR_FILENO);
  if (s && !o->quiet) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (f) {
      p.to = f;
      fputc('\n', f);
      report(&p, s, REPORT_ALL, ending_words(l->status));
      fclose(f);
      fwrite(text, 1, n, stderr);
      free(text);
    }
  }
  if (o->json)
    save_as("--json", o->json, with_ending(s ? m6_payload_report(s, 0) : not_attached(l, why_not), l), MACH6_JSON);
  if (o->folded && s) {
    const struct m6_snapshot *k = mach6_stats_snapshot(s);
    if (k->kernel.folded_more) say("--folded %s: the stacks are too many for one report", o->folded);
    save("--folded", o->folded, m6_snap_folded(k), k->kernel.folded_bytes);
  }
  if (o->out && !l->out && s) save_dump(o->out, l, s);
  if (o->analyze && s && !launch_impatient()) ask(l, o, s);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

enum {
  KEY_JSON = 256,
  KEY_OUT,
  KEY_LEVEL,
  KEY_TTL,
  KEY_SESSIONS,
  KEY_FRAMES,
  KEY_BUDGET,
  KEY_FOLDED,
  KEY_FRAME_SYMBOL,
  KEY_SITES,
  KEY_EVERY,
  KEY_ANALYZE
};

/* Is it a number from `low` to `high`, in digits alone? */
static int counts(const char *text, unsigned long low, unsigned long high)
{
  char *end;
  errno = 0;
  unsigned long n = strtoul(text, &end, 10);
  return *text >= '0' && *text <= '9' && !*end && !errno && n >= low && n <= high;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  char *end, why[512];
  unsigned long ttl;
  switch (key) {
  case KEY_JSON: o->json = arg; break;
  case KEY_OUT: o->out = arg; break;
  case KEY_ANALYZE: o->analyze = arg; break;
  case KEY_FOLDED: o->folded = arg; break;
  case KEY_FRAME_SYMBOL: o->frame_symbol = arg; break;
  case KEY_LEVEL:
    if (strcmp(arg, "memory") != 0 && strcmp(arg, "lite") != 0 && strcmp(arg, "full") != 0)
      argp_error(state, "--level is memory, lite or full, not '%s'", arg);
    o->level = arg;
    break;
  case KEY_TTL:
    errno = 0;
    ttl = strtoul(arg, &end, 10);
    if (errno || *end || end == arg || *arg == '-' || ttl < 1 || ttl > M6_SESSION_TTL_S)
      argp_error(state, "--ttl takes 1 to %d seconds, not '%s'", M6_SESSION_TTL_S, arg);
    o->ttl = (unsigned)ttl;
    break;
  case KEY_SESSIONS:
    if (!counts(arg, 1, M6_SNAP_LINKS)) argp_error(state, "--sessions takes 1 to %d, not '%s'", M6_SNAP_LINKS, arg);
    o->sessions = arg;
    break;
  case KEY_FRAMES:
    if (!counts(arg, 2, UINT32_MAX)) argp_error(state, "--session-frames takes a number from 2 on, not '%s'", arg);
    o->session_frames = arg;
    break;
  case KEY_BUDGET:
    if (!strncmp(arg, "analysis.", 9)) { /* ours, not the collector's */
      if (m6_budget_option_analyze(arg, why, sizeof why)) argp_error(state, "--budget %s", why);
      break;
    }
    if (o->budget_count + 1 == sizeof o->budgets / sizeof *o->budgets) argp_error(state, "too many budgets");
    if (m6_budget_option(arg, why, sizeof why)) argp_error(state, "--budget %s", why);
    o->budgets[o->budget_count++] = arg;
    break;
  case KEY_SITES:
    if ((o->sites = m6_site_option(arg)) == 0)
      argp_error(state, "--sites takes 16 to 256M bytes, as 4096, 512K or 1M, not '%s'", arg);
    break;
  case KEY_EVERY: o->sites = 1; break;
  case 'q': o->quiet = 1; break;
  case ARGP_KEY_ARG: /* the program: all that follows is its own */
    state->next--;
    o->argv = &state->argv[state->next];
    state->next = state->argc;
    break;
  case ARGP_KEY_END:
    if (!o->argv) argp_error(state, "which program?  mach6 run -- ./game its arguments");
    if (o->session_frames && !o->sessions) argp_error(state, "--session-frames goes with --sessions");
    const char *shim_only = o->sessions && strtoul(o->sessions, NULL, 10) > 1 ? "--sessions"
                            : o->sites                                        ? "--sites"
                                                                              : NULL;
    if (o->frame_symbol && shim_only) argp_error(state, M6_NEEDS_SHIM, shim_only);
    if (o->frame_symbol && !o->level) o->level = "lite";
    if (o->frame_symbol && strcmp(o->level, "memory") == 0)
      argp_error(state, "--frame-symbol is without the shim, so there is no level memory: lite or full");
    if (o->frame_symbol && !strpbrk(o->frame_symbol, ":+"))
      argp_error(state, "--frame-symbol takes BINARY:SYMBOL or BINARY+OFFSET, not '%s'", o->frame_symbol);
    if (o->folded && (!o->level || strcmp(o->level, "memory") == 0))
      argp_error(state, "--folded needs CPU samples: --level lite or full");
    break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

/* Each into a place of its own, and none into the game's. 0, or -1 after a message. */
static int check_places(const struct options *o, const char *program)
{
  const struct {
    const char *option, *path;
  } to[] = {{"--json", o->json}, {"--out", o->out}, {"--folded", o->folded}};
  for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
    if (!to[i].path) continue;
    if (save_same(to[i].path, program)) return say("%s %s: that is the program itself", to[i].option, to[i].path), -1;
    for (size_t k = 0; k < i; k++)
      if (to[k].path && save_same(to[k].path, to[i].path))
        return say("%s and %s are both to go to %s: name two files", to[k].option, to[i].option, to[i].path), -1;
  }
  return 0;
}

/* An absolute path: the collector works in another folder. */
static int realpath_of(const char *path, char out[PATH_MAX])
{
  char here[PATH_MAX];
  if (*path == '/') return snprintf(out, PATH_MAX, "%s", path) < PATH_MAX;
  return getcwd(here, sizeof here) && snprintf(out, PATH_MAX, "%s/%s", here, path) < PATH_MAX;
}

int m6_run(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"json", KEY_JSON, "FILE", 0, "Write the report as one JSON object as well ('-': stdout)", 0},
    {"out", KEY_OUT, "FILE", 0, "Write a dump: for mach6 report, export, diff, gate and analyze", 0},
    {"analyze", KEY_ANALYZE, "COMMAND", 0,
     "When all is over, show what COMMAND (of sh) says to the summary, as mach6 analyze does", 0},
    {"folded", KEY_FOLDED, "FILE", 0, "Write the CPU samples as folded stacks, for flame graphs (levels lite and full)",
     0},
    {"frame-symbol", KEY_FRAME_SYMBOL, "BINARY:SYMBOL", 0,
     "Without the shim, for programs that present nothing or are static: a frame is from one call of SYMBOL to the "
     "next",
     0},
    {"level", KEY_LEVEL, "LEVEL", 0, "What to collect: memory, lite or full", 0},
    {"ttl", KEY_TTL, "SECONDS", 0, "Stop collecting after so long (300); the game goes on", 0},
    {"sessions", KEY_SESSIONS, "N", 0,
     "A chain of N sessions without a gap between them, and the leak over all of them", 0},
    {"session-frames", KEY_FRAMES, "N", 0, "In a chain, a session ends after N frames (else after its ttl)", 0},
    {"budget", KEY_BUDGET, "NAME=VALUE", 0, "Lower a budget; 'mach6 stat' shows them", 0},
    {"sites", KEY_SITES, "BYTES", OPTION_ARG_OPTIONAL,
     "Which code allocates and which leaks, from a sample in so many bytes (512K)", 0},
    {"every-allocation", KEY_EVERY, 0, 0, "As --sites, from every allocation: for small programs and short times", 0},
    {"quiet", 'q', 0, 0, "No report on stderr", 0},
    {0},
  };
  static const struct argp argp = {
    table,
    parse,
    "-- PROGRAM [ARGUMENT...]",
    "Start a program, watch it, and report on stderr when it has ended. Its exit status is passed on.",
    NULL,
    NULL,
    NULL};
  struct options o = {0};
  struct program program;
  struct launch l = {.program = &program, .profile = 1};
  char out[PATH_MAX] = "", shim[PATH_MAX] = "", collector[PATH_MAX] = "", why[PATH_MAX + 256] = "";
  argv[0] = (char *)"mach6 run";
  argp_err_exit_status = EXIT_RUN_FAILED;
  argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
  if ((o.json && save_check("--json", o.json)) || (o.out && save_check("--out", o.out)) ||
      (o.folded && save_check("--folded", o.folded)))
    return EXIT_RUN_FAILED;

  int error = program_find(o.argv[0], &program);
  if (error == ENOENT || error == ENOTDIR) {
    int here = !strchr(o.argv[0], '/') && access(o.argv[0], F_OK) == 0;
    say("cannot run %s: it is not there%s%s", o.argv[0], here ? "; for the one in this folder say ./" : "",
        here ? o.argv[0] : "");
    return EXIT_NOT_FOUND;
  }
  if (error == EISDIR) return say("cannot run %s: it is a folder", program.path), EXIT_NOT_EXECUTABLE;
  if (error) return say("cannot run %s: %s", program.path, strerror(error)), EXIT_NOT_EXECUTABLE;
  if (check_places(&o, program.path)) return EXIT_RUN_FAILED;
  program_inspect(&program);
  if (o.frame_symbol) { /* any program will do; only the collector is needed */
    if ((error = launch_find("MACH6_COLLECTOR", "mach6-collector", "lib/mach6", collector, sizeof collector)))
      snprintf(why, sizeof why, "the collector is missing (%s: %s)", collector, strerror(error));
  } else if (!program.attachable) snprintf(why, sizeof why, "%s", program.why_not);
  else if ((error = launch_find("MACH6_SHIM", "libmach6.so", "lib/mach6", shim, sizeof shim)))
    snprintf(why, sizeof why, "the shim is missing (%s: %s); set MACH6_SHIM to where libmach6.so is", shim,
             strerror(error));
  else if ((error = launch_find("MACH6_COLLECTOR", "mach6-collector", "lib/mach6", collector, sizeof collector)))
    snprintf(why, sizeof why, "the collector is missing (%s: %s); set MACH6_COLLECTOR to where mach6-collector is",
             collector, strerror(error));
  if (*why) {
    l.profile = 0;
    say("%s is not profiled: %s", o.argv[0], why);
  }
  l.argv = o.argv;
  l.level = o.level;
  l.frame_symbol = o.frame_symbol;
  l.out = o.out && save_is_file(o.out) && realpath_of(o.out, out) ? out : NULL;
  l.ttl = o.ttl;
  l.sessions = o.sessions;
  l.session_frames = o.session_frames;
  memcpy(l.budgets, o.budgets, sizeof l.budgets);
  l.sites = o.sites;
  int status = launch_start(&l, shim, collector);
  if (status) return status;
  launch_wait(&l);

  mach6_stats *s = NULL;
  if (launch_finish(&l) == 0 && (error = mach6_stats_open_fd(l.final_fd, &s)))
    snprintf(why, sizeof why, "the collector's last word is not usable: %s", mach6_stats_strerror(error));
  if (!s) {
    if (!*why && l.collector_signal)
      snprintf(why, sizeof why, "its collector was killed by signal %d (%s)", l.collector_signal,
               strsignal(l.collector_signal));
    else if (!*why && o.frame_symbol) snprintf(why, sizeof why, "its collector ended early");
    else if (!*why)
      snprintf(why, sizeof why,
               "the shim did not show up in it, or its collector ended early; MACH6_VERBOSE=1 says more");
    if (l.profile) say("no report on %s: %s", o.argv[0], why);
    if (o.out) say("no dump: %s is as it was", o.out);
  }
  finish(&l, &o, s, why);
  mach6_stats_close(s);
  return leave(&l);
}
