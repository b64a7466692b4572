/* links: collector/capture.c collector/drain.c collector/thread.c collector/scope.c collector/tree.c collector/reservoir.c */
/* links: collector/histogram.c collector/frame.c collector/retained.c collector/books.c collector/verdict.c collector/clock.c collector/utf8.c */
/* links: collector/publish.c collector/publish_tree.c collector/stats_proc.c collector/guard.c -lm */
/* sanitizers: address */
/* test_tree - memory is O(nodes) and bounded, "(other)" takes what finds no room, nothing is lost on the way (S01, S02). */
#include "segment_fixture.h"
#include "collector/utf8.h"

static struct fx f;
static struct m6_capture c;

static int setup(void **state)
{
  (void)state;
  fx_open(&f, 1);
  return m6_capture_open(&c, f.segment, 0, NULL, NULL);
}
static int teardown(void **state)
{
  (void)state;
  m6_capture_close(&c);
  fx_close(&f);
  return 0;
}
static uint64_t count_of_kind(const struct m6_snapshot *s, uint32_t kind)
{
  uint64_t n = 0;
  for (uint32_t i = 0; i < s->node_count; i++)
    if (fx_nodes(s)[i].kind == kind) n += fx_nodes(s)[i].count;
  return n;
}

/* More paths than nodes: 200 labels under 200 labels, in a presenting and in another thread. */
static void a_flood_of_paths(void **state)
{
  (void)state;
  uint32_t label[200];
  char text[32];
  for (int i = 0; i < 200; i++) {
    snprintf(text, sizeof text, "label %d", i);
    label[i] = fx_label(&f, text);
  }
  uint64_t scopes = 0;
  for (int round = 0; round < 3; round++)
    for (int a = 0; a < 200; a++) {
      for (unsigned t = 0; t < 2; t++) {
        fx_mark(&f, t, label[a]);
        for (int b = 0; b < 200; b++) {
          f.clock++;
          fx_mark(&f, t, label[b]), fx_done(&f, t);
        }
        fx_done(&f, t);
        scopes += 201;
      }
      if (a % 2 == 0) fx_present(&f, 0, 0, 1, 0);
      m6_capture_drain(&c, 0);
      if (a % 50 == 0) free(fx_finish(&c, 0));
    }
  m6_capture_drain(&c, 1);
  struct m6_snapshot *s = fx_finish(&c, 1);
  fx_check(s);
  assert_int_equal(count_of_kind(s, M6_NODE_SCOPE), scopes);
  assert_true(s->nodes_refused > 0);
  assert_non_null(fx_find(s, "(other)"));
  assert_true(c.tree.bump <= c.tree.capacity);
  assert_true(s->closed);
  free(s);
}

/* Labels that the table refused are "(other)"; the table's own are apart. */
static void a_flood_of_labels(void **state)
{
  (void)state;
  char text[64];
  uint64_t refused = 0;
  for (int i = 0; i < 5000; i++) {
    snprintf(text, sizeof text, "built label %d", i);
    uint32_t id = fx_label(&f, text);
    refused += id == 0;
    f.clock++;
    fx_mark(&f, 0, id), fx_done(&f, 0);
    if (i % 500 == 0) m6_capture_drain(&c, 0);
  }
  m6_capture_drain(&c, 1);
  struct m6_snapshot *s = fx_finish(&c, 1);
  fx_check(s);
  assert_int_equal(refused, 5000 - M6_LABELS_MAX);
  assert_int_equal(count_of_kind(s, M6_NODE_SCOPE), 5000);
  assert_int_equal(fx_find(s, "(unnamed)/(other)")->count, refused);
  assert_int_equal(fx_find(s, "(unnamed)/built label 17")->count, 1);
  free(s);
}

static void threads_come_and_go(void **state)
{
  (void)state;
  uint32_t label = fx_label(&f, "job");
  for (int i = 0; i < 20000; i++) {
    unsigned t = 1 + (unsigned)i % 7;
    f.clock++;
    fx_start(&f, t, 5000 + (uint32_t)i), fx_mark(&f, t, label), fx_mark(&f, t, label), fx_done(&f, t), fx_done(&f, t),
      fx_end(&f, t);
    if (i == 100) fx_present(&f, 0, 0, 1, 0);
    if (i % 300 == 0) m6_capture_drain(&c, 0), free(fx_finish(&c, 0));
  }
  m6_capture_drain(&c, 1);
  struct m6_snapshot *s = fx_finish(&c, 1);
  fx_check(s);
  assert_int_equal(fx_find(s, "(unnamed)/job")->count, 20000);
  assert_int_equal(fx_find(s, "(unnamed)/job/job")->count, 20000);
  assert_int_equal(fx_find(s, "(unnamed)")->count, 20000);
  assert_int_equal(s->threads_seen, 20000 + 1 + 6); /* thread 0, and six slots that had an owner when first looked at */
  assert_true(c.tree.bump < 200);                   /* what one thread used, the next uses again */
  free(s);
}

