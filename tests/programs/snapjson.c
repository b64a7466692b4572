/* snapjson.c - a final snapshot (what --final-fd is given) as JSON on stdout. `snapjson FILE` */
/* links: build/libmach6stats.a -ljansson -lmsgpackc -lm */
/* needs: ../../libmach6stats.a */
#include <fcntl.h>
#include <stdio.h>

#include "collector/mach6_stats.h"

int main(int argc, char **argv)
{
  mach6_stats *s;
  char *text;
  size_t n;
  int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1, e = mach6_stats_open_fd(fd, &s);
  if (!e) e = mach6_stats_convert(s, MACH6_JSON, &text, &n);
  if (e) return fprintf(stderr, "snapjson: %s\n", mach6_stats_strerror(e)), 1;
  return puts(text) < 0;
}
