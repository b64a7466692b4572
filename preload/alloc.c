/* alloc.c - the malloc family.
 *
 * Promise: what the next malloc in line does, with its errno, plus, while counting, three or four additions to this
 * thread's own slot. An allocation is counted after the real one, by its usable size; a free before the real one; what
 * failed is not counted, what was counted too early is undone. A real function that comes back through these hooks
 * (glibc's reallocarray calls realloc) is counted once.
 * May call: the next functions (m6_real), slot.c's slow halves, sample.c.
 */
#include <errno.h>

#include "internal.h"

/* Declared here and not by stdlib.h: its attributes make promises about the caller's malloc, not about this one. */
void *malloc(size_t);
void free(void *);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void *reallocarray(void *, size_t, size_t);
void *memalign(size_t, size_t);
void *aligned_alloc(size_t, size_t);
int posix_memalign(void **, size_t, size_t);
void *valloc(size_t);
void *pvalloc(size_t);
size_t malloc_usable_size(void *);

/* Each hook is exported under its own name and known in here under one that no other library can take. */
#define HOOK(name) __attribute__((alias(#name), visibility("hidden")))

#define KIND(field) ((uint32_t)offsetof(struct m6_slot, field))

/* ---- counting --------------------------------------------------------------------------------------------------- */

static void __attribute__((noinline, cold))
slow(uint64_t live, uint64_t bytes, uint64_t allocs, uint64_t frees, uint32_t kind)
{
  struct m6_event e = {live, bytes, allocs, frees, kind};
  m6_count_slow(&e);
}

static void __attribute__((noinline, cold)) slow_alloc(void *p, uint64_t bytes, uint32_t kind)
{
  slow(bytes, bytes, 1, 0, kind);
  if (m6_site_due(bytes)) m6_site_sample(p, bytes);
}

/* A block came into being. The total is added first and its kind second: see struct m6_slot. */
static inline __attribute__((always_inline)) void count_alloc(void *p, uint32_t kind)
{
  uint64_t bytes = m6_real.measure(p);
  struct m6_slot *s = m6_self.slot;
  if (m6_unlikely(!s)) {
    slow_alloc(p, bytes, kind);
    return;
  }
  m6_own_add(&s->live, bytes);
  m6_own_add(&s->allocs, 1);
  m6_own_add(&s->bytes, bytes);
  if (kind) {
    struct m6_kind *k = (struct m6_kind *)((char *)s + kind);
    m6_own_add(&k->count, 1);
    m6_own_add(&k->bytes, bytes);
  }
  if (m6_site_due(bytes)) m6_site_sample(p, bytes);
}

static inline __attribute__((always_inline)) void count_free(uint64_t bytes)
{
  struct m6_slot *s = m6_self.slot;
  if (m6_unlikely(!s)) {
    slow(-bytes, 0, 0, 1, 0);
    return;
  }
  m6_own_sub(&s->live, bytes);
  m6_own_add(&s->frees, 1);
}

/* Only `live`: before a realloc, and to undo that. */
static inline __attribute__((always_inline)) void count_live(uint64_t bytes)
{
  struct m6_slot *s = m6_self.slot;
  if (m6_unlikely(!s)) slow(bytes, 0, 0, 0, 0);
  else m6_own_add(&s->live, bytes);
}

/* How many events of this thread were counted so far: has a call inside a real function been seen? Takes the slot
 * first, so that both readings come from the same place. */
struct seen {
  uint64_t allocs, frees;
};
static inline struct seen seen_so_far(void)
{
  const struct m6_slot *s = m6_self.slot;
  if (m6_unlikely(!s)) {
    m6_thread_enter();
    s = m6_self.slot;
    if (!s) return (struct seen){m6_self.shared_allocs, m6_self.shared_frees};
  }
  return (struct seen){m6_peek(&s->allocs), m6_peek(&s->frees)};
}
static inline int nothing_since(struct seen before)
{
  struct seen now = seen_so_far();
  return m6_likely(now.allocs == before.allocs && now.frees == before.frees);
}

/* ---- the hooks that matter for speed ---------------------------------------------------------------------------- */

M6_EXPORT void *malloc(size_t n)
{
  if (!m6_counting()) return m6_real.malloc(n);
  void *p = m6_real.malloc(n);
  if (m6_likely(p != NULL)) count_alloc(p, 0);
  return p;
}
void *m6_hook_malloc(size_t) HOOK(malloc);

/* Apart, so that the inert half needs no stack. */
static __attribute__((noinline)) void free_counted(void *p)
{
  if (m6_likely(p != NULL)) {
    count_free(m6_real.measure(p));
    if (m6_site_maybe(p)) m6_site_free(p);
  }
  m6_real.free(p);
}
M6_EXPORT void free(void *p)
{
  if (!m6_counting()) m6_real.free(p);
  else free_counted(p);
}
void m6_hook_free(void *) HOOK(free);

/* The other hooks in two halves each: COUNTED makes the exported one, whose inert half needs no stack, and opens the
 * second. */
