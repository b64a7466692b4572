/* present.c - frame boundaries and present streams.
 *
 * A present's entry ends the frame, its return begins the next (the gap is what lies between). Presents nest, SDL calls
 * GLX: the outermost of a thread counts. A failed present is no frame, it only counts as failed. A drawable is a
 * stream.
 * Promise: a stream's count is exact, whether or not the record of a frame found room. No lock, no wait; no syscall but
 * at a thread's first present and a stream's first. Errno is kept. Called by the hooks of hook.c and vulkan.c and by
 * scope.c (mach6_frame); calls slot.c and segment.c.
 */
#include "hook.h"

/* Whose present belongs to which stream. `key` is a hash of display and drawable, so that one CAS both claims an
 * entry and says for whom, and two threads that present a new drawable at once agree. `inner` is that of the present
 * nested in it: GLFW swaps once by GLX when it makes a window, then by glfwSwapBuffers, and that is one window.
 * Index = index in header.streams. */
static struct {
  uint64_t key, inner, inner_drawable;
} who[M6_STREAMS];
#define KEY_FREE 0u
#define KEY_DEAD 1u /* its drawable was destroyed; the stream stays as it is, the entry is not used again */

static __thread uint32_t last_hit;        /* where this thread found its stream last */
static __thread struct m6_present *outer; /* the outermost present that runs on this thread */

static uint64_t key_of(uint64_t display, uint64_t drawable)
{
  uint64_t k = m6_label_mum(display ^ 0xa0761d6478bd642full, drawable ^ 0xe7037ed1a0b428dbull);
  return k > KEY_DEAD ? k : KEY_DEAD + 1;
}

/* The stream's words about itself: when it is claimed, and again when its first present succeeds. */
static M6_COLD void name_function(struct m6_stream *s, const struct m6_present *p)
{
  m6_poke(&s->caller, (uint64_t)(uintptr_t)p->caller);
  m6_poke(&s->symbol, p->symbol);
  m6_poke(&s->route, p->route);
}
static M6_COLD void name_drawable(struct m6_stream *s, const struct m6_present *p)
{
  m6_poke(&s->display, p->display);
  m6_poke(&s->drawable, p->drawable);
  m6_publish(&s->kind, 1);
}
static M6_COLD void first_present(struct m6_stream *s, const struct m6_present *p)
{
  name_function(s, p);
  m6_poke(&s->tid, m6_self.slot ? m6_peek(&m6_self.slot->tid) : m6_tid());
  m6_publish(&s->first_clock, p->clock);
}

/* The slow half of stream_of: search, join, claim. When all are taken the last stream takes the rest. */
static M6_COLD uint32_t find_stream(const struct m6_present *p, uint64_t key, uint64_t inner)
{
  uint32_t i, joined = M6_STREAMS;
  uint64_t have;
  for (i = 0; i < M6_STREAMS; i++) {
    have = m6_observe(&who[i].key);
    if (have == KEY_FREE) {
      if (joined < M6_STREAMS) break;
      if (m6_claim(&who[i].key, &have, key)) {
        name_function(&m6_seg->streams[i], p);
        name_drawable(&m6_seg->streams[i], p);
        return i;
      } /* else `have` is now the key of who was faster */
    }
    if (have == key) return i;
    if (have == KEY_DEAD || joined < M6_STREAMS) continue;
    if (m6_peek(&who[i].inner) == key || (inner && (have == inner || m6_peek(&who[i].inner) == inner))) joined = i;
  }
  if (joined < M6_STREAMS) {
    have = inner;
    if (inner && m6_claim(&who[joined].key, &have, key)) { /* it was known by what is nested; now by its own name */
      name_drawable(&m6_seg->streams[joined], p);
      name_function(&m6_seg->streams[joined], p);
    }
    return joined;
  }
  m6_shared_add(&m6_seg->streams_refused, 1);
  return M6_STREAMS - 1;
}

