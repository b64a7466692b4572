/* links: collector/capture.c collector/drain.c collector/thread.c collector/scope.c collector/tree.c collector/reservoir.c */
/* links: collector/histogram.c collector/frame.c collector/retained.c collector/books.c collector/verdict.c collector/clock.c collector/utf8.c */
/* links: collector/publish.c collector/publish_tree.c collector/stats_proc.c collector/guard.c -lm */
/* sanitizers: address */
/* test_hostile - a segment is foreign bytes: whatever they are, the collector lives, ends, and its snapshot is well-formed (A10 too).
 *
 * Random bytes, each header field at its extremes, random damage between polls, a file that is cut off while it is read.
 */
#include <sys/mman.h>

#include "collector/guard.h"
#include "segment_fixture.h"

static struct fx f;
static struct m6_capture c;

static void poll_and_publish(int polls)
{
  for (int i = 0; i < polls; i++) {
    m6_capture_drain(&c, i == polls - 1);
    if (i % 3 == 0 || i == polls - 1) {
      static _Alignas(64) char block[M6_SNAPSHOT_BYTES_MAX];
      fx_finish_into(&c, i == polls - 1, block);
      fx_check((struct m6_snapshot *)block);
    }
  }
}

static void scribble(void *at, size_t n)
{
  for (size_t i = 0; i < n; i++) ((unsigned char *)at)[i] = (unsigned char)m6_rng_next(&f.rng);
}

static void random_bytes(void **state)
{
  (void)state;
  for (uint64_t seed = 0; seed < 12; seed++) {
    fx_open(&f, seed);
    scribble(f.segment, M6_SEGMENT_BYTES);
    assert_int_equal(m6_capture_open(&c, f.segment, 0, NULL, NULL), 0);
    poll_and_publish(8);
    m6_capture_close(&c);
    fx_close(&f);
  }
}

/* Valid stamps, random everything else: what a malicious shim would write. */
static void committed_nonsense(void **state)
{
  (void)state;
  for (uint64_t seed = 0; seed < 150; seed++) {
    fx_open(&f, seed);
    scribble(&f.header->streams, sizeof f.header->streams);
    assert_int_equal(m6_capture_open(&c, f.segment, 0, NULL, NULL), 0);
    for (int poll = 0; poll < 6; poll++) {
      for (uint32_t t = 0; t < FX_THREADS; t++) {
        struct m6_producer *p = &f.thread[t].producer;
        for (int i = 0; i < 300 && m6_ring_room(p, 1); i++) {
          unsigned type = fx_random(&f, 20) ? 1 + (unsigned)fx_random(&f, 7) : (unsigned)m6_rng_next(&f.rng);
          unsigned label = fx_random(&f, 3) ? (unsigned)fx_random(&f, 8) : (unsigned)m6_rng_next(&f.rng);
          unsigned depth = fx_random(&f, 3) ? (unsigned)fx_random(&f, 6) : (unsigned)m6_rng_next(&f.rng);
          uint64_t at = m6_ring_claim(p, 1);
          if (fx_random(&f, 40) == 0) continue;
          m6_ring_commit(p, at, m6_rng_next(&f.rng) >> fx_random(&f, 64), m6_rng_next(&f.rng) >> fx_random(&f, 64),
                         m6_rng_next(&f.rng) >> fx_random(&f, 64), type, (unsigned)m6_rng_next(&f.rng), label, depth);
        }
      }
      poll_and_publish(1 + (poll == 5));
    }
    m6_capture_close(&c);
    fx_close(&f);
  }
}

/* An index that jumps is put right, once, and what comes after it is read. */
static void indices_that_jump(void **state)
{
  (void)state;
  static const uint64_t jumps[] = {5000, 1ull << 32, UINT64_MAX / 2};
  for (size_t k = 0; k < sizeof jumps / sizeof jumps[0]; k++) {
    fx_open(&f, 1);
    uint32_t label = fx_label(&f, "label");
    assert_int_equal(m6_capture_open(&c, f.segment, 0, NULL, NULL), 0);
    struct m6_ring_head *head = m6_segment_ring(f.segment, 0);
    fx_mark(&f, 0, label), fx_done(&f, 0);
    m6_capture_drain(&c, 0);
    head->claimed += jumps[k];
    m6_capture_drain(&c, 0);
    assert_int_equal(c.bad, 1);
    assert_int_equal(head->consumed, head->claimed);
    fx_mark(&f, 0, label), fx_done(&f, 0);
    m6_capture_drain(&c, 1);
    struct m6_snapshot *s = fx_finish(&c, 1);
    fx_check(s);
    assert_int_equal(fx_find(s, "(unnamed)/label")->count, 2);
    assert_int_equal(s->bad_records, 1);
    free(s);
    m6_capture_close(&c);
    fx_close(&f);
  }
}

