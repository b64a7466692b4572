/* site_world.h - what site_world.cc and the libraries that it loads share: a function template that allocates, and keeps count of the truth. */
#ifndef SITE_WORLD_H
#define SITE_WORLD_H

#include "site_leaks.h"

template <typename T> static inline __attribute__((always_inline)) T *made(truth &t)
{
  T *p = reinterpret_cast<T *>(::operator new(sizeof(T)));
  got(&t, p);
  return p;
}
#endif
