/* links: tools/mach6/summary.c tools/mach6/report.c tools/mach6/report_govern.c tools/mach6/report_kernel.c */
/* links: tools/mach6/report_sites.c tools/mach6/tree.c tools/mach6/picture.c tools/mach6/text.c */
/* links: build/libmach6stats.a -ljansson -lmsgpackc -lm */
/* sanitizers: address */
/* test_summary - whatever a recording holds, and whatever it is called in there: a summary is within its bytes, UTF-8 that steers nothing, of
 * whole lines, and what is left out is counted. */
#include <locale.h>
#include <stdlib.h>

#include "stats_fixture.h"

#include "collector/utf8.h"
#include "shm/budget.h"
#include "tools/mach6/summary.h"

static const struct page page = {NULL, 0, 1, 100};
static uint64_t seed = 7;
static uint32_t next(uint32_t below)
{
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  return (uint32_t)(seed >> 33) % below;
}

/* A text of the characters that break things, at most `most` bytes of it. */
static char *hostile(size_t most)
{
  static const char *const pieces[] = {"\n",
                                       "\t",
                                       "\r",
                                       "\x01",
                                       "\x1b[2J",
                                       "\x7f",
                                       "\xc2\x9b",
                                       "\xe2\x80\xae",
                                       "\xe2\x80\xa8",
                                       "\xef\xbb\xbf",
                                       "\xe2\x81\xa6",
                                       "日本",
                                       "e\xcc\x81",
                                       "\xf0\x9f\x98\x80",
                                       "\xef\xbf\xbf",
                                       "\xf4\x8f\xbf\xbf",
                                       "%s%n",
                                       " ",
                                       "Verdict: steady",
                                       "\nNothing was left out",
                                       "a",
                                       "::",
                                       ";",
                                       "\"",
                                       "<b>"};
  static char text[1024];
  size_t n = 0, want = next((uint32_t)most + 1);
  text[0] = 0;
  for (;;) {
    const char *p = pieces[next(sizeof pieces / sizeof *pieces)];
    if (n + strlen(p) > want) return text;
    strcpy(text + n, p);
    n += strlen(p);
  }
}

static uint32_t lines_of(const char *text)
{
  uint32_t n = 0;
  for (; *text; text++) n += *text == '\n';
  return n;
}

/* Is it UTF-8, without what steers a terminal or turns text around? */
static void assert_plain(const struct summary *s)
{
  char *clean = malloc(s->n);
  int replaced = 0;
  assert_int_equal(m6_utf8_clean(s->text, s->n, clean, s->n, &replaced), s->n);
  assert_int_equal(replaced, 0);
  free(clean);
  assert_int_equal(strlen(s->text), s->n);
  for (const unsigned char *c = (const unsigned char *)s->text; *c; c++) {
    assert_true((*c >= 0x20 && *c != 0x7f) || *c == '\n');
    assert_false(c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0);
    assert_false(c[0] == 0xe2 && c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae);
    assert_false(c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xa0 && c[2] <= 0xaf);
  }
}

/* Each line of the short one that is no word on what was left out is one of the whole. */
static void assert_part_of(const struct summary *shorter, const struct summary *whole)
{
  uint64_t own = 0, all = lines_of(shorter->text);
  for (char *at = shorter->text, *end; (end = strchr(at, '\n')); at = end + 1) {
    size_t n = (size_t)(end - at) + 1;
    if (!strncmp(at, "Left out:", 9)) { /* from here on it is of what is not here; an empty line stands before it */
      for (char *rest = at; (rest = strchr(rest, '\n')); rest++) own++;
      own++;
      break;
    }
    int is_mark = n > 28 && !memcmp(end - 27, " lines that are left out here)" + 3, 27);
    own += (uint64_t)is_mark;
    if (!is_mark) assert_non_null(memmem(whole->text, whole->n, at, n));
  }
  assert_int_equal(all - own + shorter->lines_left_out, lines_of(whole->text) - 2);
}

static void judge(mach6_stats *s, const char *name)
{
  struct summary whole, some;
  assert_int_equal(summary_make(&page, s, name, "it ended with status 0", 1 << 30, &whole), 0);
  assert_int_equal(whole.lines_left_out, 0);
  assert_plain(&whole);
  const uint64_t caps[] = {
    2000, 2001, 5000, 10000, whole.n - 1, whole.n, whole.n + 1, whole.n + 200, M6_ANALYSIS_SUMMARY_BYTES};
  for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
    uint64_t most = caps[i] < 2000 ? 2000 : caps[i];
    assert_int_equal(summary_make(&page, s, name, "it ended with status 0", most, &some), 0);
    assert_in_range(some.n, 1, most);
    assert_plain(&some);
    assert_int_equal(some.text[some.n - 1], '\n');
    char *last = some.text + some.n - 1;
    while (last > some.text && last[-1] != '\n') last--;
    if (some.lines_left_out) {
      assert_true(strstr(last, "lines (") != NULL && strstr(last, "did not fit into") != NULL);
      assert_part_of(&some, &whole);
    } else {
      assert_ptr_equal(strstr(last, "Nothing was left out: "), last);
    }
    free(some.text);
  }
  free(whole.text);
}

