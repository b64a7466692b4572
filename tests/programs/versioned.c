/* versioned - N blocks by the malloc that dlvsym gives, which are given back by free; and N the other way round. Says which are equal.
 */
/* flags: -fno-builtin */
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define VERSION "GLIBC_2.2.5"
#else
#define VERSION "GLIBC_2.17"
#endif

static const char *error(void)
{
  const char *e = dlerror();
  return e ? strrchr(e, ':') ? strrchr(e, ':') + 1 : e : "none";
}

int main(int argc, char **argv)
{
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  static void *kept[100000];
  void *(*take)(size_t) = (void *(*)(size_t))dlvsym(RTLD_DEFAULT, "malloc", VERSION);
  void (*give)(void *) = (void (*)(void *))dlvsym(RTLD_DEFAULT, "free", VERSION);
  void *(*grow)(void *, size_t) = (void *(*)(void *, size_t))dlvsym(RTLD_DEFAULT, "realloc", VERSION);
  if (!take || !give || !grow || n > 100000) return 2;
  printf("malloc by version is malloc: %d\n", take == malloc);
  printf("printf by version is printf: %d\n", dlvsym(RTLD_DEFAULT, "printf", VERSION) == (void *)printf);
  printf("no such version: %d %s\n", dlvsym(RTLD_DEFAULT, "malloc", "GLIBC_9.9") != NULL, error());
  printf("no such name: %d %s\n", dlvsym(RTLD_DEFAULT, "mallocs", VERSION) != NULL, error());
  for (int i = 0; i < n; i++) kept[i] = grow(take(100), 200);
  for (int i = 0; i < n; i++) free(kept[i]);
  for (int i = 0; i < n; i++) kept[i] = malloc(300);
  for (int i = 0; i < n; i++) give(kept[i]);
  return 0;
}
