/* site_growth.c - does a site leak? What is live there is read at ticks (M6_SITE_POINTS at most, joined by twos when
 * they are full).
 *
 * A site is suspect when two things that do not depend on each other say so. No amount decides, so a block an hour is
 * told as well as a block a frame, once enough of them are there:
 *   1. What is live grows: the 99 % interval of its slope leaves out 0 (batch means, verdict.c); or, where nearly all
 *      that dies does so within a tenth of the session, the 95 % interval of the median slope does (trend.h), which
 *      sees a rare leak through such churn.
 *   2. What stays has come all the time, and still does. Of the blocks that live, those count that are older than 99.9
 *      % of the dead ones got to be: the others may still die. By when they were born,
 *        - they lie in LASTING points at least, over half of the session;
 *        - the time since the last of them is no longer than chance makes it: with m points that hold any, a gap of g
 *          of the time w has the probability (1 - g / w)^m under a steady rate (Cox and Lewis 1966). A cache that grew
 *          and then stopped has a long one;
 *        - neither half of w has fewer than a third of them, unless that is within chance: half the number with a
 *          standard deviation from the counts' own dispersion (quasi-Poisson, Wedderburn 1974), as blocks may be lost
 *          by the hundred, once a level. What slows down is a cache filling; what has nothing old is blocks with long
 *          lives.
 *      A block that grows by realloc is one block: where there are too few, the points at which more was live than ever
 *      before count instead.
 * Chance is 2 % each. Together: of 100 leak-free runs at most five name a site (tests/unit/test_site_growth.c holds it
 * to that). What it cannot know: a cache that has been filling steadily up to the end looks the same.
 */
#include <math.h>
#include <string.h>

#include "frame.h"
#include "sites.h"
#include "trend.h"

#define LASTING 6u
#define CHANCE 0.02
#define CHANCE_Z 2.05 /* one-sided */
#define DEAD_BY 0.999
#define PART_LEAST 0.5
#define CHURN_MOST 0.1
#define WIDER 1.35 /* a 99 % interval than one of 95 %, by Student's t at 25 degrees of freedom */
#define HALF_LEAST (1.0 / 3)

/* ---- readings
 * ----------------------------------------------------------------------------------------------------------------- */

/* Neighbours become one point: time adds up, the later reading stands. */
static void join(struct m6_sites *s)
{
  for (uint32_t i = 0; i < M6_SITE_POINTS / 2; i++) {
    s->frames[i] = s->frames[2 * i] + s->frames[2 * i + 1];
    s->ms[i] = s->ms[2 * i] + s->ms[2 * i + 1];
  }
  for (uint32_t k = 0; k < s->count; k++)
    for (uint32_t i = 0; i < M6_SITE_POINTS / 2; i++) s->list[k].points[i] = s->list[k].points[2 * i + 1];
  for (uint32_t k = 0; k < s->count; k++)
    memset(s->list[k].points + M6_SITE_POINTS / 2, 0, sizeof s->list[k].points / 2);
  s->points = M6_SITE_POINTS / 2;
  s->each *= 2;
}

void m6_sites_tick(struct m6_sites *s, uint32_t frame, uint64_t now_ns)
{
  if (s->last_tick_ns == 0) {
    s->last_tick_ns = now_ns;
    s->last_frame = frame;
  }
  s->frame = frame;
  uint64_t ms = (now_ns - s->last_tick_ns) / 1000000u;
  if (ms < M6_SITE_TICK_MS) return;
  s->last_tick_ns = now_ns;
  s->ms_waiting += (uint32_t)ms;
  s->ticks++;
  if (++s->waiting < s->each) return;
  if (s->points == M6_SITE_POINTS) join(s);
  uint32_t at = s->points++;
  s->frames[at] = frame - s->last_frame;
  s->ms[at] = s->ms_waiting;
  for (uint32_t k = 0; k < s->count; k++) s->list[k].points[at] = (float)s->list[k].live.bytes;
  s->last_frame = frame;
  s->waiting = s->ms_waiting = 0;
}

/* ---- judgement
 * ---------------------------------------------------------------------------------------------------------------- */

struct timeline {
  double at[M6_SITE_POINTS + 1]; /* frames, or ms where there are none, before each point */
  uint32_t n;
  int frames;
};
static struct timeline timeline_of(const struct m6_sites *s)
{
  struct timeline t = {.n = s->points};
  double all = 0;
  for (uint32_t i = 0; i < t.n; i++) all += s->frames[i];
  t.frames = all > 0;
  for (uint32_t i = 0; i < t.n; i++) {
    double d = t.frames ? s->frames[i] : s->ms[i];
    t.at[i + 1] = t.at[i] + (d > 0 ? d : 1);
  }
  return t;
}

