/* governor.c - see governor.h. */
#include "governor.h"

#include <math.h>
#include <string.h>

#include "../shm/site_option.h"

void m6_governor_begin(struct m6_governor *g, enum m6_level level, const double budget[M6_LEVELS], uint32_t sites,
                       uint64_t now_ns)
{
  memset(g, 0, sizeof *g);
  memcpy(g->budget, budget, sizeof g->budget);
  g->at = g->top = (struct m6_rung){level, 1, sites};
  g->start_ns = now_ns;
  g->backoff = 1;
  g->cost = g->shim = g->kernel = g->collector = g->sites = NAN;
}

#define SITES_PART 4 /* sampled allocations cost one part in so many of all, or more: it is their step */

static uint64_t grown(uint64_t now, uint64_t then) { return now > then ? now - then : 0; }

/* The oldest sample that is still within the window, or NULL when there is none but this one. */
static const struct m6_spent *oldest(const struct m6_governor *g, uint64_t now)
{
  for (uint32_t n = g->count; n > 1; n--) {
    const struct m6_spent *s = &g->window[(g->next + M6_GOVERNOR_SAMPLES - n) % M6_GOVERNOR_SAMPLES];
    if (grown(now, s->now) <= M6_GOVERNOR_WINDOW_NS) return s;
  }
  return NULL;
}

/* Fills the last measurement; 0 when the window is too short for one. */
static int measure(struct m6_governor *g, const struct m6_spent *now)
{
  g->window[g->next] = *now;
  g->next = (g->next + 1) % M6_GOVERNOR_SAMPLES;
  if (g->count < M6_GOVERNOR_SAMPLES) g->count++;
  const struct m6_spent *then = oldest(g, now->now);
  if (then == NULL || grown(now->now, then->now) < M6_GOVERNOR_WINDOW_NS / 2) return 0;
  uint64_t wall = grown(now->now, then->now), cpu = grown(now->target_cpu, then->target_cpu);
  double base = (double)(cpu > wall ? cpu : wall);
  g->shim = (double)grown(now->shim, then->shim) / base;
  g->kernel = (double)grown(now->kernel, then->kernel) / base;
  g->collector = (double)grown(now->collector, then->collector) / base;
  g->sites = (double)grown(now->sites, then->sites) / base;
  g->cost = g->shim + g->kernel + g->collector;
  return 1;
}

static void note(struct m6_governor *g, struct m6_rung to, uint64_t now)
{
  g->steps[g->steps_total++ % M6_SNAP_STEPS] = (struct m6_snap_step){
    grown(now, g->start_ns), g->at.level, to.level, g->at.interval, to.interval, g->at.sites, to.sites, g->cost,
    g->budget[g->at.level]};
  g->at = to;
  g->over_since = g->under_since = 0;
  g->count = 0; /* what was before the step says nothing about what is after it */
}

/* The last distance before the longest. */
static uint32_t sites_limit(const struct m6_governor *g)
{
  uint64_t n = (uint64_t)M6_GOVERNOR_SITES * (g->top.sites > 1 ? g->top.sites : M6_GOVERNOR_SITES_EVERY);
  return n < M6_SITE_INTERVAL_MAX ? (uint32_t)n : M6_SITE_INTERVAL_MAX;
}
static uint32_t rarer(const struct m6_governor *g)
{
  uint32_t now = g->at.sites;
  if (now == 0) return 0;
  if (now == 1) return M6_GOVERNOR_SITES_EVERY;
  return now < sites_limit(g) ? 2 * now : M6_SITE_INTERVAL_MAX;
}
static uint32_t denser(const struct m6_governor *g)
{
  uint32_t now = g->at.sites, limit = sites_limit(g);
  uint32_t next = now > limit ? limit : now / 2;
  return next > g->top.sites && !(g->top.sites == 1 && now == M6_GOVERNOR_SITES_EVERY) ? next : g->top.sites;
}

static struct m6_rung above(const struct m6_governor *g)
{
  struct m6_rung r = g->at;
  if (r.sites != g->top.sites) r.sites = denser(g);
  else if (r.interval > 1) r.interval = 1;
  else r.level++, r.interval = 2;
  return r;
}

static struct m6_rung below(const struct m6_governor *g, int by_sites)
{
  struct m6_rung r = g->at;
  if (by_sites) r.sites = rarer(g);
  else if (r.interval > 1) r.level--, r.interval = 1;
  else r.interval = 2;
  return r;
}

enum m6_governor_says m6_governor_look(struct m6_governor *g, const struct m6_spent *spent)
{
  uint64_t now = spent->now;
  if (!measure(g, spent)) return M6_GOVERNOR_STAY;
  uint32_t level = g->at.level;
  if (g->cost > g->most[level]) g->most[level] = g->cost;
  int by_sites = rarer(g) != g->at.sites && g->sites * SITES_PART >= g->cost;
  int last = level == M6_LEVEL_MEMORY && g->at.interval > 1 && !by_sites;
  if (g->cost > g->budget[level]) g->overs[level]++;
  if (g->cost > g->budget[level] * (last ? M6_GOVERNOR_TOLERATED : 1)) {
    g->under_since = 0;
    if (g->over_since == 0) g->over_since = now;
    if (now - g->over_since < M6_GOVERNOR_OVER_NS) return M6_GOVERNOR_STAY;
    if (last) return M6_GOVERNOR_END;
    if (g->last_up != 0 && now - g->last_up < M6_GOVERNOR_UNDER_NS && g->backoff < M6_GOVERNOR_BACKOFF_MAX)
      g->backoff *= 2;
    note(g, below(g, by_sites), now);
    return M6_GOVERNOR_DOWN;
  }
  g->over_since = 0;
  if (g->at.level == g->top.level && g->at.interval == g->top.interval && g->at.sites == g->top.sites)
    return M6_GOVERNOR_STAY;
  struct m6_rung up = above(g);
  if (g->cost > g->budget[up.level] / 2) {
    g->under_since = 0;
    return M6_GOVERNOR_STAY;
  }
  if (g->under_since == 0) g->under_since = now;
  if (now - g->under_since < M6_GOVERNOR_UNDER_NS * g->backoff) return M6_GOVERNOR_STAY;
  g->last_up = now;
  note(g, up, now);
  return M6_GOVERNOR_UP;
}

void m6_governor_refused(struct m6_governor *g, enum m6_level level, uint64_t now_ns)
{
  if (g->top.level > level) g->top.level = level, g->top.interval = 1;
  if (g->at.level > level) note(g, (struct m6_rung){level, 1, g->at.sites}, now_ns);
}

uint32_t m6_governor_steps(const struct m6_governor *g, struct m6_snap_step out[M6_SNAP_STEPS])
{
  uint32_t n = g->steps_total < M6_SNAP_STEPS ? (uint32_t)g->steps_total : M6_SNAP_STEPS;
  for (uint32_t i = 0; i < n; i++) out[i] = g->steps[(g->steps_total - n + i) % M6_SNAP_STEPS];
  return n;
}