/* The stream of a present's drawable, claimed when new. */
static uint32_t stream_of(const struct m6_present *p)
{
  uint64_t key = key_of(p->display, p->drawable), inner = 0;
  if (p->inner_drawable && p->inner_drawable != p->drawable) inner = key_of(p->inner_display, p->inner_drawable);
  uint32_t i = last_hit;
  if (m6_unlikely(m6_peek(&who[i].key) != key)) last_hit = i = find_stream(p, key, inner);
  if (inner && m6_unlikely(m6_peek(&who[i].inner) != inner)) {
    m6_poke(&who[i].inner_drawable, p->inner_drawable);
    m6_poke(&who[i].inner, inner);
  }
  return i;
}

/* Counts a present; gives its number, from 1, or 0 when it failed. */
static uint64_t count(uint32_t stream, const struct m6_present *p, int ok)
{
  struct m6_stream *s = &m6_seg->streams[stream];
  if (m6_unlikely(!ok)) {
    m6_shared_add(&s->failed, 1);
    return 0;
  }
  uint64_t number = m6_shared_add(&s->presents, 1) + 1;
  if (m6_unlikely(number == 1)) first_present(s, p);
  return number;
}

/* Writes the boundary's four records: the first one's stamp makes all of them readable, so it is written last. */
static void record(const struct m6_present *p, unsigned flags, uint32_t stream, uint64_t number, uint64_t clock,
                   struct m6_reading process, struct m6_reading thread)
{
  if (!m6_ring_ready(M6_FRAME_UNITS)) return;
  struct m6_producer *r = &m6_self.producer;
  uint64_t at = m6_ring_claim(r, M6_FRAME_UNITS);
  m6_ring_commit(r, at + 1, clock, process.live, process.allocs & M6_COUNT_MASK, M6_REC_CONTINUED, 0, stream, 1);
  m6_ring_commit(r, at + 2, number, p->thread.live, p->thread.allocs & M6_COUNT_MASK, M6_REC_CONTINUED, 0, stream, 2);
  m6_ring_commit(r, at + 3, 0, thread.live, thread.allocs & M6_COUNT_MASK, M6_REC_CONTINUED, 0, stream, 3);
  m6_ring_commit(r, at, p->clock, p->process.live, p->process.allocs & M6_COUNT_MASK, M6_REC_FRAME, flags, stream,
                 M6_FRAME_UNITS);
}

/* The readings on entry, the clock last. A thread's first present gets its ring here, outside of what is measured. */
static void read_entry(struct m6_present *p)
{
  if (m6_unlikely(m6_self.session != m6_peek(&m6_gate.collecting))) m6_thread_session();
  if (m6_unlikely(!m6_self.producer.records) && !m6_self.no_ring) m6_thread_ring();
  p->thread = m6_thread_reading();
  p->process = m6_process_reading();
  p->clock = m6_now();
}

void m6_present_enter(struct m6_present *p, uint32_t symbol, uint32_t route, uint64_t display, uint64_t drawable,
                      const void *caller)
{
  p->outermost = p->entered = 0;
  p->inner_display = p->inner_drawable = 0;
  p->symbol = symbol;
  p->route = route;
  p->display = display;
  p->drawable = drawable;
  p->caller = caller;
  /* Nested, unless the outer one was left by a longjmp or a throw: then its place on the stack is free, and a
   * present that is made from the same depth or above cannot be inside of it. */
  if (m6_self.present_depth && (const char *)p < (const char *)outer) {
    if (++m6_self.present_depth == 2 && !outer->inner_drawable) {
      outer->inner_display = display;
      outer->inner_drawable = drawable;
    }
    return;
  }
  m6_self.present_depth = 1;
  m6_self.present_failed = 0;
  outer = p;
  p->outermost = 1;
  if (!m6_collecting()) return;
  p->entered = m6_peek(&m6_gate.collecting);
  read_entry(p);
  p->stream = m6_self.present_stream; /* which it will be is known when it is over: most likely the same */
  p->number = m6_peek(&m6_seg->streams[p->stream].presents) + 1;
  m6_frame_entered(p->stream, p->number, 0); /* what a probe costs there lies in the gap */
}

