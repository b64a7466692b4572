/* analyze.c - mach6 analyze FILE [COMMAND...]: a dump summed up for whoever reads it next, and what a command has to
 * say of it.
 *
 * Without a command the summary is printed; with one it goes to the command's standard input, and the answer is
 * printed. Three budgets bound it (analysis.summary, analysis.answer, analysis.time); the last line on stderr has what
 * was used of them. The exit status is the command's, as run's is the program's.
 */
#include <stdlib.h>

#include "../../collector/budgets.h"
#include "analysis.h"
#include "dump_options.h"
#include "dumpfile.h"
#include "save.h"
#include "tool.h"

struct options {
  const char *file, *out;
  char **command; /* NULL: none */
  int quiet;
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum { KEY_BUDGET = 256 };

static int ask(const struct options *o, const struct summary *summary)
{
  struct analysis a = {.command = o->command, .out = o->out, .to = stdout, .quiet = o->quiet};
  int ended, status = analysis_ask(&a, summary, &ended);
  if (!ended) return status;
  signal(ended, SIG_DFL); /* as the command, so we */
  raise(ended);
  return 128 + ended;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  char why[512];
  switch (key) {
  case 'o': o->out = arg; return 0;
  case 'q': o->quiet = 1; return 0;
  case KEY_BUDGET:
    if (m6_budget_option_analyze(arg, why, sizeof why)) argp_error(state, "--budget %s", why);
    return 0;
  case ARGP_KEY_ARG:
    if (!o->file) break;
    state->next--; /* the command: all that follows is its own */
    o->command = &state->argv[state->next];
    state->next = state->argc;
    return 0;
  default: break;
  }
  return dump_option(key, arg, state, &o->file, 1);
}

int m6_analyze(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"output", 'o', "OUT", 0, "Write the answer, or without a command the summary, into a file", 0},
    {"budget", KEY_BUDGET, "NAME=VALUE", 0,
     "Lower a budget: analysis.summary (24000 bytes), analysis.answer (256 KiB), analysis.time (15 s)", 0},
    {"quiet", 'q', 0, 0, "Do not say what was used of the budgets", 0},
    {0},
  };
  static const struct argp argp = {
    table,
    parse,
    "FILE [-- COMMAND [ARGUMENT...]]",
    "Sum up a dump for whoever reads it next, a person or a program. A COMMAND gets the summary on its standard input, "
    "and what it prints is shown.",
    NULL,
    NULL,
    NULL};
  struct options o = {0};
  struct summary summary;
  mach6_stats *s;
  int status;
  argv[0] = (char *)"mach6 analyze";
  argp_err_exit_status = EXIT_USAGE;
  argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
  if (o.out && save_check("--output", o.out)) return EXIT_USAGE;
  int error = dump_load(o.file, &s, &status);
  if (error) return error;
  error = analysis_sum_up(s, o.file, dump_ending(s), !o.command && !o.out, &summary);
  mach6_stats_close(s);
  if (error) return EXIT_OTHER;
  if (o.command) error = ask(&o, &summary);
  else if (o.out) error = save("--output", o.out, summary.text, summary.n) ? EXIT_OTHER : 0;
  else {
    fwrite(summary.text, 1, summary.n, stdout);
    if (fflush(stdout) || ferror(stdout)) error = EXIT_OTHER, say("the summary could not be written");
  }
  free(summary.text);
  return error ? error : status;
}
