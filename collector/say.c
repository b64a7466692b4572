/* say.c - see say.h. */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

int m6_loudness = M6_NORMAL;

int m6_fail(struct m6_error *e, int status, const char *format, ...)
{
  va_list list;
  e->status = status;
  va_start(list, format);
  vsnprintf(e->text, sizeof e->text, format, list);
  va_end(list);
  return status;
}

void m6_say(int level, const char *format, ...)
{
  if (m6_loudness < level) return;
  char line[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  fprintf(stderr, "mach6-collector: %s\n", line); /* one call: lines of several processes do not mix */
}

const char *m6_plain(const char *text, size_t n)
{
  static char out[3 * 256 + 1];
  int replaced = 0;
  if (n > 256) n = 256;
  size_t length = m6_utf8_clean(text, strnlen(text, n), out, sizeof out - 1, &replaced);
  out[length] = 0;
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f) out[i] = '?';
  return out;
}
