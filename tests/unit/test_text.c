/* test_text.c - numbers and labels for people. */
/* links: tools/mach6/text.c collector/utf8.c -lm */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/utf8.h"
#include "tools/mach6/text.h"

static const struct page utf8 = {NULL, 0, 1, 100}, ascii = {NULL, 0, 0, 100};

static void times(void **state)
{
  static const struct {
    double s;
    const char *want;
  } t[] = {{0, "0"},           {40e-9, "40 ns"},    {999.4e-9, "999 ns"}, {999.6e-9, "1.0 µs"}, {61e-6, "61.0 µs"},
           {865e-6, "865 µs"}, {0.0166, "16.6 ms"}, {0.00101, "1.01 ms"}, {0.99949, "999 ms"},  {0.9996, "1.00 s"},
           {25, "25.0 s"},     {300, "300 s"},      {3600, "60.0 min"},   {NAN, "-"},           {INFINITY, "-"}};
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) assert_string_equal(t_time(&utf8, t[i].s), t[i].want);
  assert_string_equal(t_time(&ascii, 61e-6), "61.0 us");
}

static void bytes(void **state)
{
  assert_string_equal(t_bytes(0), "0 B");
  assert_string_equal(t_bytes(1023), "1023 B");
  assert_string_equal(t_bytes(1023.96), "1.0 KiB");
  assert_string_equal(t_bytes(96.3), "96.3 B");
  assert_string_equal(t_bytes(-1536), "-1.5 KiB");
  assert_string_equal(t_bytes_signed(1536), "+1.5 KiB");
  assert_string_equal(t_bytes_signed(-0.01), "0 B");
  assert_string_equal(t_bytes_signed(NAN), "-");
  assert_string_equal(t_bytes(9.3e18), "8.1 EiB");
}

static void counts(void **state)
{
  assert_string_equal(t_count(0), "0");
  assert_string_equal(t_count(999), "999");
  assert_string_equal(t_count(1571), "1,571");
  assert_string_equal(t_count(UINT64_MAX), "18,446,744,073,709,551,615");
  assert_string_equal(t_number(1), "1");
  assert_string_equal(t_number(0.5), "0.50");
  assert_string_equal(t_number(0.003), "<0.01");
  assert_string_equal(t_number(413.25), "413");
  assert_string_equal(t_number(2477941), "2,477,941");
  assert_string_equal(t_number(NAN), "-");
  assert_string_equal(t_short(102768), "103k");
  assert_string_equal(t_short(5.24e6), "5.2M");
  assert_string_equal(t_short(48123), "48,123");
  assert_string_equal(t_ratio(0.0029), "0.29 %");
  assert_string_equal(t_ratio(0.142), "14 %");
  assert_string_equal(t_ratio(0), "0 %");
  assert_string_equal(t_ratio(NAN), "-");
}

static char *printed(const struct page *as, const char *label, int columns)
{
  char *out = NULL;
  size_t n;
  struct page p = *as;
  p.to = open_memstream(&out, &n);
  t_label(&p, label, columns);
  fclose(p.to);
  return out;
}

static char *folded(const char *lines, int width, int colour)
{
  char *out = NULL;
  size_t n;
  struct page p = {NULL, colour, 1, width};
  p.to = open_memstream(&out, &n);
  t_fold(&p, lines);
  fclose(p.to);
  return out;
}

static void wide_lines_are_folded(void **state)
{
  static const struct {
    const char *lines, *want;
  } t[] = {
    {"", ""},
    {"fits\n  so does this\n", "fits\n  so does this\n"},
    {"  exactly twenty cols\n", "  exactly twenty cols\n"},
    {"  one, two, three, four, five\n", "  one, two, three,\n    four, five\n"},
    {"  it took 12.5 ms, more than 11.1 ms\n", "  it took 12.5 ms,\n    more than 11.1 ms\n"},
    {"  seventeen or 18 ms\nx", "  seventeen or 18 ms\nx"},
    {"  there is nineteen 19 ms\n", "  there is nineteen\n    19 ms\n"},
    {"  lib.so.2+0x1234 [lib.so.2]\n", "  lib.so.2+0x1234\n    [lib.so.2]\n"},
    {"unbreakableunbreakableunbreakable and\n", "unbreakableunbreakableunbreakable and\n"},
    {"  \033[1mbold, two\033[0m, three, four\n", "  \033[1mbold, two\033[0m, three,\n    four\n"},
    {"  µµµµµ, µµµµµµµ, µµµµ\n", "  µµµµµ, µµµµµµµ,\n    µµµµ\n"},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    char *got = folded(t[i].lines, 21, 1);
    assert_string_equal(got, t[i].want);
    free(got);
  }
}