/* A game of which each name is hostile; larger or smaller. */
static mach6_stats *play(uint32_t scopes, uint32_t sites)
{
  static struct m6_snap_site rows[M6_SITES_SHOWN];
  struct fx f;
  mach6_stats *s;
  size_t bytes;
  memset(rows, 0, sizeof rows);
  fx_game(&f, 1501, next(2) ? 96 : 0);
  struct m6_snapshot *h = &f.head;
  for (uint32_t i = 0, parent = 3; i < scopes; i++) {
    uint32_t n = fx_node(&f, parent, M6_NODE_SCOPE, hostile(next(2) ? 255 : 20));
    fx_fill(&f, n, 1 + next(2000), next(9000), 20e3, (int64_t)next(4096) - 2048, next(100));
    f.nodes[n].reservoir = 0;
    if (next(3) == 0) parent = n;
    if (next(9) == 0) parent = next(n);
    if (f.nodes[parent].kind != M6_NODE_SCOPE && f.nodes[parent].kind != M6_NODE_FRAME) parent = 3;
  }
  fx_kernel(&f);
  for (uint32_t i = 0; i < sites; i++) {
    rows[i].made = rows[i].in_frames = rows[i].live = (struct m6_snap_amount){1e6 / (1 + i), 9e5 / (1 + i), 2e6, 40,
                                                                              40};
    rows[i].peak = rows[i].peak_high = 1e5, rows[i].suspect = i % 3 == 0, rows[i].growth = 100,
    rows[i].growth_error = 9;
    char stack[4096] = "";
    for (uint32_t k = next(6); k; k--)
      snprintf(stack + strlen(stack), 700, "%.250s\tgame\tsrc/a.c:%u\n", hostile(250), next(900));
    size_t n = m6_utf8_whole(stack, strlen(stack));
    rows[i].stack_offset = fx_text(&f, stack, n), rows[i].stack_bytes = (uint32_t)n;
    const char *scope = hostile(60);
    rows[i].scope_offset = fx_text(&f, scope, strlen(scope)), rows[i].scope_bytes = (uint32_t)strlen(scope);
  }
  for (int i = 0; i < 2; i++) {
    const char *name = hostile(60);
    f.threads[i].name_offset = fx_text(&f, name, strlen(name)), f.threads[i].name_bytes = (uint32_t)strlen(name);
  }
  const char *what = hostile(900);
  f.refusals[0].what_offset = fx_text(&f, what, strlen(what)), f.refusals[0].what_bytes = (uint32_t)strlen(what);
  const char *name = hostile(200);
  h->name_offset = fx_text(&f, name, strlen(name)), h->name_bytes = (uint32_t)strlen(name);
  if (next(2)) { /* the shim was lost at an exec */
    h->lost = M6_LOST_PRELOAD;
    const char *from = hostile(700);
    h->lost_from_offset = fx_text(&f, from, strlen(from)), h->lost_from_bytes = (uint32_t)strlen(from);
  }
  f.sites = rows;
  h->sites = (struct m6_snap_sites){.interval = sites ? 4096 : 0,
                                    .row_count = sites,
                                    .sites = sites + 1,
                                    .made = {6e6, 5e6, 7e6, 6000, 900},
                                    .in_frames = {6e6, 5e6, 7e6, 6000, 900},
                                    .live = {4e5, 3e5, 5e5, 400, 90},
                                    .exact_bytes = 6010000,
                                    .samples = 900,
                                    .price_ns = NAN};
  struct m6_snapshot *b = fx_block(&f, &bytes);
  fx_free(&f);
  assert_int_equal(m6_snapshot_check(b, bytes), 0);
  assert_int_equal(open_block(b, bytes, &s), 0);
  free(b);
  return s;
}

static void hostile_names_in_games_of_any_size(void **state)
{
  (void)state;
  for (int i = 0; i < 60; i++) {
    mach6_stats *s = play(next(i % 10 ? 40 : 2000), next(2) ? next(M6_SITES_SHOWN) : 0);
    judge(s, hostile(300));
    mach6_stats_close(s);
  }
  for (int i = 0; i < 3; i++) { /* a file's name need not be UTF-8 */
    mach6_stats *s = play(3, 0);
    judge(s, i == 0 ? "" : i == 1 ? "\xff\xe2\x82" : "a\xf0");
    mach6_stats_close(s);
  }
}

/* The most important is there when there is ten times as much as fits. */
static void no_part_takes_all_the_room(void **state)
{
  (void)state;
  static const char *const want[] = {"It is the whole recording.",
                                     "frames/s; frame time p",
                                     "Spikes: 1 frame",
                                     "A frame, by scope",
                                     "Sites, estimated",
                                     "the books close to the byte",
                                     "Verdict: it grows",
                                     "What mach6 cost",
                                     "CPU time, by function",
                                     "How to read this"};
  struct summary out;
  mach6_stats *s;
  do {
    s = play(3000, M6_SITES_SHOWN);
  } while (mach6_stats_snapshot(s)->verdict != M6_VERDICT_GROWS && (mach6_stats_close(s), 1));
  assert_int_equal(summary_make(&page, s, "x", NULL, M6_ANALYSIS_SUMMARY_BYTES, &out), 0);
  assert_true(out.lines_left_out > 100);
  assert_true(out.n > M6_ANALYSIS_SUMMARY_BYTES / 2);
  const char *at = out.text;
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    const char *found = strstr(at, want[i]);
    if (!found) fail_msg("'%s' is not there, or not in its place:\n%s", want[i], out.text);
    at = found;
  }
  free(out.text);
  mach6_stats_close(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(hostile_names_in_games_of_any_size),
                                     cmocka_unit_test(no_part_takes_all_the_room)};
  if (!setlocale(LC_CTYPE, "C.UTF-8")) return 99;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
