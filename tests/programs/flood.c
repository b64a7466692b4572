/* flood.c - labels by the million: flood KIND N [FILE]
 *
 *   buffer   N marks, texts of ten kinds written in turn into one buffer on the stack
 *   texts    N marks, each of a text of its own
 *   nodes    N marks, each in one of 100 scopes, of 1000 texts: 100,000 nodes
 * In frames of 100 marks, with a rest after each few so that no ring overflows (texts: no rest). Then it stays as long as FILE is there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/mach6.h"

int main(int argc, char **argv)
{
  char text[64];
  if (argc < 3) return 2;
  long n = atol(argv[2]);
  char kind = argv[1][0];
  mach6_frame();
  usleep(300000); /* until a collector that waits for it is there */
  mach6_frame();
  usleep(100000);
  for (long i = 0; i < n; i++) {
    if (kind == 'n') {
      snprintf(text, sizeof text, "parent %ld", i / 1000 % 100);
      mach6_mark(text);
    }
    if (kind == 'b') snprintf(text, sizeof text, "text %ld", i % 10);
    else snprintf(text, sizeof text, "text %ld", kind == 'n' ? i % 1000 : i);
    mach6_mark(text);
    memset(text, '!', sizeof text - 1); /* nobody may still need it */
    mach6_done();
    if (kind == 'n') mach6_done();
    if (i % 100 != 99) continue;
    mach6_frame();
    if (kind != 't' && i % 300 == 299) usleep(4000);
  }
  printf("made %ld\n", n);
  fflush(stdout);
  while (argc > 3 && access(argv[3], F_OK) == 0) usleep(10000);
  return 0;
}
