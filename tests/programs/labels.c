/* labels - many labels by sprintf into one buffer (how many: the argument), then a few that must stay distinct. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "preload/mach6.h"

int main(int argc, char **argv)
{
  char text[700];
  int many = argc > 1 ? atoi(argv[1]) : 1000;
  for (int i = 0; i < 3; i++) { /* one buffer, rewritten between marks */
    sprintf(text, "buffer %d", i);
    mach6_mark(text);
    mach6_done();
  }
  for (int i = 0; i < 2; i++) { /* alike for the first 300 bytes */
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    text[500] = (char)('x' + i);
    mach6_mark(text);
    mach6_done();
  }
  mach6_mark("");
  mach6_done();
  mach6_mark("buffer 1"); /* the same text as a literal */
  mach6_done();
  for (int i = 0; i < many; i++) {
    sprintf(text, "flood %d", i);
    mach6_mark(text);
    mach6_done();
  }
  puts("done");
  return 0;
}
