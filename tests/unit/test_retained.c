/* links: collector/retained.c collector/frame.c collector/histogram.c collector/verdict.c collector/books.c collector/reservoir.c -lm */
/* sanitizers: address */
/* test_retained - what happened when: buckets, growth events and stalls are kept within their budgets, in order, and their sums
 * are exact; overwrites are counted. Time is given, none passes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/retained.h"

#define S 1000000000ull
#define MS 1000000ull

static struct m6_retained r;
static struct m6_frames f;
static uint64_t number;
static struct m6_moment base;
static char *block;
static struct m6_snapshot head;

static int setup(void **state)
{
  (void)state;
  block = malloc(M6_RETAINED_SNAP_BYTES);
  number = 1;
  base = (struct m6_moment){.allocs = 1000, .bytes = 5000, .live = 7777, .lost = 3};
  m6_retained_init(&r, &base);
  return block == NULL || m6_frames_init(&f, 0);
}
static int teardown(void **state)
{
  (void)state;
  m6_frames_free(&f);
  free(block);
  return 0;
}

/* A frame that starts at `at`, its present-to-present interval as given; ticks are ns. */
static void frame(uint64_t at, uint64_t interval, int64_t live, uint32_t cause)
{
  static const struct m6_rate ns = {.kind = M6_CLOCK_MONOTONIC};
  struct m6_cause causes[M6_CAUSES] = {{cause, 2, 11, 5}};
  struct m6_ended e = {.number = ++number,
                       .frames = 1,
                       .mark = {at, 0, 0},
                       .done = {at + interval / 2, 0, 0},
                       .interval = interval,
                       .d = 10,
                       .i = -4,
                       .allocs = 6,
                       .live = live,
                       .cause = causes};
  struct m6_frame_seen seen = m6_frames_add(&f, &e, ns, 0);
  m6_retained_frame(&r, &e, &seen);
}
static uint32_t twice(void *arg, uint32_t node)
{
  (void)arg;
  return node == 9 ? 0 : 2 * node; /* 9 has no place */
}
static void put(void)
{
  static const struct m6_rate ns = {.kind = M6_CLOCK_MONOTONIC};
  memset(&head, 0, sizeof head);
  size_t end = m6_retained_put(&r, ns, twice, NULL, block, 0, &head);
  assert_true(end <= M6_RETAINED_SNAP_BYTES);
}
static const struct m6_snap_bucket *bucket(uint32_t i) { return (void *)(block + head.buckets_offset + i * 128); }
static const struct m6_snap_growth *growth(uint32_t i) { return (void *)(block + head.growth_offset + i * 48); }
static const struct m6_snap_stall *stall(uint32_t i) { return (void *)(block + head.stalls_offset + i * 64); }

static void seconds_hold_what_fell_into_them(void **state)
{
  (void)state;
  struct m6_moment now = base;
  for (int half = 1; half <= 10; half++) {
    for (int i = 0; i < 30; i++) frame((uint64_t)half * S / 2 - S / 2 + (uint64_t)i * 16 * MS, 16 * MS, 7777, 0);
    now.at = (uint64_t)half * S / 2 + MS;
    now.allocs += 100, now.bytes += 4000, now.frees += 90, now.live += 10, now.lost += half == 3, now.records += 60;
    now.threads = 5;
    m6_retained_sample(&r, &now);
    m6_retained_cost(&r, (uint64_t)half * MS, (uint64_t)half * 50 * MS);
  }
  put();
  assert_int_equal(head.bucket_count, 6);
  assert_int_equal(head.buckets_overwritten, 0);
  uint64_t frames = 0, allocs = 0, bytes = 0, frees = 0, lost = 0, records = 0, cost = 0, cpu = 0;
  for (uint32_t i = 0; i < head.bucket_count; i++) {
    const struct m6_snap_bucket *b = bucket(i);
    assert_int_equal(b->second, i);
    assert_int_equal(b->frames, i == 5 ? 0 : 60);
    assert_int_equal(b->time_sum, b->frames * 16 * MS);
    assert_int_equal(b->time_max, b->frames ? 16 * MS : 0);
    assert_int_equal(b->d, (int64_t)b->frames * 10);
    assert_int_equal(b->i, (int64_t)b->frames * -4);
    frames += b->frames, allocs += b->allocs, bytes += b->bytes, frees += b->frees, lost += b->lost;
    records += b->records, cost += b->collector_ns, cpu += b->target_cpu_ns;
  }
  assert_int_equal(bucket(1)->live, 7777 + 30);
  assert_int_equal(frames, 300);
  assert_int_equal(allocs, now.allocs - base.allocs);
  assert_int_equal(bytes, now.bytes - base.bytes);
  assert_int_equal(frees, now.frees);
  assert_int_equal(lost, 1);
  assert_int_equal(records, 600);
  assert_int_equal(cost, 10 * MS);
  assert_int_equal(cpu, 500 * MS);
}

