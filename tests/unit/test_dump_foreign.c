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
  for (int what = 0; what < 10; what++) {
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
    } else if (what == 5) { /* a key twice */
      msgpack_pack_map(&pack, 3);
      word("type"), word("rows"), word("type"), word("rows"), word("of"), word("frames");
    } else if (what == 6) { /* and one that nobody reads */
      msgpack_pack_map(&pack, 4);
      word("type"), word("poem"), word("text"), word("roses"), word("of"), word("x"), word("text"), word("thorns");
    } else if (what == 7) { /* the rows twice: none, and some */
      msgpack_pack_map(&pack, 6);
      word("type"), word("rows"), word("of"), word("frames"), word("columns"), msgpack_pack_array(&pack, 1);
      word("time"), word("first"), msgpack_pack_int(&pack, 0);
      for (int i = 0; i < 2; i++) word("rows"), msgpack_pack_array(&pack, (size_t)i);
      msgpack_pack_int(&pack, 1);
    } else if (what == 8) { /* a key that is no text */
      msgpack_pack_map(&pack, 2);
      word("type"), word("poem"), msgpack_pack_int(&pack, 1), word("roses");
    } else { /* more keys than any object has */
      msgpack_pack_map(&pack, 300);
      for (int i = 0; i < 300; i++) {
        char key[8];
        snprintf(key, sizeof key, "%d", i);
        word(i ? key : "type"), word("poem");
      }
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

/* Where a number is expected: what is none is unknown, whoever wrote it, so that no bound of `mach6 gate` is met by it; what cannot have
 * been measured ends the reading. */
static void odd_numbers_are_unknown_or_refused(void **state)
{
  (void)state;
  static const char *const names[] = {"at_ns", "cost", "budget"};
  static const struct {
    double value;
    int refused;
  } odd[] = {{NAN, 0}, {INFINITY, 0}, {-INFINITY, 0}, {1e300, 1}, {-1e300, 1}, {0x1p65, 1}, {-0x1p64, 0}, {0, 0}};
  for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
    for (int wide = 0; wide < 2; wide++) {
      struct mach6_dump_info info;
      double v = odd[k].value;
      begin();
      chunk("steps", 3, names, 1);
      msgpack_pack_array(&pack, 3);
      msgpack_pack_int(&pack, 5);
      if (wide) msgpack_pack_double(&pack, v);
      else msgpack_pack_float(&pack, (float)v); /* 1e300 is infinite as one */
      msgpack_pack_nil(&pack);
      struct m6_snapshot *b = finish(&info);
      int refused = odd[k].refused && !isinf(wide ? v : (double)(float)v);
      assert_string_equal(info.broke_why,
                          refused ? "a row holds what no collector writes" : "the file is cut off there");
      assert_int_equal(b->govern.step_count, !refused);
      if (!refused) {
        double got = b->govern.steps[0].cost;
        assert_true(isfinite(wide ? v : (double)(float)v) ? got == v : isnan(got));
        assert_true(isnan(b->govern.steps[0].budget));
      }
      free(b);
    }
}

/* objects and bytes as they are, what was left out as said; whole: 1, 0. */
static void trailer(int keys, const char *const *left, int whole)
{
  size_t bytes = buffer.size;
  msgpack_pack_map(&pack, 5);
  word("type"), word("trailer"), word("objects"), msgpack_pack_int(&pack, 2);
  word("bytes"), msgpack_pack_uint64(&pack, bytes);
  word("left_out"), msgpack_pack_map(&pack, (size_t)keys);
  for (int i = 0; i < keys; i++) word(left[i]), msgpack_pack_int(&pack, 7);
  word("whole");
  if (whole) msgpack_pack_true(&pack);
  else msgpack_pack_false(&pack);
}

static void a_trailer_says_what_the_rows_say(void **state)
{
  (void)state;
  static const char *const twice[] = {"frames", "frames"}, *const two[] = {"frames", "weather"};
  static const struct {
    int keys, whole;
    const char *const *left;
    const char *why; /* NULL: sound */
    uint64_t left_out;
  } t[] = {{0, 1, NULL, NULL, 0},
           {2, 0, two, NULL, 14},
           {1, 0, two, NULL, 7},
           {2, 0, twice, "the trailer lacks one of its parts", 0},
           {1, 1, two, "the trailer calls it whole or not, and the rows say otherwise", 7},
           {0, 0, NULL, "the trailer calls it whole or not, and the rows say otherwise", 0}};
  for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
    struct mach6_dump_info info;
    begin();
    trailer(t[k].keys, t[k].left, t[k].whole);
    struct m6_snapshot *b = finish(&info);
    assert_int_equal(info.whole, t[k].why == NULL && t[k].whole);
    assert_int_equal(info.left_out, t[k].left_out);
    if (t[k].why) assert_string_equal(info.broke_why, t[k].why);
    else assert_null(info.broke_why);
    free(b);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_a_later_writer_adds_is_passed_over),
    cmocka_unit_test(a_row_that_no_collector_writes_ends_the_reading), cmocka_unit_test(texts_and_samples_are_checked),
    cmocka_unit_test(odd_numbers_are_unknown_or_refused), cmocka_unit_test(a_trailer_says_what_the_rows_say)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