#define COUNTED(type, name, params, args)                                                                              \
  static __attribute__((noinline)) type name##_counted params;                                                         \
  M6_EXPORT type name params                                                                                           \
  {                                                                                                                    \
    if (!m6_counting()) return m6_real.name args;                                                                      \
    return name##_counted args;                                                                                        \
  }                                                                                                                    \
  type m6_hook_##name params HOOK(name);                                                                               \
  static type name##_counted params

COUNTED(void *, calloc, (size_t m, size_t n), (m, n))
{
  struct seen before = seen_so_far();
  void *p = m6_real.calloc(m, n);
  if (m6_likely(p != NULL) && nothing_since(before)) count_alloc(p, KIND(calloc_));
  return p;
}

/* One shape for realloc and reallocarray: p's bytes go before, the new block's come after. `sample`: p's key, 0 for
 * none. */
#define RESIZE(p, freed, call, sample)                                                                                 \
  do {                                                                                                                 \
    uint64_t old = (p) ? m6_real.measure(p) : 0;                                                                       \
    struct seen before = seen_so_far();                                                                                \
    if (p) count_live(-old);                                                                                           \
    void *q = (call);                                                                                                  \
    if (sample) m6_site_settle(sample, q || (freed));                                                                  \
    if (m6_unlikely(!nothing_since(before))) { /* counted on a way through other hooks */                              \
      if (p) count_live(old);                                                                                          \
    } else if (m6_likely(q != NULL)) {                                                                                 \
      count_alloc(q, KIND(realloc_));                                                                                  \
    } else if (p) {                                                                                                    \
      count_live(old);                                                                                                 \
      if (freed) count_free(old);                                                                                      \
    }                                                                                                                  \
    return q;                                                                                                          \
  } while (0)
/* The hook, and its second form for a block that may be a sampled one. */
#define RESIZING(name, params, args, freed)                                                                            \
  static __attribute__((noinline)) void *name##_sampled params                                                         \
  {                                                                                                                    \
    uint64_t sample = m6_site_hold(p);                                                                                 \
    RESIZE(p, freed, m6_real.name args, sample);                                                                       \
  }                                                                                                                    \
  COUNTED(void *, name, params, args)                                                                                  \
  {                                                                                                                    \
    if (m6_site_maybe(p)) return name##_sampled args;                                                                  \
    RESIZE(p, freed, m6_real.name args, 0);                                                                            \
  }
RESIZING(realloc, (void *p, size_t n), (p, n), n == 0)
RESIZING(reallocarray, (void *p, size_t m, size_t n), (p, m, n), m == 0 || n == 0)

/* ---- aligned ones ----------------------------------------------------------------------------------------------- */

#define ALIGNED(call)                                                                                                  \
  do {                                                                                                                 \
    struct seen before = seen_so_far();                                                                                \
    void *p = call;                                                                                                    \
    if (p && nothing_since(before)) count_alloc(p, KIND(aligned));                                                     \
    return p;                                                                                                          \
  } while (0)

COUNTED(void *, memalign, (size_t align, size_t n), (align, n)) { ALIGNED(m6_real.memalign(align, n)); }
COUNTED(void *, aligned_alloc, (size_t align, size_t n), (align, n)) { ALIGNED(m6_real.aligned_alloc(align, n)); }
COUNTED(void *, valloc, (size_t n), (n)) { ALIGNED(m6_real.valloc(n)); }
COUNTED(void *, pvalloc, (size_t n), (n)) { ALIGNED(m6_real.pvalloc(n)); }
COUNTED(int, posix_memalign, (void **out, size_t align, size_t n), (out, align, n))
{
  struct seen before = seen_so_far();
  int e = m6_real.posix_memalign(out, align, n);
  if (e == 0 && *out && nothing_since(before)) count_alloc(*out, KIND(aligned));
  return e;
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

M6_EXPORT size_t malloc_usable_size(void *p) { return m6_real.usable(p); }

#ifdef M6_FREE_SIZED
/* The Makefile asks libc. A real one that calls free is seen there. */
#define FREE(call)                                                                                                     \
  do {                                                                                                                 \
    if (m6_counting() && p) {                                                                                          \
      uint64_t bytes = m6_real.measure(p);                                                                             \
      struct seen before = seen_so_far();                                                                              \
      count_free(bytes);                                                                                               \
      if (m6_site_maybe(p)) m6_site_free(p);                                                                           \
      call;                                                                                                            \
      struct seen now = seen_so_far();                                                                                 \
      if (now.frees - before.frees == 2) slow(bytes, 0, 0, -1ull, 0);                                                  \
      return;                                                                                                          \
    }                                                                                                                  \
    call;                                                                                                              \
  } while (0)
void free_sized(void *, size_t);
void free_aligned_sized(void *, size_t, size_t);
M6_EXPORT void free_sized(void *p, size_t n) { FREE(m6_real.free_sized(p, n)); }
M6_EXPORT void free_aligned_sized(void *p, size_t align, size_t n) { FREE(m6_real.free_aligned_sized(p, align, n)); }
#endif
