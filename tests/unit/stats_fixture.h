/* stats_fixture.h - what the tests of the inspectors' library share: a game's block, opening one from memory, its report. */
#ifndef STATS_FIXTURE_H
#define STATS_FIXTURE_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "collector/stats_internal.h"
#include "tests/unit/snapshot_fixture.h"

static inline struct m6_snapshot *game(size_t *bytes)
{
  struct fx f;
  fx_game(&f, 1501, 96);
  fx_kernel(&f);
  f.head.frame_count = 50;
  struct m6_snapshot *b = fx_block(&f, bytes);
  fx_free(&f);
  return b;
}

static inline int open_block(const void *block, size_t bytes, mach6_stats **out)
{
  int fd = memfd_create("snapshot", MFD_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, block, bytes), bytes);
  int error = mach6_stats_open_fd(fd, out);
  close(fd);
  return error;
}

/* Opens, and when that works converts everything, so that a sanitizer sees each access. JSON must parse. */
static inline int exercise(const void *block, size_t bytes)
{
  mach6_stats *s;
  int error = open_block(block, bytes, &s);
  if (error) {
    assert_null(s);
    return error;
  }
  json_error_t je;
  char *out;
  size_t n;
  assert_int_equal(mach6_stats_convert(s, MACH6_JSON, &out, &n), MACH6_OK);
  json_t *j = json_loadb(out, n, 0, &je);
  assert_non_null(j);
  json_decref(j);
  free(out);
  assert_int_equal(mach6_stats_convert(s, MACH6_MSGPACK, &out, &n), MACH6_OK);
  free(out);
  json_decref(m6_payload_report(s, 1));
  mach6_stats_close(s);
  return MACH6_OK;
}

static inline json_t *report_of(const struct m6_snapshot *b, size_t bytes)
{
  mach6_stats *s;
  char *out;
  size_t n;
  json_error_t je;
  assert_int_equal(open_block(b, bytes, &s), MACH6_OK);
  assert_int_equal(mach6_stats_convert(s, MACH6_JSON, &out, &n), MACH6_OK);
  json_t *j = json_loadb(out, n, 0, &je);
  assert_non_null(j);
  free(out);
  mach6_stats_close(s);
  return j;
}

static inline json_t *at(json_t *j, const char *path)
{
  char copy[256], *save;
  snprintf(copy, sizeof copy, "%s", path);
  for (char *k = strtok_r(copy, "/", &save); k; k = strtok_r(NULL, "/", &save)) {
    j = json_is_array(j) ? json_array_get(j, (size_t)atoi(k)) : json_object_get(j, k);
    if (!j) fail_msg("no %s in %s", k, path);
  }
  return j;
}

#endif
