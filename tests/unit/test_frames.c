/* links: collector/capture.c collector/drain.c collector/thread.c collector/scope.c collector/tree.c collector/reservoir.c */
/* links: collector/histogram.c collector/frame.c collector/retained.c collector/books.c collector/verdict.c collector/clock.c collector/utf8.c */
/* links: collector/publish.c collector/publish_tree.c collector/stats_proc.c collector/guard.c -lm */
/* sanitizers: address */
/* test_frames - frame maths (F03): frames over time, lows only of enough frames, spikes, series, retained records, the verdict;
 * and that none of it takes more memory after hours than after minutes. */
#include <malloc.h>
#include <math.h>

#include "segment_fixture.h"

#define MS 1000000ull

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
static void present_at(uint64_t after_ns, int64_t grow)
{
  f.clock += after_ns;
  fx_alloc(&f, 0, grow);
  fx_present(&f, 0, 0, 0, 0);
  if (f.header->streams[0].presents % 100 == 0) m6_capture_drain(&c, 0);
}
static struct m6_snapshot *finish(void)
{
  m6_capture_drain(&c, 1);
  struct m6_snapshot *s = fx_finish(&c, 1);
  fx_check(s);
  assert_true(s->closed);
  return s;
}
/* The only figures that may be NaN are those documented as such. */
static void nan_only_where_documented(const struct m6_snapshot *s)
{
  assert_int_equal(isnan(s->fps), s->presents < 2);
  assert_int_equal(isnan(s->low_1pct_fps), s->presents < 101);
  assert_int_equal(isnan(s->low_01pct_fps), s->presents < 1001);
  assert_true(isnan(s->leak_per_frame) == isnan(s->leak_ci));
  assert_int_equal(isnan(s->leak_per_frame), s->verdict == M6_VERDICT_UNKNOWN);
  assert_false(isinf(s->fps) || isinf(s->low_1pct_fps) || isinf(s->low_01pct_fps) || isinf(s->leak_per_frame));
}

static void frames_over_time_not_the_mean_of_rates(void **state)
{
  (void)state;
  for (int i = 0; i < 2001; i++) present_at(i % 2 ? 1 * MS : 4 * MS, 0);
  struct m6_snapshot *s = finish();
  assert_true(fabs(s->fps - 400) < 0.5);
  assert_true(fabs(s->low_1pct_fps - 250) < 0.5);
  assert_true(fabs((double)s->interval_p50 - 1e6) < 1e6 / 32 && s->interval_max == 4 * MS);
  nan_only_where_documented(s);
  free(s);
}

static void no_frames_at_all(void **state)
{
  (void)state;
  fx_alloc(&f, 0, 1000);
  f.clock += 60000 * MS;
  struct m6_snapshot *s = finish();
  assert_int_equal(s->presents, 0);
  assert_int_equal(fx_find(s, "startup")->d_sum, 1000);
  assert_int_equal(fx_find(s, "frame")->count, 0);
  assert_null(fx_find(s, "shutdown"));
  assert_int_equal(s->interval_p50 + s->interval_max + s->spikes_total + s->frame_count, 0);
  nan_only_where_documented(s);
  free(s);
}

static void one_present(void **state)
{
  (void)state;
  present_at(5 * MS, 100);
  fx_alloc(&f, 0, 7);
  struct m6_snapshot *s = finish();
  assert_int_equal(s->presents, 1);
  assert_int_equal(fx_find(s, "frame")->count, 0);
  assert_int_equal(fx_find(s, "startup")->d_sum, 100);
  assert_int_equal(fx_find(s, "shutdown")->d_sum, 7);
  assert_int_equal(s->tail_d, 7);
  assert_int_equal(s->first_present_ns, 5 * MS);
  nan_only_where_documented(s);
  free(s);
}

