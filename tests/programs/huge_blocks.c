/* huge_blocks.c - ten blocks of 2 GiB that nobody touches, in a scope, and half of them freed in another; says what it had. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "preload/mach6.h"

int main(void)
{
  void *block[10];
  unsigned long long bytes = 0, freed = 0;
  mach6_frame();
  mach6_mark("take");
  for (int i = 0; i < 10; i++) {
    if (!(block[i] = malloc(2ul << 30))) return 1;
    bytes += malloc_usable_size(block[i]);
  }
  mach6_done();
  mach6_mark("give");
  for (int i = 0; i < 5; i++) {
    freed += malloc_usable_size(block[i]);
    free(block[i]);
  }
  mach6_done();
  mach6_frame();
  printf("took %llu\ngave %llu\nkept %llu\n", bytes, freed, bytes - freed);
  return 0;
}
