/* allocates.c - makes a known number of allocations and frames, through mach6.h when it is there.
 *
 *   allocates COUNT [FRAMES]      COUNT mallocs of 100 bytes each, freed; FRAMES calls of mach6_frame
 */
#include <stdio.h>
#include <stdlib.h>

#include "preload/mach6.h"

int main(int argc, char **argv)
{
  int count = argc > 1 ? atoi(argv[1]) : 1000, frames = argc > 2 ? atoi(argv[2]) : 0;
  for (int f = 0; f < (frames ? frames : 1); f++) {
    mach6_mark("work");
    for (int i = 0; i < count; i++) {
      void *volatile p = malloc(100);
      free(p);
    }
    mach6_done();
    if (frames) mach6_frame();
  }
  printf("made %d\n", count * (frames ? frames : 1));
  return 0;
}
