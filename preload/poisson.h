/* poisson.h - how far it is to the next sampled byte.
 *
 * Bytes that are allocated are points on a line; samples are a Poisson process on it with one point in `mean` bytes. A
 * block is sampled when a point falls into it: with probability p = 1 - exp(-s / mean) for s bytes, whatever came
 * before, so s / p is an unbiased estimate of bytes and 1 / p of blocks (Horvitz and Thompson 1952), and the points'
 * independence gives its variance, s^2 (1 - p) / p^2 for each sampled block. A block counts once, however many points
 * fall into it; after it the distance is drawn anew from its end, which an exponential distribution, having no memory,
 * allows.
 * Distances are whole bytes, rounded down: floor(G) < s is the same event as G < s.
 *
 * Integers only: this runs where the game may hold the floating-point state as it likes. Random numbers: SplitMix64
 * (Steele, Lea, Flood 2014). Logarithm to the base 2 by squaring (Knuth, TAOCP 1.2.2, exercise 25's kin): 24 bits of
 * fraction. Pure; the unit tests link it.
 */
#ifndef M6_POISSON_H
#define M6_POISSON_H

#include <stdint.h>

static inline uint64_t m6_poisson_random(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

/* -ln(x / 2^64) in units of 2^-24, for x >= 1. */
static inline uint64_t m6_poisson_log(uint64_t x)
{
  uint32_t zeros = (uint32_t)__builtin_clzll(x);
  uint64_t m = x << zeros >> 32; /* 1 <= m / 2^31 < 2 */
  uint64_t fraction = 0;
  for (int i = 0; i < 24; i++) {
    m = m * m >> 31;
    fraction = fraction << 1 | m >> 32;
    m >>= m >> 32;
  }
  uint64_t log2 = ((uint64_t)(1 + zeros) << 24) - fraction;
  return log2 * 2977044472ull >> 32; /* ln 2 */
}

/* Bytes to the next point: an exponential distribution of that mean, which is 2 at least. */
static inline uint64_t m6_poisson_gap(uint64_t *state, uint32_t mean)
{
  uint64_t x = m6_poisson_random(state);
  return m6_poisson_log(x ? x : 1) * mean >> 24;
}

#endif
