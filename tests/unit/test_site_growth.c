/* test_site_growth - who is suspected to leak: of 200 leak-free runs at most 5 % name a site, and leaks are found that lose a block now and
 * then, a hundred at once, from the middle of the run on, in a place that churns, or in one block that grows. Each run has its own seed. */
/* links: collector/sites.c collector/site_growth.c collector/trend.c collector/verdict.c -lm */
/* sanitizers: address */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/sites.h"
#include "preload/poisson.h"

enum { FRAMES = 3600, PLACES = 24, HELD = 4096 }; /* a minute at 60 frames a second */

static struct m6_sites s;
static uint64_t random_state, next_key;
static uint32_t now, interval;
static int64_t left;
static struct held { /* what is to be given back, and when; key 0: nothing */
  uint64_t key;
  uint32_t until;
} held[HELD];
static uint32_t helds;

static double uniform(void) { return ((double)(m6_poisson_random(&random_state) >> 11) + 0.5) / 9007199254740992.0; }
static double exponential(double mean) { return -mean * log(uniform()); }
/* Does something that happens so often a frame happen in this one? */
static int happens(double often) { return uniform() < often; }

/* A block at a place; its key, 0 when it is no sample. */
static uint64_t get(uint32_t place, uint64_t bytes)
{
  if (interval > 1 && (left -= (int64_t)bytes) >= 0) return 0;
  if (interval > 1) left = (int64_t)m6_poisson_gap(&random_state, interval);
  struct m6_site_sample a = {
    .key = ++next_key, .bytes = bytes, .code = place, .interval = interval, .frame = now, .scope = M6_SITE_NO_SCOPE};
  m6_sites_made(&s, &a);
  return a.key;
}
static void put(uint64_t key)
{
  if (key) m6_sites_died(&s, key, now);
}
static void keep_for(uint64_t key, double frames)
{
  if (key && helds < HELD) held[helds++] = (struct held){key, now + (uint32_t)frames};
  else put(key);
}
static void give_back(void)
{
  for (uint32_t i = 0; i < helds;) {
    if (held[i].until > now) i++;
    else put(held[i].key), held[i] = held[--helds];
  }
}

static int suspect(uint32_t place)
{
  for (uint32_t i = 1; i < s.count; i++)
    if (s.list[i].key.code == place) return m6_sites_growth(&s, &s.list[i]).suspect;
  return 0;
}

static void begin(uint64_t seed, uint32_t distance)
{
  random_state = seed * 7919 + 17;
  random_state = m6_poisson_random(&random_state);
  interval = distance;
  left = distance > 1 ? (int64_t)m6_poisson_gap(&random_state, distance) : 0;
  helds = 0;
  next_key = 0;
  assert_int_equal(m6_sites_init(&s), 0);
  m6_sites_tick(&s, 0, 1);
}
static void end_frame(void)
{
  give_back();
  m6_sites_tick(&s, now, 1 + now * 16666667ull);
}

/* ---- what is no leak -------------------------------------------------------------------------------------------------------------- */

enum {
  IN_FRAME = 1,
  SHORT_LIVES,
  LONG_LIVES,
  VERY_LONG_LIVES,
  FILLED_CACHE,
  SLOW_CACHE,
  OLDEST_OUT,
  ANY_OUT,
  LEVELS,
  WALK,
  DOUBLES,
  FEW_HANDLES,
  LEAK_FREE_PLACES
};
static void leak_free_run(uint64_t seed)
{
  static uint64_t ring[60], any[60], level[200], walk[400];
  uint32_t at = 0, in_level = 0, walks = 0, doubled = 64, keys[300] = {0};
  uint64_t doubling = 0;
  double stop = (0.1 + 0.6 * uniform()) * FRAMES, often = 0.01 + 0.2 * uniform();
  memset(ring, 0, sizeof ring);
  memset(any, 0, sizeof any);
  (void)seed;
  for (now = 1; now <= FRAMES; now++) {
    for (int i = 0; i < 4; i++) put(get(IN_FRAME, 64));
    keep_for(get(SHORT_LIVES, 200), exponential(50));
    if (happens(0.2)) keep_for(get(LONG_LIVES, 500), exponential(FRAMES / 20.0));
    if (happens(0.1)) keep_for(get(VERY_LONG_LIVES, 1000), exponential(FRAMES / 5.0));
    if (now < stop && happens(often)) get(FILLED_CACHE, 4096);
    uint32_t key = (uint32_t)(uniform() * 300 * FRAMES / 4 / 300); /* 300 of many: found more and more seldom */
    if (key < 300 && !keys[key]) keys[key] = 1, get(SLOW_CACHE, 2048);
    if (happens(0.05)) put(ring[at % 60]), ring[at++ % 60] = get(OLDEST_OUT, 3000);
    if (happens(0.05)) {
      uint32_t k = (uint32_t)(uniform() * 60);
      put(any[k]);
      any[k] = get(ANY_OUT, 3000);
    }
    if (now % (FRAMES / 6) == 100) {
      while (in_level) put(level[--in_level]);
      for (uint32_t n = 100 + (uint32_t)(uniform() * 100); in_level < n;) level[in_level++] = get(LEVELS, 1500);
    }
    if (happens(0.3)) {
      if (walks < 400 && uniform() < 0.5) walk[walks++] = get(WALK, 700);
      else if (walks) put(walk[--walks]);
    }
    if (now == doubled) put(doubling), doubling = get(DOUBLES, 512ull * doubled), doubled *= 2;
    if (happens(0.004)) keep_for(get(FEW_HANDLES, 4000), exponential(FRAMES / 30.0));
    end_frame();
  }
}

