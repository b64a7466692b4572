/* test_layout - shm/layout.h and record.h: where things are, without overlap; words round-trip. The sizes and offsets themselves are
 * asserted when it is compiled; tests/e2e/headers.test does that for 32 bits too. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "shm/layout.h"
#include "shm/present.h"
#include "shm/snapshot.h"

static void regions_follow_each_other(void **state)
{
  (void)state;
  assert_int_equal(M6_OFF_SLOTS, sizeof(struct m6_header));
  assert_int_equal(M6_OFF_RING_HEADS, M6_OFF_SLOTS + M6_SLOTS * sizeof(struct m6_slot));
  assert_int_equal(M6_OFF_LABELS, M6_OFF_RING_HEADS + M6_RINGS * sizeof(struct m6_ring_head));
  assert_int_equal(M6_OFF_LABEL_TEXT - M6_OFF_LABEL_TABLE, M6_LABELS * sizeof(struct m6_label));
  assert_true(M6_OFF_LABEL_TEXT + M6_LABEL_TEXT_BYTES <= M6_OFF_SITE_HEAD);
  assert_int_equal(M6_SEGMENT_BYTES % M6_PAGE, 0);
}
static void rings_fill_their_budget(void **state)
{
  uint32_t at = M6_OFF_RINGS;
  (void)state;
  for (uint32_t i = 0; i < M6_RINGS; i++) {
    assert_int_equal(m6_ring_offset(i), at);
    assert_int_equal(at % M6_PAGE, 0);
    assert_int_equal(m6_ring_capacity(i) & (m6_ring_capacity(i) - 1), 0);
    at += m6_ring_capacity(i) * (uint32_t)sizeof(struct m6_record);
  }
  assert_int_equal(at, M6_OFF_SITE_TABLE); /* sites share the budget */
  assert_int_equal(M6_OFF_STACKS + M6_STACK_GRANULES * M6_STACK_GRANULE, M6_SEGMENT_BYTES);
  assert_int_equal(M6_SEGMENT_BYTES - M6_OFF_RINGS, M6_RING_BYTES);
}
static void words_round_trip(void **state)
{
  (void)state;
  for (unsigned i = 0; i < 65536; i += 13) {
    uint64_t w = m6_word(i, i >> 3, i >> 5, 65535 - i, i ^ 0x5555);
    assert_int_equal(m6_word_stamp(w), i);
    assert_int_equal(m6_word_type(w), i >> 3 & 0xff);
    assert_int_equal(m6_word_flags(w), i >> 5 & 0xff);
    assert_int_equal(m6_word_label(w), 65535 - i);
    assert_int_equal(m6_word_depth(w), i ^ 0x5555);
  }
}
static void names_of_presents(void **state)
{
  (void)state;
  assert_string_equal(m6_symbol_name(M6_SYM_MACH6_FRAME), "mach6_frame");
  assert_string_equal(m6_symbol_name(M6_SYM_GLFW_SWAP_BUFFERS), "glfwSwapBuffers");
  assert_string_equal(m6_symbol_name(M6_SYM_COUNT), "?");
  assert_string_equal(m6_route_name(M6_ROUTE_SDL_DYNAPI), "SDL_DYNAPI_entry");
  assert_string_equal(m6_route_name(~0u), "?");
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(regions_follow_each_other),
                                     cmocka_unit_test(rings_fill_their_budget), cmocka_unit_test(words_round_trip),
                                     cmocka_unit_test(names_of_presents)};
  return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
