/* exchange - blocks go from the program to a DEEPBIND plugin and back, each freed by the other; with the argument "newlm" the
 * plugin lives in a namespace with a heap of its own, and frees its own. With "deepbind FRAMES" the plugin alone frees: 2 KiB a frame that
 * the program made, and that nobody sees go; with "plain FRAMES" likewise, and everybody does. */
/* flags: -fno-builtin */
/* needs: libexchange.so */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/mach6.h"

int main(int argc, char **argv)
{
  int apart = argc > 2 && !strcmp(argv[2], "newlm"), plain = argc > 2 && !strcmp(argv[2], "plain");
  void *h = apart ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW)
                  : dlopen(argv[1], plain ? RTLD_NOW : RTLD_NOW | RTLD_DEEPBIND);
  if (!h) return fprintf(stderr, "%s\n", dlerror()), 1;
  void *(*make)(size_t) = (void *(*)(size_t))dlsym(h, "exchange_make");
  void (*release)(void *) = (void (*)(void *))dlsym(h, "exchange_free");
  long sum = 0;
  for (int i = 0; argc > 3 && i < atoi(argv[3]); i++) {
    char *a = malloc(1024), *b = malloc(1024);
    a[0] = b[0] = 1;
    sum += a[0] + b[0];
    release(a);
    release(b);
    usleep(500);
    mach6_frame();
  }
  for (int i = 1; i <= 1000; i++) {
    char *a = make((size_t)i), *b = malloc((size_t)i);
    sum += a[i - 1];
    if (apart) {
      release(a);
      free(b);
    } else {
      free(a);
      release(b);
    }
  }
  printf("sum %ld\n", sum);
  return 0;
}
