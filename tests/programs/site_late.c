/* site_late - a program that allocates nothing until it loads its first library, some time after it began; then all comes from there.
 *
 *   site_late MILLISECONDS COUNT */
/* flags: -fomit-frame-pointer -fno-builtin -Wl,-rpath,'$ORIGIN' */
/* needs: libsiteplugin1.so */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "site_leaks.h"

static struct truth made;

int main(int argc, char **argv)
{
  useconds_t wait = argc > 1 ? (useconds_t)atoi(argv[1]) * 1000 : 0;
  int count = argc > 2 ? atoi(argv[2]) : 100;
  usleep(wait);
  void *handle = dlopen("libsiteplugin1.so", RTLD_NOW);
  void *(*call)(struct truth *) = handle ? (void *(*)(struct truth *))dlsym(handle, "plugin") : NULL;
  if (!call) return 1;
  for (int i = 0; i < count; i++) call(&made);
  usleep(wait);
  return 0;
}
