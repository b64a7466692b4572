/* say.c - what a command says of itself, on stderr. Callers: all of them, and mach6-dashboard. */
#include <stdarg.h>
#include <stdio.h>

#include "tool.h"

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
