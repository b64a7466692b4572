/* sites.c - see sites.h. */
#include "sites.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hash_free.h"

#include <uthash.h>

#define Z 1.959964
#define EARLY_MAX 4096u

struct m6_site_live {
  uint64_t key;
  struct m6_site *site; /* NULL: a death without its birth */
  double blocks, bytes, variance;
  uint32_t frame, tick;
  UT_hash_handle hh;
};

struct m6_site_entry {
  struct m6_site *site;
  UT_hash_handle hh;
};

double m6_site_probability(uint64_t bytes, uint32_t interval)
{
  return interval > 1 ? -expm1(-(double)bytes / interval) : 1;
}

static struct m6_site_range score(double bytes, double variance)
{
  struct m6_site_range r = {bytes, bytes, 0};
  if (bytes <= 0 || variance <= 0) return r;
  double weight = variance / bytes, middle = bytes + Z * Z * weight / 2;
  double half = Z * sqrt(variance + Z * Z * weight * weight / 4);
  r.error = sqrt(variance);
  r.low = middle - half;
  r.high = middle + half;
  return r;
}

struct m6_site_range m6_site_range_of(const struct m6_site_sum *sum, const struct m6_site_sum *missing)
{
  struct m6_site_range r = score(sum->bytes, sum->variance);
  if (missing && missing->bytes > 0)
    r.high = score(sum->bytes + missing->bytes, sum->variance + missing->variance).high;
  return r;
}

int m6_sites_init(struct m6_sites *s)
{
  memset(s, 0, sizeof *s);
  s->list = calloc(M6_SITES_MAX, sizeof *s->list);
  s->count = 1;
  s->each = 1;
  if (s->list == NULL) return ENOMEM;
  s->list[0].key.scope = M6_SITE_NO_SCOPE;
  return 0;
}

void m6_sites_close(struct m6_sites *s)
{
  M6_HASH_FREE(s->alive, free);
  M6_HASH_FREE(s->early, free);
  M6_HASH_FREE(s->hash, free);
  free(s->list);
  memset(s, 0, sizeof *s);
}

/* ---- births and deaths
 * -------------------------------------------------------------------------------------------------------- */

static void add(struct m6_site_sum *to, const struct m6_site_live *l, int sign)
{
  to->blocks += sign * l->blocks;
  to->bytes += sign * l->bytes;
  to->variance += sign * l->variance;
  to->samples += (uint64_t)(int64_t)sign;
  if (to->samples == 0) memset(to, 0, sizeof *to); /* not what rounding left */
}

static struct m6_site *site_of(struct m6_sites *s, const struct m6_site_sample *sample)
{
  struct m6_site *site, like;
  struct m6_site_entry *e;
  memset(&like.key, 0, sizeof like.key);
  like.key.code = sample->code;
  like.key.scope = sample->scope;
  HASH_FIND(hh, s->hash, &like.key, sizeof like.key, e);
  if (e) return e->site;
  if (s->count == M6_SITES_MAX || (e = calloc(1, sizeof *e)) == NULL) {
    s->refused++;
    return &s->list[0];
  }
  e->site = site = &s->list[s->count++];
  site->key = like.key;
  site->stack = sample->stack;
  HASH_ADD_KEYPTR(hh, s->hash, &site->key, sizeof site->key, e);
  return site;
}

static void leave(struct m6_sites *s, const struct m6_site_live *l)
{
  add(&l->site->live, l, -1);
  add(&s->live, l, -1);
}

static void bury(struct m6_sites *s, const struct m6_site_live *l, uint32_t frame)
{
  struct m6_site *site = l->site;
  uint32_t age = frame - l->frame, class = 0;
  if ((int32_t)age < 0) age = 0; /* the present was counted between the two clocks */
  leave(s, l);
  site->dead_blocks += l->blocks;
  site->dead_frames += l->blocks * age;
  while (age >> class && class < M6_SITE_LIVES - 1) class ++;
  site->lives[class] += l->blocks;
  if (age == 0 && l->frame != 0) add(&site->same_frame, l, 1), add(&s->same_frame, l, 1);
}

