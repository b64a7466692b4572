/* links: collector/capture.c collector/drain.c collector/thread.c collector/scope.c collector/tree.c collector/reservoir.c */
/* links: collector/histogram.c collector/frame.c collector/retained.c collector/books.c collector/verdict.c collector/clock.c collector/utf8.c */
/* links: collector/publish.c collector/publish_tree.c collector/stats_proc.c collector/guard.c -lm */
/* sanitizers: address */
/* test_scopes - scopes are rebuilt as they were, land where they belong, and no loss makes one of what was two. */
#include "segment_fixture.h"

static struct fx f;
static struct m6_capture c;
static uint32_t A, B, C;

static int setup(void **state)
{
  (void)state;
  fx_open(&f, 1);
  A = fx_label(&f, "a");
  B = fx_label(&f, "b");
  C = fx_label(&f, "c");
  return m6_capture_open(&c, f.segment, 0, NULL, NULL);
}
static int teardown(void **state)
{
  (void)state;
  m6_capture_close(&c);
  fx_close(&f);
  return 0;
}
static void mark(uint32_t label)
{
  f.clock += 10;
  fx_mark(&f, 0, label);
}
static void done(void)
{
  f.clock += 10;
  fx_done(&f, 0);
}
static void present(void)
{
  f.clock += 10;
  fx_present(&f, 0, 0, 5, 0);
}
static struct m6_snapshot *finish(void)
{
  m6_capture_drain(&c, 1);
  struct m6_snapshot *s = fx_finish(&c, 1);
  fx_check(s);
  assert_true(s->closed);
  return s;
}
static void is(const struct m6_snapshot *s, const char *path, uint64_t count, uint64_t abandoned, uint64_t lost)
{
  const struct m6_snap_node *n = fx_find(s, path);
  if (n == NULL) {
    print_error("no node %s\n", path);
    assert_non_null(n);
    return;
  }
  if (n->count != count || n->abandoned != abandoned || n->lost != lost)
    print_error("%s: count %lu abandoned %lu lost %lu\n", path, n->count, n->abandoned, n->lost);
  assert_int_equal(n->count, count);
  assert_int_equal(n->abandoned, abandoned);
  assert_int_equal(n->lost, lost);
}
static void is_not(const struct m6_snapshot *s, const char *path) { assert_null(fx_find(s, path)); }

static void parts_of_a_session(void **state)
{
  (void)state;
  fx_start(&f, 0, 1000);
  mark(A), mark(B), done(), done(); /* startup */
  present();
  mark(A), mark(C), done(), done(); /* frame 1 */
  present();
  mark(B), done(); /* frame 2 */
  present();
  mark(C), mark(A), done(), done(); /* after the last present */
  struct m6_snapshot *s = finish();
  is(s, "startup/a", 1, 0, 0);
  is(s, "startup/a/b", 1, 0, 0);
  is(s, "frame/a/c", 1, 0, 0);
  is(s, "frame/b", 1, 0, 0);
  is(s, "shutdown/c/a", 1, 0, 0);
  is_not(s, "frame/c");
  is_not(s, "shutdown/b");
  assert_int_equal(s->presents, 3);
  assert_int_equal(fx_find(s, "frame")->count, 2);
  assert_int_equal(fx_find(s, "frame/a")->time_sum, 30);
  free(s);
}

static void live_shows_the_open_frame_in_frame(void **state)
{
  (void)state;
  fx_start(&f, 0, 1000);
  present(), mark(A), done();
  m6_capture_drain(&c, 0);
  struct m6_snapshot *s = fx_finish(&c, 0);
  fx_check(s);
  is(s, "frame/a", 1, 0, 0);
  assert_true(s->closed);
  free(s);
  s = finish();
  is(s, "shutdown/a", 1, 0, 0);
  is_not(s, "frame/a");
  free(s);
}