void m6_present_leave(struct m6_present *p, int ok)
{
  if (!p->outermost) {
    if (m6_self.present_depth > 1) m6_self.present_depth--;
    m6_self.present_failed = !ok; /* for an outer present that returns nothing */
    return;
  }
  m6_self.present_depth = 0;
  if (p->entered && p->entered == m6_peek(&m6_gate.collecting)) {
    uint32_t stream = stream_of(p);
    uint64_t number = count(stream, p, ok);
    if (m6_unlikely(stream != p->stream || number != p->number)) m6_frame_corrected(stream, number);
    if (number) {
      m6_self.present_stream = stream;
      uint64_t clock = m6_now();
      struct m6_reading thread = m6_thread_reading(), process = m6_process_reading();
      record(p, 0, stream, number, clock, process, thread);
    }
  }
  /* Here, between a present and the next frame, a session starts and stops: never half-way through a present. */
  m6_poll_control(0);
}

void m6_present_also(const struct m6_present *p, uint64_t drawable, int ok)
{
  if (!p->entered || p->entered != m6_peek(&m6_gate.collecting)) return;
  struct m6_present other = *p;
  other.drawable = drawable;
  other.inner_drawable = 0;
  uint32_t hit = last_hit;
  count(stream_of(&other), &other, ok);
  last_hit = hit;
}

void m6_present_explicit(const void *caller)
{
  struct m6_present p = {.symbol = M6_SYM_MACH6_FRAME, .route = M6_ROUTE_LINK, .caller = caller};
  if (m6_self.present_depth && (const char *)&p < (const char *)outer)
    return; /* the present around it is the boundary */
  if (m6_collecting()) {
    read_entry(&p);
    uint32_t stream = stream_of(&p);
    uint64_t number = count(stream, &p, 1);
    m6_frame_entered(stream, number, 1);
    record(&p, M6_FLAG_EXPLICIT, stream, number, p.clock, p.process, p.thread);
  }
  m6_poll_control(0);
}

/* A drawable is gone (heir 0) or another took its place. display 0: on any. The last stream is left alone, it may be
 * shared. A stream whose drawable is known by what presents it from outside goes on when only the nested one is
 * remade. A forked child may clean up what it inherited; that says nothing about its parent's windows. */
static void destroyed(uint64_t display, uint64_t drawable, uint64_t heir)
{
  if (!drawable || !m6_seg || !m6_peek(&m6_gate.alive)) return;
  for (uint32_t i = 0; i < M6_STREAMS - 1; i++) {
    struct m6_stream *s = &m6_seg->streams[i];
    uint64_t key = m6_observe(&who[i].key);
    if (key == KEY_FREE) return;
    if (key == KEY_DEAD || m6_observe(&s->kind) != 1) continue;
    if (m6_peek(&who[i].inner_drawable) == drawable) {
      m6_poke(&who[i].inner, 0);
      m6_poke(&who[i].inner_drawable, 0);
    }
    if (m6_peek(&s->drawable) != drawable || (display && m6_peek(&s->display) != display)) continue;
    if (!m6_claim(&who[i].key, &key, heir ? key_of(display, heir) : KEY_DEAD)) continue;
    if (heir) m6_poke(&s->drawable, heir);
    else m6_publish(&s->kind, 2);
  }
}

void m6_present_destroyed(uint64_t drawable) { destroyed(0, drawable, 0); }
void m6_present_destroyed_on(uint64_t display, uint64_t drawable) { destroyed(display, drawable, 0); }
void m6_present_replaced(uint64_t display, uint64_t old, uint64_t drawable)
{
  if (drawable && old != drawable) destroyed(display, old, drawable);
}
