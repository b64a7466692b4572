/* ps.c - mach6 ps: the processes of this machine that have the shim in them, and who may capture which. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../collector/stats_internal.h"
#include "../../collector/stats_targets.h"
#include "ps_words.h"
#include "text.h"
#include "tool.h"

struct options {
  int json, verbose;
};

static int as_json(const struct m6_target *list, size_t count)
{
  json_t *all = json_array();
  for (size_t i = 0; i < count; i++) json_array_append_new(all, target_json(&list[i]));
  char *text = NULL;
  size_t n = 0;
  int error = m6_payload_encode(all, MACH6_JSON, &text, &n);
  if (error) return say("%s", mach6_stats_strerror(error)), EXIT_OTHER;
  puts(text);
  free(text);
  return EXIT_FINE;
}

static int as_table(const struct m6_target *list, size_t count)
{
  struct page p = page_on(stdout, STDOUT_FILENO);
  if (!count) {
    say("no process has mach6 loaded: start one with 'mach6 run -- PROGRAM'");
    return EXIT_FINE;
  }
  printf("%s%8s  %-12s %-15s %10s %9s  %-22s %s%s\n", ink(&p, INK_BOLD), "PID", "USER", "STATE", "PRESENTS",
         "COLLECTOR", "MAY CAPTURE", "NAME", NO_INK(&p));
  for (size_t i = 0; i < count; i++) {
    const struct m6_target *t = &list[i];
    char who[128], user[64], name[64], collector[32] = "-";
    uint64_t presents;
    if (t->collector_pid) snprintf(collector, sizeof collector, "%u", t->collector_pid);
    target_may_capture(t, who, sizeof who);
    printf("%8d  %-12.12s %-15s %10s %9s  %-22s ", (int)t->pid, target_user(t->uid, user, sizeof user), target_state(t),
           target_presents(t, &presents) ? t_count(presents) : "-", collector, who);
    t_label(&p, t->problem == M6_TARGET_FINE ? target_name(t, name) : "-", 0);
    putchar('\n');
  }
  return EXIT_FINE;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  switch (key) {
  case 'j': o->json = 1; break;
  case 'v': o->verbose = 1; break;
  case ARGP_KEY_ARG: argp_error(state, "ps takes no names, it lists all ('%s')", arg); break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

int m6_ps(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"json", 'j', 0, 0, "One JSON array of objects", 0},
    {"verbose", 'v', 0, 0, "Say what was cleared away", 0},
    {0},
  };
  static const struct argp argp = {table, parse, NULL, "List the processes that mach6 is loaded in.", NULL, NULL, NULL};
  struct options o = {0};
  argv[0] = (char *)"mach6 ps";
  argp_err_exit_status = EXIT_USAGE;
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  size_t gone = m6_reap(), count = 0;
  if (o.verbose && gone)
    say("cleared away %zu %s of processes that are gone", gone, gone == 1 ? "leftover" : "leftovers");
  struct m6_target *list = NULL;
  int error = m6_targets_list(&list, &count);
  if (error) return say("cannot list %s: %s", M6_SEGMENT_DIR, strerror(error)), EXIT_OTHER;
  /* Of dead processes nothing can be captured; what is left of them is other users', or awaited by a run. */
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (list[i].problem != M6_TARGET_STALE) list[kept++] = list[i];
  int status = o.json ? as_json(list, kept) : as_table(list, kept);
  free(list);
  if (fflush(stdout) || ferror(stdout)) return say("writing to stdout: %s", strerror(errno)), EXIT_OTHER;
  return status;
}