static void a_little_of_everything(uint32_t label)
{
  for (unsigned t = 0; t < FX_THREADS; t++) {
    fx_tick(&f);
    fx_mark(&f, t, label), fx_alloc(&f, t, 100), fx_mark(&f, t, label);
    fx_done(&f, t), fx_done(&f, t);
  }
  fx_present(&f, 0, 0, 5, 3);
}

static void each_field_at_its_extremes(void **state)
{
  (void)state;
  static const uint64_t extremes[] = {
    0, 1, UINT32_MAX, INT32_MAX, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX, 1ull << 32, 0x8000000080000000ull};
  enum { WORDS = 256 / 8, N = sizeof extremes / sizeof extremes[0] };
  /* Every word of the header's first four lines, a stream, a slot, a ring head and a label, before and after the capture began. */
  static const size_t places[] = {0,
                                  offsetof(struct m6_header, streams),
                                  M6_OFF_SLOTS,
                                  M6_OFF_SLOTS + 128,
                                  M6_OFF_RING_HEADS,
                                  M6_OFF_LABELS,
                                  M6_OFF_LABEL_TABLE};
  for (size_t place = 0; place < sizeof places / sizeof places[0]; place++)
    for (size_t word = 0; word < WORDS; word += place == 0 ? 1 : 1 + word / 8)
      for (size_t k = 0; k < N; k++)
        for (int late = 0; late < 2; late++) {
          fx_open(&f, 1);
          uint32_t label = fx_label(&f, "label");
          uint64_t *at = (uint64_t *)((char *)f.segment + places[place]) + word;
          if (!late) *at = extremes[k];
          assert_int_equal(m6_capture_open(&c, f.segment, 0, NULL, NULL), 0);
          f.header->slots_used = 9; /* what the fixture itself goes by */
          for (unsigned i = 0; i < 3; i++) a_little_of_everything(label);
          m6_capture_drain(&c, 0);
          *at = extremes[k];
          poll_and_publish(2);
          m6_capture_close(&c);
          fx_close(&f);
        }
}

static void damage_between_polls(void **state)
{
  (void)state;
  for (uint64_t seed = 0; seed < 200; seed++) {
    fx_open(&f, seed);
    uint32_t label = fx_label(&f, "label");
    assert_int_equal(m6_capture_open(&c, f.segment, 0, NULL, NULL), 0);
    for (int poll = 0; poll < 20; poll++) {
      f.header->slots_used = 1 + FX_THREADS;
      for (unsigned i = 0; i < 5; i++) a_little_of_everything(label);
      for (int i = 0; i < 10; i++) {
        size_t at = fx_random(&f, 3) ? fx_random(&f, M6_OFF_LABEL_TEXT)
                                     : M6_OFF_RINGS + fx_random(&f, FX_THREADS * 65536);
        scribble((char *)f.segment + at, 1);
      }
      poll_and_publish(1 + (poll == 19));
    }
    m6_capture_close(&c);
    fx_close(&f);
  }
}

/* ---- a file that is cut off ---------------------------------------------------------------------------------------- */

static void drain_it(void *arg)
{
  (void)arg;
  m6_capture_drain(&c, 0);
}
static void sample_it(void *arg)
{
  (void)arg;
  m6_capture_sample(&c, 0);
}

