/* explain.c - why a command has nothing to do with a process, on stderr: the words of collector/stats_refuse.h, and the one that only
 * commands need: that nobody captures it. Callers: stat.c, drive.c. */
#include "../../collector/stats_targets.h"
#include "tool.h"

int explain_find(pid_t pid, struct m6_target *out)
{
  char why[1024];
  int status = m6_refuse_find(pid, out, why, sizeof why);
  if (status) say("%s", why);
  return status;
}

int explain_no_capture(const struct m6_target *t)
{
  char why[1024];
  int status = m6_refuse_grant(t->pid, t->sessions_allowed, 0, why, sizeof why);
  if (status) return say("%s", why), status;
  if (t->state != M6_COLLECTING && t->sessions_started >= t->sessions_allowed)
    say("nobody captures process %d any more: its session is over, and it grants no other; start it with "
        "MACH6_SESSIONS=2 for two, and keep the report with 'mach6-collector --out FILE'",
        (int)t->pid);
  else
    say("nobody captures process %d: start a session with 'mach6 on %d', or with 'mach6-collector --pid %d'",
        (int)t->pid, (int)t->pid, (int)t->pid);
  return EXIT_NO_CAPTURE;
}
