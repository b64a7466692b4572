/* libotherpreload - another preload: counts swaps, calls the next in line by RTLD_NEXT, and says how many at the end. */
#include <dlfcn.h>
#include <stdio.h>
static int seen;
unsigned eglSwapBuffers(void *, void *);
unsigned eglSwapBuffers(void *display, void *surface)
{
  static unsigned (*next)(void *, void *);
  if (!next) next = (unsigned (*)(void *, void *))dlsym(RTLD_NEXT, "eglSwapBuffers");
  seen++;
  return next ? next(display, surface) : 0;
}
__attribute__((destructor)) static void end(void) { fprintf(stderr, "other preload saw %d\n", seen); }