static void scopes_across_a_boundary_lie_where_they_were_marked(void **state)
{
  (void)state;
  mark(A);
  present(); /* a was marked in startup */
  mark(B), done();
  present();
  done();
  mark(C); /* marked in frame 2 */
  present();
  mark(B), done(), done();
  present();
  mark(A), present(), done(); /* marked in a frame, though it ends after the last present */
  struct m6_snapshot *s = finish();
  is(s, "startup/a", 1, 0, 0);
  is(s, "frame/b", 2, 0, 0);
  is_not(s, "frame/c/b");
  is(s, "frame/c", 1, 0, 0);
  is(s, "frame/a", 1, 0, 0);
  free(s);
}

/* A frame's D: its thread's top-level scopes that lie wholly inside, the rest of its thread, the other threads. */
static void the_split_of_a_frame(void **state)
{
  (void)state;
  fx_start(&f, 0, 1000);
  mark(A), fx_alloc(&f, 0, 1); /* startup */
  present();
  fx_alloc(&f, 0, 10); /* inside a, which began before this frame */
  done();
  fx_alloc(&f, 0, 100); /* outside of scopes */
  mark(B), fx_alloc(&f, 0, 1000), mark(C), fx_alloc(&f, 0, 2000), done(), done();
  fx_alloc(&f, 1, 10000);
  mark(C), fx_alloc(&f, 0, -500), done();
  mark(B), fx_alloc(&f, 0, 100000); /* ends in the next frame */
  present();
  done();
  present();
  struct m6_snapshot *s = finish();
  const struct m6_snap_node *frame = fx_find(s, "frame");
  assert_int_equal(frame->d_sum, 112610);
  assert_int_equal(frame->d_scopes, 1000 + 2000 - 500);
  assert_int_equal(frame->d_others, 10000);
  assert_int_equal(frame->d_thread_rest, 10 + 100 + 100000);
  assert_int_equal(frame->allocs, 6);
  assert_int_equal(fx_find(s, "frame/b")->d_sum, 103000);
  assert_int_equal(fx_find(s, "frame/b")->d_max, 100000);
  assert_int_equal(fx_find(s, "frame/b")->allocs, 3);
  assert_int_equal(fx_find(s, "frame/b/c")->d_sum, 2000);
  assert_int_equal(fx_find(s, "frame/c")->d_sum, -500);
  assert_int_equal(fx_find(s, "frame/c")->d_max, -500);
  assert_int_equal(fx_find(s, "startup/a")->d_sum, 11);
  free(s);
}

static void other_threads_share_a_node_by_name(void **state)
{
  (void)state;
  present();
  fx_start(&f, 1, 1001), fx_mark(&f, 1, A), fx_done(&f, 1);
  fx_start(&f, 2, 1002), fx_mark(&f, 2, A), fx_mark(&f, 2, B), fx_done(&f, 2), fx_done(&f, 2), fx_end(&f, 2);
  struct m6_snapshot *s = finish();
  is(s, "(unnamed)", 2, 0, 0);
  is(s, "(unnamed)/a", 2, 0, 0);
  is(s, "(unnamed)/a/b", 1, 0, 0);
  free(s);
}

/* Before the first present nobody knows who will present; publishing must not decide it. */
static void the_presenter_is_known_late(void **state)
{
  (void)state;
  for (unsigned t = 0; t < 3; t++) fx_start(&f, t, 1000 + t), fx_mark(&f, t, A), fx_done(&f, t);
  m6_capture_drain(&c, 0);
  free(fx_finish(&c, 0));
  for (unsigned t = 0; t < 3; t++) fx_mark(&f, t, A), fx_done(&f, t);
  m6_capture_drain(&c, 0);
  struct m6_snapshot *s = fx_finish(&c, 0);
  fx_check(s);
  assert_int_equal(s->presents, 0);
  free(s);
  f.clock += 10;
  fx_present(&f, 1, 0, 5, 0);
  fx_mark(&f, 1, B), fx_done(&f, 1);
  fx_present(&f, 1, 0, 5, 0);
  s = finish();
  is(s, "startup/a", 2, 0, 0);
  is(s, "frame/b", 1, 0, 0);
  is(s, "(unnamed)/a", 4, 0, 0);
  is(s, "(unnamed)", 2, 0, 0);
  free(s);
}

