/* links: collector/capture.c collector/drain.c collector/thread.c collector/scope.c collector/tree.c collector/reservoir.c */
/* links: collector/histogram.c collector/frame.c collector/retained.c collector/books.c collector/verdict.c collector/clock.c collector/utf8.c */
/* links: collector/publish.c collector/publish_tree.c collector/stats_proc.c collector/guard.c -lm */
/* sanitizers: address */
/* test_books - property: random scope trees over several threads with random losses close to the byte, in every run.
 *
 * Each seed plays a random program: threads start and end, allocate, free, open and close scopes, leave some by longjmp, one or two
 * present; records are lost one by one or because a ring was full, some are never committed; the collector polls now and then, and
 * publishes. At the end, in every run:
 *   - sum D + sum I = reading now - reading at the start; presents exact; frames = presents - 1; the split is exact;
 *   - a scope that is counted has the time and the D of one that there was: a loss never joins two;
 *   - nothing is invented: a label's counted, abandoned and lost scopes are not more than were opened.
 * Without losses each label's counts, times, D and allocations equal the program's own.
 */
#include "segment_fixture.h"

enum { LABELS = 6, DEPTH = 12, PRESENTERS = 2, KEPT = 20000 };
static int seeds = 3000;

struct open_scope {
  uint32_t label;
  uint64_t clock, live, allocs;
};
struct truth { /* of one label */
  uint64_t opened, closed, left, time, allocs;
  int64_t d;
};
static struct fx f;
static struct m6_capture c;
static uint32_t labels[LABELS];
static struct truth truth[LABELS];
static struct {
  uint64_t time;
  int64_t d;
  uint32_t label;
} closed_scope[KEPT];
static uint32_t closed_count;
static struct open_scope stack[FX_THREADS][DEPTH];
static int running[FX_THREADS];
static uint64_t presents;
static char names[LABELS][16];

static void open_one(unsigned t)
{
  struct fx_thread *x = &f.thread[t];
  if (x->depth == DEPTH) return;
  uint32_t l = (uint32_t)fx_random(&f, LABELS);
  fx_tick(&f);
  stack[t][x->depth] = (struct open_scope){l, f.clock, f.slots[t + 1].live, f.slots[t + 1].allocs};
  truth[l].opened++;
  fx_mark(&f, t, labels[l]);
}
static void close_one(unsigned t)
{
  struct fx_thread *x = &f.thread[t];
  if (x->depth == 0) return;
  unsigned above = fx_random(&f, 20) == 0 ? (unsigned)fx_random(&f, x->depth) : 0, at = x->depth - 1 - above;
  for (unsigned i = at + 1; i < x->depth; i++) truth[stack[t][i].label].left++;
  fx_tick(&f);
  struct open_scope *o = &stack[t][at];
  struct truth *w = &truth[o->label];
  int64_t d = (int64_t)(f.slots[t + 1].live - o->live);
  w->closed++;
  w->time += f.clock - o->clock;
  w->d += d;
  w->allocs += f.slots[t + 1].allocs - o->allocs;
  if (closed_count < KEPT) {
    closed_scope[closed_count].time = f.clock - o->clock;
    closed_scope[closed_count].d = d;
    closed_scope[closed_count++].label = o->label;
  }
  fx_done_to(&f, t, at, above != 0);
}
static void leave_all(unsigned t)
{
  for (unsigned i = 0; i < f.thread[t].depth; i++) truth[stack[t][i].label].left++;
}
static int64_t some_bytes(void)
{
  int64_t n = (int64_t)fx_random(&f, 5000);
  return fx_random(&f, 2) ? n : -n;
}