static void three_hundred_seconds_are_kept(void **state)
{
  (void)state;
  struct m6_moment now = base;
  for (uint64_t s = 0; s < 1000; s++) {
    now.at = s * S + S / 2;
    now.allocs++;
    m6_retained_sample(&r, &now);
  }
  put();
  assert_int_equal(head.bucket_count, M6_BUCKETS_RETAINED);
  assert_int_equal(head.buckets_overwritten, 1000 - M6_BUCKETS_RETAINED);
  for (uint32_t i = 0; i < head.bucket_count; i++) assert_int_equal(bucket(i)->second, 1000 - M6_BUCKETS_RETAINED + i);
}

static void late_and_early_frames_do_not_disturb_the_order(void **state)
{
  (void)state;
  struct m6_moment now = base;
  for (uint64_t s = 0; s < 10; s++) {
    now.at = s * S + S / 2;
    m6_retained_sample(&r, &now);
  }
  frame(3 * S, 16 * MS, 0, 0);          /* late */
  frame(UINT64_MAX / 2, 16 * MS, 0, 0); /* a clock that jumps */
  frame(UINT64_MAX, UINT64_MAX, 0, 0);
  now.at = 20 * S;
  m6_retained_sample(&r, &now);
  put();
  assert_int_equal(bucket(3)->frames, 1);
  uint64_t frames = 0;
  for (uint32_t i = 0; i < head.bucket_count; i++) {
    if (i) assert_true(bucket(i)->second > bucket(i - 1)->second);
    frames += bucket(i)->frames;
  }
  assert_int_equal(frames, 3);
  assert_int_equal(bucket(head.bucket_count - 1)->second, 20);
}

static void a_heap_that_grows_leaves_events(void **state)
{
  (void)state;
  int64_t live = 7777;
  for (int i = 0; i < 100; i++) frame((uint64_t)i * 16 * MS, 16 * MS, live, 0);
  put();
  assert_int_equal(head.growth_count, 0); /* steady */
  for (int i = 0; i < 4000; i++) frame((uint64_t)i * 16 * MS, 16 * MS, live += 640, 0);
  put();
  assert_true(head.growth_count >= 20 && head.growth_count <= 40); /* 2.5 MB in steps of 64 KiB, then of a sixteenth */
  int64_t grown = 0, high = 7777;
  for (uint32_t i = 0; i < head.growth_count; i++) {
    const struct m6_snap_growth *g = growth(i);
    assert_true(g->live > high && g->growth == g->live - high && g->growth >= M6_GROWTH_STEP);
    assert_true(g->frame > 101 && g->allocs == 6 && g->d == 10);
    high = g->live;
    grown += g->growth;
  }
  assert_true(live - 7777 - grown < high / M6_GROWTH_SHARE + M6_GROWTH_STEP);
  struct m6_moment now = base;
  now.at = 70 * S;
  now.live = 2 * high; /* seen by a reading alone: a program without frames has events, too */
  m6_retained_sample(&r, &now);
  uint32_t before = head.growth_count;
  put();
  assert_int_equal(head.growth_count, before + 1);
}

static void growth_events_are_bounded(void **state)
{
  (void)state;
  m6_retained_init(&r, &base);
  for (int i = 0; i < 2000;
       i++) { /* up by a step from a heap that shrank in the statistics' eyes: a fresh high each time */
    r.high = 0;
    frame((uint64_t)i * 16 * MS, 16 * MS, 10 * M6_GROWTH_STEP + i, 0);
  }
  put();
  assert_int_equal(head.growth_count, M6_GROWTH_RETAINED);
  assert_int_equal(head.growth_overwritten, 2000 - M6_GROWTH_RETAINED);
  assert_int_equal(growth(M6_GROWTH_RETAINED - 1)->live, 10 * M6_GROWTH_STEP + 1999);
}

