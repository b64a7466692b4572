/* site_leaks.h - what site_leaks.c and the libraries that it loads share: a function that allocates, and keeps count of the truth. */
#ifndef SITE_LEAKS_H
#define SITE_LEAKS_H

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))
struct truth {
  uint64_t count, bytes;
};
static inline void *got(struct truth *t, void *p)
{
  t->count++;
  t->bytes += malloc_usable_size(p);
  return p;
}
#endif
