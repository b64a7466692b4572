/* dump_options.c - see dump_options.h. */
#include "dump_options.h"

#include <stdlib.h>

#include "tool.h"

error_t dump_option(int key, char *arg, struct argp_state *state, const char **file, int most)
{
  int n = 0;
  while (n < most && file[n]) n++;
  switch (key) {
  case ARGP_KEY_ARG:
    if (n == most) argp_error(state, most == 1 ? "one file at a time" : "two files, not more");
    file[n] = arg;
    return 0;
  case ARGP_KEY_END:
    if (n < most)
      argp_error(state, most == 1 ? "which file?  mach6 run --out FILE writes one"
                                  : "which two files?  mach6 run --out FILE writes them");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

void dump_parse(const struct argp *argp, const char *name, int argc, char **argv, void *options)
{
  argv[0] = (char *)name;
  argp_err_exit_status = EXIT_USAGE;
  argp_parse(argp, argc, argv, 0, NULL, options);
}

char *dump_help(int key, const char *text, void (*put)(FILE *to))
{
  char *out = NULL;
  size_t size;
  FILE *f = key == ARGP_KEY_HELP_POST_DOC ? open_memstream(&out, &size) : NULL;
  if (!f) return (char *)text;
  put(f);
  fclose(f);
  return out ? out : (char *)text;
}
