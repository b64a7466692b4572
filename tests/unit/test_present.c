/* test_present - frame boundaries: what is counted, what is recorded, and that both hold with nested, failed, lost presents.
 *
 * present.c alone, over a segment in plain memory; what the core gives it (slots, rings, gate) is done here in the simplest way.
 */
/* links: preload/present.c preload/frame_probe.S */
#define M6_ALLOW_LIBC 1
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <cmocka.h>

#include "preload/hook.h"

/* ---- a core ----------------------------------------------------------------------------------------------------- */
struct m6_gate m6_gate;
struct m6_header *m6_seg;
uint32_t m6_clock_kind = M6_CLOCK_MONOTONIC;
__thread struct m6_thread m6_self;
static uint32_t polls, lost_frames;

void m6_poll_control(uint64_t now)
{
  (void)now;
  m6_shared_add(&polls, 1);
}
void m6_thread_session(void) { m6_self.session = m6_peek(&m6_gate.collecting); }
int m6_thread_ring(void)
{
  uint32_t ring = m6_shared_add(&m6_seg->rings_used, 1), slot = m6_shared_add(&m6_seg->slots_used, 1);
  if (ring >= M6_RINGS) {
    m6_self.no_ring = 1;
    return 0;
  }
  m6_self.slot = m6_slots() + slot;
  m6_poke(&m6_self.slot->tid, 1000 + slot);
  m6_producer_init(&m6_self.producer, (struct m6_ring_head *)((char *)m6_seg + M6_OFF_RING_HEADS) + ring,
                   (struct m6_record *)((char *)m6_seg + m6_ring_offset(ring)), m6_ring_capacity(ring));
  return 1;
}
uint32_t m6_tid(void) { return 1; }
int m6_ring_ready(unsigned n)
{
  if (m6_self.producer.records && m6_ring_room(&m6_self.producer, n)) return 1;
  m6_shared_add(&lost_frames, 1);
  return 0;
}

static int setup(void **state)
{
  (void)state;
  if (!m6_seg) m6_seg = aligned_alloc(M6_PAGE, M6_SEGMENT_BYTES);
  memset(m6_seg, 0, M6_SEGMENT_BYTES);
  m6_seg->slots_used = 1;
  memset(&m6_self, 0, sizeof m6_self);
  polls = lost_frames = 0;
  m6_gate.alive = m6_gate.collecting = 1;
  return 0;
}

/* ---- helpers ---------------------------------------------------------------------------------------------------- */
static uint64_t display_at =
  1; /* each test has a display of its own: what present.c knows of streams outlives a segment */
static int next_display(void **state)
{
  (void)state;
  display_at++;
  return 0;
}

static void begin(struct m6_present *p, uint32_t symbol, uint64_t drawable)
{
  m6_present_enter(p, symbol, M6_ROUTE_DLSYM, display_at, drawable, (void *)0x1234);
}
static void once(uint64_t drawable, int ok)
{
  struct m6_present p;
  begin(&p, M6_SYM_EGL_SWAP_BUFFERS, drawable);
  m6_present_leave(&p, ok);
}
static struct m6_stream *find(uint64_t drawable) /* the newest */
{
  struct m6_stream *found = NULL;
  for (int i = 0; i < M6_STREAMS; i++) {
    struct m6_stream *s = &m6_seg->streams[i];
    if (s->kind && s->display == display_at && s->drawable == drawable) found = s;
  }
  return found;
}
/* The next record of this thread's ring, which must be there. */
static struct m6_record next_record(uint64_t *index)
{
  struct m6_record r;
  struct m6_producer *p = &m6_self.producer;
  assert_int_equal(m6_ring_read(p->head, p->records, p->mask + 1, *index, &r), M6_RING_RECORD);
  ++*index;
  return r;
}
static uint64_t recorded(void) { return m6_peek(&m6_self.producer.head->claimed); }

