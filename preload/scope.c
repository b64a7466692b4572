/* scope.c - mach6_mark, mach6_done and their kin: the plain C symbols behind mach6.h, and for dlsym and other
 * languages.
 *
 * Promise: inert, one branch. Collecting, one clock read and one record each; no system call, no lock, no wait; from
 * signal handlers too. Depth is exact whether or not records fit. A done whose caller's stack pointer is not that of
 * the innermost mark looks for the mark that it belongs to, 16 deep at most: when found, the scopes above were left by
 * longjmp or throw, and the record says so. In doubt it closes one:
 *   - where all marks come from one return address, a wrapper opens the scopes, and stack pointers mean little;
 *   - a done in tail position has the stack pointer of its caller's caller, so where tail calls are possible, scopes of
 *     one frame alone above the match are taken for its own.
 * May call: slot.c, segment.c's m6_poll_control, present.c's m6_present_explicit.
 */
#include <string.h>

#include "internal.h"

struct mach6_site { /* as in mach6.h; the caller's memory, ours for the length of a call */
  uint32_t key, id; /* the label's number, in the segment that key stands for */
};
M6_EXPORT unsigned mach6_mark(const char *label);
M6_EXPORT unsigned mach6_mark_site(struct mach6_site *site, const char *label);
M6_EXPORT void mach6_done(void);
M6_EXPORT void mach6_done_here(void); /* the same, by a caller that promises that this is no tail call: mach6.h */
M6_EXPORT void mach6_done_to(unsigned depth);
M6_EXPORT void mach6_frame(void);

#define SEARCH 16u
#define INLINE static inline __attribute__((always_inline))
/* Where a call comes from: the stack pointer before it (in units of 16 bytes) below, the return address above. Must be
 * taken in the exported function itself. */
#define CALLER_STACK ((uint32_t)((uintptr_t)__builtin_dwarf_cfa() >> 4))
#define CALLER ((uint64_t)(uintptr_t)__builtin_return_address(0) << 32 | CALLER_STACK)

static uint32_t saturated(uint32_t depth) { return depth > 0xffff ? 0xffff : depth; }

/* The clock of the short way: no call, so that the hooks need no stack. Sessions on another clock take the long way. */
#if defined(__x86_64__) || defined(__i386__)
#define QUICK_CLOCK M6_CLOCK_TSC
INLINE uint64_t quick_now(void) { return __builtin_ia32_rdtsc(); }
#else
#define QUICK_CLOCK M6_CLOCK_MONOTONIC
INLINE uint64_t quick_now(void) { return m6_monotonic_ns(); }
#endif

/* Room for one record without asking anybody: the cached limit of this thread's ring holds, and is of this session. */
INLINE int quick(const struct m6_thread *t, uint64_t *index)
{
  const struct m6_producer *p = &t->producer;
  if (m6_unlikely(t->session != m6_peek(&m6_gate.collecting)) || m6_unlikely(m6_clock_kind != QUICK_CLOCK)) return 0;
  if (m6_unlikely(!p->records)) return 0;
  *index = m6_peek(&p->head->claimed);
  return m6_likely(*index < p->limit);
}

INLINE void commit(struct m6_thread *t, uint64_t index, uint64_t clock, unsigned type, unsigned flags, unsigned label,
                   unsigned depth, uint32_t sp)
{
  const struct m6_slot *s = t->slot;
  m6_ring_commit(&t->producer, index, clock, m6_peek(&s->live),
                 (m6_peek(&s->allocs) & M6_COUNT_MASK) | (uint64_t)sp << 48, type, flags, label, saturated(depth));
}

/* Claims and writes one record. `expected` is what the ring's head was before the clock was read: when a handler
 * claimed in between, the clock is read again, so that clocks rise with the index. */
INLINE void record_quick(struct m6_thread *t, uint64_t expected, uint64_t clock, unsigned type, unsigned label,
                         unsigned depth, uint32_t sp)
{
  uint64_t index = m6_ring_claim(&t->producer, 1);
  if (m6_unlikely(index != expected)) clock = quick_now();
  commit(t, index, clock, type, 0, label, depth, sp);
}

/* The same where speed is lost already. */
static void record(struct m6_thread *t, unsigned type, unsigned flags, unsigned label, unsigned depth, uint32_t sp)
{
  uint64_t index = m6_ring_claim(&t->producer, 1);
  commit(t, index, m6_now(), type, flags, label, depth, sp);
}

/* ---- labels ----------------------------------------------------------------------------------------------------- */

/* The label regions are reserved together, at the first mark: which part a text needs is not known before it is
 * there. */
static M6_COLD int labels_refused(void)
{
  static uint32_t refused;
  if (m6_peek(&refused)) return 1;
  if (m6_ensure(M6_OFF_LABELS, M6_OFF_LABEL_TEXT + M6_LABEL_TEXT_BYTES - M6_OFF_LABELS) == 0) return 0;
  m6_poke(&refused, 1);
  return 1;
}

static uint32_t label_of(const char *text)
{
  static uint32_t ready;
  int refused = 0;
  uint32_t id = 0;
  if (m6_unlikely(!m6_peek(&ready))) {
    refused = labels_refused();
    if (!refused) m6_poke(&ready, 1);
  }
  if (!text) text = "(null)";
  if (!refused) id = m6_label_intern(m6_labels_at(m6_seg), text, strlen(text), &refused);
  if (m6_unlikely(refused)) m6_shared_add(&m6_seg->labels_refused, 1);
  return id;
}

