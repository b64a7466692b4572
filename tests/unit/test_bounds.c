/* links: collector/bounds.c collector/budgets.c collector/governor.c collector/stats_words.c collector/books.c collector/verdict.c collector/tree.c collector/reservoir.c collector/histogram.c -lm */
/* sanitizers: address */
/* test_bounds - what a session uses of each budget, and how often it was overrun, row by row and by name, from what the capture knows; and
 * that the governor's word reaches the segment. Captures are made by hand, time is injected. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collector/bounds.h"
#include "collector/budgets.h"
#include "collector/control.h"
#include "collector/stats_proc.h"

#define S 1000000000ull

/* ---- the others ------------------------------------------------------------------------------------------------------- */

static uint32_t told_level, told_sites, told;
int m6_control_level(struct m6_image *i, uint32_t level, uint32_t sites)
{
  (void)i;
  told_level = level, told_sites = sites, told++;
  return 0;
}
void m6_say(int level, const char *format, ...) { (void)level, (void)format; }
int m6_proc_read(pid_t pid, struct m6_proc *out) { return (void)pid, (void)out, -1; }
uint64_t m6_proc_tick_ns(void) { return 10000000; }
void m6_heap_begin(struct m6_heap *h, uint64_t interval_ns, uint64_t now_ns)
{
  (void)interval_ns, (void)now_ns;
  memset(h, 0, sizeof *h);
}
int m6_heap_poll(struct m6_heap *h, pid_t pid, int64_t live, uint64_t now_ns, uint64_t start_ns)
{
  return (void)h, (void)pid, (void)live, (void)now_ns, (void)start_ns, 0;
}
int m6_heap_end(struct m6_heap *h, uint64_t start_ns) { return (void)h, (void)start_ns, 0; }
int m6_heap_last(struct m6_heap *h, pid_t pid, int64_t live, uint64_t now_ns, uint64_t start_ns)
{
  return (void)h, (void)pid, (void)live, (void)now_ns, (void)start_ns, 0;
}
void m6_chain_link(struct m6_chain *c, const struct m6_capture *capture, uint32_t end, int joint)
{
  (void)capture, (void)end, (void)joint;
  c->count++;
}
int m6_chain_join(struct m6_chain *c, struct m6_image *i) { return (void)i, c->count++, 0; }
int m6_chain_closed(const struct m6_chain *c) { return (void)c, 1; }
struct m6_trend m6_chain_trend(const struct m6_chain *c) { return (void)c, (struct m6_trend){.slope = NAN}; }

/* ---- a session -------------------------------------------------------------------------------------------------------- */

static struct m6_bounds b;
static struct m6_image image;
static struct m6_capture c;

static int setup(void **state)
{
  (void)state;
  memset(&image, 0, sizeof image);
  memset(&c, 0, sizeof c);
  image.capture = &c;
  told = 0;
  b.site_interval = 0;
  m6_capture_bounds(&c);
  m6_bounds_begin(&b, M6_LEVEL_FULL, 5, 100 * S);
  c.start_mono_ns = 100 * S;
  return 0;
}
static const struct m6_snap_budget *row(const char *name)
{
  for (uint32_t i = 0; i < b.snap.budget_count; i++)
    if (strcmp(b.snap.budgets[i].name, name) == 0) return &b.snap.budgets[i];
  fail_msg("no row %s", name);
  return NULL;
}
static void expect(const char *name, uint64_t used, uint64_t overruns)
{
  const struct m6_snap_budget *r = row(name);
  if (r->used != used || r->overruns != overruns)
    fail_msg("%s: used %llu, overrun %llu times; not %llu and %llu", name, (unsigned long long)r->used,
             (unsigned long long)r->overruns, (unsigned long long)used, (unsigned long long)overruns);
}
static void fill(uint64_t now) { m6_bounds_fill(&b, &image, 0, now); }