static void lost_dones(void **state)
{
  (void)state;
  present();
  mark(A), mark(B);
  f.lose_percent = 100;
  done(), done(); /* both are lost */
  f.lose_percent = 0;
  mark(C), done();
  present();
  struct m6_snapshot *s = finish();
  is(s, "frame/a", 0, 0, 1);
  is(s, "frame/a/b", 0, 0, 1);
  is(s, "frame/c", 1, 0, 0);
  free(s);
}

static void lost_marks(void **state)
{
  (void)state;
  present();
  f.lose_percent = 100;
  mark(A), mark(B);
  f.lose_percent = 0;
  mark(C), done(), done(), done();
  mark(A), done();
  present();
  struct m6_snapshot *s = finish();
  is(s, "frame/c", 1, 0, 0);
  is(s, "frame/a", 1, 0, 0);
  is_not(s, "frame/b");
  free(s);
}

/* done(a) and mark(b) at the same depth are lost: what looks like a's end is b's. */
static void a_loss_does_not_join_two_scopes(void **state)
{
  (void)state;
  present();
  mark(A);
  f.lose_percent = 100;
  done(), mark(B);
  f.lose_percent = 0;
  done();
  present();
  struct m6_snapshot *s = finish();
  is(s, "frame/a", 0, 0, 1);
  assert_int_equal(fx_find(s, "frame")->d_scopes, 0);
  free(s);
}

static void holes_are_losses(void **state)
{
  (void)state;
  present();
  mark(A);
  f.hole_percent = 100;
  done();
  f.hole_percent = 0;
  mark(B), done();
  present();
  uint64_t before = 0;
  for (unsigned i = 0; i <= M6_HOLE_PATIENCE; i++) {
    before += m6_capture_drain(&c, 0).records;
    assert_int_equal(c.holes, i < M6_HOLE_PATIENCE ? 0 : 1);
  }
  struct m6_snapshot *s = finish();
  assert_int_equal(s->holes, 1);
  is(s, "frame/a", 0, 0, 1);
  is(s, "frame/b", 1, 0, 0);
  free(s);
}

/* done(a) and mark(b) were claimed and never written: what follows is b's end, and a's is unknown. */
static void holes_do_not_join_two_scopes(void **state)
{
  (void)state;
  present();
  mark(A);
  f.hole_percent = 100;
  done(), mark(B);
  f.hole_percent = 0;
  done();
  present();
  struct m6_snapshot *s = finish();
  assert_int_equal(s->holes, 2);
  is(s, "frame/a", 0, 0, 1);
  free(s);
}

/* A thread that is merely late is waited for: nothing is lost. */
static void a_late_record_is_no_hole(void **state)
{
  (void)state;
  mark(A);
  struct m6_producer *p = &f.thread[0].producer;
  uint64_t at = m6_ring_claim(p, 1);
  for (int i = 0; i < 50; i++) m6_capture_drain(&c, 0);
  f.clock += 10;
  m6_ring_commit(p, at, f.clock, 0, 0, M6_REC_DONE, 0, 0, 0);
  struct m6_snapshot *s = finish();
  assert_int_equal(s->holes, 0);
  is(s, "(unnamed)/a", 1, 0, 0);
  free(s);
}

static void abandoned_scopes(void **state)
{
  (void)state;
  present();
  mark(A), mark(B), mark(C);
  f.clock += 10;
  fx_done_to(&f, 0, 0, 1);
  mark(B);
  fx_end(&f, 0);
  struct m6_snapshot *s = finish();
  is(s, "shutdown/a", 1, 0, 0);
  is(s, "shutdown/a/b", 0, 1, 0);
  is(s, "shutdown/a/b/c", 0, 1, 0);
  is(s, "shutdown/b", 0, 1, 0);
  assert_int_equal(s->abandoned, 3);
  free(s);
}