static void a_budget_makes_all_three_smaller(void **state)
{
  (void)state;
  m6_retained_init(&r, &base);
  r.buckets_most = 3, r.growth_most = 2, r.stalls_most = 4;
  for (int i = 0; i < 1000; i++) {
    struct m6_moment now = base;
    now.at = (uint64_t)i * 20 * MS;
    if (i % 50 == 0) m6_retained_sample(&r, &now);
    r.high = 0;
    frame(now.at, (i % 10 ? 16 : 60) * MS, 10 * M6_GROWTH_STEP + i, 0);
  }
  put();
  assert_int_equal(head.bucket_count, 3);
  assert_int_equal(bucket(2)->second, 19);
  assert_int_equal(bucket(0)->second, 17);
  assert_int_equal(head.buckets_overwritten, 20 - 3);
  assert_int_equal(head.growth_count, 2);
  assert_int_equal(growth(1)->live, 10 * M6_GROWTH_STEP + 999);
  assert_int_equal(head.stall_count, 4);
  assert_true(head.stalls_overwritten > 80);
  assert_true(stall(3)->at > 19600 * MS && stall(3)->at > stall(0)->at); /* the newest, in order */
}

static void stalls_are_the_intervals_over_the_threshold(void **state)
{
  (void)state;
  uint64_t at = 0;
  for (int i = 0; i < 5; i++) frame(at += 60 * MS, 60 * MS, 0, 3); /* before the median means something */
  for (int i = 0; i < 200; i++) frame(at += 16 * MS, 16 * MS, 0, 3);
  frame(at += 32 * MS, 32 * MS, 0, 3); /* twice, not more */
  frame(at += 33 * MS, 33 * MS, 0, 3);
  frame(at += 90 * MS, 90 * MS, 0, 9);
  put();
  assert_int_equal(head.stall_count, 2);
  assert_int_equal(stall(0)->time, 33 * MS);
  assert_int_equal(stall(0)->median, 16 * MS);
  assert_int_equal(stall(0)->node, 6);
  assert_int_equal(stall(0)->calls, 2);
  assert_int_equal(stall(0)->node_time, 11);
  assert_int_equal(stall(1)->time, 90 * MS);
  assert_int_equal(stall(1)->node, 0);
  assert_int_equal(stall(1)->node_time, 0);
  for (int i = 0; i < 3000; i++) frame(at += (i % 3 ? 16 : 50) * MS, (i % 3 ? 16 : 50) * MS, 0, 1);
  put();
  assert_int_equal(head.stall_count, M6_STALLS_RETAINED);
  assert_int_equal(head.stalls_overwritten, 1002 - M6_STALLS_RETAINED);
  for (uint32_t i = 1; i < head.stall_count; i++) assert_true(stall(i)->at > stall(i - 1)->at);
}

static struct m6_snap_kernel_second kernel_sum(void)
{
  static struct m6_snap_kernel_second row[M6_BUCKETS_RETAINED];
  struct m6_snap_kernel_second sum = {0};
  assert_int_equal(m6_retained_kernel_put(&r, row), head.bucket_count);
  for (uint32_t i = 0; i < head.bucket_count; i++) {
    assert_int_equal(row[i].second, bucket(i)->second);
    for (size_t k = 1; k < sizeof sum / 8; k++) ((int64_t *)&sum)[k] += ((const int64_t *)&row[i])[k];
  }
  return sum;
}

/* Readings as they are taken: every second and a little more, so that now and then a second has none; what was off turns out to have
 * been a wait for a CPU, and comes down again. */
