/* explain.c - why a command has nothing to do with a process: the words of collector/stats_refuse.h, and those that
 * only commands need: that nobody captures it, that its live stats cannot be read. why_* give words, explain_* say
 * them. Callers: stat.c, drive.c, the dashboard. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../collector/mach6_stats.h"
#include "../../collector/stats_targets.h"
#include "tool.h"

int why_no_capture(const struct m6_target *t, char *why, size_t room)
{
  int status = m6_refuse_grant(t->pid, t->sessions_allowed, 0, why, room);
  if (status) return status;
  if (t->state != M6_COLLECTING && t->sessions_started >= t->sessions_allowed)
    snprintf(why, room,
             "nobody captures process %d any more: its session is over, and it grants no other; start it with "
             "MACH6_SESSIONS=2 for two, and keep the report with 'mach6-collector --out FILE'",
             (int)t->pid);
  else
    snprintf(why, room,
             "nobody captures process %d: start a session with 'mach6 on %d', or with 'mach6-collector --pid %d'",
             (int)t->pid, (int)t->pid, (int)t->pid);
  return EXIT_NO_CAPTURE;
}

int why_no_stats(const char *command, pid_t pid, int error, char *why, size_t room)
{
  struct m6_target t;
  int status;
  switch (error) {
  case MACH6_ENOTFOUND:
    status = m6_refuse_find(pid, &t, why, room);
    return status ? status : why_no_capture(&t, why, room);
  case MACH6_EPERM:
    snprintf(why, room,
             "the live stats of process %d are another user's: say this as that user, or as root (sudo mach6 %s %d)",
             (int)pid, command, (int)pid);
    return EXIT_DENIED;
  case MACH6_EVERSION:
    snprintf(why, room,
             "process %d is captured by another version of mach6 than this one (%s): use the mach6 that came with "
             "its collector",
             (int)pid, MACH6_VERSION);
    return EXIT_VERSION;
  case MACH6_EINVALID:
    snprintf(why, room, "the live stats of process %d are damaged: stop its collector and start it again", (int)pid);
    return EXIT_DAMAGED;
  case MACH6_EBUSY:
    snprintf(why, room,
             "the live stats of process %d cannot be read: its collector has not published yet, or died at it; try "
             "again, or start it again with 'mach6-collector --pid %d'",
             (int)pid, (int)pid);
    return EXIT_NO_CAPTURE;
  case MACH6_ESYSTEM: snprintf(why, room, "live stats of process %d: %s", (int)pid, strerror(errno)); return EXIT_OTHER;
  default:
    snprintf(why, room, "live stats of process %d: %s", (int)pid, mach6_stats_strerror(error));
    return EXIT_OTHER;
  }
}

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
  int status = why_no_capture(t, why, sizeof why);
  say("%s", why);
  return status;
}

int explain_stats(pid_t pid, int error)
{
  char why[1024];
  int status = why_no_stats("stat", pid, error, why, sizeof why);
  say("%s", why);
  return status;
}
