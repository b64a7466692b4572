/* locks - malloc under libc's own locks: 8 threads call pthread_getattr_np, dl_iterate_phdr with a callback that allocates,
 * dlopen and dlclose, all at once. */
/* flags: -fno-builtin */
/* needs: libclient.so */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "preload/mach6.h"

static const char *library;
static int visit(struct dl_phdr_info *info, size_t n, void *arg)
{
  (void)info, (void)arg;
  mach6_mark("visit");
  free(malloc(n));
  mach6_done();
  return 0;
}
static void *work(void *arg)
{
  for (int i = 0; i < 100; i++) {
    pthread_attr_t a;
    if (!pthread_getattr_np(pthread_self(), &a)) pthread_attr_destroy(&a);
    dl_iterate_phdr(visit, NULL);
    void *h = dlopen(library, RTLD_NOW);
    if (h) dlclose(h);
  }
  return arg;
}
int main(int argc, char **argv)
{
  pthread_t t[8];
  library = argc > 1 ? argv[1] : "libclient.so";
  for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, work, NULL);
  for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
  puts("done");
  return 0;
}
