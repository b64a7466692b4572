/* analyze.c - mach6 analyze FILE [COMMAND...]: a dump summed up for whoever reads it next, and what a command has to say of it.
 *
 * Without a command the summary is printed; with one it goes to the command's standard input, and the answer is printed: on a terminal
 * what is printable of it, anywhere else as it is. Three budgets bound it (analysis.summary, analysis.answer, analysis.time); the last
 * line on stderr has what was used of them. The exit status is the command's, as run's is the program's.
 */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../collector/budgets.h"
#include "../../collector/stats_internal.h"
#include "answer.h"
#include "dump_options.h"
#include "dumpfile.h"
#include "program.h"
#include "save.h"
#include "summary.h"
#include "tool.h"

struct options {
  const char *file, *out;
  char **command; /* NULL: none */
  int quiet;
};

/* ---- what was used ----------------------------------------------------------------------------------------------- */

static void put_used(FILE *to, const char *what, enum m6_budget_id id)
{
  uint64_t used = m6_budget_used(id), cap = m6_budget_cap(id);
  struct page p = {to, 0, 0, 100};
  if (m6_budget_rows[id].unit == M6_UNIT_MS)
    fprintf(to, "%s %s of %s", what, t_time(&p, (double)used / 1e3), t_time(&p, (double)cap / 1e3));
  else fprintf(to, "%s %s of %s bytes", what, t_count(used), t_count(cap));
  if (m6_budget_overruns(id)) fputs(", overrun", to);
}

/* "summary 5,123 of 24,000 bytes; answer 12 of 262,144 bytes; time 410 ms of 15.0 s" */
static void say_used(void)
{
  char *line = NULL;
  size_t n;
  FILE *to = open_memstream(&line, &n);
  if (!to) return;
  put_used(to, "summary", M6_BUDGET_ANALYSIS_SUMMARY);
  put_used(to, "; answer", M6_BUDGET_ANALYSIS_ANSWER);
  put_used(to, "; time", M6_BUDGET_ANALYSIS_TIME);
  if (fclose(to) == 0) say("%s", line);
  free(line);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

/* Where the user reads, only what is printable. */
static int show(const char *bytes, size_t n)
{
  if (isatty(STDOUT_FILENO)) {
    struct page p = page_on(stdout, STDOUT_FILENO);
    t_text(&p, bytes, n);
    if (n && bytes[n - 1] != '\n') putchar('\n');
  } else {
    fwrite(bytes, 1, n, stdout);
  }
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  return say("the answer could not be written"), -1;
}

/* In words, what was not as it should be; the exit status of it. */
static int judge(const struct answer *a, const char *command)
{
  m6_budget_use(M6_BUDGET_ANALYSIS_ANSWER, a->n);
  m6_budget_use(M6_BUDGET_ANALYSIS_TIME, (a->ns + 999999u) / 1000000u);
  if (a->more) {
    m6_budget_overran(M6_BUDGET_ANALYSIS_ANSWER);
    say("the answer was cut: %s bytes of it are left out", t_count(a->more));
  }
  if (a->late) {
    struct page p = {stderr, 0, 0, 100};
    m6_budget_overran(M6_BUDGET_ANALYSIS_TIME);
    say(a->held ? "%s ended, but what it started held its output for %s: this is as far as it came"
                : "%s was ended after %s: this is as far as it came",
        command, t_time(&p, (double)m6_budget_cap(M6_BUDGET_ANALYSIS_TIME) / 1e3));
    return EXIT_LATE;
  }
  if (WIFSIGNALED(a->status)) {
    say("%s: %s", command, ending_words(a->status));
    return 128 + WTERMSIG(a->status);
  }
  if (WEXITSTATUS(a->status)) say("%s: %s", command, ending_words(a->status));
  return WEXITSTATUS(a->status);
}

/* A file gets a whole answer or stays as it is; what came otherwise is shown. */
static int put_answer(const struct options *o, const struct answer *a, int status)
{
  if (!o->out) return show(a->bytes, a->n);
  if (status == 0 || !save_is_file(o->out)) return save("--output", o->out, a->bytes, a->n);
  say("%s is as it was", o->out);
  return show(a->bytes, a->n);
}

static int ask(const struct options *o, const struct summary *summary)
{
  struct program program;
  struct answer a;
  int error = program_find(o->command[0], &program);
  if (!error)
    error = answer_get(program.path, o->command, summary->text, summary->n, m6_budget_cap(M6_BUDGET_ANALYSIS_ANSWER),
                       m6_budget_cap(M6_BUDGET_ANALYSIS_TIME), &a);
  else a.bytes = NULL;
  if (error) {
    free(a.bytes);
    if (error == ENOENT || error == ENOTDIR)
      return say("cannot run %s: it is not there", o->command[0]), EXIT_NOT_FOUND;
    return say("cannot run %s: %s", program.path, strerror(error)), EXIT_NOT_EXECUTABLE;
  }
  if (a.ended) { /* so are we */
    free(a.bytes);
    signal(a.ended, SIG_DFL);
    raise(a.ended);
    return 128 + a.ended;
  }
  int status = judge(&a, o->command[0]);
  if (put_answer(o, &a, status) && status == 0) status = EXIT_OTHER;
  free(a.bytes);
  if (!o->quiet) say_used();
  return status;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum { KEY_BUDGET = 256 };

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
  /* Text for programs is UTF-8, whatever this terminal has. */
  struct page like = page_on(stdout, STDOUT_FILENO);
  if (o.command || o.out || !isatty(STDOUT_FILENO)) {
    setlocale(LC_CTYPE, "C.UTF-8");
    like.utf8 = 1;
    like.width = 100;
  }
  error = summary_make(&like, s, o.file, dump_ending(s), m6_budget_cap(M6_BUDGET_ANALYSIS_SUMMARY), &summary);
  mach6_stats_close(s);
  if (error) return say("%s: %s", o.file, strerror(ENOMEM)), EXIT_OTHER;
  m6_budget_use(M6_BUDGET_ANALYSIS_SUMMARY, summary.n);
  if (summary.lines_left_out) m6_budget_overran(M6_BUDGET_ANALYSIS_SUMMARY);
  if (o.command) error = ask(&o, &summary);
  else if (o.out) error = save("--output", o.out, summary.text, summary.n) ? EXIT_OTHER : 0;
  else {
    fwrite(summary.text, 1, summary.n, stdout);
    if (fflush(stdout) || ferror(stdout)) error = EXIT_OTHER, say("the summary could not be written");
  }
  free(summary.text);
  return error ? error : status;
}
