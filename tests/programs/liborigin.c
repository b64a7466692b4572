/* liborigin - finds its sibling by bare name, because its own run path says $ORIGIN. */
/* needs: libsibling.so */
/* flags: -Wl,-rpath,'$ORIGIN' */
#include <dlfcn.h>
#include <stddef.h>
int origin_answer(void);
int origin_answer(void)
{
  void *sibling = dlopen("libsibling.so", RTLD_NOW);
  int (*answer)(void) = sibling ? (int (*)(void))dlsym(sibling, "sibling_answer") : NULL;
  return answer ? answer() : -1;
}
