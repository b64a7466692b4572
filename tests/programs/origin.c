/* origin - a library with an $ORIGIN of its own dlopens by bare name; so does its caller, who has none and must fail. */
/* needs: libfindsclient.so */
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
  void *h = dlopen(argc > 1 ? argv[1] : "?", RTLD_NOW);
  int (*f)(void) = h ? (int (*)(void))dlsym(h, "sibling_found") : NULL;
  printf("main finds it %d\n", dlopen("libclient.so", RTLD_NOW) != NULL);
  printf("library finds it %d\n", f && f());
  return 0;
}
