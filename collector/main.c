/* main.c - mach6-collector's command line. What it does is in session.h; its exit statuses are in stats_refuse.h. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "budgets.h"
#include "../shm/site_option.h"
#include "session.h"
#include "stats_words.h"

const char *argp_program_version = "mach6-collector " MACH6_VERSION;

enum {
  KEY_PID = 'p',
  KEY_NAME = 'n',
  KEY_WAIT = 'w',
  KEY_TTL = 't',
  KEY_LEVEL = 'l',
  KEY_QUIET = 'q',
  KEY_VERBOSE = 'v',
  KEY_OUT = 'o',
  KEY_RUN = 256,
  KEY_FINAL,
  KEY_END,
  KEY_READY,
  KEY_STAY,
  KEY_SESSIONS,
  KEY_FRAMES,
  KEY_BUDGET,
  KEY_FRAME_SYMBOL,
  KEY_SITES,
  KEY_EVERY,
  KEY_SHIM
};

static const struct argp_option options[] = {
  {"pid", KEY_PID, "N", 0, "Capture the process N", 1},
  {"name", KEY_NAME, "GLOB", 0, "Capture the one target whose program name matches", 1},
  {"wait", KEY_WAIT, "GLOB", 0, "Capture the first whose program name matches, as soon as there is one", 1},
  {"ttl", KEY_TTL, "S", 0, "End after S seconds, 1 to 300 (default 300)", 2},
  {"level", KEY_LEVEL, "LEVEL", 0, "How much is collected: memory (default), lite or full", 2},
  {"sessions", KEY_SESSIONS, "N", 0, "A chain of N sessions that follow each other without a gap, for soaks", 2},
  {"session-frames", KEY_FRAMES, "N", 0, "In a chain, a session ends after N frames", 2},
  {"budget", KEY_BUDGET, "NAME=VALUE", 0, "Lower a budget; `mach6 stat` shows them. May come again", 2},
  {"stay", KEY_STAY, NULL, 0, "After a session wait for `mach6 on`, while the target lives and grants another", 2},
  {"frame-symbol", KEY_FRAME_SYMBOL, "BINARY:SYMBOL", 0,
   "Without the shim: a frame is from one call of this function to the next. With --pid; level lite or full", 2},
  {"out", KEY_OUT, "FILE", 0, "Write a dump at the end: see `mach6 report`, `export`, `diff`, `gate` and `analyze`", 2},
  {"sites", KEY_SITES, "BYTES", OPTION_ARG_OPTIONAL,
   "Which code allocates, from a sample in so many bytes (512K): 16 to 256M, with K or M", 2},
  {"every-allocation", KEY_EVERY, NULL, 0, "As --sites, from every allocation: for small programs and short times", 2},
  {"quiet", KEY_QUIET, NULL, 0, "Say nothing but errors", 3},
  {"verbose", KEY_VERBOSE, NULL, 0, "Say more", 3},
  {"run", KEY_RUN, "TOKEN", 0, "For `mach6 run`: capture what carries this token (hex); --pid is the direct child", 4},
  {"final-fd", KEY_FINAL, "FD", 0, "Write the final snapshot to this descriptor", 4},
  {"end-fd", KEY_END, "FD", 0,
   "The run is over when this descriptor is at its end, or has what waitpid said of the child (an int)", 4},
  {"ready-fd", KEY_READY, "FD", 0, "Write a byte to this descriptor when new targets are watched for", 4},
  {"shim", KEY_SHIM, "FILE", 0, "The shim that the run's programs load: the kernel side is ready before they begin", 4},
  {NULL, 0, NULL, 0, NULL, 0},
};

static int number(const char *text, int base, unsigned long long most, unsigned long long *out)
{
  char *end;
  errno = 0;
  *out = strtoull(text, &end, base);
  return *text >= '0' && *end == 0 && errno == 0 && *out <= most;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct m6_options *o = state->input;
  unsigned long long n = 0;
  switch (key) {
  case KEY_PID:
    if (!number(arg, 10, INT32_MAX, &n) || n == 0) argp_error(state, "--pid wants a process number, not '%s'", arg);
    o->pid = (pid_t)n;
    return 0;
  case KEY_NAME: o->name = arg; return 0;
  case KEY_WAIT: o->wait = arg; return 0;
  case KEY_RUN:
    if (!number(arg, 16, UINT64_MAX, &n) || n == 0) argp_error(state, "--run wants a token in hex, not '%s'", arg);
    o->run_token = n;
    return 0;
  case KEY_TTL:
    if (!number(arg, 10, M6_SESSION_TTL_S, &n) || n == 0)
      argp_error(state, "--ttl wants 1 to %d seconds, not '%s': a session is bounded; start another after it for more",
                 M6_SESSION_TTL_S, arg);
    o->ttl_s = (unsigned)n;
    return 0;
  case KEY_LEVEL:
    for (uint32_t i = 0; i < M6_LEVELS; i++)
      if (strcmp(arg, m6_level_name(i)) == 0) {
        o->level = i;
        return 0;
      }
    argp_error(state, "--level wants memory, lite or full, not '%s'", arg);
    return 0;
  case KEY_FINAL:
  case KEY_END:
  case KEY_READY:
    if (!number(arg, 10, 1 << 20, &n) || fcntl((int)n, F_GETFD) < 0)
      argp_error(state, "%s wants an open descriptor, not '%s'",
                 key == KEY_FINAL ? "--final-fd"
                 : key == KEY_END ? "--end-fd"
                                  : "--ready-fd",
                 arg);
    fcntl((int)n, F_SETFD, FD_CLOEXEC);
    *(key == KEY_FINAL ? &o->final_fd : key == KEY_END ? &o->end_fd : &o->ready_fd) = (int)n;
    return 0;
  case KEY_SESSIONS:
    if (!number(arg, 10, m6_budget_cap(M6_BUDGET_SESSION_CHAIN), &n) || n == 0)
      argp_error(state, "--sessions wants 1 to %llu, not '%s'",
                 (unsigned long long)m6_budget_cap(M6_BUDGET_SESSION_CHAIN), arg);
    o->sessions = (uint32_t)n;
    return 0;
  case KEY_FRAMES:
    if (!number(arg, 10, UINT32_MAX, &n) || n < 2)
      argp_error(state, "--session-frames wants a number from 2 on, not '%s'", arg);
    o->session_frames = n;
    return 0;
  case KEY_BUDGET: {
    char why[512];
    if (m6_budget_option(arg, why, sizeof why) != 0) argp_error(state, "--budget %s", why);
    return 0;
  }
  case KEY_STAY: o->stay = 1; return 0;
  case KEY_FRAME_SYMBOL: o->frame_symbol = arg; return 0;
  case KEY_SHIM: o->shim = arg; return 0;
  case KEY_OUT: o->out = arg; return 0;
  case KEY_SITES:
    if ((o->site_interval = m6_site_option(arg)) == 0)
      argp_error(state, "--sites wants 16 to 256M bytes, as 4096, 512K or 1M, not '%s'", arg);
    return 0;
  case KEY_EVERY: o->site_interval = 1; return 0;
  case KEY_QUIET: m6_loudness = M6_QUIET; return 0;
  case KEY_VERBOSE: m6_loudness = M6_VERBOSE; return 0;
  case ARGP_KEY_ARG: argp_error(state, "'%s' is one word too many", arg); return 0;
  case ARGP_KEY_END: {
    int ways = (o->pid != 0) + (o->name != NULL) + (o->wait != NULL);
    if (o->run_token != 0 && (o->pid == 0 || ways != 1))
      argp_error(state, "--run goes with --pid, the direct child, alone");
    if (o->shim && o->run_token == 0) argp_error(state, "--shim goes with --run");
    if (o->frame_symbol && (o->pid == 0 || ways != 1 || o->run_token != 0))
      argp_error(state, "--frame-symbol goes with --pid: there is no shim that could be found by a name");
    const char *shim_only = o->sessions > 1 ? "--sessions" : o->site_interval ? "--sites" : o->stay ? "--stay" : NULL;
    if (o->frame_symbol && shim_only) argp_error(state, M6_NEEDS_SHIM, shim_only);
    if (o->frame_symbol && o->level == M6_LEVEL_MEMORY) o->level = M6_LEVEL_LITE;
    if (ways != 1) argp_error(state, "say which target: one of --pid, --name or --wait");
    if (o->session_frames != 0 && o->sessions < 2) argp_error(state, "--session-frames goes with --sessions");
    unsigned most = (unsigned)(m6_budget_cap(M6_BUDGET_SESSION_TTL) / 1000);
    if (o->ttl_s > most && most > 0) o->ttl_s = most;
    return 0;
  }
  default: return ARGP_ERR_UNKNOWN;
  }
}

static char *help(int key, const char *text, void *input)
{
  (void)input;
  if (key != ARGP_KEY_HELP_POST_DOC) return (char *)text;
  char *out = NULL;
  size_t size;
  FILE *f = open_memstream(&out, &size);
  if (f == NULL) return (char *)text;
#define EXIT_LINE(name, status, meaning) fprintf(f, "  %d  %s\n", status, meaning);
  fputs("Exit statuses:\n", f);
  M6_EXITS(EXIT_LINE)
  fclose(f);
  return out;
}

int main(int argc, char **argv)
{
  if (argc == 2 && strcmp(argv[1], M6_CALIBRATE_OPTION) == 0) return m6_calibrate_main();
  static const struct argp argp = {options,
                                   parse,
                                   NULL,
                                   "Capture a target: a game in which the mach6 shim is loaded. Statistics appear in "
                                   "shared memory; `mach6 stat` shows "
                                   "them.\vExit statuses:",
                                   NULL,
                                   help,
                                   NULL};
  struct m6_options o = {.ttl_s = M6_SESSION_TTL_S, .sessions = 1, .final_fd = -1, .end_fd = -1, .ready_fd = -1};
  argp_err_exit_status = M6_EXIT_USAGE;
  m6_clock_begin();
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  struct m6_error e = {M6_EXIT_OK, ""};
  int status = o.frame_symbol ? m6_frame_session(&o, &e) : o.run_token ? m6_run(&o, &e) : m6_attach(&o, &e);
  if (status != M6_EXIT_OK) m6_say(M6_QUIET, "%s", e.text);
  return status;
}
