/* snapshot_fixture.h - builds snapshots as a collector would, for tests: add nodes and text, then fx_block.
 *
 * No promise of speed; aborts when a test asks for more than it has room for. Only tests include it.
 */
#ifndef SNAPSHOT_FIXTURE_H
#define SNAPSHOT_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/layout.h"
#include "shm/present.h"
#include "shm/snapshot.h"

struct fx {
  struct m6_snapshot head;
  struct m6_snap_node *nodes;
  struct m6_snap_spike spikes[M6_SPIKES_RETAINED];
  struct m6_snap_frame *frames;
  struct m6_snap_bucket *buckets;
  struct m6_snap_growth *growth;
  struct m6_snap_stall *stalls;
  float *samples;
  char *text;
  /* the kernel side's; none of it when head.kernel is zero */
  struct m6_snap_refusal refusals[2];
  struct m6_snap_thread threads[2];
  struct m6_snap_call calls[2];
  struct m6_snap_function functions[3];
  uint64_t cpu_samples[M6_NODES_MAX];
  struct m6_snap_causes causes[M6_SPIKES_RETAINED];
  const char *folded;
  struct m6_snap_kernel_second kernel_seconds[2];
  struct m6_snap_site_second site_seconds[2]; /* head.sites.second_count of them */
  struct m6_snap_site *sites;                 /* head.sites.row_count of them; not freed here */
  struct m6_snap_site *maps;                  /* head.sites.map_count */
  struct m6_snap_module modules[4];           /* head.modules.count */
};

static inline uint32_t fx_text(struct fx *f, const char *s, size_t n)
{
  uint32_t at = f->head.text_bytes;
  f->text = realloc(f->text, at + n + 1);
  memcpy(f->text + at, s, n);
  f->head.text_bytes += (uint32_t)n;
  return at;
}

static inline void fx_module(struct fx *f, const char *path, const char *build_id, uint64_t start)
{
  struct m6_snap_module *m = &f->modules[f->head.modules.count++];
  *m = (struct m6_snap_module){.path_bytes = (uint32_t)strlen(path), .build_id_bytes = (uint32_t)strlen(build_id)};
  m->path_offset = fx_text(f, path, m->path_bytes);
  m->build_id_offset = fx_text(f, build_id, m->build_id_bytes);
  m->start = start, m->end = start + 0x9000, m->offset = 0x1000;
}

/* The new node's index; it becomes its parent's last child. */
static inline uint32_t fx_node_n(struct fx *f, uint32_t parent, uint32_t kind, const char *label, size_t n)
{
  uint32_t i = f->head.node_count++;
  if (i >= M6_NODES_MAX) abort();
  f->nodes[i] = (struct m6_snap_node){.parent = parent, .kind = kind, .label_bytes = (uint32_t)n};
  f->nodes[i].label_offset = fx_text(f, label, n);
  if (i == 0) return 0;
  uint32_t *link = &f->nodes[parent].first_child;
  while (*link) link = &f->nodes[*link].next_sibling;
  *link = i;
  return i;
}
static inline uint32_t fx_node(struct fx *f, uint32_t parent, uint32_t kind, const char *label)
{
  return fx_node_n(f, parent, kind, label, strlen(label));
}

/* Times in microseconds: what one call took at the median, and at most. */
static inline void fx_fill(struct fx *f, uint32_t node, uint64_t count, double p50_us, double max_us, int64_t d_sum,
                           uint64_t allocs)
{
  struct m6_snap_node *n = &f->nodes[node];
  n->count = count;
  n->reservoir = count < M6_RESERVOIR ? (uint32_t)count : M6_RESERVOIR;
  n->time_p50 = (uint64_t)(p50_us * 1e3);
  n->time_p10 = (uint64_t)(p50_us * 0.9e3);
  n->time_p90 = (uint64_t)(p50_us * 1.2e3);
  n->time_max = (uint64_t)(max_us * 1e3);
  n->time_sum = (uint64_t)(p50_us * 1.03e3 * (double)count);
  n->d_sum = d_sum;
  n->d_max = count ? d_sum / (int64_t)count * 3 : 0;
  n->allocs = allocs;
}