/* ---- marks ------------------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) unsigned mark_slow(uint32_t label, uint64_t from)
{
  struct m6_thread *t = &m6_self;
  int ready = m6_ring_ready(1);
  uint32_t depth = t->depth;
  m6_poke(&t->depth, depth + 1);
  m6_signal_fence();
  if (t->stack) {
    m6_poke(&t->stack[depth % M6_SCOPE_STACK], from);
    m6_poke(&m6_scope_labels(t)[depth % M6_SCOPE_STACK], (uint16_t)label);
  }
  if (ready) record(t, M6_REC_MARK, 0, label, depth, (uint32_t)from);
  return depth;
}

/* Depth rises before the record is claimed, and falls after: a handler's records in between then belong to scopes
 * that the reader has not met yet, or no more, and never close one that is open. It rises before the scope's place in
 * the stack is written, too: a handler in between would write its own scope there, and the done of this one would look
 * for it further down and close what is around it. */
INLINE unsigned mark(uint32_t label, uint64_t from)
{
  struct m6_thread *t = &m6_self;
  uint64_t index;
  if (m6_unlikely(!quick(t, &index))) return mark_slow(label, from);
  uint64_t clock = quick_now();
  uint32_t depth = t->depth;
  m6_poke(&t->depth, depth + 1);
  m6_signal_fence();
  m6_poke(&t->stack[depth % M6_SCOPE_STACK], from);
  m6_poke(&m6_scope_labels(t)[depth % M6_SCOPE_STACK], (uint16_t)label);
  record_quick(t, index, clock, M6_REC_MARK, label, depth, (uint32_t)from);
  return depth;
}

static M6_COLD unsigned mark_inert(void)
{
  if (m6_start_pending()) m6_poll_control(0);
  return 0;
}

unsigned mach6_mark(const char *label)
{
  if (!m6_collecting()) return mark_inert();
  return mark(label_of(label), CALLER);
}

static __attribute__((noinline)) unsigned mark_site_new(struct mach6_site *site, const char *label, uint64_t from)
{
  uint32_t id = label_of(label);
  m6_poke(&site->id, id);
  m6_publish(&site->key, m6_mark_key);
  return mark(id, from);
}

unsigned mach6_mark_site(struct mach6_site *site, const char *label)
{
  if (!m6_collecting()) return mark_inert();
  if (m6_unlikely(m6_observe(&site->key) != m6_mark_key)) return mark_site_new(site, label, CALLER);
  return mark(m6_peek(&site->id), CALLER);
}

/* ---- dones ------------------------------------------------------------------------------------------------------ */

/* Close scopes until `depth` remain. */
static void close_to(struct m6_thread *t, uint32_t depth, unsigned flags, uint32_t sp)
{
  if (m6_ring_ready(1)) record(t, M6_REC_DONE, flags, 0, depth, sp);
  m6_poke(&t->depth, depth);
}

/* How many scopes above the one that this done belongs to were left. */
static uint32_t abandoned(const struct m6_thread *t, uint32_t depth, uint32_t sp, int tail_call)
{
  uint64_t top = m6_peek(&t->stack[(depth - 1) % M6_SCOPE_STACK]);
  int one_frame = 1;
  if ((uint32_t)top == sp) return 0;
  for (uint32_t i = 1; i <= SEARCH && i < depth; i++) {
    uint64_t e = m6_peek(&t->stack[(depth - 1 - i) % M6_SCOPE_STACK]);
    if ((uint32_t)e == sp) return e >> 32 == top >> 32 || (tail_call && one_frame) ? 0 : i;
    if ((uint32_t)e != (uint32_t)top) one_frame = 0;
  }
  return 0;
}

static __attribute__((noinline)) void done_slow(uint32_t sp, int tail_call)
{
  struct m6_thread *t = &m6_self;
  if (t->session != m6_peek(&m6_gate.collecting)) m6_thread_session();
  uint32_t depth = t->depth;
  if (depth == 0) {
    m6_shared_add(&m6_seg->underflows, 1);
    return;
  }
  uint32_t above = t->stack ? abandoned(t, depth, sp, tail_call) : 0;
  close_to(t, depth - 1 - above, above ? M6_FLAG_ABANDONED : 0, sp);
}

INLINE void done(uint32_t sp, int tail_call)
{
  struct m6_thread *t = &m6_self;
  uint64_t index;
  uint32_t depth = t->depth - 1;
  if (m6_unlikely(!quick(t, &index)) || m6_unlikely((int32_t)depth < 0) ||
      m6_unlikely((uint32_t)m6_peek(&t->stack[depth % M6_SCOPE_STACK]) != sp)) {
    done_slow(sp, tail_call);
    return;
  }
  record_quick(t, index, quick_now(), M6_REC_DONE, 0, depth, sp);
  m6_poke(&t->depth, depth);
}

void mach6_done(void)
{
  if (m6_collecting()) done(CALLER_STACK, 1);
}
void mach6_done_here(void)
{
  if (m6_collecting()) done(CALLER_STACK, 0);
}

static __attribute__((noinline)) void done_to_slow(struct m6_thread *t, uint32_t depth, uint32_t sp)
{
  if (t->session != m6_peek(&m6_gate.collecting)) m6_thread_session();
  if (depth < t->depth) close_to(t, depth, t->depth - depth > 1 ? M6_FLAG_ABANDONED : 0, sp);
}

void mach6_done_to(unsigned depth)
{
  if (!m6_collecting()) return;
  struct m6_thread *t = &m6_self;
  uint64_t index;
  uint32_t sp = CALLER_STACK;
  if (m6_likely(t->depth == depth + 1) && m6_likely(quick(t, &index))) {
    record_quick(t, index, quick_now(), M6_REC_DONE, 0, depth, sp);
    m6_poke(&t->depth, depth);
    return;
  }
  done_to_slow(t, depth, sp);
}

void mach6_frame(void) { m6_present_explicit(__builtin_extract_return_addr(__builtin_return_address(0))); }