static void nothing_is_used_at_first(void **state)
{
  (void)state;
  fill(100 * S);
  for (uint32_t i = 0; i < b.snap.budget_count; i++) {
    const char *name = b.snap.budgets[i].name;
    uint64_t used = strncmp(name, "dashboard.", 10) == 0 || strncmp(name, "analysis.", 9) == 0 ? M6_BUDGET_ELSEWHERE
                                                                                               : 0;
    expect(name, strcmp(name, "session.chain") == 0 ? 1 : used, 0); /* it is the first of its chain */
  }
}
static void session_ttl(void **state)
{
  (void)state;
  fill(142 * S);
  expect("session.ttl", 42000, 0);
  m6_bounds_end(&b, &image, M6_END_TTL);
  fill(400 * S);
  expect("session.ttl", 300000, 1);
}
static void session_chain(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) assert_int_equal(m6_bounds_join(&b, &image), 0);
  fill(101 * S);
  expect("session.chain", 4, 0);
}
static void frames_retained_median_and_spikes(void **state)
{
  (void)state;
  c.frames.retained_total = 40000;
  c.frames.median.count = 7;
  c.frames.spikes_total = 100;
  c.frames.spike_count = 32;
  fill(101 * S);
  expect("frames.retained", 32768, 40000 - 32768);
  expect("frames.median", 7, 0);
  expect("frames.median_min", 7, 0);
  expect("frames.spikes", 32, 68);
  c.frames.median.count = 120;
  fill(101 * S);
  expect("frames.median", 120, 0);
  expect("frames.median_min", 10, 0);
}
static void lowered_ones_reach_the_capture(void **state)
{
  (void)state;
  static const char *const set[] = {"frames.median=20",  "frames.median_min=30", "retained.buckets=7",
                                    "retained.growth=8", "retained.stalls=9",    "frames.retained=10"},
                           *const back[] = {"frames.median=120",   "frames.median_min=10", "retained.buckets=300",
                                            "retained.growth=300", "retained.stalls=512",  "frames.retained=32768"};
  char why[512];
  for (int i = 0; i < 6; i++) assert_int_equal(m6_budget_option(set[i], why, sizeof why), 0);
  m6_capture_bounds(&c);
  assert_int_equal(c.frames.median.most, 20);
  assert_int_equal(c.frames.median_min, 20); /* no more than there can be */
  assert_int_equal(c.retained.buckets_most, 7);
  assert_int_equal(c.retained.growth_most, 8);
  assert_int_equal(c.retained.stalls_most, 9);
  assert_int_equal(c.frames.retained_most, 10);
  c.retained.bucket_total = c.retained.growth_total = c.retained.stall_total = 10;
  fill(101 * S);
  expect("retained.buckets", 7, 3);
  expect("retained.growth", 8, 2);
  expect("retained.stalls", 9, 1);
  for (int i = 0; i < 6; i++) assert_int_equal(m6_budget_option(back[i], why, sizeof why), 0);
}
static void tree_nodes(void **state)
{
  (void)state;
  c.tree.settled = 8192;
  c.tree.refused = 17;
  fill(101 * S);
  expect("tree.nodes", 8192, 17);
}
static void retained_buckets_growth_and_stalls(void **state)
{
  (void)state;
  c.retained.bucket_total = 299, c.retained.growth_total = 300, c.retained.stall_total = 513;
  fill(101 * S);
  expect("retained.buckets", 299, 0);
  expect("retained.growth", 300, 0);
  expect("retained.stalls", 512, 1);
  c.retained.bucket_total = 301, c.retained.growth_total = 1000;
  fill(101 * S);
  expect("retained.buckets", 300, 1);
  expect("retained.growth", 300, 700);
}
/* What the shim keeps: the header is foreign, and what it says beyond the layout is not believed. */
static void rings_threads_and_streams(void **state)
{
  (void)state;
  c.head.rings_used = M6_RINGS;
  c.head.rings_refused = 3;
  c.head.slots_used = 1 + 12;
  c.base.lost = 5, c.now.lost = 1005;
  for (int i = 0; i < 4; i++) c.head.streams[7 * i].kind = 1;
  c.head.streams_refused = 2;
  fill(101 * S);
  assert_true(row("rings.bytes")->used > 0 && row("rings.bytes")->used <= row("rings.bytes")->cap);
  assert_int_equal(row("rings.bytes")->overruns, 1000);
  expect("rings.threads", M6_RINGS, 3);
  expect("threads.counted", 12, 0);
  expect("streams.told", 4, 2);
  c.head.rings_used = c.head.slots_used = UINT32_MAX;
  c.head.slots_refused = 40;
  fill(101 * S);
  expect("rings.threads", M6_RINGS, 3);
  expect("threads.counted", M6_SLOTS - 1, 40);
  assert_true(row("rings.bytes")->used <= row("rings.bytes")->cap);
}
static void heap_interval_and_pending(void **state)
{
  (void)state;
  b.heap.pending = 1;
  b.heap.last.missed = 4;
  fill(101 * S);
  expect("heap.pending", 1, 4);
  assert_int_equal(row("heap.interval")->overruns, 4);
}

/* ---- the governor -------------------------------------------------------------------------------------------------------- */