void m6_sites_made(struct m6_sites *s, const struct m6_site_sample *sample)
{
  double p = m6_site_probability(sample->bytes, sample->interval);
  if (!(p > 0)) return;
  struct m6_site *site = site_of(s, sample);
  double bytes = (double)sample->bytes;
  struct m6_site_live one = {.key = sample->key,
                             .site = site,
                             .blocks = 1 / p,
                             .bytes = bytes / p,
                             .variance = bytes * bytes * (1 - p) / (p * p),
                             .frame = sample->frame,
                             .tick = s->ticks};
  add(&site->made, &one, 1);
  add(&s->made, &one, 1);
  if (sample->frame) add(&site->in_frames, &one, 1), add(&s->in_frames, &one, 1);
  if (sample->untracked) {
    add(&site->untracked, &one, 1);
    add(&s->untracked, &one, 1);
    return;
  }
  struct m6_site_live *l, *before;
  HASH_FIND(hh, s->alive, &one.key, sizeof one.key, before);
  if (before) { /* this key again: its death was lost, long ago */
    HASH_DELETE(hh, s->alive, before);
    leave(s, before);
    free(before);
  }
  add(&site->live, &one, 1);
  add(&s->live, &one, 1);
  if (site->live.bytes > site->peak) site->peak = site->live.bytes, site->peak_variance = site->live.variance;
  if (s->live.bytes > s->peak) s->peak = s->live.bytes, s->peak_variance = s->live.variance;
  HASH_FIND(hh, s->early, &one.key, sizeof one.key, l);
  if (l) {
    HASH_DELETE(hh, s->early, l);
    s->early_count--;
    bury(s, &one, l->frame);
    free(l);
    return;
  }
  l = malloc(sizeof *l);
  if (l == NULL) {
    bury(s, &one, sample->frame);
    return;
  }
  *l = one;
  HASH_ADD(hh, s->alive, key, sizeof l->key, l);
}

void m6_sites_died(struct m6_sites *s, uint64_t key, uint32_t frame)
{
  struct m6_site_live *l;
  HASH_FIND(hh, s->alive, &key, sizeof key, l);
  if (l) {
    HASH_DELETE(hh, s->alive, l);
    bury(s, l, frame);
    free(l);
    return;
  }
  /* Its birth lies in a ring that is read later, or is lost: then it stays here until newer ones push it out. */
  if (s->early_count == EARLY_MAX && (l = s->early) != NULL) {
    HASH_DELETE(hh, s->early, l);
    s->early_count--;
    s->early_lost++;
    free(l);
  }
  l = calloc(1, sizeof *l);
  if (l == NULL) {
    s->early_lost++;
    return;
  }
  l->key = key;
  l->frame = frame;
  HASH_ADD(hh, s->early, key, sizeof l->key, l);
  s->early_count++;
}

void m6_sites_shrank(struct m6_sites *s, uint64_t key, uint64_t bytes, uint32_t frame)
{
  struct m6_site_live *l;
  HASH_FIND(hh, s->alive, &key, sizeof key, l);
  if (!l) return;
  if ((double)bytes >= l->bytes) {
    m6_sites_died(s, key, frame);
    return;
  }
  l->bytes -= (double)bytes;
  l->site->live.bytes -= (double)bytes;
  s->live.bytes -= (double)bytes;
  if (frame != l->frame || frame == 0) return;
  l->site->same_frame.bytes += (double)bytes;
  s->same_frame.bytes += (double)bytes;
}

void m6_sites_untrack(struct m6_sites *s, uint64_t key, uint64_t bytes)
{
  struct m6_site_live *l;
  HASH_FIND(hh, s->alive, &key, sizeof key, l);
  if (!l) return;
  double part = (double)bytes < l->bytes ? (double)bytes : l->bytes;
  l->site->untracked.bytes += part;
  s->untracked.bytes += part;
  l->bytes -= part;
  l->site->live.bytes -= part;
  s->live.bytes -= part;
  if (l->bytes > 0) return;
  HASH_DELETE(hh, s->alive, l);
  leave(s, l);
  free(l);
}

void m6_sites_check(struct m6_sites *s, int (*lives)(void *arg, uint64_t key), void *arg)
{
  struct m6_site_live *l, *next;
  HASH_ITER(hh, s->alive, l, next)
  {
    if (lives(arg, l->key)) continue;
    HASH_DELETE(hh, s->alive, l);
    leave(s, l);
    add(&l->site->late, l, 1);
    add(&s->late, l, 1);
    free(l);
  }
}

/* ---- ages
 * -----------------------------------------------------------------------------------------------------------------------
 * */

void m6_sites_settle(struct m6_sites *s)
{
  for (uint32_t k = 0; k < s->count; k++) {
    s->list[k].age_sum = s->list[k].oldest = 0;
    memset(s->list[k].born, 0, sizeof s->list[k].born);
  }
  struct m6_site_live *l = NULL, *next;
  HASH_ITER(hh, s->alive, l, next)
  {
    uint32_t age = s->frame > l->frame ? s->frame - l->frame : 0;
    l->site->age_sum += age;
    if (age > l->site->oldest) l->site->oldest = age;
    uint32_t at = l->tick / s->each;
    if (at < M6_SITE_POINTS && l->site->born[at] < UINT16_MAX) l->site->born[at]++;
  }
}
