/* main.c - mach6: finds the command that was named. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text.h"
#include "tool.h"

static const struct command {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *what;
} commands[] = {
  {"run", m6_run, "start a game, watch it, and report when it ends"},
  {"stat", m6_stat, "show the live statistics of a game that is captured"},
  {"on", m6_on, "begin a session in a process that has loaded mach6"},
  {"off", m6_off, "end the session of a process that is captured"},
  {"dump", m6_dump, "write what is collected now into a file"},
  {"ps", m6_ps, "list the processes that mach6 is loaded in"},
  {"report", m6_report, "show what a dump holds (mach6 run --out FILE writes one)"},
  {"export", m6_export, "write a dump as JSON, CSV, a trace, a profile or a flame graph"},
  {"diff", m6_diff, "say what changed between two dumps, and how sure that is"},
  {"gate", m6_gate, "check a dump against bounds, for builds"},
  {"analyze", m6_analyze, "sum up a dump in few bytes, or ask a command about it"},
  {"doctor", m6_doctor, "show what works on this machine, and what opens the rest"},
  {"probe", m6_probe, "count how often one function is called"},
};
#define COMMANDS (sizeof commands / sizeof *commands)

void say(const char *format, ...)
{
  /* One write, so that lines of several processes stay whole. */
  char line[4096];
  va_list a;
  va_start(a, format);
  int n = vsnprintf(line, sizeof line, format, a);
  va_end(a);
  fflush(stdout);
  if (n >= 0) fprintf(stderr, "mach6: %s\n", line);
}

static char *first_argument, *arguments_end;

void tool_hide_arguments(void) { memset(first_argument, 0, (size_t)(arguments_end - first_argument)); }

static void usage(FILE *to)
{
  fputs("mach6 - where does a game's frame time go, who allocates, does it leak?\n\n", to);
  for (size_t i = 0; i < COMMANDS; i++) fprintf(to, "  mach6 %-7s %s\n", commands[i].name, commands[i].what);
  fputs("  mach6 help [COMMAND]\n  mach6 --version\n\n"
        "Most people want:  mach6 run -- ./game its arguments\n",
        to);
}

static const struct command *find(const char *name)
{
  for (size_t i = 0; i < COMMANDS; i++)
    if (!strcmp(commands[i].name, name)) return &commands[i];
  return NULL;
}

int main(int argc, char **argv)
{
  text_init();
  if (argc < 2) {
    usage(stderr);
    return EXIT_USAGE;
  }
  first_argument = argv[0];
  arguments_end = argv[argc - 1] + strlen(argv[argc - 1]);
  const char *word = argv[1];
  if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
    puts("mach6 " MACH6_VERSION);
    return EXIT_FINE;
  }
  int help = !strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h");
  if (help && (argc == 2 || !strcmp(argv[2], "help"))) {
    usage(stdout);
    return EXIT_FINE;
  }
  const struct command *c = find(help ? argv[2] : word);
  if (!c) {
    if (!help && strchr(word, '/')) say("there is no command '%s'; did you mean 'mach6 run -- %s'?", word, word);
    else say("there is no command '%s'; 'mach6 help' lists them", help ? argv[2] : word);
    return EXIT_USAGE;
  }
  char *ask[] = {argv[0], (char *)"--help", NULL};
  return help ? c->run(2, ask) : c->run(argc - 1, argv + 1);
}
