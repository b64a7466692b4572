/* snapjson - the report, as JSON, of a final snapshot that a collector wrote to a file: snapjson FILE. */
/* links: collector/stats_check_kernel.c collector/stats_kernel.c collector/payload_kernel.c */
/* links: collector/stats.c collector/stats_check.c collector/stats_words.c collector/payload.c collector/payload_encode.c */
/* links: collector/payload_report.c collector/payload_govern.c collector/payload_seconds.c collector/payload_sites.c collector/stats_sites.c -ljansson -lmsgpackc -lm */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/mach6_stats.h"

int main(int argc, char **argv)
{
  mach6_stats *s;
  char *text;
  size_t bytes;
  int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1, e = mach6_stats_open_fd(fd, &s);
  if (e == 0) e = mach6_stats_convert(s, MACH6_JSON, &text, &bytes);
  if (e) {
    fprintf(stderr, "snapjson: %s\n", mach6_stats_strerror(e));
    return 1;
  }
  fwrite(text, 1, bytes, stdout);
  free(text);
  mach6_stats_close(s);
  return 0;
}
