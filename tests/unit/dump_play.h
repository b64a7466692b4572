/* dump_play.h - a game of dump_fixture.h as mach6 diff gets it: through a dump's file. For cmocka's tests. */
#ifndef DUMP_PLAY_H
#define DUMP_PLAY_H

#include <stdlib.h>
#include <unistd.h>

#include "dump_fixture.h"

/* Closed by mach6_stats_close. */
static inline mach6_stats *dg_play(const struct dump_game *g)
{
  struct fx f;
  size_t bytes, n;
  char path[] = "/tmp/mach6-play-XXXXXX";
  dg_make(&f, g);
  struct m6_snapshot *b = fx_block(&f, &bytes);
  char *dump = dg_encode(b, 0, &n);
  int fd = mkstemp(path);
  assert_int_equal(write(fd, dump, n), n);
  close(fd);
  mach6_stats *s;
  assert_int_equal(mach6_stats_load(path, &s), 0);
  unlink(path);
  free(dump);
  free(b);
  fx_free(&f);
  return s;
}

#endif
