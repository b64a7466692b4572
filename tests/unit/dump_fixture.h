/* dump_fixture.h - a game that never ran, from a seed: frames, scopes and their reservoirs as a collector would have kept them.
 *
 * Times are skewed (log-normal), drift slowly from frame to frame (an AR(1) factor that all scopes of a frame share), and have a
 * heavy tail. `slower` makes one scope slower by a factor and leaves the rest as it is. Deterministic: one seed, one game.
 */
#ifndef DUMP_FIXTURE_H
#define DUMP_FIXTURE_H

#include <stdio.h>

#include "collector/dump.h"
#include "collector/reservoir.h"
#include "snapshot_fixture.h"

struct dump_game {
  uint64_t seed;
  uint32_t frames, scopes; /* scopes: under the frame; at most 64 */
  uint32_t slow;           /* number of the slower scope, from 1; 0 = none */
  double slower;           /* its factor */
  double spread;           /* of log times; 0 = 0.08 */
  double drift;            /* of the shared factor's stationary distribution; 0 = 0.02 */
  int64_t leak;            /* bytes a frame */
};

static inline double dg_uniform(struct m6_rng *r) { return ((double)(m6_rng_next(r) >> 11) + 0.5) * 0x1p-53; }
/* Box and Muller 1958. */
static inline double dg_normal(struct m6_rng *r)
{
  return sqrt(-2 * log(dg_uniform(r))) * cos(2 * M_PI * dg_uniform(r));
}

