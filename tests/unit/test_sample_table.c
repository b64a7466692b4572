/* test_sample_table - the shim's filter and table of sampled blocks: a resize that fails leaves its block a sample even where its bucket
 * filled up meanwhile, and a new session forgets all, whatever calls are under way; and its ring of mappings, which all threads share. The
 * code is the shim's own, on a segment of memory. */
/* links: -lm */
/* sanitizers: thread */
#include <pthread.h>
#include <sched.h>
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
  uint64_t held = m6_site_key_of(block, 7);
  assert_true(insert(held));
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

/* Eight threads that have no ring of their own say mappings and their ends as fast as they can into the one ring there is, which is read now
 * and then: what is told is as it was said, each thread's in its order, and what found no room is counted. */
#define MAPPERS 8u
#define SAID 20000u
static uint32_t over;
static void *map_on(void *arg)
{
  uint64_t me = (uintptr_t)arg;
  for (uint64_t i = 1; i <= SAID; i++) {
    m6_site_mapped(AT(me << 40 | i << 12), i << 12, i & 1);
    m6_site_unmapped(i, AT(me << 40 | i << 12), i << 12);
  }
  m6_shared_add(&over, 1);
  return NULL;
}
static void many_threads_use_one_ring(void **state)
{
  (void)state;
  pthread_t thread[MAPPERS];
  uint64_t last[MAPPERS] = {0}, told[2] = {0}, at = 0, bytes[2] = {0};
  struct m6_ring_head *ring = &m6_site_head(m6_seg)->maps_ring;
  struct m6_record r;
  m6_seg->site_interval = 512 << 10;
  over = 0;
  for (uintptr_t i = 0; i < MAPPERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, map_on, (void *)i), 0);
  for (int left = 1; left;) {
    left = m6_observe(&over) < MAPPERS;
    while (m6_ring_read(ring, m6_site_maps(m6_seg), M6_MAPS_RECORDS, at, &r) == M6_RING_RECORD) {
      struct m6_map_range m = m6_map_range(r.live, r.count);
      uint64_t who = m.address >> 40, n = m.bytes >> 12;
      int end = m6_word_type(r.word) == M6_REC_UNMAP;
      assert_true(who < MAPPERS && n - 1 < SAID && m.address == (who << 40 | n << 12));
      assert_true(2 * n + (uint64_t)end > last[who]);
      last[who] = 2 * n + (uint64_t)end;
      if (end) assert_int_equal(r.clock, n);
      else assert_int_equal(m6_word_flags(r.word) & M6_SITE_PLACED, n & 1 ? M6_SITE_PLACED : 0);
      if (!end && m6_word_depth(r.word)) give_granules(m6_site_head(m6_seg), m6_word_depth(r.word), m.granules);
      told[end]++;
      bytes[end] += m.bytes;
      if (++at % 64 == 0) m6_ring_release(ring, at);
    }
    m6_ring_release(ring, at);
    sched_yield();
  }
  for (uintptr_t i = 0; i < MAPPERS; i++) pthread_join(thread[i], NULL);
  const struct m6_site_head *h = m6_site_head(m6_seg);
  const uint64_t all = (uint64_t)SAID * (SAID + 1) / 2 * M6_PAGE * MAPPERS;
  assert_int_equal(h->maps, SAID * MAPPERS);
  assert_int_equal(told[0] + h->maps_dropped, SAID * MAPPERS);
  assert_int_equal(told[1] + h->unmaps_dropped, SAID * MAPPERS);
  assert_int_equal(bytes[0] + h->maps_dropped_bytes, all);
  assert_int_equal(bytes[1] + h->unmaps_dropped_bytes, all);
  assert_true(told[0] > M6_MAPS_RECORDS && told[1] > M6_MAPS_RECORDS);
  for (uint32_t w = 0; w < M6_STACK_GRANULES / 64; w++) assert_int_equal(h->taken[w], 0);
  assert_int_equal(words() + counted(), 0);
}
static void a_range_is_read_as_it_was_written(void **state)
{
  (void)state;
  const struct m6_map_range most = {(1ull << 48) - M6_PAGE, M6_PAGE, UINT32_MAX, 16},
                            wide = {M6_PAGE, (1ull << 47) - M6_PAGE, 7, 0};
  for (int i = 0; i < 2; i++) {
    const struct m6_map_range *is = i ? &wide : &most;
    struct m6_map_range got = m6_map_range(m6_map_word1(is), m6_map_word2(is));
    assert_memory_equal(&got, is, sizeof got);
  }
  struct m6_map_range foreign = m6_map_range(UINT64_MAX, UINT64_MAX); /* it ends where addresses do */
  assert_int_equal(foreign.address + foreign.bytes, 1ull << 48);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_failed_resize_in_a_full_bucket_keeps_the_sample, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_is_held_has_no_address, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_new_session_forgets, set_up, tear_down),
    cmocka_unit_test_setup_teardown(many_threads_use_one_ring, set_up, tear_down),
    cmocka_unit_test(a_range_is_read_as_it_was_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
