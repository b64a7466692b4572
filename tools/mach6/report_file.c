/* report_file.c - mach6 report FILE: a dump as `mach6 run` reports, or as one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../collector/stats_internal.h"
#include "dump_options.h"
#include "dumpfile.h"
#include "report.h"
#include "tool.h"

struct options {
  const char *file;
  int json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  switch (key) {
  case 'j': o->json = 1; return 0;
  default: return dump_option(key, arg, state, &o->file, 1);
  }
}

int m6_report(int argc, char **argv)
{
  static const struct argp_option table[] = {{"json", 'j', 0, 0, "One JSON object", 0}, {0}};
  static const struct argp argp = {table, parse, "FILE", "Show what a dump holds, as mach6 run does at its end.",
                                   NULL,  NULL,  NULL};
  struct options o = {0};
  mach6_stats *s;
  int status;
  dump_parse(&argp, "mach6 report", argc, argv, &o);
  int error = dump_load(o.file, &s, &status);
  if (error) return error;
  if (o.json) {
    char *text = NULL;
    size_t n;
    error = mach6_stats_convert(s, MACH6_JSON, &text, &n);
    if (error) say("%s: %s", o.file, mach6_stats_strerror(error)), status = EXIT_OTHER;
    else puts(text);
    free(text);
  } else {
    struct page p = page_on(stdout, STDOUT_FILENO);
    report(&p, s, REPORT_ALL, dump_ending(s));
  }
  mach6_stats_close(s);
  if (fflush(stdout) || ferror(stdout)) return say("the report could not be written"), EXIT_OTHER;
  return status;
}
