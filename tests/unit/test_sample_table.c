/* test_sample_table - the shim's filter and table of sampled blocks: a resize that fails leaves its block a sample even where its bucket
 * filled up meanwhile, and a new session forgets all, whatever calls are under way. The code is the shim's own, on a segment of memory. */
/* links: -lm */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define M6_ALLOW_LIBC 1
#include "preload/sample.c"

struct m6_gate m6_gate __attribute__((aligned(4096)));
struct m6_header *m6_seg;
uint32_t m6_clock_kind = M6_CLOCK_MONOTONIC;
__thread struct m6_thread m6_self;
int m6_ensure(uint32_t offset, uint32_t bytes) { return offset + bytes > M6_SEGMENT_BYTES; }
int m6_there(uint32_t offset) { return offset < M6_SEGMENT_BYTES; }
void m6_thread_session(void) { m6_self.session = m6_gate.collecting; }
int m6_thread_ring(void) { return 0; }

static int set_up(void **state)
{
  (void)state;
  m6_seg = aligned_alloc(M6_PAGE, M6_SEGMENT_BYTES);
  assert_non_null(m6_seg);
  memset(m6_seg, 0, M6_SEGMENT_BYTES);
  memset(m6_site_filter, 0, sizeof m6_site_filter);
  m6_gate.alive = m6_gate.collecting = m6_self.session = 1;
  m6_gate.sites = 0;
  return 0;
}
static int tear_down(void **state)
{
  (void)state;
  free(m6_seg);
  return 0;
}

/* The n-th address of the bucket that `address` has. */
static uint64_t neighbour(uint64_t address, unsigned n)
{
  for (uint64_t a = address + 16;; a += 16)
    if (m6_site_bucket(a) == m6_site_bucket(address) && n-- == 0) return a;
}
static unsigned words(void)
{
  unsigned n = 0;
  for (uint32_t i = 0; i < M6_SITE_TABLE; i++) n += m6_site_table(m6_seg)[i] != 0;
  return n;
}
static unsigned counted(void)
{
  unsigned n = 0;
  for (uint32_t i = 0; i < M6_SITE_FILTER; i++) n += m6_site_filter[i];
  return n;
}
static const uint64_t block = 0x555555550010ull;
#define AT(address) ((const void *)(uintptr_t)(address))

static void a_failed_resize_in_a_full_bucket_keeps_the_sample(void **state)
{
  (void)state;
  uint64_t key = m6_site_key_of(block, 7);
  assert_true(insert(key) && m6_site_maybe(AT(block)));
  assert_true(m6_site_hold(AT(block)) == key);
  unsigned more = 0;
  while (insert(m6_site_key_of(neighbour(block, more), 100 + more))) more++;
  assert_int_equal(more, M6_SITE_BUCKET - 1); /* its own word is nobody else's */
  m6_site_settle(key, 0);
  assert_int_equal(m6_site_head(m6_seg)->deaths_lost, 0); /* no end was said: here there is no ring to say it in */
  assert_true(m6_site_maybe(AT(block)));
  m6_site_free(AT(block));
  assert_int_equal(m6_site_head(m6_seg)->deaths_lost, 1);
  assert_int_equal(words(), M6_SITE_BUCKET - 1);
  assert_int_equal(counted(), words());
}
/* Between the real realloc and the word that goes, another thread may have the address, and a sample there. */
static void what_is_held_has_no_address(void **state)
{
  (void)state;
  uint64_t key = m6_site_key_of(block, 7), next = m6_site_key_of(block, 8);
  assert_true(insert(key));
  assert_true(m6_site_hold(AT(block)) == key);
  assert_true(m6_site_hold(AT(block)) == 0);
  assert_true(insert(next));
  assert_true(take(block, 0) == next);
  m6_site_settle(key, 1);
  assert_int_equal(m6_site_head(m6_seg)->deaths_lost, 1);
  assert_int_equal(words() + counted(), 0);
}
static void a_new_session_forgets(void **state)
{
  (void)state;
  uint64_t held = m6_site_key_of(block, 7), mapping = m6_site_key_of(block | M6_SITE_MAPPED, 1);
  assert_true(insert(held) && insert(mapping));
  for (uint64_t i = 1; i <= 5000; i++) assert_true(insert(m6_site_key_of(block + 4096 * i, i)));
  assert_true(m6_site_hold(AT(block)) == held);
  m6_gate.collecting = 0;
  m6_site_forget();
  assert_int_equal(words() + counted(), 0);
  assert_false(m6_site_maybe(AT(block + 4096)));
  m6_gate.collecting = 2;
  m6_site_settle(held, 0); /* what was under way then finds nothing, and leaves nothing */
  assert_int_equal(words() + counted(), 0);
  assert_false(insert(m6_site_key_of(block, 9))); /* a call that is still of the first session */
  assert_int_equal(words() + counted(), 0);
  m6_thread_session();
  assert_true(insert(m6_site_key_of(block, 10)) && m6_site_maybe(AT(block)));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_failed_resize_in_a_full_bucket_keeps_the_sample, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_is_held_has_no_address, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_new_session_forgets, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
