/* export.c - mach6 export FILE --to FORMAT: which one, and where to. The formats are in export_*.c. */
#include "export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../collector/dump.h"
#include "dump_options.h"
#include "dumpfile.h"
#include "save.h"
#include "tool.h"

/* One of the three: a dump's own; of stacks with weights; csv, which wants a table. */
static const struct format {
  const char *name;
  int (*write)(const mach6_stats *s, FILE *to);
  int (*stacks)(const struct export_stacks *x, FILE *to);
  unsigned flags; /* of export_stacks.h */
} formats[] = {{"json", export_json, export_stacks_json, EXPORT_LINES},
               {"jsonl", export_jsonl, NULL, 0},
               {"csv", NULL, NULL, 0},
               {"chrome", export_chrome, NULL, 0},
               {"folded", NULL, export_folded, 0},
               {"speedscope", NULL, export_speedscope, 0},
               {"pprof", NULL, export_pprof, EXPORT_LINES | EXPORT_ALL_SITES},
               {"flamegraph", NULL, export_flame, 0}};
#define FORMATS "json, jsonl, csv, chrome, folded, speedscope, pprof or flamegraph"

struct options {
  const char *file, *out, *table;
  const struct format *format;
  const struct export_measure *measure;
  int by_scope;
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

static const struct export_measure *measure_of(struct argp_state *state, const char *word)
{
  char all[256] = "";
  unsigned count;
  const struct export_measure *m = export_measures(&count), *found = export_measure_named(word);
  if (found) return found;
  for (unsigned i = 0; i < count; i++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? i + 1 < count ? ", " : " or " : "", m[i].word);
  argp_error(state, "--of is %s, not '%s'", all, word);
  return NULL;
}

static void check(const struct options *o, struct argp_state *state)
{
  if (!o->format) argp_error(state, "to which format?  --to " FORMATS);
  else if (o->measure && !o->format->stacks)
    argp_error(state, "--of and --cpu go with formats of stacks; %s has all there is", o->format->name);
  else if (o->by_scope && o->measure && o->measure->source == EXPORT_CPU)
    argp_error(
      state,
      "--by-scope cannot be had of CPU samples: a dump has their stacks by thread, and their number by scope, but "
      "not the two together; mach6 report shows the number");
  else if (o->by_scope && (!o->measure || o->measure->source != EXPORT_SITES))
    argp_error(state, "--by-scope goes with --of bytes and others of sites");
  else if (o->table && strcmp(o->format->name, "csv") != 0) argp_error(state, "--table goes with --to csv");
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
  case 'f': o->measure = measure_of(state, arg); return 0;
  case 'c': o->measure = export_measure_named("cpu"); return 0;
  case 's': o->by_scope = 1; return 0;
  case 'T': o->table = arg; return 0;
  case ARGP_KEY_END:
    if (o->file) check(o, state);
    break;
  default: break;
  }
  return dump_option(key, arg, state, &o->file, 1);
}

/* What can be exported, after the options. */
static void put_help(FILE *f)
{
  unsigned count;
  const struct export_measure *m = export_measures(&count);
  fputs("What --of takes; what is of sites wants a session with --sites, and is an estimate but for mapped memory:\n",
        f);
  for (unsigned i = 0; i < count; i++) fprintf(f, "  %-12s %s\n", m[i].word, m[i].what);
}
static char *help(int key, const char *text, void *input) { return (void)input, dump_help(key, text, put_help); }

/* What is exported when nobody says: a profile for pprof is of what was profiled. */
static const char *usual(const struct format *f, const mach6_stats *s)
{
  if (f->stacks != export_pprof) return "time";
  return s->snap->sites.interval ? "bytes" : s->snap->kernel.folded_bytes ? "cpu" : "time";
}

/* Stacks with weights: 0, or an errno; ENODATA when none of that kind were recorded. */
static int export_of(const struct options *o, const mach6_stats *s, FILE *to)
{
  const struct export_measure *m = o->measure ? o->measure : export_measure_named(usual(o->format, s));
  struct export_stacks *x;
  int error = export_stacks_new(s, m, o->format->flags | (o->by_scope ? EXPORT_BY_SCOPE : 0), &x);
  if (error) return error;
  if (!x->count && m->source == EXPORT_SITES) say("%s has none of these: %s", o->file, m->what);
  error = o->format->stacks(x, to);
  export_stacks_free(x);
  return error;
}

static const char *missing(const struct options *o)
{
  return o->measure && o->measure->source == EXPORT_SITES
           ? "no sites: record with --sites"
           : "no CPU samples: record at level lite or full; mach6 doctor says what that needs";
}

int m6_export(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"to", 't', "FORMAT", 0, FORMATS, 0},
    {"output", 'o', "OUT", 0, "Where to ('-', the default: stdout)", 0},
    {"of", 'f', "WHAT", 0, "Of what, for stacks (time): time, cpu, bytes, allocations, live, growth, peak, ...", 0},
    {"cpu", 'c', 0, 0, "As --of cpu: the stacks of CPU samples; needs level lite or full", 0},
    {"by-scope", 's', 0, 0, "Stacks of sites begin with the open scope", 0},
    {"table", 'T', "NAME", 0, "The table for csv (frames): session, nodes, frames, buckets, growth, stalls, ...", 0},
    {0},
  };
  static const struct argp argp = {table, parse, "FILE", "Write a dump in a form that other programs read.\v",
                                   NULL,  help,  NULL};
  struct options o = {.out = "-"};
  mach6_stats *s;
  int status;
  dump_parse(&argp, "mach6 export", argc, argv, &o);
  if (o.format->stacks == export_pprof && !strcmp(o.out, "-") && isatty(STDOUT_FILENO))
    return say("a profile for pprof is no text: -o FILE writes it into one"), EXIT_USAGE;
  int error = dump_load(o.file, &s, &status);
  if (error) return error;
  char *bytes = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&bytes, &n);
  errno = 0;
  int stacks = o.format->stacks && (o.measure || !o.format->write);
  error = !f                ? ENOMEM
          : stacks          ? export_of(&o, s, f)
          : o.format->write ? o.format->write(s, f)
                            : export_csv(s, f, o.table ? o.table : "frames");
  if (f && fclose(f) && !error) error = ENOMEM;
  mach6_stats_close(s);
  if (error == EINVAL && !stacks && !o.format->write) {
    say("there is no table '%s'; there are: %s", o.table, tables());
    status = EXIT_USAGE;
  } else if (error == ENODATA) {
    say("%s has %s", o.file, missing(&o));
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