static inline void fx_init(struct fx *f, const char *name)
{
  memset(f, 0, sizeof *f);
  f->nodes = calloc(M6_NODES_MAX, sizeof *f->nodes);
  f->frames = calloc(M6_FRAMES_RETAINED, sizeof *f->frames);
  f->buckets = calloc(M6_BUCKETS_RETAINED, sizeof *f->buckets);
  f->growth = calloc(M6_GROWTH_RETAINED, sizeof *f->growth);
  f->stalls = calloc(M6_STALLS_RETAINED, sizeof *f->stalls);
  f->samples = calloc(M6_NODES_MAX * M6_RESERVOIR, sizeof *f->samples);
  struct m6_snapshot *h = &f->head;
  h->magic = M6_SNAPSHOT_MAGIC;
  h->version = M6_SNAPSHOT_VERSION;
  h->head_bytes = sizeof *h;
  h->pid = 4711;
  h->uid = 1000;
  h->pointer_bits = 64;
  h->name_offset = fx_text(f, name, strlen(name));
  h->name_bytes = (uint32_t)strlen(name);
  char exe[256];
  snprintf(exe, sizeof exe, "/usr/games/%s", name);
  h->exe_offset = fx_text(f, exe, strlen(exe));
  h->exe_bytes = (uint32_t)strlen(exe);
  h->state = M6_ENDED;
  h->end_reason = M6_END_EXIT;
  h->level = M6_LEVEL_LITE;
  h->session = 1;
  h->started_unix_ns = 1700000000000000000u;
  h->ttl_ns = 300000000000u;
  h->clock_kind = M6_CLOCK_TSC;
  h->fps = h->low_1pct_fps = h->low_01pct_fps = NAN;
  h->leak_per_frame = h->leak_ci = NAN;
  h->price_pair_ns = h->price_scope_ns = h->price_frame_ns = NAN;
  h->closed = 1;
  fx_node(f, 0, M6_NODE_ROOT, name);
}