/* So many seconds in which so much of a core is spent; what the last look said. */
static struct m6_spent spent;
static enum m6_life_event spend(double seconds, double share)
{
  enum m6_life_event e = M6_EVENT_NOTHING;
  if (b.governor.count == 0 && b.governor.steps_total == 0) spent = (struct m6_spent){.now = 100 * S};
  for (double t = 0; t < seconds && e == M6_EVENT_NOTHING; t += 0.5) {
    spent.now += S / 2;
    spent.collector += (uint64_t)(share * 0.5e9);
    e = m6_bounds_look(&b, &image, spent, 1);
  }
  return e;
}
static void a_step_is_told_to_the_segment_and_written_down(void **state)
{
  (void)state;
  image.site_interval = 0;
  assert_int_equal(spend(5, 0.02), M6_EVENT_NOTHING);
  assert_int_equal(told, 0);
  assert_int_equal(spend(20, 0.035), M6_EVENT_NOTHING);
  assert_true(told >= 1);
  assert_true(told_level <= M6_LEVEL_FULL);
  fill(125 * S);
  assert_int_equal(b.snap.steps_total, told);
  assert_int_equal(b.snap.step_count, told);
  assert_int_equal(b.snap.level, told_level);
  assert_int_equal(b.snap.steps[0].from_level, M6_LEVEL_FULL);
  assert_int_equal(b.snap.steps[0].to_interval, 2);
  assert_true(b.snap.steps[0].cost > b.snap.steps[0].budget);
}
static void overhead_memory_lite_and_full(void **state)
{
  (void)state;
  assert_int_equal(spend(60, 0.9), M6_EVENT_BUDGET); /* there is nothing below level memory but the end */
  fill(170 * S);
  static const char *const names[] = {"overhead.memory", "overhead.lite", "overhead.full"};
  for (int l = 0; l < 3; l++) {
    assert_true(row(names[l])->overruns > 0);
    assert_in_range(row(names[l])->used, 890000, 910000);
  }
  assert_int_equal(told_level, M6_LEVEL_MEMORY);
}
/* Down to level memory, up again, step by step, and the segment is told each. How long each level held is written down, to the look. */
static void a_level_that_was_left_comes_back(void **state)
{
  (void)state;
  c.start_mono_ns = 100 * S;
  while (b.governor.at.level != M6_LEVEL_MEMORY) spend(0.5, 0.05), fill(spent.now);
  uint64_t down = b.snap.steps_total;
  assert_int_equal(told_level, M6_LEVEL_MEMORY);
  for (double t = 0; t < 100 && b.governor.at.level != M6_LEVEL_FULL; t += 0.5) spend(0.5, 0), fill(spent.now);
  assert_int_equal(b.governor.at.level, M6_LEVEL_FULL);
  assert_int_equal(told_level, M6_LEVEL_FULL);
  assert_int_equal(down, 4);
  assert_int_equal(b.snap.steps_total, 7); /* lite at half the rate, lite, full at half the rate */
  const struct m6_snap_step *up = &b.snap.steps[down];
  assert_true(up->from_level == M6_LEVEL_MEMORY && up->to_level == M6_LEVEL_LITE && up->to_interval == 2);
  assert_true(up->at_ns - b.snap.steps[down - 1].at_ns >= M6_GOVERNOR_UNDER_NS);
  uint64_t all = 0;
  for (int l = 0; l < 3; l++) {
    all += b.snap.held_ns[l];
    assert_true(b.snap.held_ns[l] >= 4 * S);
  }
  assert_int_equal(all, spent.now - 100 * S);
  uint64_t memory = up->at_ns - b.snap.steps[down - 1].at_ns;
  assert_in_range(b.snap.held_ns[M6_LEVEL_MEMORY], memory - S, memory + S);
}
static void a_level_that_the_kernel_refuses_is_not_tried_again(void **state)
{
  (void)state;
  while (b.governor.at.level != M6_LEVEL_LITE) spend(0.5, 0.05);
  while (b.governor.at.level != M6_LEVEL_FULL) spend(0.5, 0);
  m6_bounds_refused(&b, &image, M6_LEVEL_FULL, spent.now); /* all that was asked for can be had */
  assert_int_equal(b.governor.at.level, M6_LEVEL_FULL);
  uint32_t before = told;
  m6_bounds_refused(&b, &image, M6_LEVEL_LITE, spent.now);
  assert_int_equal(told, before + 1);
  assert_int_equal(told_level, M6_LEVEL_LITE);
  fill(spent.now);
  const struct m6_snap_step *last = &b.snap.steps[b.snap.step_count - 1];
  assert_true(last->from_level == M6_LEVEL_FULL && last->to_level == M6_LEVEL_LITE && last->to_interval == 1);
  assert_true(last->cost <= last->budget); /* by which a report knows it */
  spend(600, 0);
  m6_bounds_refused(&b, &image, M6_LEVEL_LITE, spent.now);
  assert_int_equal(b.governor.at.level, M6_LEVEL_LITE);
  assert_int_equal(told, before + 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
  const struct CMUnitTest tests[] = {
    T(nothing_is_used_at_first),
    T(session_ttl),
    T(session_chain),
    T(frames_retained_median_and_spikes),
    T(lowered_ones_reach_the_capture),
    T(tree_nodes),
    T(retained_buckets_growth_and_stalls),
    T(rings_threads_and_streams),
    T(heap_interval_and_pending),
    T(a_step_is_told_to_the_segment_and_written_down),
    T(overhead_memory_lite_and_full),
    T(a_level_that_was_left_comes_back),
    T(a_level_that_the_kernel_refuses_is_not_tried_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