/* ---- tests ------------------------------------------------------------------------------------------------------ */
static void a_boundary_is_four_records_of_readings(void **state)
{
  (void)state;
  struct m6_present p;
  struct m6_slot *others = m6_slots();
  uint64_t at = 0;
  for (uint64_t number = 1; number <= 3; number++) {
    if (number > 1) m6_self.slot->live += 100, m6_self.slot->allocs += 1; /* in the frame; the first has no slot yet */
    others->live += 1000, others->allocs += 10;
    begin(&p, M6_SYM_EGL_SWAP_BUFFERS, 7);
    m6_self.slot->live += 16, m6_self.slot->allocs += 2; /* in the present */
    others->live -= 5;
    uint64_t between = m6_now();
    m6_present_leave(&p, 1);

    struct m6_record r[4];
    for (int i = 0; i < 4; i++) r[i] = next_record(&at);
    assert_int_equal(m6_word_type(r[0].word), M6_REC_FRAME);
    assert_int_equal(m6_word_depth(r[0].word), M6_FRAME_UNITS);
    assert_int_equal(m6_word_flags(r[0].word), 0);
    assert_ptr_equal(&m6_seg->streams[m6_word_label(r[0].word)], find(7));
    for (unsigned i = 1; i < 4; i++) {
      assert_int_equal(m6_word_type(r[i].word), M6_REC_CONTINUED);
      assert_int_equal(m6_word_depth(r[i].word), i);
    }
    uint64_t own = 116 * (number - 1), own_allocs = 3 * (number - 1), rest = 995 * number + 5,
             rest_allocs = 10 * number;
    assert_true(r[0].clock <= between && between <= r[1].clock);
    assert_int_equal(r[0].live, rest + own);
    assert_int_equal(r[0].count, rest_allocs + own_allocs);
    assert_int_equal(r[1].live, rest - 5 + own + 16);
    assert_int_equal(r[1].count, rest_allocs + own_allocs + 2);
    assert_int_equal(r[2].clock, number);
    assert_int_equal(r[2].live, own);
    assert_int_equal(r[2].count, own_allocs);
    assert_int_equal(r[3].clock, 0);
    assert_int_equal(r[3].live, own + 16);
    assert_int_equal(r[3].count, own_allocs + 2);
  }
  struct m6_stream *s = find(7);
  assert_int_equal(recorded(), 12);
  assert_int_equal(s->presents, 3);
  assert_int_equal(s->symbol, M6_SYM_EGL_SWAP_BUFFERS);
  assert_int_equal(s->route, M6_ROUTE_DLSYM);
  assert_int_equal(s->caller, 0x1234);
  assert_int_equal(s->tid, m6_self.slot->tid);
  assert_int_not_equal(s->first_clock, 0);
  assert_int_equal(polls, 3);
}

static void the_outermost_counts(void **state)
{
  (void)state;
  struct m6_present p[3]; /* deeper means lower on the stack */
  begin(&p[2], M6_SYM_SDL_GL_SWAP_WINDOW, 1);
  begin(&p[1], M6_SYM_GLX_SWAP_BUFFERS, 2);
  begin(&p[0], M6_SYM_EGL_SWAP_BUFFERS, 3);
  for (int i = 0; i < 3; i++) m6_present_leave(&p[i], 1);
  assert_int_equal(find(1)->presents, 1);
  assert_null(find(2));
  assert_null(find(3));
  assert_int_equal(m6_self.present_depth, 0);
  assert_int_equal(recorded(), 4);
}

static void the_count_is_exact_when_records_are_lost(void **state)
{
  (void)state;
  uint32_t fit = (M6_RING_LARGE_RECORDS - M6_RING_MARGIN) / M6_FRAME_UNITS;
  for (uint32_t i = 0; i < fit + 100; i++) once(1, 1);
  assert_int_equal(find(1)->presents, fit + 100);
  assert_int_equal(lost_frames, 100);
  m6_ring_release(m6_self.producer.head, recorded());
  uint64_t at = recorded() + 2;
  once(1, 1);
  assert_int_equal(next_record(&at).clock, fit + 101); /* its number tells the reader how many are missing */
}

static void a_failed_present_is_no_frame(void **state)
{
  (void)state;
  once(1, 0);
  assert_int_equal(find(1)->presents, 0);
  assert_int_equal(find(1)->failed, 1);
  assert_int_equal(find(1)->first_clock, 0);
  assert_int_equal(recorded(), 0);
}

static void a_session_starts_and_stops_between_presents(void **state)
{
  (void)state;
  struct m6_present p[2];
  m6_gate.collecting = 0;
  begin(&p[1], M6_SYM_SDL_GL_SWAP_WINDOW, 1);
  m6_gate.collecting = 1; /* another thread starts the session; what is nested in here is no frame of it */
  begin(&p[0], M6_SYM_GLX_SWAP_BUFFERS, 2);
  m6_present_leave(&p[0], 1);
  m6_present_leave(&p[1], 1);
  assert_null(find(1));
  assert_null(find(2));
  assert_int_equal(polls, 1);
  begin(&p[1], M6_SYM_SDL_GL_SWAP_WINDOW, 1);
  m6_gate.collecting = 2; /* not the session that it began in */
  m6_present_leave(&p[1], 1);
  assert_null(find(1));
}

