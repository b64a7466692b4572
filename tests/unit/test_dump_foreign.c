/* links: collector/stats_check_kernel.c collector/stats_kernel.c */
/* links: collector/dump_table.c collector/dump_encode.c collector/dump_read.c collector/dump_skim.c collector/stats_check.c */
/* links: collector/reservoir.c -lmsgpackc -lm */
/* sanitizers: address */
/* test_dump_foreign - a dump's objects, as no collector of this version writes them: what is new is passed over, what cannot be ends the
 * reading there, and what came before it stands (hard cases D01, D02). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <msgpack.h>

#include "dump_fixture.h"

static msgpack_sbuffer buffer;
static msgpack_packer pack;
static void word(const char *text) { msgpack_pack_str_with_body(&pack, text, strlen(text)); }

/* The start of a dump: header and session. */
static void begin(void)
{
  struct fx f;
  size_t bytes, n;
  dg_make(&f, &(struct dump_game){.seed = 2, .frames = 10, .scopes = 2});
  struct m6_snapshot *a = fx_block(&f, &bytes);
  fx_free(&f);
  char *dump = dg_encode(a, 0, &n);
  ssize_t header = m6_dump_skim(dump, n, n, 4), session = m6_dump_skim(dump + header, n - (size_t)header, n, 4);
  msgpack_sbuffer_init(&buffer);
  msgpack_packer_init(&pack, &buffer, msgpack_sbuffer_write);
  msgpack_sbuffer_write(&buffer, dump, (size_t)(header + session));
  free(dump);
  free(a);
}
static void chunk(const char *of, int columns, const char *const *names, int rows)
{
  msgpack_pack_map(&pack, 5);
  word("type"), word("rows"), word("of"), word(of), word("columns");
  msgpack_pack_array(&pack, (size_t)columns);
  for (int i = 0; i < columns; i++) word(names[i]);
  word("first"), msgpack_pack_int(&pack, 0), word("rows");
  msgpack_pack_array(&pack, (size_t)rows);
}
static struct m6_snapshot *finish(struct mach6_dump_info *info)
{
  struct m6_snapshot *b = NULL;
  assert_int_equal(dg_read(buffer.data, buffer.size, &b, info), 0);
  msgpack_sbuffer_destroy(&buffer);
  return b;
}

static void what_a_later_writer_adds_is_passed_over(void **state)
{
  (void)state;
  struct mach6_dump_info info;
  static const char *const names[] = {"present", "smell", "time"};
  begin();
  msgpack_pack_map(&pack, 2);
  word("type"), word("poem"), word("text"), word("roses");
  chunk("weather", 1, names, 1);
  msgpack_pack_int(&pack, 7);
  chunk("frames", 3, names, 2);
  for (int i = 0; i < 2; i++) {
    msgpack_pack_array(&pack, 3);
    msgpack_pack_int(&pack, 100 + i), word("tar"), msgpack_pack_int(&pack, 5000);
  }
  struct m6_snapshot *b = finish(&info);
  assert_string_equal(info.broke_why, "the file is cut off there"); /* no trailer */
  assert_int_equal(b->frame_count, 2);
  const struct m6_snap_frame *f = m6_snap_frames(b);
  assert_int_equal(f[1].present, 101);
  assert_int_equal(f[1].time, 5000);
  assert_int_equal(f[1].gap, 0);
  free(b);
}

static void a_row_that_no_collector_writes_ends_the_reading(void **state)
{
  (void)state;
  static const char *const names[] = {"present", "time", "time"};
  for (int what = 0; what < 6; what++) {
    struct mach6_dump_info info;
    begin();
    size_t good = buffer.size;
    if (what < 4) {
      chunk("frames", 2, names, 2);
      msgpack_pack_array(&pack, 2);
      msgpack_pack_int(&pack, 1), msgpack_pack_int(&pack, 1);
      msgpack_pack_array(&pack, what == 3 ? 1 : 2);
      if (what == 0) msgpack_pack_double(&pack, NAN), msgpack_pack_int(&pack, 1);
      if (what == 1) msgpack_pack_int(&pack, -1), msgpack_pack_int(&pack, 1);
      if (what == 2) word("1"), msgpack_pack_int(&pack, 1);
      if (what == 3) msgpack_pack_int(&pack, 1);
    } else if (what == 4) { /* a column twice */
      chunk("frames", 3, names, 0);
    } else { /* a key twice */
      msgpack_pack_map(&pack, 3);
      word("type"), word("rows"), word("type"), word("rows"), word("of"), word("frames");
    }
    struct m6_snapshot *b = finish(&info);
    assert_non_null(info.broke_why);
    assert_int_equal(info.broke_at, good);
    assert_int_equal(b->frame_count, 0); /* nothing of a chunk that is not sound */
    free(b);
  }
}

static void texts_and_samples_are_checked(void **state)
{
  (void)state;
  static const char *const names[] = {"parent", "kind", "label", "reservoir"}, *const ns[] = {"ns"};
  static const char *const bad[] = {"\xff\xfe", "\xc0\x80", "\xed\xa0\x80"};
  for (size_t k = 0; k < 3; k++) {
    struct mach6_dump_info info;
    begin();
    chunk("nodes", 4, names, 1);
    msgpack_pack_array(&pack, 4);
    msgpack_pack_int(&pack, 0), msgpack_pack_int(&pack, 0), word(bad[k]), msgpack_pack_int(&pack, 0);
    struct m6_snapshot *b = finish(&info);
    assert_string_equal(info.broke_why, "a row holds what no collector writes");
    free(b);
  }
  static const double wrong[] = {NAN, INFINITY, -1, 1e300};
  for (size_t k = 0; k < 4; k++) {
    struct mach6_dump_info info;
    begin();
    chunk("nodes", 4, names, 1);
    msgpack_pack_array(&pack, 4);
    msgpack_pack_int(&pack, 0), msgpack_pack_int(&pack, 0), word("root"), msgpack_pack_int(&pack, 2);
    chunk("samples", 1, ns, 2);
    msgpack_pack_float(&pack, 1), msgpack_pack_double(&pack, wrong[k]);
    struct m6_snapshot *b = finish(&info);
    assert_string_equal(info.broke_why, "a row holds what no collector writes");
    assert_int_equal(b->sample_count, 0);
    free(b);
  }
  struct mach6_dump_info info; /* more samples than its node has a reservoir for */
  begin();
  chunk("nodes", 4, names, 1);
  msgpack_pack_array(&pack, 4);
  msgpack_pack_int(&pack, 0), msgpack_pack_int(&pack, 0), word("root"), msgpack_pack_int(&pack, 1);
  chunk("samples", 1, ns, 3);
  for (int i = 0; i < 3; i++) msgpack_pack_float(&pack, 1);
  struct m6_snapshot *b = finish(&info);
  assert_int_equal(b->sample_count, 1);
  free(b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_a_later_writer_adds_is_passed_over),
                                     cmocka_unit_test(a_row_that_no_collector_writes_ends_the_reading),
                                     cmocka_unit_test(texts_and_samples_are_checked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
