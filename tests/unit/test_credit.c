/* links: collector/capture.c collector/drain.c collector/thread.c collector/scope.c collector/tree.c collector/reservoir.c */
/* links: collector/histogram.c collector/frame.c collector/retained.c collector/books.c collector/verdict.c collector/clock.c collector/utf8.c */
/* links: collector/publish.c collector/publish_tree.c collector/stats_proc.c collector/guard.c collector/kernel_side_scopes.c collector/kernel_side_seconds.c collector/sample_join.c -lm */
/* sanitizers: address */
/* test_credit - each CPU sample falls to the scope that was open when it was taken, once; and what a frame was made of is the difference of
 * two boundaries of one thread. */
#include "collector/kernel_side.h"
#include "segment_fixture.h"

/* kernel_side_switches.c: there are none here. */
void m6_kernel_presented(void *arg, const struct m6_capture *from, uint32_t tid, uint32_t stream, uint64_t number,
                         uint64_t clock)
{
  (void)arg, (void)from, (void)tid, (void)stream, (void)number, (void)clock;
}
void m6_kernel_switches_settle(struct m6_kernel_side *side) { (void)side; }
const struct m6_thread_counters *m6_kernel_switches_rows(struct m6_kernel_side *side, uint32_t *count)
{
  (void)side, *count = 0;
  return NULL;
}

static struct fx f;
static struct m6_capture c;
static struct m6_kernel_side k;
static uint32_t A, B;

static int setup(void **state)
{
  (void)state;
  fx_open(&f, 1);
  A = fx_label(&f, "a");
  B = fx_label(&f, "b");
  memset(&k, 0, sizeof k);
  k.join = m6_join_new();
  int e = m6_capture_open(&c, f.segment, 0, NULL, NULL);
  m6_kernel_join(&k, &c);
  return e || k.join == NULL;
}
static int teardown(void **state)
{
  (void)state;
  m6_capture_close(&c);
  m6_join_free(k.join);
  free(k.frames);
  fx_close(&f);
  return 0;
}

static void mark(unsigned thread, uint32_t label)
{
  f.clock += 10;
  fx_mark(&f, thread, label);
}
static void done(unsigned thread)
{
  f.clock += 10;
  fx_done(&f, thread);
}
static void present(void)
{
  f.clock += 10;
  fx_present(&f, 0, 0, 5, 0);
}
/* Now, after the last record and before the next one. */
static void weighs(uint32_t tid, uint32_t weight)
{
  m6_join_add(k.join, &(struct m6_sample){.time_ns = f.clock + 5, .tid = tid, .weight = weight});
}
static void sample(uint32_t tid) { weighs(tid, 1); }

static void drain(void)
{
  m6_capture_drain(&c, 0);
  m6_kernel_drained(&k, &c);
}

static uint64_t samples_of(const struct m6_snapshot *s, const char *path)
{
  const struct m6_snap_node *n = fx_find(s, path);
  if (n == NULL) print_error("no node %s\n", path);
  assert_non_null(n);
  uint32_t out = (uint32_t)(n - (const struct m6_snap_node *)((const char *)s + s->nodes_offset));
  for (uint32_t i = 1; i < c.tree.bump; i++)
    if (c.tree.nodes[i].out == out) return c.tree.nodes[i].samples;
  fail_msg("%s is not in the tree", path);
  return 0;
}

static void to_the_scope_that_was_open(void **state)
{
  (void)state;
  fx_start(&f, 0, 1000);
  fx_start(&f, 1, 1001);
  mark(0, A), sample(1000), done(0); /* startup/a */
  sample(1000);                      /* startup */
  present();
  mark(0, A), sample(1000), mark(0, B), sample(1000), sample(1000), done(0), sample(1000), done(0);
  sample(1000); /* frame */
  mark(1, B), sample(1001), sample(1000), done(1);
  present();
  drain();
  mark(0, A), sample(1000); /* open across a drain */
  drain();
  sample(1000), done(0), sample(1000);
  present();
  sample(4711); /* of a thread that never marked */
  drain();
  struct m6_snapshot *s = fx_finish(&c, 1);
  assert_int_equal(samples_of(s, "startup/a"), 1);
  assert_int_equal(samples_of(s, "startup"), 1);
  assert_int_equal(samples_of(s, "frame/a"), 4);
  assert_int_equal(samples_of(s, "frame/a/b"), 2);
  assert_int_equal(samples_of(s, "frame"), 3);
  assert_int_equal(samples_of(s, "(unnamed)/b"), 1);
  assert_int_equal(k.elsewhere, 1);
  assert_int_equal(k.in_presents, 0);
  free(s);
}

