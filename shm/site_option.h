/* site_option.h - the value of --sites, as the collector and `mach6 run` take it. libc alone. */
#ifndef M6_SITE_OPTION_H
#define M6_SITE_OPTION_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "budget.h"

#define M6_SITE_INTERVAL_MIN 16u /* less is every allocation, which is an option of its own */
#define M6_SITE_INTERVAL_MAX (256u << 20)

/* "512K", "4096", "1M"; NULL is the default. 0 when it is not of that kind or out of range. */
static inline uint32_t m6_site_option(const char *text)
{
  char *end;
  if (!text) return M6_SITE_INTERVAL;
  errno = 0;
  unsigned long long n = strtoull(text, &end, 10);
  if (errno || end == text || *text < '0' || *text > '9') return 0;
  unsigned shift = *end == 'k' || *end == 'K' ? 10 : *end == 'm' || *end == 'M' ? 20 : 0;
  if (end[shift != 0]) return 0;
  if (n > M6_SITE_INTERVAL_MAX >> shift || n << shift < M6_SITE_INTERVAL_MIN) return 0;
  return (uint32_t)(n << shift);
}

#endif
