/* clock.h - ticks of a session's clock to nanoseconds.
 *
 * Promise: the rate comes from the collector's own pairs (ticks, CLOCK_MONOTONIC) alone, taken at its start and now, so
 * nothing a target writes can bend it; 128-bit products, no rounding beyond the rate's. Monotonic: later ticks never
 * give earlier ns.
 * Callers: everything that publishes. One thread.
 */
#ifndef M6_COLLECTOR_CLOCK_H
#define M6_COLLECTOR_CLOCK_H

#include "../shm/clock.h"

struct m6_rate { /* ns = ticks * mul >> 32 */
  uint64_t mul;
  uint32_t kind;
};

/* Takes the first pair; once, early. */
void m6_clock_begin(void);
/* The rate as known now; better the longer the collector has run. Waits a few ms when it was only just started. */
struct m6_rate m6_clock_rate(uint32_t kind);

static inline uint64_t m6_ticks_to_ns(struct m6_rate r, uint64_t ticks)
{
  if (r.kind != M6_CLOCK_TSC) return ticks;
  unsigned __int128 ns = ((unsigned __int128)ticks * r.mul) >> 32;
  return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}
/* Ticks of the session's clock at a time of CLOCK_MONOTONIC; exact about the two moments that the rate was taken from.
 * */
uint64_t m6_clock_ticks(struct m6_rate r, uint64_t mono_ns);
/* The other way round. */
uint64_t m6_clock_mono(struct m6_rate r, uint64_t ticks);
/* Ticks between two readings; 0 when the clock seems to go backwards. */
static inline uint64_t m6_ticks_since(uint64_t later, uint64_t earlier)
{
  return later > earlier ? later - earlier : 0;
}

#endif
