/* clock.c - pairs of (ticks, ns) and the rate between them. See clock.h. */
#include "clock.h"

#include <unistd.h>

#define TRIES 7                /* the pair whose two tick readings lie closest together wins */
#define BASELINE_NS 4000000ull /* shortest distance between pairs: 100 ns of noise are then 25 ppm */

struct pair {
  uint64_t ticks, ns;
};
static struct pair first;

static struct pair take(void)
{
  struct pair best = {0, 0};
  uint64_t width = UINT64_MAX;
  for (int i = 0; i < TRIES; i++) {
    uint64_t a = m6_clock_read(M6_CLOCK_TSC), ns = m6_monotonic_ns(), b = m6_clock_read(M6_CLOCK_TSC);
    if (b - a < width) {
      width = b - a;
      best = (struct pair){a + (b - a) / 2, ns};
    }
  }
  return best;
}

void m6_clock_begin(void)
{
  if (first.ns == 0) first = take();
}

struct m6_rate m6_clock_rate(uint32_t kind)
{
  struct m6_rate r = {1ull << 32, kind};
  if (kind != M6_CLOCK_TSC) return r;
  m6_clock_begin();
  struct pair now = take();
  while (now.ns - first.ns < BASELINE_NS) {
    usleep(1000);
    now = take();
  }
  if (now.ticks > first.ticks)
    r.mul = (uint64_t)(((unsigned __int128)(now.ns - first.ns) << 32) / (now.ticks - first.ticks));
  return r;
}

uint64_t m6_clock_ticks(struct m6_rate r, uint64_t mono_ns)
{
  if (r.kind != M6_CLOCK_TSC || r.mul == 0) return mono_ns;
  __int128 away = (__int128)mono_ns - (__int128)first.ns;
  __int128 ticks = (__int128)first.ticks + (away << 32) / (__int128)r.mul;
  return ticks < 0 ? 0 : ticks > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

uint64_t m6_clock_mono(struct m6_rate r, uint64_t ticks)
{
  if (r.kind != M6_CLOCK_TSC) return ticks;
  __int128 away = (__int128)ticks - (__int128)first.ticks;
  __int128 ns = (__int128)first.ns + ((away * (__int128)r.mul) >> 32);
  return ns < 0 ? 0 : ns > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}
