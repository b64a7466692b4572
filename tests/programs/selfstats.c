/* selfstats.c - a game that reads its own tree: marks, frames, and the library for inspectors on itself.
 *
 *   selfstats FRAMES      prints "frames N scope N json BYTES" as its own live stats have it, once they have FRAMES of them
 */
/* links: collector/stats_check_kernel.c collector/stats_kernel.c collector/payload_kernel.c */
/* links: collector/stats.c collector/stats_check.c collector/stats_words.c collector/payload.c collector/payload_encode.c collector/payload_report.c collector/payload_govern.c collector/payload_seconds.c collector/payload_sites.c collector/stats_sites.c -ljansson -lmsgpackc -lm */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collector/mach6_stats.h"
#include "preload/mach6.h"

static mach6_stats *stats;

/* 1 when it has printed. */
static int look(unsigned frames)
{
  if (!stats && mach6_stats_open(getpid(), &stats)) return 0;
  if (mach6_stats_refresh(stats)) return 0;
  const mach6_node *frame = mach6_node_find(mach6_stats_root(stats), "frame");
  const mach6_node *turn = frame ? mach6_node_find(frame, "turn") : NULL;
  char *json;
  size_t bytes;
  if (!turn || mach6_node_stats(frame).count < frames || mach6_convert(frame, MACH6_JSON, &json, &bytes)) return 0;
  printf("frames %llu scope %llu json %.40s\n", (unsigned long long)mach6_node_stats(frame).count,
         (unsigned long long)mach6_node_stats(turn).count, json);
  free(json);
  return 1;
}

int main(int argc, char **argv)
{
  unsigned frames = argc > 1 ? (unsigned)atoi(argv[1]) : 50;
  for (int i = 0; i < 2000; i++) {
    mach6_mark("turn");
    usleep(5000);
    mach6_done();
    mach6_frame();
    if (i % 20 == 19 && look(frames)) break;
  }
  mach6_stats_close(stats);
  return 0;
}
