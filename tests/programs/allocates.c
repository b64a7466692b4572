/* allocates.c - makes a known number of allocations and frames, through mach6.h when it is there.
 *
 *   allocates COUNT [FRAMES [MS]]   COUNT mallocs of 100 bytes, freed, in each of FRAMES turns that end with mach6_frame and
 *                                   a pause of MS
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    if (argc > 3) usleep((useconds_t)atoi(argv[3]) * 1000);
  }
  printf("made %d\n", count * (frames ? frames : 1));
  return 0;
}