static void explicit_frames_have_one_reading(void **state)
{
  (void)state;
  struct m6_present p;
  uint64_t at = 0;
  m6_present_explicit((void *)0x99);
  struct m6_record entry = next_record(&at), back = next_record(&at);
  assert_int_equal(m6_word_flags(entry.word), M6_FLAG_EXPLICIT);
  assert_int_equal(entry.clock, back.clock);
  assert_int_equal(entry.live, back.live);
  assert_int_equal(m6_seg->streams[m6_word_label(entry.word)].symbol, M6_SYM_MACH6_FRAME);
  begin(&p, M6_SYM_EGL_SWAP_BUFFERS, 1); /* one inside of a present is no boundary beside it */
  m6_present_explicit((void *)0x99);
  m6_present_leave(&p, 1);
  assert_int_equal(recorded(), 8);
}

static void a_handle_used_again_is_a_new_stream(void **state)
{
  (void)state;
  for (uint64_t life = 1; life <= 3; life++) {
    for (uint64_t i = 0; i < life; i++) once(5, 1);
    assert_int_equal(find(5)->presents, life);
    assert_int_equal(find(5)->kind, 1);
    m6_present_destroyed(5);
    assert_int_equal(find(5)->kind, 2);
  }
  m6_present_destroyed(5);
  m6_present_destroyed(77);
}

static void a_forked_child_destroys_nothing(void **state) /* the segment is its parent's; the gate is wiped on fork */
{
  (void)state;
  once(5, 1);
  m6_gate.alive = m6_gate.collecting = 0;
  m6_present_destroyed(5);
  m6_present_replaced(display_at, 5, 6);
  assert_int_equal(find(5)->kind, 1);
  m6_gate.alive = m6_gate.collecting = 1;
  m6_present_destroyed(5);
  assert_int_equal(find(5)->kind, 2);
}

#define THREADS 4
#define EACH 3000
static void *present_a_lot(void *arg)
{
  for (uintptr_t i = 0; i < EACH; i++) once(i % 2 ? 50 : 60 + (uintptr_t)arg, i % 3 != 0);
  return NULL;
}
static void threads_lose_no_present(void **state)
{
  (void)state;
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, present_a_lot, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  assert_int_equal(find(50)->presents, THREADS * EACH / 3);
  assert_int_equal(find(50)->failed, THREADS * EACH / 6);
  for (uint64_t i = 0; i < THREADS; i++) assert_int_equal(find(60 + i)->presents + find(60 + i)->failed, EACH / 2);
}

/* The last test: it leaves no stream free. */
static void with_more_drawables_than_streams_the_last_takes_the_rest(void **state)
{
  (void)state;
  const uint64_t drawables = 2 * M6_STREAMS;
  for (int round = 0; round < 2; round++)
    for (uint64_t d = 1; d <= drawables; d++) once(1000 + d, 1);
  uint64_t rest = m6_seg->streams[M6_STREAMS - 1].presents, all = rest, told_apart = 0;
  for (int i = 0; i < M6_STREAMS - 1; i++) {
    all += m6_seg->streams[i].presents;
    told_apart += m6_seg->streams[i].presents == 2;
  }
  assert_int_equal(all, 2 * drawables);
  assert_int_equal(told_apart * 2 + rest, 2 * drawables);
  assert_int_equal(m6_seg->streams_refused, rest - 2); /* one drawable has the last stream by right */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, next_display)
  const struct CMUnitTest tests[] = {
    TEST(a_boundary_is_four_records_of_readings),
    TEST(the_outermost_counts),
    TEST(the_count_is_exact_when_records_are_lost),
    TEST(a_failed_present_is_no_frame),
    TEST(a_session_starts_and_stops_between_presents),
    TEST(explicit_frames_have_one_reading),
    TEST(a_handle_used_again_is_a_new_stream),
    TEST(a_forked_child_destroys_nothing),
    TEST(threads_lose_no_present),
    TEST(with_more_drawables_than_streams_the_last_takes_the_rest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
