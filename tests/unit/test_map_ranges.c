/* test_map_ranges - ranges of addresses that are mapped, replaced and given back at random, in parts and over holes, some of them told late:
 * at every moment each page is whose it would be by the clock, what is told as lost is just what went, and no more is kept than there may be.
 */
/* links: collector/map_ranges.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/map_ranges.h"

#define PLACES 512u
#define EVENTS 20000u

static struct {
  uint64_t key, clock;
} page[PLACES];                           /* the truth, by whoever was last */
static int64_t left[EVENTS + 1], no_room; /* bytes of each, as it is told */

static void lost(void *arg, uint64_t key, uint64_t bytes, enum m6_map_loss why)
{
  (void)arg;
  left[key] -= (int64_t)bytes;
  if (why == M6_MAP_NO_ROOM) no_room += (int64_t)bytes;
}

static void apply(struct m6_map_ranges *r, struct m6_map_event e)
{
  for (uint64_t i = e.start; i < e.end; i++)
    if (page[i].clock <= e.clock) {
      page[i].key = e.key;
      if (e.key) page[i].clock = e.clock;
      else page[i].clock = 0;
    }
  left[e.key] += (int64_t)(e.end - e.start);
  m6_map_ranges_apply(r, &e, lost, NULL);
}

static uint64_t last_end, seen_pages;
static void check_range(void *arg, const struct m6_map_event *e)
{
  (void)arg;
  assert_true(e->key && e->start < e->end && e->start >= last_end);
  last_end = e->end;
  for (uint64_t i = e->start; i < e->end; i++) assert_int_equal(page[i].key, e->key);
  seen_pages += e->end - e->start;
}
static void check(const struct m6_map_ranges *r)
{
  static int64_t mine[EVENTS + 1];
  uint64_t mapped = 0;
  memset(mine, 0, sizeof mine);
  for (uint32_t i = 0; i < PLACES; i++) mapped += page[i].key != 0, mine[page[i].key]++;
  last_end = seen_pages = 0;
  m6_map_ranges_each(r, check_range, NULL);
  assert_int_equal(seen_pages, mapped);
  for (uint32_t k = 1; k <= EVENTS; k++) assert_int_equal(left[k], mine[k]);
}

/* What a hook says late is an end: it is told after what others mapped there, with the clock of before. */
static void each_page_is_whose_it_was_last(void **state)
{
  (void)state;
  struct m6_map_ranges *r = m6_map_ranges_open();
  struct m6_map_event late[4];
  unsigned waiting = 0;
  assert_non_null(r);
  srandom(20261130);
  for (uint32_t n = 1; n <= EVENTS; n++) {
    uint64_t start = (uint64_t)random() % PLACES, bytes = 1 + (uint64_t)random() % (n % 7 ? 12 : 200);
    struct m6_map_event e = {start, start + bytes < PLACES ? start + bytes : PLACES, n, random() % 3 ? n : 0};
    if (e.key == 0 && waiting < 4 && random() % 4 == 0) late[waiting++] = e;
    else apply(r, e);
    if (random() % 16 == 0)
      while (waiting) apply(r, late[--waiting]);
    if (n % 64 == 0) check(r);
  }
  apply(r, (struct m6_map_event){0, PLACES, EVENTS + 1, 0});
  check(r);
  assert_int_equal(seen_pages, 0);
  assert_int_equal(no_room, 0);
  m6_map_ranges_close(r);
}

/* More than fit are told as not known; those that are kept stay right, and room that is made is used. */
static void what_finds_no_room_is_told(void **state)
{
  (void)state;
  struct m6_map_ranges *r = m6_map_ranges_open();
  assert_non_null(r);
  memset(left, 0, sizeof left);
  no_room = 0;
  for (uint64_t i = 0; i < M6_MAP_RANGES_MAX + 10; i++)
    m6_map_ranges_apply(r, &(struct m6_map_event){10 * i, 10 * i + 8, 1, 1}, lost, NULL);
  assert_int_equal(no_room, 80);
  m6_map_ranges_apply(r, &(struct m6_map_event){2, 4, 2, 0}, lost, NULL); /* two ranges from one */
  assert_int_equal(no_room, 86); /* what lies behind the cut is not known now */
  m6_map_ranges_apply(r, &(struct m6_map_event){10, 18, 2, 0}, lost, NULL);
  m6_map_ranges_apply(r, &(struct m6_map_event){4, 6, 3, 2}, lost, NULL);
  assert_int_equal(no_room, 86);
  assert_int_equal(left[2], 0);
  m6_map_ranges_apply(r, &(struct m6_map_event){0, UINT64_MAX, 4, 0}, lost, NULL);
  assert_int_equal(left[1], -8 * (int64_t)(M6_MAP_RANGES_MAX + 10));
  assert_int_equal(left[2], -2);
  m6_map_ranges_close(r);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_page_is_whose_it_was_last),
    cmocka_unit_test(what_finds_no_room_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