/* The whole block, malloc'ed; *bytes its size. */
static inline struct m6_snapshot *fx_block(struct fx *f, size_t *bytes)
{
  struct m6_snapshot *h = &f->head;
  h->nodes_offset = sizeof *h;
  h->spikes_offset = h->nodes_offset + h->node_count * sizeof *f->nodes;
  h->frames_offset = h->spikes_offset + h->spike_count * sizeof *f->spikes;
  h->buckets_offset = h->frames_offset + h->frame_count * sizeof *f->frames;
  h->growth_offset = h->buckets_offset + h->bucket_count * sizeof *f->buckets;
  h->stalls_offset = h->growth_offset + h->growth_count * sizeof *f->growth;
  h->samples_offset = h->stalls_offset + h->stall_count * sizeof *f->stalls;
  h->text_offset = h->samples_offset + h->sample_count * sizeof *f->samples;
  h->bytes = (h->text_offset + h->text_bytes + 7) & ~7ull;
  struct m6_snap_kernel *k = &h->kernel;
  if (k->samples) k->sample_count = h->node_count;
  if (k->frames) k->spike_cause_count = h->spike_count;
  k->folded_bytes = f->folded ? (uint32_t)strlen(f->folded) : 0;
  struct {
    uint64_t *offset;
    const void *from;
    size_t bytes;
  } more[] = {{&k->refusals_offset, f->refusals, k->refusal_count * sizeof f->refusals[0]},
              {&k->threads_offset, f->threads, k->thread_count * sizeof f->threads[0]},
              {&k->calls_offset, f->calls, k->call_count * sizeof f->calls[0]},
              {&k->functions_offset, f->functions, k->function_count * sizeof f->functions[0]},
              {&k->samples_offset, f->cpu_samples, k->sample_count * sizeof f->cpu_samples[0]},
              {&k->spike_causes_offset, f->causes, k->spike_cause_count * sizeof f->causes[0]},
              {&k->seconds_offset, f->kernel_seconds, k->second_count * sizeof f->kernel_seconds[0]},
              {&h->sites.seconds_offset, f->site_seconds, h->sites.second_count * sizeof f->site_seconds[0]},
              {&k->folded_offset, f->folded, k->folded_bytes},
              {&h->sites.rows_offset, f->sites, h->sites.row_count * sizeof *f->sites},
              {&h->sites.maps_offset, f->maps, h->sites.map_count * sizeof *f->maps},
              {&h->modules.offset, f->modules, h->modules.count * sizeof f->modules[0]}};
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    *more[i].offset = h->bytes;
    h->bytes += (more[i].bytes + 7) & ~7ull;
  }
  char *b = calloc(1, h->bytes);
  for (size_t i = 0; i < sizeof more / sizeof *more; i++)
    if (more[i].bytes) memcpy(b + *more[i].offset, more[i].from, more[i].bytes);
  memcpy(b, h, sizeof *h);
  memcpy(b + h->nodes_offset, f->nodes, h->node_count * sizeof *f->nodes);
  memcpy(b + h->spikes_offset, f->spikes, h->spike_count * sizeof *f->spikes);
  memcpy(b + h->frames_offset, f->frames, h->frame_count * sizeof *f->frames);
  memcpy(b + h->buckets_offset, f->buckets, h->bucket_count * sizeof *f->buckets);
  memcpy(b + h->growth_offset, f->growth, h->growth_count * sizeof *f->growth);
  memcpy(b + h->stalls_offset, f->stalls, h->stall_count * sizeof *f->stalls);
  memcpy(b + h->samples_offset, f->samples, h->sample_count * sizeof *f->samples);
  memcpy(b + h->text_offset, f->text, h->text_bytes);
  *bytes = h->bytes;
  return (struct m6_snapshot *)b;
}

static inline void fx_free(struct fx *f)
{
  free(f->nodes);
  free(f->frames);
  free(f->buckets);
  free(f->growth);
  free(f->stalls);
  free(f->samples);
  free(f->text);
}

