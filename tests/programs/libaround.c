/* libaround - a preload of somebody else's: wraps malloc and free by RTLD_NEXT, and exports a dlsym written in C. */
/* flags: -fno-builtin -O0 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stdlib.h>
void *malloc(size_t n)
{
  static void *(*next)(size_t);
  if (!next) next = (void *(*)(size_t))dlvsym(RTLD_NEXT, "malloc", "GLIBC_2.2.5");
  return next(n);
}
void free(void *p)
{
  static void (*next)(void *);
  if (!next) next = (void (*)(void *))dlvsym(RTLD_NEXT, "free", "GLIBC_2.2.5");
  next(p);
}
void *dlsym(void *handle, const char *name)
{
  static void *(*next)(void *, const char *);
  if (!next) next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return next(handle, name);
}