static inline int dg_by_double(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline void dg_fill(struct fx *f, uint32_t node, const struct m6_reservoir *r, double sum, double max)
{
  struct m6_snap_node *n = &f->nodes[node];
  struct m6_quantiles q = m6_reservoir_quantiles(r);
  n->count = r->seen;
  n->reservoir = m6_reservoir_size(r);
  n->time_sum = (uint64_t)sum;
  n->time_max = (uint64_t)max;
  n->time_p10 = (uint64_t)q.p10;
  n->time_p50 = (uint64_t)q.p50;
  n->time_p90 = (uint64_t)q.p90;
  memcpy(f->samples + f->head.sample_count, r->sample, n->reservoir * sizeof(float));
  f->head.sample_count += n->reservoir;
}

static inline void dg_make(struct fx *f, const struct dump_game *g)
{
  static struct m6_reservoir times[66];
  double sum[66] = {0}, max[66] = {0}, shared = 0, spread = g->spread ? g->spread : 0.08,
         drift = g->drift ? g->drift : 0.02;
  uint64_t at = 500000000;
  struct m6_rng r, keep;
  memset(times, 0, sizeof times);
  m6_rng_seed(&r, g->seed * 0x9e3779b97f4a7c15ull + 77);
  for (int i = 0; i < 16; i++) m6_rng_next(&r);
  m6_rng_seed(&keep, m6_rng_next(&r));
  fx_init(f, "synthetic");
  struct m6_snapshot *h = &f->head;
  h->presents = g->frames + 1;
  h->frames_recorded = g->frames;
  h->stream_count = 1;
  h->streams[0] = (struct m6_snap_stream){.presents = h->presents, .symbol = M6_SYM_SDL_GL_SWAP_WINDOW, .kind = 1};
  h->first_present_ns = at;
  uint32_t frame = fx_node(f, 0, M6_NODE_FRAME, "frame");
  for (uint32_t s = 0; s < g->scopes; s++) {
    char label[32];
    snprintf(label, sizeof label, "scope %02u", s + 1);
    fx_node(f, frame, M6_NODE_SCOPE, label);
  }
  for (uint32_t i = 0; i < g->frames; i++) {
    double whole = 0;
    shared = 0.9 * shared + sqrt(1 - 0.81) * drift * dg_normal(&r);
    for (uint32_t s = 1; s <= g->scopes; s++) {
      double tail = dg_uniform(&r) < 0.01 ? 1 + 3 * dg_uniform(&r) : 1;
      double ns = 300000.0 * (1 + s % 5) * exp(shared + spread * dg_normal(&r)) * tail;
      if (s == g->slow) ns *= g->slower;
      m6_reservoir_add(&times[s], &keep, (float)ns);
      sum[s] += ns;
      if (ns > max[s]) max[s] = ns;
      whole += ns;
    }
    if (g->scopes == 0) whole = 10e6 * exp(shared + spread * dg_normal(&r));
    m6_reservoir_add(&times[0], &keep, (float)whole);
    sum[0] += whole;
    if (whole > max[0]) max[0] = whole;
    struct m6_snap_frame rec = {i + 2, at, (uint64_t)whole, 200000, g->leak, 0, 40, 0, 1};
    f->frames[i % M6_FRAMES_RETAINED] = rec;
    at += (uint64_t)whole + 200000;
    uint64_t second = at / 1000000000u;
    if (h->bucket_count == 0 || f->buckets[h->bucket_count - 1].second < second) {
      if (h->bucket_count < M6_BUCKETS_RETAINED) f->buckets[h->bucket_count++].second = second;
    }
    struct m6_snap_bucket *b = &f->buckets[h->bucket_count - 1];
    b->frames++, b->time_sum += (uint64_t)whole + 200000, b->allocs += 40, b->live = g->leak * (int64_t)i;
    if ((uint64_t)whole + 200000 > b->time_max) b->time_max = (uint64_t)whole + 200000;
  }
  h->frame_count = g->frames < M6_FRAMES_RETAINED ? g->frames : M6_FRAMES_RETAINED;
  if (g->frames > M6_FRAMES_RETAINED) { /* the oldest first */
    h->frames_overwritten = g->frames - M6_FRAMES_RETAINED;
    struct m6_snap_frame *sorted = calloc(M6_FRAMES_RETAINED, sizeof *sorted);
    for (uint32_t i = 0; i < M6_FRAMES_RETAINED; i++) sorted[i] = f->frames[(g->frames + i) % M6_FRAMES_RETAINED];
    free(f->frames);
    f->frames = sorted;
  }
  f->nodes[0].count = 1;
  f->nodes[0].time_sum = f->nodes[0].time_max = at;
  for (uint32_t s = 0; s <= g->scopes; s++) dg_fill(f, frame + s, &times[s], sum[s], max[s]);
  f->nodes[frame].d_sum = g->leak * g->frames;
  f->nodes[frame].allocs = 40ull * g->frames;
  h->last_present_ns = at;
  h->elapsed_ns = at;
  if (g->frames) h->fps = (double)g->frames / ((double)(at - h->first_present_ns) / 1e9);
  h->interval_p50 = f->nodes[frame].time_p50 + 200000;
  h->interval_p90 = f->nodes[frame].time_p90 + 200000;
  h->interval_p99 = h->interval_max = f->nodes[frame].time_max + 200000;
  h->leak_per_frame = (double)g->leak;
  h->leak_ci = 1;
  h->verdict = g->leak > 1 ? M6_VERDICT_GROWS : M6_VERDICT_STEADY;
  h->sum_d = h->reading_now = g->leak * g->frames;
  h->allocs[M6_ALLOC_MALLOC].count = 40ull * g->frames;
}

/* All objects of a dump, one after the other; malloc'ed. */
static inline char *dg_encode_as(const struct m6_snapshot *s, uint64_t most, uint64_t each, size_t *bytes)
{
  struct m6_encoder *e = m6_dump_encoder(s, most, each);
  const char *object;
  char *all = NULL;
  *bytes = 0;
  for (ssize_t n; e && (n = m6_dump_next(e, &object)) > 0;) {
    all = realloc(all, *bytes + (size_t)n);
    memcpy(all + *bytes, object, (size_t)n);
    *bytes += (size_t)n;
  }
  m6_dump_encoder_free(e);
  return all;
}

static inline char *dg_encode(const struct m6_snapshot *s, uint64_t most, size_t *bytes)
{
  return dg_encode_as(s, most, 0, bytes);
}

/* Reads a copy of exactly n bytes, so that the sanitizer sees each byte too many. */
static inline int dg_read(const char *bytes, size_t n, struct m6_snapshot **out, struct mach6_dump_info *info)
{
  char *copy = malloc(n ? n : 1);
  memcpy(copy, bytes, n);
  int e = m6_dump_read(copy, n, out, info);
  free(copy);
  return e;
}

#endif