/* What the kernel knew of fx_game's game: at level full, page faults refused. */
static inline void fx_kernel(struct fx *f)
{
  struct m6_snap_kernel *k = &f->head.kernel;
  f->head.level = M6_LEVEL_FULL;
#define FX_PUT(at, s) ((at##_bytes) = (uint32_t)strlen(s), (at##_offset) = fx_text(f, s, strlen(s)))
  *k = (struct m6_snap_kernel){.counters = M6_KERNEL_BPF,
                               .frames = M6_KERNEL_BPF,
                               .samples = M6_KERNEL_PERF,
                               .faults = M6_KERNEL_NONE,
                               .syscalls = 1,
                               .kernel_mode = 1,
                               .unwound = 1,
                               .period_us = 10101,
                               .began_ns = 270000000,
                               .samples_taken = 1200,
                               .samples_periods = 1200,
                               .samples_in_presents = 100,
                               .samples_elsewhere = 20,
                               .profile_samples = 1200,
                               .profile_kernel = 130,
                               .sampled_cpu_ns = 12300000000,
                               .refusal_count = 1,
                               .thread_count = 2,
                               .call_count = 2,
                               .function_count = 3};
  f->refusals[0] = (struct m6_snap_refusal){.part = M6_KERNEL_PART_FAULTS, .error = 13};
  FX_PUT(f->refusals[0].what, "count the page faults of thread 4711 of process 4711");
  FX_PUT(f->refusals[0].closed, "CAP_PERFMON is lacking");
  FX_PUT(f->refusals[0].opened, "sysctl kernel.perf_event_paranoid=2");
  for (int i = 0; i < 2; i++) {
    struct m6_snap_thread *t = &f->threads[i];
    *t = (struct m6_snap_thread){.tid = 4711 + (uint32_t)i,
                                 .lives = 1,
                                 .elapsed = 26000000000,
                                 .on = 9000000000,
                                 .wait = 400000000,
                                 .off = 16600000000,
                                 .voluntary = 1600,
                                 .involuntary = 31,
                                 .minor = 812,
                                 .slices = 1631,
                                 .samples = 600,
                                 .waits = 1631,
                                 .calls = 9120,
                                 .call_ns = 200000000};
    t->off_by[i ? M6_WHY_LOCK : M6_WHY_SLEEP] = 16600000000;
    t->latency[14] = 1600, t->latency[20] = 31;
    FX_PUT(t->name, i ? "worker" : "sample-game");
  }
  f->calls[0] = (struct m6_snap_call){
    .number = 202, .threads = 2, .count = 5120, .ns = 16600000000, .max_ns = 48200000};
  FX_PUT(f->calls[0].name, "futex");
  f->calls[1] = (struct m6_snap_call){.number = 999, .threads = 1, .count = 3, .ns = 12000, .max_ns = 5000};
  static const char *const names[] = {"physics_step", "draw_bubbles(std::vector<bubble>)", "libGL.so.1+0x9bae0"};
  for (int i = 0; i < 3; i++) {
    f->functions[i] = (struct m6_snap_function){.self = 400u - 150u * (unsigned)i, .total = 700u - 250u * (unsigned)i};
    FX_PUT(f->functions[i].function, names[i]);
    FX_PUT(f->functions[i].module, i == 2 ? "libGL.so.1" : "sample-game");
    if (i < 2) f->functions[i].line = 120, FX_PUT(f->functions[i].file, "src/game/physics.c");
  }
  for (uint32_t i = 3; i < f->head.node_count; i++) f->cpu_samples[i] = 10 * i;
  for (uint32_t i = 0; i < f->head.spike_count; i++) {
    uint64_t time = f->spikes[i].time;
    f->causes[i] = (struct m6_snap_causes){
      .time = time, .on = 8000000, .call_ns = 500000, .wait = 300000, .calls = 22, .minor = 3, .voluntary = 2};
    f->causes[i].off[M6_WHY_LOCK] = time - 8300000;
  }
  k->second_count = 2; /* the threads' sums, in two parts */
  f->kernel_seconds[0] = (struct m6_snap_kernel_second){.second = 24,
                                                        .covered = 1003000000,
                                                        .elapsed = 2006000000,
                                                        .on = 900000000,
                                                        .wait = -1200,
                                                        .off = 1106001200,
                                                        .calls = 840,
                                                        .call_ns = 7000000,
                                                        .voluntary = 123,
                                                        .involuntary = 2,
                                                        .minor = 90,
                                                        .slices = 125,
                                                        .samples = 99,
                                                        .periods = 99};
  f->kernel_seconds[0].off_by[M6_WHY_LOCK] = 1106001200;
  f->kernel_seconds[1] = (struct m6_snap_kernel_second){.second = 25,
                                                        .covered = 24997000000,
                                                        .elapsed = 49994000000,
                                                        .on = 17100000000,
                                                        .wait = 800001200,
                                                        .off = 32093998800,
                                                        .calls = 17400,
                                                        .call_ns = 393000000,
                                                        .voluntary = 3077,
                                                        .involuntary = 60,
                                                        .minor = 1534,
                                                        .slices = 3137,
                                                        .samples = 1101,
                                                        .periods = 1101};
  f->kernel_seconds[1].off_by[M6_WHY_SLEEP] = 16600000000;
  f->kernel_seconds[1].off_by[M6_WHY_LOCK] = 15493998800;
  f->folded = "sample-game;main;physics_step 400\nworker;start_thread;job 200\n";
#undef FX_PUT
}