static void fast_frames(void **state)
{
  (void)state;
  static const struct {
    uint64_t ns;
    double fps;
  } rates[] = {{1 * MS, 1000}, {33333, 30000.3}};
  for (int k = 0; k < 2; k++) {
    if (k) teardown(NULL), setup(NULL);
    for (int i = 0; i < 40001; i++) present_at(rates[k].ns, 0);
    struct m6_snapshot *s = finish();
    assert_true(fabs(s->fps - rates[k].fps) < 0.5);
    assert_int_equal(s->interval_p50, rates[k].ns);
    assert_int_equal(s->spikes_total, 0);
    assert_int_equal(s->frame_count, M6_FRAMES_RETAINED);
    assert_int_equal(s->frames_overwritten, 40000 - M6_FRAMES_RETAINED);
    const struct m6_snap_frame *r = (const struct m6_snap_frame *)((const char *)s + s->frames_offset);
    for (uint32_t i = 0; i < s->frame_count; i++) assert_int_equal(r[i].present, 40001 - M6_FRAMES_RETAINED + 1 + i);
    assert_true(s->series_count <= M6_SERIES && s->series_count >= M6_SERIES / 2);
    uint64_t frames = 0, time = 0;
    for (uint32_t i = 0; i < s->series_count; i++) {
      frames += s->series[i].frames;
      time += s->series[i].time_sum;
    }
    assert_int_equal(frames, 40000);
    assert_int_equal(time, 40000 * rates[k].ns);
    nan_only_where_documented(s);
    free(s);
  }
}

static void pairs_of_presents(void **state)
{
  (void)state;
  for (int i = 0; i < 401; i++) present_at(i % 2 ? MS / 10 : 14 * MS, 0);
  struct m6_snapshot *s = finish();
  assert_true(fabs(s->fps - 1000 / 7.05) < 0.5);
  nan_only_where_documented(s);
  free(s);
}

static void a_spike_names_its_scopes(void **state)
{
  (void)state;
  uint32_t load = fx_label(&f, "load"), update = fx_label(&f, "update"), draw = fx_label(&f, "draw");
  for (int i = 0; i < 300; i++) {
    f.clock += MS;
    fx_mark(&f, 0, update);
    f.clock += MS;
    if (i == 200) {
      fx_mark(&f, 0, load);
      for (int k = 0; k < 9; k++) fx_alloc(&f, 0, 10);
      f.clock += 40 * MS;
      fx_done(&f, 0);
    }
    fx_done(&f, 0);
    fx_mark(&f, 0, draw);
    f.clock += 2 * MS;
    fx_done(&f, 0);
    fx_present(&f, 0, 0, 0, 0);
    m6_capture_drain(&c, 0);
  }
  struct m6_snapshot *s = finish();
  assert_int_equal(s->spikes_total, 1);
  const struct m6_snap_spike *p = (const struct m6_snap_spike *)((const char *)s + s->spikes_offset);
  assert_int_equal(p->frame, 201);
  assert_int_equal(p->time, 44 * MS);
  assert_int_equal(p->median, 4 * MS);
  assert_int_equal(p->allocs, 9);
  assert_int_equal(p->d, 90);
  static const char *const causes[] = {"load", "draw", "update"}; /* update's own time is what load leaves of it */
  for (int k = 0; k < 3; k++) assert_true(fx_labelled(s, &fx_nodes(s)[p->cause[k].node], causes[k]));
  assert_ptr_equal(&fx_nodes(s)[p->cause[0].node], fx_find(s, "frame/update/load"));
  assert_int_equal(p->cause[0].time, 40 * MS);
  assert_int_equal(p->cause[0].allocs, 9);
  assert_int_equal(p->cause[0].calls, 1);
  assert_int_equal(p->cause[2].time, MS);
  free(s);
}

/* A loop that is one scope, present included: where its frame was late is in no scope that was closed. */
static void a_scope_that_is_open_at_the_present_is_a_cause(void **state)
{
  (void)state;
  uint32_t turn = fx_label(&f, "turn"), step = fx_label(&f, "step"), draw = fx_label(&f, "draw");
  for (int i = 0; i < 300; i++) {
    fx_mark(&f, 0, turn);
    fx_mark(&f, 0, step);
    f.clock += MS;
    fx_done(&f, 0);
    f.clock += i == 200 ? 30 * MS : MS;
    fx_mark(&f, 0, draw); /* open, too */
    f.clock += i == 200 ? 7 * MS : MS;
    fx_present(&f, 0, 0, 0, 0);
    fx_done(&f, 0);
    fx_done(&f, 0);
    m6_capture_drain(&c, 0);
  }
  struct m6_snapshot *s = finish();
  assert_int_equal(s->spikes_total, 1);
  const struct m6_snap_spike *p = (const struct m6_snap_spike *)((const char *)s + s->spikes_offset);
  static const char *const causes[] = {"turn", "draw", "step"};
  static const uint64_t ms[] = {30, 7, 1};
  assert_int_equal(p->frame, 201);
  for (int k = 0; k < 3; k++) {
    assert_true(fx_labelled(s, &fx_nodes(s)[p->cause[k].node], causes[k]));
    assert_int_equal(p->cause[k].time, ms[k] * MS);
  }
  free(s);
}

