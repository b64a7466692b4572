/* test_label - shm/label.h: one text, one number; bounded; many writers at once. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/label.h"

static int make(void **state)
{
  return (*state = aligned_alloc(64, M6_SEGMENT_BYTES)) == NULL || !memset(*state, 0, M6_SEGMENT_BYTES);
}
static int drop(void **state)
{
  free(*state);
  return 0;
}
static uint32_t intern(void *segment, const char *text, size_t n)
{
  int refused = 0;
  uint32_t id = m6_label_intern(m6_labels_at(segment), text, n, &refused);
  assert_int_equal(refused, id == 0);
  return id;
}

static void same_text_same_number(void **state)
{
  char text[M6_LABEL_BYTES_MAX + 1];
  int cut;
  uint32_t a = intern(*state, "render", 6), b = intern(*state, "update", 6);
  assert_true(a && b && a != b);
  assert_int_equal(intern(*state, "render", 6), a);
  assert_int_not_equal(intern(*state, "renderer", 8), a);
  assert_int_equal(m6_label_copy(m6_labels_at(*state), a, text, &cut), 6);
  assert_string_equal(text, "render");
  assert_int_equal(cut, 0);
  uint32_t empty = intern(*state, "", 0);
  assert_true(empty);
  assert_int_equal(m6_label_copy(m6_labels_at(*state), empty, text, &cut), 0);
  assert_int_equal(m6_label_copy(m6_labels_at(*state), 0, text, &cut), -1);
  assert_int_equal(m6_label_copy(m6_labels_at(*state), M6_LABELS + 7, text, &cut), -1);
}
static void long_texts_stay_distinct(void **state)
{
  char text[M6_LABEL_BYTES_MAX + 1], *a = malloc(65536), *b = malloc(65536);
  int cut;
  memset(a, 'x', 65536);
  memcpy(b, a, 65536);
  b[65535] = 'y';
  uint32_t ia = intern(*state, a, 65536), ib = intern(*state, b, 65536);
  assert_true(ia && ib && ia != ib);
  assert_int_equal(m6_label_copy(m6_labels_at(*state), ib, text, &cut), M6_LABEL_BYTES_MAX);
  assert_int_equal(cut, 1);
  free(a);
  free(b);
}
static void full_is_refused(void **state)
{
  char text[32];
  uint32_t made = 0, head_used = 0;
  uint32_t first = intern(*state, "first", 5);
  for (int i = 0; i < 20000; i++) made += intern(*state, text, (size_t)sprintf(text, "label %d", i)) != 0;
  head_used = m6_labels_at(*state).head->used;
  assert_int_equal(head_used, M6_LABELS_MAX);
  assert_int_equal(made, M6_LABELS_MAX - 1);
  assert_int_equal(intern(*state, "first", 5), first); /* what is known stays known */
}
static void text_runs_out_before_numbers(void **state)
{
  char text[300], out[M6_LABEL_BYTES_MAX + 1];
  int cut;
  uint32_t id = 0;
  memset(text, 'z', sizeof text);
  for (int i = 0; i < 1100; i++) { /* 1100 x 255 bytes are more than the text region */
    sprintf(text + 250, "%04d", i);
    text[254] = 'z';
    id = intern(*state, text, 255);
    assert_true(id);
  }
  assert_int_equal(m6_label_copy(m6_labels_at(*state), id, out, &cut), 0);
  assert_int_equal(cut, 1);
  assert_true(m6_labels_at(*state).head->text_used <= M6_LABEL_TEXT_BYTES);
}

struct crowd {
  void *segment;
  uint32_t id[500];
};
static void *join_in(void *arg)
{
  struct crowd *c = arg;
  char text[32];
  int refused = 0;
  for (int i = 0; i < 500; i++)
    c->id[i] = m6_label_intern(m6_labels_at(c->segment), text, (size_t)sprintf(text, "shared %d", i), &refused);
  return NULL;
}
static void many_writers_agree(void **state)
{
  struct crowd c[4];
  pthread_t t[4];
  for (int k = 0; k < 4; k++) {
    c[k].segment = *state;
    pthread_create(&t[k], NULL, join_in, &c[k]);
  }
  for (int k = 0; k < 4; k++) pthread_join(t[k], NULL);
  for (int i = 0; i < 500; i++) {
    char want[32], text[M6_LABEL_BYTES_MAX + 1];
    int cut;
    sprintf(want, "shared %d", i);
    for (int k = 0; k < 4; k++) assert_int_equal(c[k].id[i], c[0].id[i]);
    assert_int_equal(m6_label_copy(m6_labels_at(*state), c[0].id[i], text, &cut), (int)strlen(want));
    assert_string_equal(text, want);
  }
  assert_int_equal(m6_labels_at(*state).head->used, 500);
}
static void a_hostile_entry_copies_nothing(void **state)
{
  char text[M6_LABEL_BYTES_MAX + 1];
  int cut;
  struct m6_labels l = m6_labels_at(*state);
  static const uint64_t bad[] = {1ull << 17 | 256, 0xffffffffull << 32 | 1ull << 17 | 5,
                                 (uint64_t)(M6_LABEL_TEXT_BYTES - 4) << 32 | 1ull << 17 | 5, 5};
  for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
    l.table[7].text = bad[i];
    assert_int_equal(m6_label_copy(l, 7, text, &cut), -1);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(same_text_same_number, make, drop),
    cmocka_unit_test_setup_teardown(long_texts_stay_distinct, make, drop),
    cmocka_unit_test_setup_teardown(full_is_refused, make, drop),
    cmocka_unit_test_setup_teardown(text_runs_out_before_numbers, make, drop),
    cmocka_unit_test_setup_teardown(many_writers_agree, make, drop),
    cmocka_unit_test_setup_teardown(a_hostile_entry_copies_nothing, make, drop),
  };
  return cmocka_run_group_tests_name("label", tests, NULL, NULL);
}
