/* export.c - mach6 export FILE --to FORMAT: which one, and where to. The formats are in export_tables.c and export_trace.c. */
#include "export.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../collector/dump.h"
#include "dumpfile.h"
#include "save.h"
#include "tool.h"

static const struct format {
  const char *name;
  int (*write)(const mach6_stats *s, FILE *to); /* NULL: csv, which wants a table */
} formats[] = {{"json", export_json},     {"jsonl", export_jsonl},   {"csv", NULL},
               {"chrome", export_chrome}, {"folded", export_folded}, {"speedscope", export_speedscope}};
#define FORMATS "json, jsonl, csv, chrome, folded or speedscope"

struct options {
  const char *file, *out, *table;
  const struct format *format;
  int cpu;
};

static const char *tables(void)
{
  static char all[512];
  unsigned count;
  const struct m6_section *x = m6_dump_sections(&count);
  all[0] = 0;
  for (unsigned i = 0; i < count; i++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", x[i].name);
  return all;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  switch (key) {
  case 't':
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
      if (!strcmp(arg, formats[i].name)) o->format = &formats[i];
    if (!o->format || strcmp(o->format->name, arg) != 0) argp_error(state, "--to is " FORMATS ", not '%s'", arg);
    return 0;
  case 'o': o->out = arg; return 0;
  case 'c': o->cpu = 1; return 0;
  case 'T': o->table = arg; return 0;
  case ARGP_KEY_ARG:
    if (o->file) argp_error(state, "one file at a time");
    o->file = arg;
    return 0;
  case ARGP_KEY_END:
    if (!o->file) argp_error(state, "which file?  mach6 run --out FILE writes one");
    if (!o->format) argp_error(state, "to which format?  --to " FORMATS);
    if (o->cpu && o->format->write != export_folded) argp_error(state, "--cpu goes with --to folded");
    if (o->table && o->format->write) argp_error(state, "--table goes with --to csv");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

int m6_export(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"to", 't', "FORMAT", 0, FORMATS, 0},
    {"output", 'o', "OUT", 0, "Where to ('-', the default: stdout)", 0},
    {"cpu", 'c', 0, 0, "With folded: the stacks of CPU samples, not the scopes; needs level lite or full", 0},
    {"table", 'T', "NAME", 0, "The table for csv (frames): session, nodes, frames, buckets, growth, stalls, ...", 0},
    {0},
  };
  static const struct argp argp = {table, parse, "FILE", "Write a dump in a form that other programs read.",
                                   NULL,  NULL,  NULL};
  struct options o = {.out = "-"};
  mach6_stats *s;
  int status;
  argv[0] = (char *)"mach6 export";
  argp_err_exit_status = EXIT_USAGE;
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  int error = dump_load(o.file, &s, &status);
  if (error) return error;
  char *bytes = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&bytes, &n);
  errno = 0;
  error = !f                ? ENOMEM
          : o.cpu           ? export_folded_cpu(s, f)
          : o.format->write ? o.format->write(s, f)
                            : export_csv(s, f, o.table ? o.table : "frames");
  if (f && fclose(f) && !error) error = ENOMEM;
  mach6_stats_close(s);
  if (error == EINVAL && !o.format->write) {
    say("there is no table '%s'; there are: %s", o.table, tables());
    status = EXIT_USAGE;
  } else if (error == ENODATA) {
    say("%s has no CPU samples: record at level lite or full; mach6 doctor says what that needs", o.file);
    status = EXIT_OTHER;
  } else if (error) {
    say("%s: cannot be exported: %s", o.file, strerror(error));
    status = EXIT_OTHER;
  } else if (save("--output", o.out, bytes, n)) {
    status = EXIT_OTHER;
  }
  free(bytes);
  return status;
}
