/* unload - threads that dlopen a library with scopes, run it, dlclose it, and end. */
/* needs: libclient.so */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *library;
static void *work(void *arg)
{
  for (int i = 0; i < 20; i++) {
    void *h = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    unsigned (*f)(int) = h ? (unsigned (*)(int))dlsym(h, "client_work") : NULL;
    if (!f) return (void *)1;
    f(3);
    free(malloc(100));
    dlclose(h);
  }
  return arg;
}
int main(int argc, char **argv)
{
  library = argc > 1 ? argv[1] : "libclient.so";
  long bad = 0;
  for (int i = 0; i < 20; i++) {
    pthread_t t[2];
    for (int k = 0; k < 2; k++) pthread_create(&t[k], NULL, work, NULL);
    for (int k = 0; k < 2; k++) {
      void *r;
      pthread_join(t[k], &r);
      bad += (long)r;
    }
  }
  printf("bad %ld\nstill loaded %d\n", bad, dlopen(library, RTLD_NOW | RTLD_NOLOAD) != NULL);
  return bad != 0;
}