static void leak_free_runs_are_not_suspected(void **state)
{
  (void)state;
  static const uint32_t distances[] = {1, 4096};
  for (size_t d = 0; d < 2; d++) {
    uint32_t runs = 200, alarms = 0, of[LEAK_FREE_PLACES] = {0};
    for (uint64_t seed = 0; seed < runs; seed++) {
      int any = 0;
      begin(seed + 1000 * d, distances[d]);
      leak_free_run(seed);
      m6_sites_settle(&s);
      for (uint32_t p = 1; p < LEAK_FREE_PLACES; p++)
        if (suspect(p)) any = 1, of[p]++;
      alarms += (uint32_t)any;
      m6_sites_close(&s);
    }
    printf("# one in %u bytes: %u of %u leak-free runs name a site; by place:", distances[d], alarms, runs);
    for (uint32_t p = 1; p < LEAK_FREE_PLACES; p++) printf(" %u", of[p]);
    printf("\n");
    assert_true(alarms <= runs / 20);
  }
}

/* ---- what is one ------------------------------------------------------------------------------------------------------------------- */

enum { NOW_AND_THEN, BY_CHANCE, EACH_FRAME, BY_LEVEL, LATER, WHERE_IT_CHURNS, ONE_BLOCK, LEAKS };
static const struct {
  const char *name;
  double found; /* of all runs at least */
} leaks[LEAKS] = {{"8 blocks of a run, evenly", 0.99},
                  {"12 blocks of a run, by chance", 0.75},
                  {"4 blocks a frame", 0.95},
                  {"20 blocks at each of 12 levels", 0.9},
                  {"a block in 20 frames, from a third of the run on", 0.75},
                  {"12 blocks where 4 a frame come and go", 0.9},
                  {"one block that grows", 0.95}};

static void leaks_are_found(void **state)
{
  (void)state;
  uint32_t runs = 100, found[LEAKS] = {0};
  for (uint64_t seed = 0; seed < runs; seed++) {
    uint64_t grown = 0;
    begin(seed, 1);
    for (now = 1; now <= FRAMES; now++) {
      if (now % (FRAMES / 8) == 200) get(1 + NOW_AND_THEN, 4096);
      if (happens(12.0 / FRAMES)) get(1 + BY_CHANCE, 4096);
      for (int i = 0; i < 4; i++) get(1 + EACH_FRAME, 64);
      for (int i = 0; i < 20 && now % (FRAMES / 12) == 50; i++) get(1 + BY_LEVEL, 256);
      if (now > FRAMES / 3 && happens(0.05)) get(1 + LATER, 512);
      for (int i = 0; i < 4; i++) keep_for(get(1 + WHERE_IT_CHURNS, 64), uniform() * 3);
      if (now % (FRAMES / 12) == 20) get(1 + WHERE_IT_CHURNS, 64);
      if (now % 90 == 0) put(grown), grown = get(1 + ONE_BLOCK, 1000ull * now);
      end_frame();
    }
    m6_sites_settle(&s);
    for (uint32_t p = 0; p < LEAKS; p++) found[p] += (uint32_t)suspect(1 + p);
    m6_sites_close(&s);
  }
  for (uint32_t p = 0; p < LEAKS; p++) printf("# %s: found in %u of %u runs\n", leaks[p].name, found[p], runs);
  for (uint32_t p = 0; p < LEAKS; p++) assert_true(found[p] >= leaks[p].found * runs);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(leak_free_runs_are_not_suspected),
                                     cmocka_unit_test(leaks_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