static void inside_a_present(void **state)
{
  (void)state;
  fx_start(&f, 0, 1000);
  present();
  drain();
  f.clock += 10;
  uint64_t entry = f.clock;
  fx_present(&f, 0, 0, 1000, 0); /* takes 1,000 ns */
  m6_join_add(k.join, &(struct m6_sample){.time_ns = entry + 500, .tid = 1000, .weight = 1});
  m6_join_add(k.join, &(struct m6_sample){.time_ns = entry + 600, .tid = 1000, .weight = 1});
  sample(1000);
  drain();
  struct m6_snapshot *s = fx_finish(&c, 1);
  assert_int_equal(k.in_presents, 2);
  assert_int_equal(samples_of(s, "frame") + samples_of(s, "shutdown"), 1);
  free(s);
}

/* The governor's steps: each sample brings the periods that it stands for, wherever it falls. */
static void a_scope_gets_the_periods_of_its_samples(void **state)
{
  (void)state;
  fx_start(&f, 0, 1000);
  present();
  mark(0, A), weighs(1000, 1), mark(0, B), weighs(1000, 2), weighs(1000, 6), done(0), weighs(1000, 2), done(0);
  weighs(1000, 3);
  present();
  drain();
  f.clock += 10;
  uint64_t entry = f.clock;
  fx_present(&f, 0, 0, 1000, 0);
  m6_join_add(k.join, &(struct m6_sample){.time_ns = entry + 500, .tid = 1000, .weight = 4});
  weighs(4711, 5);
  drain();
  struct m6_snapshot *s = fx_finish(&c, 1);
  assert_int_equal(samples_of(s, "frame/a"), 3);
  assert_int_equal(samples_of(s, "frame/a/b"), 8);
  assert_int_equal(samples_of(s, "frame"), 3);
  assert_int_equal(k.in_presents, 4);
  assert_int_equal(k.elsewhere, 5);
  free(s);
}

/* Whatever the records are, each sample comes out once. */
static void none_is_lost_or_counted_twice(void **state)
{
  (void)state;
  uint64_t given = 0;
  for (unsigned t = 0; t < FX_THREADS; t++) fx_start(&f, t, 1000 + t);
  for (int round = 0; round < 400; round++) {
    for (int i = 0; i < 20; i++) {
      unsigned t = (unsigned)fx_random(&f, FX_THREADS);
      f.clock += 10;
      switch (fx_random(&f, 4)) {
      case 0: mark(t, fx_random(&f, 2) ? A : B); break;
      case 1:
        if (f.thread[t].depth) done(t);
        break;
      case 2: present(); break;
      default: sample(1000 + (uint32_t)fx_random(&f, FX_THREADS + 1)), given++;
      }
    }
    drain();
  }
  free(fx_finish(&c, 1));
  uint64_t in_tree = 0;
  for (uint32_t i = 0; i < c.tree.bump; i++) in_tree += c.tree.nodes[i].samples;
  assert_int_equal(in_tree + k.in_presents + k.elsewhere, given);
  assert_true(k.elsewhere > 0 && in_tree > given / 2);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static struct m6_kernel_frame at(uint64_t number, uint32_t tid, uint64_t time, uint64_t on, uint64_t lock)
{
  struct m6_kernel_frame b = {.tid = tid, .number = number};
  b.entry = (struct m6_kernel_reading){.time_ns = time, .on_ns = on, .wait_ns = time - on - lock, .calls = number};
  b.entry.off_ns[M6_OFF_LOCK] = lock;
  return b;
}

static void a_frame_is_the_difference_of_two_boundaries(void **state)
{
  (void)state;
  struct m6_kernel_frame b[] = {at(1, 7, 1000, 600, 100), at(2, 7, 3000, 1600, 700), at(4, 7, 9000, 2000, 800),
                                at(5, 8, 9900, 2100, 800), at(6, 8, 9990, 2150, 820)};
  for (size_t i = 0; i < sizeof b / sizeof *b; i++) m6_kernel_boundary(&b[i], &k);
  assert_null(m6_kernel_causes(&k, 1));
  const struct m6_snap_causes *two = m6_kernel_causes(&k, 2);
  assert_non_null(two);
  assert_int_equal(two->time, 2000);
  assert_int_equal(two->on, 1000);
  assert_int_equal(two->off[M6_WHY_LOCK], 600);
  assert_int_equal(two->wait, 400);
  assert_int_equal(two->calls, 1);
  assert_null(m6_kernel_causes(&k, 4)); /* number 3 was lost: that would be two frames */
  assert_null(m6_kernel_causes(&k, 5)); /* another thread's readings */
  assert_non_null(m6_kernel_causes(&k, 6));
  k.base_presents = 3; /* the session began after three presents */
  assert_ptr_equal(m6_kernel_causes(&k, 3), &k.frames[6].causes);
  k.stream = 1;
  assert_null(m6_kernel_causes(&k, 3));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(to_the_scope_that_was_open, setup, teardown),
    cmocka_unit_test_setup_teardown(inside_a_present, setup, teardown),
    cmocka_unit_test_setup_teardown(a_scope_gets_the_periods_of_its_samples, setup, teardown),
    cmocka_unit_test_setup_teardown(none_is_lost_or_counted_twice, setup, teardown),
    cmocka_unit_test_setup_teardown(a_frame_is_the_difference_of_two_boundaries, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
