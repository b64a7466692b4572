/* deep.c - memory that crosses between the program and a plugin: deep PLUGIN in|out|both|apart [ROUNDS]
 *
 *   in     the plugin allocates, the program frees         out    the other way
 *   both   both ways, and a realloc on each side of the other's block
 *   apart  the plugin lives in a namespace of its own (dlmopen), with its own libc and heap; nothing crosses
 * The plugin is loaded with RTLD_DEEPBIND, so that its malloc may be libc's where the program's is a preload's. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/mach6.h"

int main(int argc, char **argv)
{
  if (argc < 3) return 2;
  const char *how = argv[2];
  int rounds = argc > 3 ? atoi(argv[3]) : 1000, both = !strcmp(how, "both");
  void *h = !strcmp(how, "apart") ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
  if (!h) return printf("%s\n", dlerror()), 1;
  void *(*get)(size_t) = (void *(*)(size_t))dlsym(h, "plugin_malloc");
  void (*give)(void *) = (void (*)(void *))dlsym(h, "plugin_free");
  void *(*resize)(void *, size_t) = (void *(*)(void *, size_t))dlsym(h, "plugin_realloc");
  long (*work)(int) = (long (*)(int))dlsym(h, "plugin_own_work");
  long sum = 0;
  for (int i = 0; i < rounds; i++) {
    mach6_mark("exchange");
    if (both || !strcmp(how, "in")) {
      unsigned char *p = get(5000);
      sum += p[4999];
      free(p);
    }
    if (both || !strcmp(how, "out")) give(memset(malloc(3000), 1, 3000));
    if (both) {
      unsigned char *p = resize(memset(malloc(10), 2, 10), 9000);
      sum += p[9];
      free(p);
      p = realloc(get(20), 7000);
      sum += p[19];
      free(p);
    }
    mach6_done();
    if (i % 100 == 0) mach6_frame();
  }
  sum += work(rounds);
  printf("sum %ld\n", sum);
  return 0;
}