/* And one that spans several frames: of each, what is not in the scopes that came and went meanwhile. */
static void a_scope_over_many_frames_is_a_cause(void **state)
{
  (void)state;
  uint32_t game = fx_label(&f, "game"), draw = fx_label(&f, "draw");
  fx_mark(&f, 0, game);
  for (int i = 0; i < 300; i++) {
    f.clock += i == 200 ? 20 * MS : MS;
    fx_mark(&f, 0, draw);
    f.clock += 2 * MS;
    fx_done(&f, 0);
    fx_present(&f, 0, 0, 0, 0);
    m6_capture_drain(&c, 0);
  }
  struct m6_snapshot *s = finish();
  const struct m6_snap_spike *p = (const struct m6_snap_spike *)((const char *)s + s->spikes_offset);
  assert_int_equal(s->spikes_total, 1);
  assert_true(fx_labelled(s, &fx_nodes(s)[p->cause[0].node], "game"));
  assert_int_equal(p->cause[0].time, 20 * MS);
  assert_true(fx_labelled(s, &fx_nodes(s)[p->cause[1].node], "draw"));
  assert_int_equal(p->cause[1].time, 2 * MS);
  free(s);
}

/* Not before M6_SPIKE_WINDOW_MIN frames, not for less than a millisecond over, only the worst are kept. */
static void what_is_a_spike(void **state)
{
  (void)state;
  for (int i = 0; i < 9; i++) present_at(MS, 0);
  present_at(50 * MS, 0);
  for (int i = 0; i < 200; i++) present_at(MS / 10, 0);
  present_at(MS, 0); /* ten times the median, but 0.9 ms over it */
  for (int i = 0; i < 200; i++) present_at(MS / 10, 0);
  struct m6_snapshot *s = finish();
  assert_int_equal(s->spikes_total, 0);
  free(s);
  teardown(NULL), setup(NULL);
  for (int i = 0; i < 30; i++) present_at(10 * MS, 0);
  present_at(199 * MS / 10, 0);
  for (int i = 0; i < 30; i++) present_at(10 * MS, 0);
  present_at(201 * MS / 10, 0); /* more than twice the median */
  s = finish();
  assert_int_equal(s->spikes_total, 1);
  free(s);
  teardown(NULL), setup(NULL);
  for (int i = 0; i < 100; i++) {
    for (int k = 0; k < 30; k++) present_at(MS, 0);
    present_at((uint64_t)(10 + i) * MS, 0);
  }
  s = finish();
  assert_int_equal(s->spikes_total, 100);
  assert_int_equal(s->spike_count, M6_SPIKES_RETAINED);
  const struct m6_snap_spike *p = (const struct m6_snap_spike *)((const char *)s + s->spikes_offset);
  for (uint32_t i = 0; i < s->spike_count; i++) assert_int_equal(p[i].time, (109 - i) * MS);
  free(s);
}

static int ascending(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}
static void the_rolling_median_is_the_median(void **state)
{
  (void)state;
  static const int most[] = {M6_SPIKE_WINDOW, 50, 1}; /* as it is, and as budgets make it */
  for (int k = 0; k < 3; k++) {
    struct m6_median m = {.most = k ? (uint32_t)most[k] : 0};
    uint64_t all[1000];
    for (int i = 0; i < 1000; i++) {
      all[i] = fx_random(&f, 50);
      m6_median_add(&m, all[i]);
      int n = i + 1 < most[k] ? i + 1 : most[k];
      uint64_t window[M6_SPIKE_WINDOW];
      memcpy(window, all + i + 1 - n, (size_t)n * sizeof window[0]);
      qsort(window, (size_t)n, sizeof window[0], ascending);
      uint64_t want = (window[(n - 1) / 2] + window[n / 2]) / 2;
      assert_int_equal(m6_median_value(&m), want);
    }
  }
}