static void labels_fill_their_columns(void **state)
{
  static const struct {
    const char *label, *want;
    int columns, utf8;
  } t[] = {{"draw", "draw    ", 8, 1},
           {"a long label", "a long …", 8, 1},
           {"a long label", "a long..", 8, 0},
           {"日本語", "日本語  ", 8, 1},
           {"日本語のラベル", "日本語… ", 8, 1}, /* a wide letter does not fit into the last column but one */
           {"caf\xc3\xa9", "caf?", 0, 0},
           {"x\x1b[31m", "x\\x1b[31m", 0, 1},
           {"x\ny\tz\x7f", "x\\ny\\tz\\x7f", 0, 1},
           {"a\xe2\x80\xae b", "a\\u202e b", 0, 1},
           {"cut \xe6\x97", "cut \xef\xbf\xbd\xef\xbf\xbd", 0, 1}, /* of a character that is not all there */
           {"\xf0", "\xef\xbf\xbd", 0, 1},
           {"", "   ", 3, 1}};
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    char *got = printed(t[i].utf8 ? &utf8 : &ascii, t[i].label, t[i].columns);
    assert_string_equal(got, t[i].want);
    free(got);
  }
}

static void wrapping_keeps_numbers_with_their_units(void **state)
{
  char *out = NULL;
  size_t n;
  struct page p = {open_memstream(&out, &n), 0, 1, 20};
  t_wrap(&p, 2, "it took about 12 ms in all of it");
  fclose(p.to);
  assert_string_equal(out, "  it took about\n    12 ms in all of\n    it\n");
  free(out);
}

/* A word longer than a line's buffer is not cut inside of a character, nor with a space in it. */
static void wrapping_keeps_characters_whole(void **state)
{
  char word[1203], *out = NULL;
  size_t n;
  for (int i = 0; i < 400; i++) memcpy(word + 3 * i, "日", 3);
  word[1200] = 0;
  struct page p = {open_memstream(&out, &n), 0, 1, 100};
  t_wrap(&p, 0, word);
  fclose(p.to);
  assert_int_equal(n, 1201);
  assert_memory_equal(out, word, 1200);
  free(out);
}

static void foreign_texts_are_printable(void **state)
{
  static const struct {
    const char *text, *want;
  } t[] = {{"plain\n\ttext\n", "plain\n\ttext\n"},
           {"\x1b[31mred\x1b[0m\r\n", "\\x1b[31mred\\x1b[0m\\x0d\n"},
           {"\xc2\x9b"
            "2J",
            "\\x9b2J"},
           {"\xff\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
           {"\xe2\x80\xaetxt", "\\u202etxt"},
           {"日本", "日本"}};
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    char *out = NULL, *again;
    size_t n;
    struct page p = {open_memstream(&out, &n), 0, 1, 100};
    t_text(&p, t[i].text, strlen(t[i].text));
    fclose(p.to);
    assert_string_equal(out, t[i].want);
    free(out);
    /* So it is when it stands across the pieces in which it is read. */
    for (int before = 500; before < 515; before++) {
      again = malloc(600);
      memset(again, 'x', (size_t)before);
      strcpy(again + before, t[i].text);
      p.to = open_memstream(&out, &n);
      t_text(&p, again, strlen(again));
      fclose(p.to);
      assert_string_equal(out + before, t[i].want);
      free(out);
      free(again);
    }
  }
}

static void a_cut_character_goes(void **state)
{
  static const struct {
    const char *text;
    size_t n, want;
  } t[] = {{"", 0, 0},
           {"abc", 3, 3},
           {"a\xc3\xa9", 2, 1},
           {"a\xc3\xa9", 3, 3},
           {"\xe0\xa0\x80", 2, 0},
           {"\xf0\x9f\x98\x80", 3, 0},
           {"\xf0\x9f\x98\x80", 4, 4},
           {"\xf4\x8f", 2, 0},
           {"\xed\x9f", 2, 0},
           {"\xed\xa0", 2, 2} /* no character begins so */,
           {"\x80\x80\x80\x80", 4, 4},
           {"a\xff", 2, 2},
           {"\xc3", 1, 0}};
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) assert_int_equal(m6_utf8_whole(t[i].text, t[i].n), t[i].want);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(times),
                                     cmocka_unit_test(bytes),
                                     cmocka_unit_test(counts),
                                     cmocka_unit_test(wide_lines_are_folded),
                                     cmocka_unit_test(labels_fill_their_columns),
                                     cmocka_unit_test(wrapping_keeps_numbers_with_their_units),
                                     cmocka_unit_test(wrapping_keeps_characters_whole),
                                     cmocka_unit_test(foreign_texts_are_printable),
                                     cmocka_unit_test(a_cut_character_goes)};
  if (!setlocale(LC_CTYPE, "C.UTF-8")) return 99;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
