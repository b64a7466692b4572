/* dumpfile.c - see dumpfile.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../../collector/stats_internal.h"
#include "dumpfile.h"
#include "tool.h"

int dump_load(const char *path, mach6_stats **s, int *status)
{
  struct mach6_dump_info info;
  char why[512];
  int error = m6_stats_load(path, s, &info);
  *status = EXIT_FINE;
  switch (error) {
  case MACH6_OK: break;
  case MACH6_ESYSTEM: return say("%s: %s", path, strerror(errno)), EXIT_USAGE;
  case MACH6_EVERSION:
    return say("%s: it was written by another version of mach6; read it with that one", path), EXIT_VERSION;
  case MACH6_EINVALID:
    if (info.bytes == 0) return say("%s: %s", path, info.broke_why), EXIT_DAMAGED;
    return say("%s: damaged at byte %" PRIu64 ": %s; nothing of it can be used", path, info.broke_at, info.broke_why),
           EXIT_DAMAGED;
  default: return say("%s: %s", path, mach6_stats_strerror(error)), EXIT_OTHER;
  }
  if (m6_stats_not_whole(*s, why, sizeof why)) say("%s: %s", path, why);
  if (info.broke_why) *status = EXIT_DAMAGED;
  return EXIT_FINE;
}

const char *ending_words(int status)
{
  static char text[128];
  if (WIFSIGNALED(status))
    snprintf(text, sizeof text, "it was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else snprintf(text, sizeof text, "it ended with status %d", WEXITSTATUS(status));
  return text;
}

const char *dump_ending(const mach6_stats *s)
{
  const struct m6_snapshot *n = mach6_stats_snapshot(s);
  return n->ending_known ? ending_words(n->ending) : NULL;
}

char *node_path(const mach6_node *n)
{
  const mach6_node *all = n->of->nodes;
  size_t bytes = 1;
  for (const mach6_node *x = n; x != all; x = &all[x->raw->parent]) bytes += strlen(x->label) + 1;
  char *path = malloc(bytes), *at;
  if (!path) return NULL;
  at = path + bytes - 1;
  *at = 0;
  for (const mach6_node *x = n; x != all; x = &all[x->raw->parent]) {
    size_t length = strlen(x->label);
    if (x != n) *--at = '/';
    at -= length;
    memcpy(at, x->label, length);
  }
  if (at != path) memmove(path, at, strlen(at) + 1);
  return path;
}