/* By which age nearly all had died that did. */
static double horizon_of(const struct m6_site *site)
{
  double dead = 0;
  for (uint32_t class = 0; class < M6_SITE_LIVES; class ++) {
    dead += site->lives[class];
    if (dead >= DEAD_BY * site->dead_blocks) return class < M6_SITE_LIVES - 1 ? ldexp(1, (int)class) - 1 : INFINITY;
  }
  return 0;
}

/* Is what came to stay spread over the points before `end` as a steady rate spreads it? */
static int spread(const struct timeline *t, const uint16_t *count, uint32_t end)
{
  uint32_t first = 0, last = 0, held = 0;
  double n = 0, squares = 0, late = 0;
  while (first < end && count[first] == 0) first++;
  if (first == end) return 0;
  double from = t->at[first], w = t->at[end] - from;
  for (uint32_t i = first; i < end; i++) {
    if (!count[i]) continue;
    last = i;
    held++;
    n += count[i];
    if ((t->at[i] + t->at[i + 1]) / 2 > from + w / 2) late += count[i];
  }
  if (held < LASTING || w < PART_LEAST * t->at[t->n]) return 0;
  if (pow(1 - (t->at[end] - t->at[last + 1]) / w, held) < CHANCE) return 0;
  for (uint32_t i = first; i < end; i++) {
    double off = count[i] - n * (t->at[i + 1] - t->at[i]) / w;
    squares += off * off / (n * (t->at[i + 1] - t->at[i]) / w);
  }
  double dispersion = end - first > 1 ? squares / (end - first - 1) : 1;
  double fewer = late < n - late ? late : n - late;
  return fewer >= HALF_LEAST * n || n / 2 - fewer <= CHANCE_Z * sqrt(n * fmax(dispersion, 1)) / 2;
}

int m6_sites_lasting(const struct m6_sites *s, const struct m6_site *site)
{
  if (s->points < LASTING || site->live.samples == 0) return 0;
  struct timeline t = timeline_of(s);
  if (site->live.samples >= LASTING) {
    double horizon = t.frames ? horizon_of(site) : 0;
    uint32_t end = t.n;
    while (end > 0 && t.at[t.n] - t.at[end] < horizon) end--;
    return spread(&t, site->born, end);
  }
  uint16_t higher[M6_SITE_POINTS] = {0};
  float highest = 0;
  for (uint32_t i = 0; i < t.n; i++)
    if (site->points[i] > highest) highest = site->points[i], higher[i] = 1;
  return spread(&t, higher, t.n);
}

/* Is the median slope above 0, where what comes and goes does so quickly? Then that is what is told. */
static int rises(const struct timeline *t, const struct m6_site *site, struct m6_site_growth *g)
{
  double y[M6_SITE_POINTS];
  uint32_t warm = t->n / 10;
  if (t->frames && horizon_of(site) > CHURN_MOST * t->at[t->n]) return 0;
  for (uint32_t i = 0; i < t->n; i++) y[i] = site->points[i];
  struct m6_trend r = m6_trend_of(t->at + 1 + warm, y + warm, t->n - warm, 0);
  if (!(r.low > 0) || !isfinite(r.high)) return 0;
  double unit = t->frames ? 1 : 1000;
  g->per = r.slope * unit;
  g->error = fmax(r.high - r.slope, r.slope - r.low) * unit;
  return 1;
}

struct m6_site_growth m6_sites_growth(const struct m6_sites *s, const struct m6_site *site)
{
  struct m6_site_growth g = {NAN, NAN, 0};
  struct m6_snap_point point[M6_SITE_POINTS];
  if (s->points == 0) return g;
  struct timeline t = timeline_of(s);
  for (uint32_t i = 0; i < t.n; i++) {
    /* The first one may be longer than those after it, and is not judged: see m6_leak_of's last point. */
    point[i] = (struct m6_snap_point){.frames = (uint64_t)(t.at[i + 1] - t.at[i]), .live = (int64_t)site->points[i]};
  }
  struct m6_leak leak = m6_leak_beyond(point, t.n, 0);
  double unit = t.frames ? 1 : 1000;
  g.per = leak.per_frame * unit;
  g.error = leak.ci * unit;
  if (!m6_sites_lasting(s, site) || !(leak.per_frame > 0)) return g;
  g.suspect = leak.per_frame > WIDER * leak.ci || rises(&t, site, &g);
  return g;
}
