/* order.h - every memory ordering that mach6 relies on, in one place.
 *
 * Promise: nothing outside this file names a C11 memory order. Each helper says which pairing it is half of.
 * May be included by: everything. Includes: the compiler's own headers only.
 * Thread-safety: each helper is one atomic access. Signal-safety: all.
 */
#ifndef M6_ORDER_H
#define M6_ORDER_H

#include <stdint.h>

/* Read what another thread or process published with m6_publish: everything it wrote before is visible after. */
#define m6_observe(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)

/* Make everything written so far visible to whoever m6_observes the new value. */
#define m6_publish(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* A value that may be torn apart in time from its neighbours, but never within itself: counters, hints. */
#define m6_peek(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define m6_poke(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/* Claims: the winner owns what the word stands for, and sees what the owner before it left. */
#define m6_claim(p, expected, desired)                                                                                 \
  __atomic_compare_exchange_n((p), (expected), (desired), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/* For words with many writers (slot 0, stream counters, free maps). */
#define m6_shared_add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define m6_shared_or(p, v) __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define m6_shared_and(p, v) __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)

/* Between the parts of a seqlock: stores before stay before, loads before stay before. Free on x86-64. */
#define m6_fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#define m6_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)

/* A store before it is seen before a load after it is made; the other half is an m6_claim. A new session's, once. */
#define m6_fence_full() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* Nothing moves across this in the compiler; what a signal handler on the same thread sees is in program order. */
#define m6_signal_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Add to a word that has ONE writing thread. A signal handler on that thread may add too, so on x86-64 it is one
 * instruction without a lock prefix: other threads see the old value or the new one, and no handler gets in between. */
static inline void m6_own_add(uint64_t *p, uint64_t v)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  __asm__ volatile("addq %1, %0" : "+m"(*p) : "er"(v) : "cc");
#else
  m6_poke(p, m6_peek(p) + v);
#endif
}

/* The same, taking away. */
static inline void m6_own_sub(uint64_t *p, uint64_t v)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  __asm__ volatile("subq %1, %0" : "+m"(*p) : "er"(v) : "cc");
#else
  m6_poke(p, m6_peek(p) - v);
#endif
}

/* The same, giving back the value before. */
static inline uint64_t m6_own_fetch_add(uint64_t *p, uint64_t v)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  __asm__ volatile("xaddq %0, %1" : "+r"(v), "+m"(*p) : : "cc");
  return v;
#else
  uint64_t old = m6_peek(p);
  m6_poke(p, old + v);
  return old;
#endif
}

#define m6_likely(x) __builtin_expect(!!(x), 1)
#define m6_unlikely(x) __builtin_expect(!!(x), 0)

#endif