/* The START of a thread is in the session in which it began; in a chain's next one it is known by its records, or by its slot. */
static void a_joined_session_sees_the_threads_that_go_on(void **state)
{
  (void)state;
  uint32_t label = fx_label(&f, "job");
  for (unsigned t = 0; t < FX_THREADS; t++) fx_start(&f, t, 1000 + t);
  f.clock += 10;
  fx_present(&f, 0, 0, 5, 0);
  f.clock += 10;
  fx_present(&f, 0, 0, 5, 0);
  m6_capture_drain(&c, 0);
  free(fx_finish(&c, 0));
  assert_int_equal(c.threads_seen, FX_THREADS);
  struct m6_capture next;
  uint64_t presents[M6_STREAMS];
  m6_books_poll(&c.books, 1);
  for (uint32_t s = 0; s < M6_STREAMS; s++) presents[s] = c.head.streams[s].presents;
  assert_int_equal(m6_capture_open(&next, f.segment, 0, &c.now, presents), 0);
  m6_capture_follow(&next, &c);
  f.clock += 10;
  fx_mark(&f, 1, label), fx_done(&f, 1);
  fx_present(&f, 0, 0, 5, 0);
  m6_capture_drain(&next, 0); /* two of them by their records, */
  assert_int_equal(next.threads_seen, 2);
  free(fx_finish(&next, 0)); /* the others by their slots, and none twice */
  assert_int_equal(next.threads_seen, FX_THREADS);
  m6_capture_drain(&next, 1);
  struct m6_snapshot *s = fx_finish(&next, 1);
  assert_int_equal(s->threads_seen, FX_THREADS);
  free(s);
  m6_capture_close(&next);
}

static void hostile_labels(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    size_t n;
    const char *out;
    uint32_t flags;
  } rows[] = {
    {"a\"b,c\n\x01%s%n</script>", 20, "a\"b,c\n\x01%s%n</script>", 0},
    {"=1+1", 4, "=1+1", 0},
    {"\xff\xc0", 2, "\xef\xbf\xbd\xef\xbf\xbd", M6_LABEL_REPLACED},
    {"\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", M6_LABEL_REPLACED},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\xae", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\xae", 0},
    {"x\0y", 3, "x\xef\xbf\xbdy", M6_LABEL_REPLACED},
    {"", 0, "", 0},
  };
  enum { N = sizeof rows / sizeof rows[0] };
  static char big[65536];
  memset(big, 'z', sizeof big);
  memcpy(big + 253, "\xe2\x82\xac", 3); /* the cut goes through this character */
  int refused = 0;
  struct m6_labels l = m6_labels_at(f.segment);
  for (int i = 0; i < N; i++) {
    f.clock++;
    fx_mark(&f, 0, m6_label_intern(l, rows[i].text, rows[i].n, &refused)), fx_done(&f, 0);
  }
  fx_mark(&f, 0, m6_label_intern(l, big, sizeof big, &refused)), fx_done(&f, 0);
  big[60000] = 'y'; /* the same beginning, another label */
  fx_mark(&f, 0, m6_label_intern(l, big, sizeof big, &refused)), fx_done(&f, 0);
  m6_capture_drain(&c, 1);
  struct m6_snapshot *s = fx_finish(&c, 1);
  fx_check(s);
  const struct m6_snap_node *n = fx_nodes(s);
  int cut = 0;
  for (int i = 0; i < N; i++) {
    int found = 0;
    for (uint32_t k = 0; k < s->node_count; k++)
      if (n[k].kind == M6_NODE_SCOPE && fx_labelled(s, &n[k], rows[i].out) && n[k].label_flags == rows[i].flags)
        found++;
    assert_int_equal(found, 1);
  }
  for (uint32_t k = 0; k < s->node_count; k++)
    if (n[k].label_flags == M6_LABEL_CUT) {
      assert_int_equal(n[k].label_bytes, 253);
      cut++;
    }
  assert_int_equal(cut, 2);
  free(s);
}

static void texts_become_valid_utf8(void **state)
{
  (void)state;
  char in[32], out[96];
  for (int i = 0; i < 200000; i++) {
    size_t n = fx_random(&f, sizeof in);
    for (size_t k = 0; k < n; k++) in[k] = (char)m6_rng_next(&f.rng);
    int replaced = 0;
    size_t m = m6_utf8_clean(in, n, out, sizeof out, &replaced), again;
    assert_true(m <= 3 * n);
    char twice[96];
    int no = 0;
    again = m6_utf8_clean(out, m, twice, sizeof twice, &no);
    assert_int_equal(again, m);
    assert_int_equal(no, 0);
    assert_memory_equal(out, twice, m);
    if (!replaced) assert_true(m == n && memcmp(in, out, n) == 0);
    size_t room = fx_random(&f, 40);
    assert_true(m6_utf8_clean(in, n, out, room, &replaced) <= room);
  }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
  const struct CMUnitTest tests[] = {T(a_flood_of_paths),    T(a_flood_of_labels),
                                     T(threads_come_and_go), T(a_joined_session_sees_the_threads_that_go_on),
                                     T(hostile_labels),      T(texts_become_valid_utf8)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