static void lost_boundaries_make_a_lump(void **state)
{
  (void)state;
  for (int i = 1; i <= 300; i++) {
    f.lose_percent = i > 230 && i <= 280 ? 100 : 0;
    present_at(2 * MS, 10);
  }
  for (int i = 0; i <= M6_BOUNDARY_PATIENCE + 1; i++) m6_capture_drain(&c, 0);
  struct m6_snapshot *s = fx_finish(&c, 0); /* a missing boundary is not waited for till the end */
  assert_int_equal(s->frames_recorded, 250);
  free(s);
  s = finish();
  assert_int_equal(s->presents, 300);
  assert_int_equal(s->frames_recorded, 250);
  assert_int_equal(s->frames_lost, 50);
  assert_true(fabs(s->fps - 500) < 0.1);
  assert_int_equal(s->interval_max, 2 * MS);
  const struct m6_snap_node *frame = fx_find(s, "frame");
  assert_int_equal(frame->count, 299);
  assert_int_equal(frame->d_sum, 2990);
  assert_int_equal(frame->d_max, 10);
  assert_int_equal(frame->time_max, 2 * MS);
  const struct m6_snap_frame *r = (const struct m6_snap_frame *)((const char *)s + s->frames_offset);
  assert_int_equal(s->frame_count, 249);
  assert_int_equal(r[229].lumped, 51);
  assert_int_equal(r[229].d, 510);
  nan_only_where_documented(s);
  free(s);
}

/* The first boundaries are lost: the stream's own clock says when it began. */
static void the_first_boundary_is_lost(void **state)
{
  (void)state;
  f.lose_percent = 100;
  present_at(2 * MS, 10), present_at(2 * MS, 10);
  f.lose_percent = 0;
  for (int i = 0; i < 98; i++) present_at(2 * MS, 10);
  struct m6_snapshot *s = finish();
  assert_int_equal(s->presents, 100);
  assert_int_equal(s->first_present_ns, 2 * MS);
  assert_true(fabs(s->fps - 500) < 0.1);
  assert_int_equal(fx_find(s, "frame")->count, 99);
  assert_int_equal(s->frames_lost, 2);
  free(s);
}

static int verdict_of(double leak, double noise, double ramp, int frames, struct m6_leak *out)
{
  int64_t kept = 0;
  for (int i = 0; i < frames; i++) {
    double warm = i < frames / 12 ? ramp : 0, swing = noise * ((double)fx_random(&f, 2001) / 1000 - 1);
    kept += (int64_t)(leak + warm + ((double)fx_random(&f, 1000) / 1000 < leak - floor(leak) ? 1 : 0));
    int64_t now = (int64_t)f.slots[1].live, want = kept + (int64_t)swing + 1000000;
    present_at(MS, want - now);
  }
  struct m6_snapshot *s = finish();
  *out = (struct m6_leak){s->leak_per_frame, s->leak_ci, s->verdict, s->verdict_batches};
  nan_only_where_documented(s);
  free(s);
  teardown(NULL), setup(NULL);
  return out->verdict;
}
static void the_verdict(void **state)
{
  (void)state;
  struct m6_leak l;
  assert_int_equal(verdict_of(100, 0, 0, 1000, &l), M6_VERDICT_GROWS);
  assert_true(fabs(l.per_frame - 100) < 0.01);
  assert_int_equal(verdict_of(100, 20000, 0, 5000, &l), M6_VERDICT_GROWS);
  assert_true(fabs(l.per_frame - 100) <= l.ci && l.ci < 100);
  assert_int_equal(verdict_of(-64, 100, 0, 1000, &l), M6_VERDICT_SHRINKS);
  assert_int_equal(verdict_of(0, 5000, 0, 2000, &l), M6_VERDICT_STEADY);
  assert_int_equal(verdict_of(0, 100, 5000, 2000, &l), M6_VERDICT_STEADY); /* caches fill in the first frames */
  assert_true(fabs(l.per_frame) < 5);
  assert_int_equal(verdict_of(0, 0, 0, 2000, &l), M6_VERDICT_STEADY);
  assert_true(l.per_frame == 0 && l.ci == 0);
  assert_int_equal(verdict_of(100, 0, 0, 7, &l), M6_VERDICT_UNKNOWN);
  assert_int_equal(verdict_of(0, 0, 0, 0, &l), M6_VERDICT_UNKNOWN);
}