static void the_kernels_seconds_sum_up_to_its_totals(void **state)
{
  (void)state;
  static struct m6_snap_kernel_second at_second[600]; /* the totals after it */
  struct m6_snap_kernel_second then = {0}, now = {0}, sum;
  struct m6_moment moment = base;
  unsigned back = 0, empty = 0;
  for (uint64_t ms = 40, next = 40; ms < 600000; ms += 20) {
    moment.at = ms * MS;
    m6_retained_sample(&r, &moment);
    if (ms >= next) {
      int late = ms / 1000 % 7 == 4;
      next += 1020;
      now.covered = (int64_t)(ms * MS);
      now.on += 250000000, now.wait += late ? 789000000 : 1000, now.off += late ? -39000000 : 750000000;
      now.off_by[M6_WHY_LOCK] = now.off;
      now.calls += 1000, now.voluntary += 60, now.minor += ms % 3, now.samples += 49, now.periods += 98;
      m6_retained_kernel(&r, ms * MS, &then, &now);
      back += now.off < then.off;
      then = now;
    }
    at_second[ms / 1000] = now;
    if (ms != 299980) continue;
    put(); /* all seconds are there yet */
    assert_int_equal(head.buckets_overwritten, 0);
    sum = kernel_sum();
    assert_memory_equal(&sum, &now, sizeof sum);
  }
  for (int i = 1; i < 600; i++) empty += at_second[i].covered == at_second[i - 1].covered;
  assert_true(back > 50 && empty > 5);
  put(); /* the rest went with the seconds that were overwritten */
  assert_int_equal(head.buckets_overwritten, 300);
  sum = kernel_sum();
  for (size_t k = 1; k < sizeof sum / 8; k++)
    assert_int_equal(((int64_t *)&at_second[299])[k] + ((int64_t *)&sum)[k], ((int64_t *)&now)[k]);
  /* A smaller room has the last ones of them. */
  m6_retained_init(&r, &base);
  r.buckets_most = 7;
  then = (struct m6_snap_kernel_second){0};
  for (int i = 0; i < 600; i++) {
    m6_retained_kernel(&r, (uint64_t)i * S, &then, &at_second[i]);
    then = at_second[i];
  }
  put();
  assert_int_equal(head.bucket_count, 7);
  sum = kernel_sum();
  assert_int_equal(sum.on, at_second[599].on - at_second[592].on);
}

/* A reading of another program's capture, or of a chain's last session, is where this one's begin. */
static void what_was_counted_before_is_nobodys(void **state)
{
  (void)state;
  struct m6_snap_kernel_second then = {.on = 5000, .calls = 70, .samples = 9},
                               now = {.on = 6000, .calls = 72, .samples = 9};
  m6_retained_kernel(&r, 3 * S, &then, &now);
  m6_retained_kernel(&r, 1 * S, &now, &then); /* late, and back again: into what is there */
  r.sites_then = (struct m6_snap_site_second){.samples = 100, .dropped = 3};
  m6_retained_sites(&r, &(struct m6_snap_site_second){.samples = 130, .dropped = 3, .maps = 2});
  m6_retained_sites(&r, &(struct m6_snap_site_second){.samples = 131, .dropped = 5, .maps = 2});
  put();
  struct m6_snap_kernel_second sum = kernel_sum(), none = {0};
  assert_memory_equal(&sum, &none, sizeof sum);
  struct m6_snap_site_second site;
  assert_int_equal(m6_retained_sites_put(&r, &site), 1);
  assert_int_equal(site.second, 3);
  assert_int_equal(site.samples, 31);
  assert_int_equal(site.dropped, 2);
  assert_int_equal(site.maps, 2);
}

static void hostile_readings_saturate(void **state)
{
  (void)state;
  struct m6_moment now = base;
  now.live = (__int128)INT64_MAX * 1000;
  now.mapped = -(__int128)INT64_MAX * 1000;
  now.allocs = UINT64_MAX;
  m6_retained_sample(&r, &now);
  now.allocs = 0; /* backwards */
  now.at = UINT64_MAX;
  m6_retained_sample(&r, &now);
  frame(UINT64_MAX - 1, UINT64_MAX, INT64_MIN, 0);
  frame(0, 1, INT64_MAX, 0);
  put();
  assert_true(r.saturated);
  assert_int_equal(bucket(0)->live, INT64_MAX);
  assert_int_equal(bucket(0)->mapped, INT64_MIN);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {T(seconds_hold_what_fell_into_them),
                                     T(three_hundred_seconds_are_kept),
                                     T(late_and_early_frames_do_not_disturb_the_order),
                                     T(a_heap_that_grows_leaves_events),
                                     T(growth_events_are_bounded),
                                     T(a_budget_makes_all_three_smaller),
                                     T(stalls_are_the_intervals_over_the_threshold),
                                     T(the_kernels_seconds_sum_up_to_its_totals),
                                     T(what_was_counted_before_is_nobodys),
                                     T(hostile_readings_saturate)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