/* A small game of `presents` presents: update (physics, ai) and draw on its own thread, a worker, one spike, all books closed.
 * `leak`: bytes that stay behind in each frame. */
static inline void fx_game(struct fx *f, uint64_t presents, int64_t leak)
{
  fx_init(f, "sample-game");
  struct m6_snapshot *h = &f->head;
  uint64_t frames = presents ? presents - 1 : 0;
  int64_t n = (int64_t)frames, startup = 12345678, gaps = -(int64_t)2048 * n;
  uint32_t s = fx_node(f, 0, M6_NODE_STARTUP, "startup");
  uint32_t load = fx_node(f, s, M6_NODE_SCOPE, "load assets");
  uint32_t fr = fx_node(f, 0, M6_NODE_FRAME, "frame");
  uint32_t up = fx_node(f, fr, M6_NODE_SCOPE, "update");
  uint32_t ph = fx_node(f, up, M6_NODE_SCOPE, "physics");
  uint32_t ai = fx_node(f, up, M6_NODE_SCOPE, "ai");
  uint32_t path = fx_node(f, ai, M6_NODE_SCOPE, "find path");
  uint32_t dr = fx_node(f, fr, M6_NODE_SCOPE, "draw");
  uint32_t pa = fx_node(f, dr, M6_NODE_SCOPE, "particles");
  uint32_t end = fx_node(f, 0, M6_NODE_SHUTDOWN, "shutdown");
  uint32_t w = fx_node(f, 0, M6_NODE_THREAD, "thread 4713 worker");
  uint32_t job = fx_node(f, w, M6_NODE_SCOPE, "job");
  fx_fill(f, 0, 1, 26e6, 26e6, 0, 0);
  fx_fill(f, s, 1, 812e3, 812e3, startup, 48123);
  fx_fill(f, load, 3, 230e3, 401e3, startup / 2, 31011);
  fx_fill(f, fr, frames, 14.1e3, 58.3e3, (2048 + leak) * n, 413 * frames);
  fx_fill(f, up, frames, 6.2e3, 49e3, 1024 * n, 210 * frames);
  fx_fill(f, ph, frames * 4, 1.1e3, 3.2e3, 0, 0);
  fx_fill(f, ai, frames, 1.3e3, 44.7e3, 1024 * n, 208 * frames);
  fx_fill(f, path, frames * 17, 61, 9.8e3, 512 * n, 170 * frames);
  fx_fill(f, dr, frames, 7.4e3, 12.2e3, leak * n, 100 * frames);
  fx_fill(f, pa, frames, 0.84e3, 2.1e3, leak * n, 100 * frames);
  fx_fill(f, end, 1, 31e3, 31e3, -startup, 12);
  fx_fill(f, w, 1, 25e6, 25e6, 0, 0);
  fx_fill(f, job, frames * 8, 410, 2.2e3, 0, 0);
  struct m6_snap_node *frame = &f->nodes[fr];
  frame->i_sum = gaps;
  frame->d_scopes = (1024 + leak) * n;
  frame->d_thread_rest = 960 * n;
  frame->d_others = 64 * n;
  f->nodes[path].abandoned = 2;

  h->elapsed_ns = 26000000000u;
  h->threads_seen = 6;
  h->threads_now = 5;
  h->presents = presents;
  h->frames_recorded = frames;
  if (presents) {
    h->first_present_ns = 812000000;
    h->last_present_ns = 812000000 + frames * 16660000;
    h->stream_count = 1;
    h->streams[0] = (struct m6_snap_stream){.presents = presents,
                                            .symbol = M6_SYM_SDL_GL_SWAP_WINDOW,
                                            .tid = 4711,
                                            .route = M6_ROUTE_LINK,
                                            .drawable = 0x55ee12345678,
                                            .kind = 1};
    h->streams[0].caller_offset = fx_text(f, "sample-game", 11);
    h->streams[0].caller_bytes = 11;
  }
  if (frames) {
    h->fps = 60.02;
    h->interval_p50 = 16610000;
    h->interval_p90 = 16900000;
    h->interval_p99 = 19300000;
    h->interval_max = 61200000;
    if (frames >= 100) h->low_1pct_fps = 41.2;
    if (frames >= 1000) h->low_01pct_fps = 19.4;
    h->series_count = frames < M6_SERIES ? (uint32_t)frames : M6_SERIES;
    h->series_frames_each = (uint32_t)((frames + h->series_count - 1) / h->series_count);
    srand(7);
    for (uint32_t i = 0; i < h->series_count; i++) {
      struct m6_snap_point *p = &h->series[i];
      uint64_t avg = 16600000 + (uint64_t)(rand() % 400000), max = avg + (uint64_t)(rand() % 2400000);
      if (i == h->series_count * 2 / 5) max = 61200000, avg += 7000000;
      uint64_t first = (uint64_t)i * h->series_frames_each, rest = frames > first ? frames - first : 0;
      uint64_t here = rest < h->series_frames_each ? rest : h->series_frames_each;
      *p = (struct m6_snap_point){here, avg * here, here ? max : 0, startup + leak * (int64_t)first};
    }
  }
  if (frames >= 200) {
    h->spikes_total = h->spike_count = 1;
    struct m6_snap_spike *k = &f->spikes[0];
    *k = (struct m6_snap_spike){
      .frame = frames * 2 / 5, .time = 61200000, .median = 16600000, .at = 11213000000, .allocs = 9120, .d = 131072};
    k->cause[0].node = ai, k->cause[0].calls = 1, k->cause[0].time = 44700000, k->cause[0].allocs = 8800;
    k->cause[1].node = dr, k->cause[1].calls = 1, k->cause[1].time = 7400000, k->cause[1].allocs = 100;
  }
  h->reading_start = 0;
  h->sum_d = startup + (2048 + leak) * n - startup;
  h->sum_i = gaps;
  h->reading_now = h->sum_d + h->sum_i;
  h->tail_d = -startup;
  if (frames >= 30) {
    h->leak_per_frame = (double)leak + 0.3;
    h->leak_ci = 2.6;
    h->verdict = leak > 3 ? M6_VERDICT_GROWS : M6_VERDICT_STEADY;
    h->verdict_batches = 30;
  }
  h->allocs[M6_ALLOC_MALLOC].count = 48123 + 300 * frames;
  h->allocs[M6_ALLOC_MALLOC].bytes = 31234567 + 40960 * frames;
  h->allocs[M6_ALLOC_CALLOC].count = 13 * frames;
  h->allocs[M6_ALLOC_CALLOC].bytes = 1664 * frames;
  h->allocs[M6_ALLOC_NEW].count = 100 * frames;
  h->allocs[M6_ALLOC_NEW].bytes = 6400 * frames;
  h->frees = 48123 + 410 * frames;
  h->freed_bytes = 31234567 + 48000 * frames;
  h->mapped = 67108864;
  h->map_calls = 91;
  h->brk_growth = 1351680;
  h->records = frames * 68;
  h->shim_ns = 41000 * frames;
  h->collector_ns = 96000000;
  h->target_cpu_ns = 21000000000u;
  h->price_pair_ns = 4.4;
  h->price_scope_ns = 29.8;
  h->price_frame_ns = 310;
  h->publishes = 130;
}

/* Labels that break whoever prints them as they are, one after the other. */
#define FX_HOSTILE                                                                                                     \
  "quote \" and \\ back", "comma, semi; colon:", "new\nline\ttab", "ctrl \x01\x1b[31m red", "%s%n%d", "</script><b>",  \
    "=cmd()", "\xef\xbf\xbd\xef\xbf\xbd", "", "日本語のラベル"

#endif