/* Over many programs that leak nothing the verdict cries wolf no more often than its interval promises (a twentieth). */
static void the_verdict_is_rarely_wrong(void **state)
{
  (void)state;
  int wolves = 0;
  for (int i = 0; i < 200; i++) {
    struct m6_leak l;
    wolves += verdict_of(0, 3000, 0, 300, &l) != M6_VERDICT_STEADY;
  }
  assert_true(wolves <= 10);
}

/* What this process has of memory: allocated, and mapped. Beside a sanitizer its allocator is the one to ask, and maps what it likes. */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));
struct held {
  size_t allocated, mapped;
};
static struct held held(void)
{
  unsigned long pages = 0;
  if (__sanitizer_get_current_allocated_bytes) return (struct held){__sanitizer_get_current_allocated_bytes(), 0};
  FILE *statm = fopen("/proc/self/statm", "re");
  assert_non_null(statm);
  assert_int_equal(fscanf(statm, "%lu", &pages), 1);
  fclose(statm);
  struct mallinfo2 m = mallinfo2();
  return (struct held){m.uordblks + m.hblkhd, pages * 4096};
}

/* Frames as they come in hours: always the same few scopes, now and then a spike, a growth event, a thread that ends and another one. */
static void frames_until(uint64_t most, void *block)
{
  struct m6_snap_kernel_second then = {0}, now = {0};
  struct m6_moment moment = {0};
  uint32_t update = fx_label(&f, "update"), physics = fx_label(&f, "physics"), job = fx_label(&f, "job");
  for (uint64_t n = f.header->streams[0].presents + 1; n <= most; n++) {
    if (n % 500 == 1) fx_start(&f, 1, 4000 + n / 500 % 3);
    fx_mark(&f, 0, update), f.clock += 2 * MS;
    fx_mark(&f, 0, physics), f.clock += n % 997 ? 3 * MS : 90 * MS;
    fx_done(&f, 0), fx_done(&f, 0);
    fx_mark(&f, 1, job), f.clock += MS;
    fx_done(&f, 1);
    if (n % 500 == 0) fx_end(&f, 1);
    fx_alloc(&f, 0, n % 64 ? 100 : -6000);
    fx_present(&f, 0, 0, 2 * MS, 0);
    if (n % 50) continue;
    m6_capture_drain(&c, 0);
    moment.at = now.covered = (int64_t)f.clock, now.on += 7, now.calls++, moment.live += 70000;
    c.retained.high = 0; /* each is a new high */
    m6_retained_sample(&c.retained, &moment);
    m6_retained_kernel(&c.retained, moment.at, &then, &now);
    then = now;
    if (n % 10000 == 0) fx_finish_into(&c, 0, block);
  }
}

static void memory_does_not_grow_with_time(void **state)
{
  (void)state;
  void *block = aligned_alloc(64, M6_SNAPSHOT_BYTES_MAX);
  assert_non_null(block);
  memset(block, 0, M6_SNAPSHOT_BYTES_MAX);
  frames_until(10000, block);
  struct held early = held();
  uint32_t nodes = c.tree.bump;
  frames_until(1000000, block);
  struct held late = held();
  assert_int_equal(late.allocated, early.allocated);
  assert_int_equal(late.mapped, early.mapped);
  assert_int_equal(c.tree.bump, nodes);
  /* It was all there to be kept. */
  const struct m6_snapshot *s = block;
  assert_int_equal(s->presents, 1000000);
  assert_int_equal(fx_find(s, "frame/update/physics")->count, 999999);
  assert_true(s->spikes_total > 900 && c.frames.retained_total > 20ull * M6_FRAMES_RETAINED);
  assert_true(s->buckets_overwritten > 1000 && s->growth_overwritten > 1000 && s->stalls_overwritten > 300);
  free(block);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
  const struct CMUnitTest tests[] = {T(frames_over_time_not_the_mean_of_rates),
                                     T(no_frames_at_all),
                                     T(one_present),
                                     T(fast_frames),
                                     T(pairs_of_presents),
                                     T(a_spike_names_its_scopes),
                                     T(a_scope_that_is_open_at_the_present_is_a_cause),
                                     T(a_scope_over_many_frames_is_a_cause),
                                     T(what_is_a_spike),
                                     T(the_rolling_median_is_the_median),
                                     T(lost_boundaries_make_a_lump),
                                     T(the_first_boundary_is_lost),
                                     T(the_verdict),
                                     T(the_verdict_is_rarely_wrong),
                                     T(memory_does_not_grow_with_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
