/* dashboard.c - `mach6 dashboard`: becomes mach6-dashboard, which lies beside this program or where MACH6_DASHBOARD
 * says. It is a program of its own because libwebsockets brings a TLS library along, which no other command should
 * load.
 *
 * Where this program lies is taken from what the kernel was asked to execute, not from /proc: the dashboard reads
 * nothing there before it is told to, and neither does this.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tool.h"

int m6_dashboard(int argc, char **argv)
{
  (void)argc;
  char path[PATH_MAX + 32];
  const char *given = getenv("MACH6_DASHBOARD"), *self = (const char *)getauxval(AT_EXECFN);
  if (given && *given) {
    snprintf(path, sizeof path, "%s", given);
  } else {
    if (!self || !realpath(self, path)) path[0] = 0;
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, "mach6-dashboard");
  }
  argv[0] = path;
  execv(path, argv);
  say("the dashboard is missing (%s: %s); build it with 'make', or set MACH6_DASHBOARD to where mach6-dashboard is",
      path, strerror(errno));
  return EXIT_OTHER;
}
