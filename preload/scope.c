/* scope.c - mach6_mark, mach6_done and their kin: the plain C symbols behind mach6.h, and for dlsym and other languages.
 *
 * Promise: inert, one branch. Collecting, one clock read and one record each; no system call, no lock, no wait; from signal
 * handlers too. Depth is exact whether or not records fit.
 * A done whose caller's stack pointer is not that of the innermost mark looks for the mark that it belongs to: found
 * within 16, the scopes above were left by longjmp or throw, and the record says so.
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
M6_EXPORT void mach6_done_to(unsigned depth);
M6_EXPORT void mach6_frame(void);

#define SEARCH 16u
#define INLINE static inline __attribute__((always_inline))
/* The caller's stack pointer before its call. Must be taken in the exported function itself. */
#define CALLER_STACK ((uint32_t)((uintptr_t)__builtin_dwarf_cfa() >> 4))

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
  m6_ring_commit(&t->producer, index, clock, m6_peek(&s->live), (m6_peek(&s->allocs) & M6_COUNT_MASK) | (uint64_t)sp << 48,
                 type, flags, label, saturated(depth));
}

/* Claims and writes one record. `expected` is what the ring's head was before the clock was read: when a handler claimed in
 * between, the clock is read again, so that clocks rise with the index. */
INLINE void record_quick(struct m6_thread *t, uint64_t expected, uint64_t clock, unsigned type, unsigned label, unsigned depth,
                         uint32_t sp)
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

/* The label regions are reserved together, at the first mark: which part a text needs is not known before it is there. */
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

static __attribute__((noinline)) unsigned mark_slow(uint32_t label, uint32_t sp)
{
  struct m6_thread *t = &m6_self;
  int ready = m6_ring_ready(1);
  uint32_t depth = t->depth;
  if (t->stack) m6_poke(&t->stack[depth % M6_SCOPE_STACK], sp);
  m6_poke(&t->depth, depth + 1);
  if (ready) record(t, M6_REC_MARK, 0, label, depth, sp);
  return depth;
}

/* Depth rises before the record is claimed, and falls after: a handler's records in between then belong to scopes that the
 * reader has not met yet, or no more, and never close one that is open. */
INLINE unsigned mark(uint32_t label, uint32_t sp)
{
  struct m6_thread *t = &m6_self;
  uint64_t index;
  if (m6_unlikely(!quick(t, &index))) return mark_slow(label, sp);
  uint64_t clock = quick_now();
  uint32_t depth = t->depth;
  m6_poke(&t->stack[depth % M6_SCOPE_STACK], sp);
  m6_poke(&t->depth, depth + 1);
  record_quick(t, index, clock, M6_REC_MARK, label, depth, sp);
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
  return mark(label_of(label), CALLER_STACK);
}

static __attribute__((noinline)) unsigned mark_site_new(struct mach6_site *site, const char *label, uint32_t sp)
{
  uint32_t id = label_of(label);
  m6_poke(&site->id, id);
  m6_publish(&site->key, m6_site_key);
  return mark(id, sp);
}

unsigned mach6_mark_site(struct mach6_site *site, const char *label)
{
  if (!m6_collecting()) return mark_inert();
  if (m6_unlikely(m6_observe(&site->key) != m6_site_key)) return mark_site_new(site, label, CALLER_STACK);
  return mark(m6_peek(&site->id), CALLER_STACK);
}

/* ---- dones ------------------------------------------------------------------------------------------------------ */

/* Close scopes until `depth` remain. */
static void close_to(struct m6_thread *t, uint32_t depth, unsigned flags, uint32_t sp)
{
  if (m6_ring_ready(1)) record(t, M6_REC_DONE, flags, 0, depth, sp);
  m6_poke(&t->depth, depth);
}

static __attribute__((noinline)) void done_slow(uint32_t sp)
{
  struct m6_thread *t = &m6_self;
  if (t->session != m6_peek(&m6_gate.collecting)) m6_thread_session();
  uint32_t depth = t->depth;
  if (depth == 0) {
    m6_shared_add(&m6_seg->underflows, 1);
    return;
  }
  uint32_t above = 0;
  if (t->stack && m6_peek(&t->stack[(depth - 1) % M6_SCOPE_STACK]) != sp)
    for (uint32_t i = 1; i <= SEARCH && i < depth; i++)
      if (m6_peek(&t->stack[(depth - 1 - i) % M6_SCOPE_STACK]) == sp) {
        above = i;
        break;
      }
  close_to(t, depth - 1 - above, above ? M6_FLAG_ABANDONED : 0, sp);
}

void mach6_done(void)
{
  if (!m6_collecting()) return;
  struct m6_thread *t = &m6_self;
  uint64_t index;
  uint32_t depth = t->depth - 1, sp = CALLER_STACK;
  if (m6_unlikely(!quick(t, &index)) || m6_unlikely((int32_t)depth < 0) ||
      m6_unlikely(m6_peek(&t->stack[depth % M6_SCOPE_STACK]) != sp)) {
    done_slow(sp);
    return;
  }
  record_quick(t, index, quick_now(), M6_REC_DONE, 0, depth, sp);
  m6_poke(&t->depth, depth);
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