static void play(int steps)
{
  int poll_every = 1 + (int)fx_random(&f, 4000);
  for (int i = 0; i < steps; i++) {
    unsigned t = (unsigned)fx_random(&f, FX_THREADS);
    fx_tick(&f);
    switch (fx_random(&f, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      if (running[t]) open_one(t);
      break;
    case 4:
    case 5:
    case 6:
    case 7:
      if (running[t]) close_one(t);
      break;
    case 8:
    case 9: fx_alloc(&f, t, some_bytes()); break;
    case 10:
      t = (unsigned)(fx_random(&f, 30) == 0 ? fx_random(&f, PRESENTERS) : 0);
      if (!running[t]) break;
      fx_present(&f, t, 0, 1 + fx_random(&f, 50), fx_random(&f, 3) ? 0 : some_bytes());
      presents++;
      if (fx_random(&f, 10) == 0) fx_present(&f, t, 1, 1, some_bytes()); /* another window */
      break;
    case 11:
      if (fx_random(&f, 8)) break;
      if (running[t]) {
        leave_all(t);
        fx_end(&f, t);
        f.thread[t].depth = 0;
        running[t] = 0;
      } else {
        fx_start(&f, t, 2000 + (uint32_t)i);
        running[t] = 1;
      }
      break;
    }
    if (fx_random(&f, (uint64_t)poll_every) == 0) {
      m6_capture_drain(&c, 0);
      if (fx_random(&f, 8) == 0) {
        struct m6_snapshot *s = fx_finish(&c, 0);
        fx_check(s);
        assert_true(s->closed);
        assert_int_equal(s->sum_d + s->sum_i, s->reading_now - s->reading_start);
        free(s);
      }
    }
  }
}

static void count_label(const struct m6_snapshot *s, uint32_t l, struct truth *got)
{
  const struct m6_snap_node *n = fx_nodes(s);
  memset(got, 0, sizeof *got);
  for (uint32_t i = 0; i < s->node_count; i++) {
    if (n[i].kind != M6_NODE_SCOPE || !fx_labelled(s, &n[i], names[l])) continue;
    got->closed += n[i].count;
    got->left += n[i].abandoned;
    got->opened += n[i].count + n[i].abandoned + n[i].lost;
    got->time += n[i].time_sum;
    got->allocs += n[i].allocs;
    got->d += n[i].d_sum;
    if (n[i].count == 0) continue;
    int time_known = 0, d_known = 0;
    for (uint32_t k = 0; k < closed_count; k++) {
      if (closed_scope[k].label != l) continue;
      time_known |= closed_scope[k].time == n[i].time_max;
      d_known |= closed_scope[k].d == n[i].d_max;
    }
    assert_true(time_known && d_known);
  }
}

static void one_run(uint64_t seed, int losses)
{
  fx_open(&f, seed);
  memset(truth, 0, sizeof truth);
  closed_count = 0;
  presents = 0;
  for (int l = 0; l < LABELS; l++) labels[l] = fx_label(&f, names[l]);
  for (unsigned t = 0; t < FX_THREADS; t++) fx_alloc(&f, t, some_bytes());
  int64_t start = fx_process(&f).live;
  f.header->start_live = start;
  struct m6_totals base;
  m6_totals_read(f.segment, &base);
  assert_int_equal(m6_capture_open(&c, f.segment, 0, &base, NULL), 0);
  for (unsigned t = 0; t < FX_THREADS; t++) {
    running[t] = 0;
    if (t == 0 || fx_random(&f, 2)) {
      fx_start(&f, t, 1000 + t);
      running[t] = 1;
    }
  }
  if (losses) {
    f.lose_percent = (int)fx_random(&f, 4) == 0 ? (int)fx_random(&f, 60) : (int)fx_random(&f, 5);
    f.hole_percent = (int)fx_random(&f, 3);
  }
  play(losses ? 6000 : 900);
  f.lose_percent = f.hole_percent = 0;
  for (unsigned t = 0; t < FX_THREADS; t++) leave_all(t);
  fx_tick(&f);
  m6_capture_drain(&c, 1);
  struct m6_snapshot *s = fx_finish(&c, 1);
  fx_check(s);

  int64_t now = fx_process(&f).live;
  assert_int_equal(s->reading_start, start);
  assert_int_equal(s->reading_now, now);
  assert_int_equal(s->sum_d + s->sum_i, now - start);
  assert_true(s->closed);
  assert_false(s->books_saturated);
  assert_int_equal(s->presents, presents);
  const struct m6_snap_node *frame = fx_find(s, "frame"), *startup = fx_find(s, "startup"),
                            *shutdown = fx_find(s, "shutdown");
  assert_int_equal(frame->count, presents ? presents - 1 : 0);
  assert_int_equal(frame->d_scopes + frame->d_thread_rest + frame->d_others, frame->d_sum);
  int64_t sum = startup->d_sum + frame->d_sum + (shutdown ? shutdown->d_sum : 0) + startup->i_sum + frame->i_sum;
  assert_int_equal(sum, now - start);
  assert_int_equal(s->records_lost, f.lost_records);
  assert_int_equal(s->records + f.lost_records > 0, 1);
  uint64_t kinds = 0;
  for (int k = 0; k < M6_ALLOC_KIND_COUNT; k++) kinds += s->allocs[k].count;
  assert_int_equal(kinds, c.now.allocs - base.allocs);
  if (!losses && f.lost_records == 0) {
    assert_int_equal(s->frames_lost, 0);
    assert_int_equal(s->frames_recorded, presents);
    assert_int_equal(s->holes, 0);
  }
  assert_int_equal(s->bad_records, 0);
  assert_int_equal(s->frames_recorded + s->frames_lost, presents);

  for (uint32_t l = 0; l < LABELS; l++) {
    struct truth got;
    count_label(s, l, &got);
    assert_true(got.opened <= truth[l].opened);
    assert_true(got.closed <= truth[l].closed);
    if (!losses && f.lost_records == 0) {
      assert_int_equal(got.opened, truth[l].opened);
      assert_int_equal(got.closed, truth[l].closed);
      assert_int_equal(got.left, truth[l].left);
      assert_int_equal(got.time, truth[l].time);
      assert_int_equal(got.d, truth[l].d);
      assert_int_equal(got.allocs, truth[l].allocs);
    }
  }
  free(s);
  m6_capture_close(&c);
  fx_close(&f);
}

static void books_close_with_losses(void **state)
{
  (void)state;
  for (int seed = 1; seed <= seeds; seed++) one_run((uint64_t)seed, 1);
}
static void without_losses_every_figure_is_exact(void **state)
{
  (void)state;
  for (int seed = 1; seed <= seeds; seed++) one_run((uint64_t)seed + 1000000, 0);
}

/* The books alone, boundaries out of order and twice, readings anywhere in 64 bits. */
static uint64_t ended_frames;
static void ended(void *arg, const struct m6_ended *e)
{
  (void)arg;
  ended_frames += e->frames;
}
static void any_readings_close(void **state)
{
  (void)state;
  static struct m6_books b;
  static const int64_t extremes[] = {INT64_MIN, INT64_MAX, 0, -1, 1, (1ll << 53) + 1};
  struct m6_rng rng;
  m6_rng_seed(&rng, 5);
  for (int run = 0; run < 2000; run++) {
#define READING (m6_rng_below(&rng, 2) ? (int64_t)m6_rng_next(&rng) : extremes[m6_rng_below(&rng, 6)])
    struct m6_point start = {1, READING, 0};
    m6_books_open(&b, start, ended, NULL);
    ended_frames = 0;
    uint64_t number = 0, clock = 10, most = 0, seen = 0;
    for (int i = 0; i < 50; i++) {
      number += 1 + (m6_rng_below(&rng, 6) == 0 ? m6_rng_below(&rng, 5) : 0);
      struct m6_boundary n;
      memset(&n, 0, sizeof n);
      uint64_t back = m6_rng_below(&rng, 4) == 0 ? m6_rng_below(&rng, 3) : 0;
      n.number = number > back ? number - back : number;
      n.entry = (struct m6_point){clock += 5, READING, m6_rng_next(&rng) & M6_COUNT_MASK};
      n.ret = (struct m6_point){clock += 5, READING, m6_rng_next(&rng) & M6_COUNT_MASK};
      n.previous = m6_rng_below(&rng, 3) ? b.last.number : 0;
      n.d_scopes = READING;
      n.d_thread = READING;
      m6_books_boundary(&b, &n);
      if (m6_rng_below(&rng, 3) == 0) m6_books_poll(&b, 0);
      if (n.number > most) most = n.number;
      seen++;
    }
    m6_books_poll(&b, 1);
    struct m6_point now = {clock, READING, 0};
    struct m6_closing k = m6_books_close(&b, now, most);
    assert_true(k.closed);
    assert_true(k.sum_d + k.sum_i == (__int128)now.live - start.live);
    assert_int_equal(k.frame.count, most - 1);
    assert_int_equal(b.recorded + b.late, seen);
    assert_int_equal(ended_frames, most - b.first_number);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(books_close_with_losses),
                                     cmocka_unit_test(without_losses_every_figure_is_exact),
                                     cmocka_unit_test(any_readings_close)};
  for (int l = 0; l < LABELS; l++) snprintf(names[l], sizeof names[l], "scope %c", 'a' + l);
  if (getenv("SEEDS")) seeds = atoi(getenv("SEEDS"));
#ifdef __SANITIZE_ADDRESS__
  else seeds = 300; /* the same runs as without, fewer of them: time */
#endif
  return cmocka_run_group_tests(tests, NULL, NULL);
}