static void a_new_thread_in_a_ring_starts_afresh(void **state)
{
  (void)state;
  fx_start(&f, 0, 1000);
  mark(A);
  fx_start(&f, 0, 1001);
  mark(B), done();
  fx_end(&f, 0);
  fx_start(&f, 0, 1002);
  mark(C), done();
  struct m6_snapshot *s = finish();
  is(s, "(unnamed)/a", 0, 1, 0);
  is(s, "(unnamed)/b", 1, 0, 0);
  is(s, "(unnamed)/c", 1, 0, 0);
  is(s, "(unnamed)", 3, 0, 0);
  free(s);
}

static void depth_is_bounded(void **state)
{
  (void)state;
  present();
  for (int i = 0; i < 100000; i++) {
    fx_mark(&f, 0, A);
    if (f.thread[0].depth > 0xffff) f.thread[0].depth = 0xffff;
    if (i % 500 == 0) m6_capture_drain(&c, 0);
  }
  m6_capture_drain(&c, 0);
  for (unsigned d = 0xffff; d-- > 0;) {
    fx_done_to(&f, 0, d, 0);
    if (d % 500 == 0) m6_capture_drain(&c, 0);
  }
  mark(B), done();
  present();
  struct m6_snapshot *s = finish();
  is(s, "frame/b", 1, 0, 0);
  assert_int_equal(fx_find(s, "frame/a")->count, 1);
  assert_true(s->node_count <= M6_SCOPE_DEPTH_MAX + 16);
  free(s);
}

/* The main stream's presenter changes: its scopes stay in frames, the split gives the whole frame to the others. */
static void the_presenter_changes(void **state)
{
  (void)state;
  fx_start(&f, 0, 1000), fx_start(&f, 1, 1001);
  present();
  mark(A), done();
  fx_alloc(&f, 1, 300);
  f.clock += 10;
  m6_capture_drain(&c, 0);
  fx_present(&f, 1, 0, 5, 0);
  fx_mark(&f, 1, B), fx_alloc(&f, 1, 50), fx_done(&f, 1);
  f.clock += 10;
  fx_present(&f, 1, 0, 5, 0);
  m6_capture_drain(&c, 0); /* rings are read one after the other: who presents is known from poll to poll */
  fx_mark(&f, 0, C), fx_done(&f, 0);
  struct m6_snapshot *s = finish();
  is(s, "frame/a", 1, 0, 0);
  is(s, "frame/b", 1, 0, 0);
  is(s, "(unnamed)/c", 1, 0, 0);
  const struct m6_snap_node *frame = fx_find(s, "frame");
  assert_int_equal(frame->count, 2);
  assert_int_equal(frame->d_sum, 350);
  assert_int_equal(frame->d_scopes, 50);
  assert_int_equal(frame->d_others, 300);
  free(s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
  const struct CMUnitTest tests[] = {T(parts_of_a_session),
                                     T(live_shows_the_open_frame_in_frame),
                                     T(scopes_across_a_boundary_lie_where_they_were_marked),
                                     T(the_split_of_a_frame),
                                     T(holes_do_not_join_two_scopes),
                                     T(other_threads_share_a_node_by_name),
                                     T(the_presenter_is_known_late),
                                     T(lost_dones),
                                     T(lost_marks),
                                     T(a_loss_does_not_join_two_scopes),
                                     T(holes_are_losses),
                                     T(a_late_record_is_no_hole),
                                     T(abandoned_scopes),
                                     T(a_new_thread_in_a_ring_starts_afresh),
                                     T(depth_is_bounded),
                                     T(the_presenter_changes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
