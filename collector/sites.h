/* sites.h - who allocates and who keeps: sampled allocations summed up by site. Statistics alone; names are
 * site_side.h's.
 *
 * A site is a place in the code, told by the innermost M6_SITE_DEPTH calls of its stack, and the scope that was open
 * there.
 *
 * Estimates. A block of s bytes was sampled with probability p = 1 - exp(-s / interval), so each sample stands for 1 /
 * p blocks and s / p bytes (Horvitz and Thompson 1952), with variance s^2 (1 - p) / p^2 a sampled block. The 95 %
 * interval is the score interval for a sum of that kind: with v the variance and w = v / estimate (what a sample
 * weighs), estimate + z^2 w / 2 +- z sqrt(v + z^2 w^2 / 4); for equal weights that is the one for a Poisson count
 * (Wilson 1927, Rao 1948), which holds its 95 % from a handful of samples on, where estimate +- z sqrt(v) falls short.
 *
 * What is missing: samples that found no room stand for so many bytes at most (shm/sites.h), of whichever site; of
 * those whose end is not known (untracked: never; late: not its frame) the site is. The true sum of samples lies
 * between what is there and that with all of the missing ones, so the interval reaches from the low end of the one to
 * the high end of the other (m6_site_range_of; the estimate stays what was seen). Samples without a stack are not
 * missing: they are a site of their own.
 *
 * Growth: site_growth.c.
 *
 * Frames are numbers of presents: a block that dies with the number it was born with lived and died between two
 * presents. Where there are no frames, growth is per second.
 *
 * Promise: memory is O(sites), at most M6_SITES_MAX, and O(live samples), at most M6_SITE_TABLE; what comes later goes
 * to site 0. Deaths may come before their births, and twice. No foreign memory. One thread. Callers: site_side.c,
 * site_publish.c.
 */
#ifndef M6_SITES_STATISTICS_H
#define M6_SITES_STATISTICS_H

#include <stdint.h>

#include "../shm/budget.h"

#define M6_SITE_DEPTH 8u
#define M6_SITE_POINTS 64u
#define M6_SITE_TICK_MS 100u
#define M6_SITE_NO_SCOPE UINT32_MAX
#define M6_SITE_LIVES 20u /* classes of lifetimes: 0 frames, 1, 2-3, 4-7, ... */

struct m6_site_sum {
  double blocks, bytes; /* estimates */
  double variance;      /* of bytes */
  uint64_t samples;
};
struct m6_site_range {     /* 95 % */
  double low, high, error; /* error: standard error */
};
struct m6_site_range m6_site_range_of(const struct m6_site_sum *sum,
                                      const struct m6_site_sum *missing); /* NULL: nothing */
double m6_site_probability(uint64_t bytes, uint32_t interval);

struct m6_site {
  struct {
    uint64_t code; /* of the innermost calls */
    uint32_t scope, free_;
  } key;
  uint32_t stack;                     /* the first stack that was seen here */
  struct m6_site_sum made, in_frames; /* in_frames: after the first present */
  struct m6_site_sum live;
  struct m6_site_sum same_frame;   /* died in the frame they were born in */
  struct m6_site_sum untracked;    /* of made: whose end will not be known */
  struct m6_site_sum late;         /* died, nobody knows when */
  double peak, peak_variance;      /* most bytes live at one time, and their variance at that time */
  double dead_blocks, dead_frames; /* blocks whose death is known, and their lifetimes' sum */
  double lives[M6_SITE_LIVES];     /* of them, by lifetime */
  float points[M6_SITE_POINTS];    /* bytes live at ticks */
  uint64_t age_sum;                /* of live samples, frames; by m6_sites_settle, as the next two */
  uint32_t oldest;
  uint16_t born[M6_SITE_POINTS]; /* live samples by the point they were born in */
  uint32_t rank;                 /* for whoever chooses, as the next */
  double leak;
};

struct m6_site_sample {
  uint64_t key, bytes, code;
  uint32_t interval, frame, scope, stack;
  int untracked; /* its death will not be known */
};

struct m6_site_growth {
  double per, error; /* bytes a frame (a second without frames), half-width of its 95 % interval; NaN when unknown */
  int suspect;       /* it grows, and still does */
};

struct m6_site_live; /* a live sample */
struct m6_site_entry;
struct m6_sites {
  struct m6_site *list; /* M6_SITES_MAX; [0] is "(other)" */
  struct m6_site_entry *hash;
  uint32_t count;
  struct m6_site_sum made, in_frames, live, untracked, late, same_frame;
  double peak, peak_variance;
  uint64_t refused;                   /* samples that went to site 0 for want of room */
  struct m6_site_live *alive, *early; /* early: deaths that came before their births */
  uint32_t early_count;
  uint64_t
    early_lost; /* of these, pushed out: if their births come yet, only m6_sites_check tells that they are gone */
  uint32_t points, each, waiting, ticks; /* ticks in a point, since the last point, in all */
  uint32_t frames[M6_SITE_POINTS], ms[M6_SITE_POINTS];
  uint32_t last_frame, frame, ms_waiting;
  uint64_t last_tick_ns;
};

int m6_sites_init(struct m6_sites *s); /* 0 or ENOMEM */
void m6_sites_close(struct m6_sites *s);
void m6_sites_made(struct m6_sites *s, const struct m6_site_sample *sample);
void m6_sites_died(struct m6_sites *s, uint64_t key, uint32_t frame);
/* Of what was made with this key (and interval 1) so many bytes are gone; with the last of them it has died. And:
 * whether they are is not known any more. */
void m6_sites_shrank(struct m6_sites *s, uint64_t key, uint64_t bytes, uint32_t frame);
void m6_sites_untrack(struct m6_sites *s, uint64_t key, uint64_t bytes);
/* Asks of every live sample whether it still lives; those for which the answer is 0 have died by now, nobody knows
 * when: they count in no lifetime. */
void m6_sites_check(struct m6_sites *s, int (*lives)(void *arg, uint64_t key), void *arg);
/* Takes the readings for growth when it is time. */
void m6_sites_tick(struct m6_sites *s, uint32_t frame, uint64_t now_ns);
/* Ages of what lives, before rows are read and growth is asked for. */
void m6_sites_settle(struct m6_sites *s);
/* site_growth.c */
int m6_sites_lasting(const struct m6_sites *s, const struct m6_site *site); /* cheap: only such a site can be suspect */
struct m6_site_growth m6_sites_growth(const struct m6_sites *s, const struct m6_site *site);

#endif
