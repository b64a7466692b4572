/* analysis.h - a command is asked about a session: it gets the summary (summary.h), within the three budgets of an
 * analysis, and its answer is shown: on a terminal what is printable of it, anywhere else as it is. What was not as it
 * should be is said on stderr, and what was used. Callers: analyze.c, run.c at a session's end.
 */
#ifndef M6_ANALYSIS_H
#define M6_ANALYSIS_H

#include <signal.h>
#include <stdio.h>

#include "summary.h"

struct analysis {
  char *const *command;
  const sigset_t *mask; /* its signal mask; NULL: ours */
  const char *out;      /* a file for the answer; NULL: it is shown */
  FILE *to;             /* where it is shown */
  int quiet;            /* say not what was used */
};

/* The summary, for somebody here (1: as wide as our terminal is) or for a program (0). 0, or -1 after a message;
 * out->text is to be freed. */
int analysis_sum_up(const mach6_stats *s, const char *of, const char *how_it_ended, int here, struct summary *out);
/* Asks. The exit status: the command's, or one of tool.h's. *ended: the signal that ended the command and is to end us,
 * or 0. */
int analysis_ask(const struct analysis *o, const struct summary *summary, int *ended);

#endif
