/* analysis.c - see analysis.h. */
#include "analysis.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../collector/budgets.h"
#include "answer.h"
#include "dumpfile.h"
#include "program.h"
#include "save.h"
#include "tool.h"

int analysis_sum_up(const mach6_stats *s, const char *of, const char *how_it_ended, int here, struct summary *out)
{
  /* Text for programs is UTF-8, whatever this terminal has. */
  struct page like = page_on(stdout, STDOUT_FILENO);
  if (!here || !isatty(STDOUT_FILENO)) {
    setlocale(LC_CTYPE, "C.UTF-8");
    like.utf8 = 1;
    like.width = 100;
  }
  if (summary_make(&like, s, of, how_it_ended, m6_budget_cap(M6_BUDGET_ANALYSIS_SUMMARY), out))
    return say("%s: %s", of, strerror(ENOMEM)), -1;
  m6_budget_use(M6_BUDGET_ANALYSIS_SUMMARY, out->n);
  if (out->lines_left_out) m6_budget_overran(M6_BUDGET_ANALYSIS_SUMMARY);
  return 0;
}

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
static int show(FILE *to, const char *bytes, size_t n)
{
  if (isatty(fileno(to))) {
    struct page p = page_on(to, fileno(to));
    t_text(&p, bytes, n);
    if (n && bytes[n - 1] != '\n') fputc('\n', to);
  } else {
    fwrite(bytes, 1, n, to);
  }
  if (fflush(to) == 0 && !ferror(to)) return 0;
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
static int put_answer(const struct analysis *o, const struct answer *a, int status)
{
  if (!o->out) return show(o->to, a->bytes, a->n);
  if (status == 0 || !save_is_file(o->out)) return save("--output", o->out, a->bytes, a->n);
  say("%s is as it was", o->out);
  return show(o->to, a->bytes, a->n);
}

int analysis_ask(const struct analysis *o, const struct summary *summary, int *ended)
{
  struct program program;
  struct answer a = {0};
  int error = program_find(o->command[0], &program);
  if (!error)
    error = answer_get(program.path, o->command, o->mask, summary->text, summary->n,
                       m6_budget_cap(M6_BUDGET_ANALYSIS_ANSWER), m6_budget_cap(M6_BUDGET_ANALYSIS_TIME), &a);
  int status = 0;
  *ended = a.ended;
  if (error == ENOENT || error == ENOTDIR) {
    say("cannot run %s: it is not there", o->command[0]);
    status = EXIT_NOT_FOUND;
  } else if (error) {
    say("cannot run %s: %s", program.path, strerror(error));
    status = EXIT_NOT_EXECUTABLE;
  } else if (!a.ended) {
    status = judge(&a, o->command[0]);
    if (put_answer(o, &a, status) && status == 0) status = EXIT_OTHER;
    if (!o->quiet) say_used();
  }
  free(a.bytes);
  return status;
}
