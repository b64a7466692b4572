/* clock.h - the session's clock: one read, no syscall.
 *
 * The time-stamp counter where the kernel itself trusts it (decided once a session, header.clock_kind says which), else
 * CLOCK_MONOTONIC in nanoseconds. Ticks become nanoseconds on the reader's side only, from pairs (ticks,
 * CLOCK_MONOTONIC) taken far apart. Plain rdtsc, without a fence: it may drift a few ns against its neighbours in
 * program order, less than the read costs.
 */
#ifndef M6_CLOCK_H
#define M6_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "layout.h"

static inline uint64_t m6_monotonic_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t m6_clock_read(uint32_t kind)
{
#if defined(__x86_64__) || defined(__i386__)
  if (__builtin_expect(kind == M6_CLOCK_TSC, 1)) return __builtin_ia32_rdtsc();
#endif
  (void)kind;
  return m6_monotonic_ns();
}

#endif