static void truncated_while_mapped(void **state)
{
  (void)state;
  static const off_t cuts[] = {0,
                               4096,
                               M6_OFF_SLOTS + 4096,
                               M6_OFF_RING_HEADS,
                               M6_OFF_LABEL_TEXT,
                               M6_OFF_RINGS,
                               M6_OFF_RINGS + 65536,
                               M6_OFF_RINGS + 65536 + 8192};
  for (size_t k = 0; k < sizeof cuts / sizeof cuts[0]; k++) {
    fx_open(&f, 1);
    uint32_t label = fx_label(&f, "label");
    int fd = memfd_create("segment", 0);
    assert_int_equal(ftruncate(fd, M6_SEGMENT_BYTES), 0);
    void *map = mmap(NULL, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    for (unsigned i = 0; i < 5; i++) a_little_of_everything(label);
    assert_int_equal(pwrite(fd, f.segment, M6_SEGMENT_BYTES, 0), M6_SEGMENT_BYTES);
    assert_int_equal(m6_capture_open(&c, map, 0, NULL, NULL), 0);
    assert_int_equal(m6_guarded(sample_it, NULL, map, M6_SEGMENT_BYTES), 0);
    assert_int_equal(m6_guarded(drain_it, NULL, map, M6_SEGMENT_BYTES), 0);
    for (unsigned i = 0; i < 200; i++) a_little_of_everything(label);
    assert_int_equal(pwrite(fd, f.segment, M6_SEGMENT_BYTES, 0), M6_SEGMENT_BYTES);
    assert_int_equal(ftruncate(fd, cuts[k]), 0);
    int gone = m6_guarded(drain_it, NULL, map, M6_SEGMENT_BYTES) + m6_guarded(sample_it, NULL, map, M6_SEGMENT_BYTES);
    assert_true(gone < 0);
    /* The target is lost; what was known of it can still be told. */
    struct m6_outside o = {.state = M6_ENDED, .end_reason = M6_END_FAILURE};
    void *block = aligned_alloc(64, M6_SNAPSHOT_BYTES_MAX);
    m6_snapshot_build(&c, &o, 1, block);
    fx_check(block);
    assert_true(((struct m6_snapshot *)block)->presents >= 5);
    assert_true(((struct m6_snapshot *)block)->closed);
    free(block);
    m6_capture_close(&c);
    munmap(map, M6_SEGMENT_BYTES);
    close(fd);
    fx_close(&f);
  }
}

/* ---- A10: extremes of honest counters ------------------------------------------------------------------------------ */

static void big_numbers_are_exact(void **state)
{
  (void)state;
  const int64_t big = (1ll << 60) + 1; /* a double would lose the 1 */
  fx_open(&f, 1);
  uint32_t label = fx_label(&f, "label");
  f.header->start_live = 0;
  assert_int_equal(m6_capture_open(&c, f.segment, 0, NULL, NULL), 0);
  fx_present(&f, 0, 0, 5, 0);
  fx_mark(&f, 0, label), fx_alloc(&f, 0, big), fx_done(&f, 0);
  fx_present(&f, 0, 0, 5, 0);
  fx_alloc(&f, 1, -big / 2);
  fx_present(&f, 0, 0, 5, 0);
  m6_capture_drain(&c, 1);
  struct m6_snapshot *s = fx_finish(&c, 1);
  fx_check(s);
  assert_true(s->closed);
  assert_false(s->books_saturated);
  assert_int_equal(s->reading_now, big - big / 2);
  assert_int_equal(s->sum_d, big - big / 2);
  assert_int_equal(fx_find(s, "frame/label")->d_sum, big);
  assert_int_equal(fx_find(s, "frame")->d_scopes, big);
  assert_int_equal(s->allocs[M6_ALLOC_MALLOC].bytes, big);
  assert_int_equal(s->freed_bytes, big / 2);
  free(s);
  m6_capture_close(&c);
  fx_close(&f);
}

static void counters_at_their_ends_saturate(void **state)
{
  (void)state;
  static const uint64_t ends[] = {(uint64_t)INT64_MIN, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN + 1};
  for (int a = 0; a < 4; a++)
    for (int b = 0; b < 4; b++) {
      fx_open(&f, 1);
      uint32_t label = fx_label(&f, "label");
      f.header->start_live = (int64_t)ends[b];
      f.slots[1].live = ends[a];
      f.slots[1].allocs = ends[b];
      assert_int_equal(m6_capture_open(&c, f.segment, 0, NULL, NULL), 0);
      for (int i = 0; i < 5; i++) {
        fx_tick(&f);
        fx_present(&f, 0, 0, 5, 0);
        fx_mark(&f, 0, label);
        f.slots[1].live = ends[(a + i) % 4];
        f.slots[1].allocs++;
        fx_done(&f, 0);
        f.slots[2].live = ends[(b + i) % 4];
      }
      m6_capture_drain(&c, 1);
      struct m6_snapshot *s = fx_finish(&c, 1);
      fx_check(s);
      assert_true(s->closed);
      if (!s->books_saturated) {
        __int128 sum = (__int128)s->sum_d + s->sum_i, change = (__int128)s->reading_now - s->reading_start;
        assert_true(sum == change);
      }
      const struct m6_snap_node *frame = fx_find(s, "frame");
      __int128 split = (__int128)frame->d_scopes + frame->d_thread_rest + frame->d_others;
      assert_true(s->books_saturated || split == frame->d_sum);
      free(s);
      m6_capture_close(&c);
      fx_close(&f);
    }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_bytes),          cmocka_unit_test(committed_nonsense),
    cmocka_unit_test(indices_that_jump),     cmocka_unit_test(each_field_at_its_extremes),
    cmocka_unit_test(damage_between_polls),  cmocka_unit_test(truncated_while_mapped),
    cmocka_unit_test(big_numbers_are_exact), cmocka_unit_test(counters_at_their_ends_saturate)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
