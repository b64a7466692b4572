/* segment_fixture.h - a segment written here, as a shim would: threads with slots and rings, scopes, presents, losses.
 *
 * Time is a counter, the clock kind is MONOTONIC, so ticks are ns. Threads 0.. have slot t + 1 and ring t.
 */
#ifndef SEGMENT_FIXTURE_H
#define SEGMENT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "collector/publish.h"

#define FX_THREADS 8

struct fx_thread {
  struct m6_producer producer;
  uint64_t lost;
  unsigned depth;
};
struct fx {
  void *segment;
  struct m6_header *header;
  struct m6_slot *slots;
  uint64_t clock;
  int lose_percent, hole_percent; /* of records */
  uint64_t records, lost_records, holes;
  struct m6_rng rng;
  struct fx_thread thread[FX_THREADS];
};

static inline uint64_t fx_random(struct fx *f, uint64_t n) { return m6_rng_below(&f->rng, n); }

static inline void fx_open(struct fx *f, uint64_t seed)
{
  memset(f, 0, sizeof *f);
  m6_rng_seed(&f->rng, seed * 0x9e3779b97f4a7c15ull + 12345);
  for (int i = 0; i < 8; i++) m6_rng_next(&f->rng);
  f->segment = mmap(NULL, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_ptr_not_equal(f->segment, MAP_FAILED);
  f->header = f->segment;
  f->slots = m6_segment_slots(f->segment);
  f->clock = 1000000;
  struct m6_header *h = f->header;
  h->version = M6_LAYOUT_VERSION;
  h->pointer_bits = 64;
  h->size = M6_SEGMENT_BYTES;
  h->pid = (uint32_t)getpid();
  h->uid = getuid();
  h->header_bytes = sizeof *h;
  h->record_bytes = sizeof(struct m6_record);
  h->state = M6_COLLECTING;
  h->sessions_allowed = h->sessions_started = 1;
  h->start_clock = f->clock;
  h->start_mono_ns = m6_monotonic_ns();
  h->clock_kind = M6_CLOCK_MONOTONIC;
  h->slots_used = 1 + FX_THREADS;
  h->rings_used = FX_THREADS;
  strcpy(h->name, "fixture");
  h->magic = M6_SEGMENT_MAGIC;
  for (uint32_t t = 0; t < FX_THREADS; t++) {
    m6_producer_init(&f->thread[t].producer, m6_segment_ring(f->segment, t), m6_segment_records(f->segment, t),
                     m6_ring_capacity(t));
    f->slots[t + 1].ring = t + 1;
    f->slots[t + 1].tid = 1000 + t;
  }
}
static inline void fx_close(struct fx *f) { munmap(f->segment, M6_SEGMENT_BYTES); }

static inline uint64_t fx_tick(struct fx *f) { return f->clock += 1 + fx_random(f, 100); }
/* Not inline: gcc 12 thinks that the hash of a short literal reads past it. */
static __attribute__((noinline, unused)) uint32_t fx_label(struct fx *f, const char *text)
{
  int refused = 0;
  return m6_label_intern(m6_labels_at(f->segment), text, strlen(text), &refused);
}

static inline struct m6_point fx_process(struct fx *f)
{
  struct m6_point p = {f->clock, 0, 0};
  uint64_t live = 0;
  for (unsigned i = 0; i < f->header->slots_used; i++) {
    live += f->slots[i].live;
    p.allocs += f->slots[i].allocs;
  }
  p.live = (int64_t)live;
  return p;
}
static inline void fx_alloc(struct fx *f, unsigned t, int64_t bytes)
{
  struct m6_slot *s = &f->slots[t + 1];
  s->live += (uint64_t)bytes;
  if (bytes >= 0) {
    s->allocs++;
    s->bytes += (uint64_t)bytes;
  } else {
    s->frees++;
  }
}

/* One record of a thread, or none: 1 = written. */
static inline int fx_room(struct fx *f, unsigned t, unsigned n)
{
  struct fx_thread *x = &f->thread[t];
  struct m6_slot *s = &f->slots[t + 1];
  int lose = f->lose_percent && (int)fx_random(f, 100) < f->lose_percent;
  if (!lose && m6_ring_room(&x->producer, n + (x->lost != 0))) {
    if (x->lost)
      m6_ring_commit(&x->producer, m6_ring_claim(&x->producer, 1), f->clock, s->live, x->lost, M6_REC_LOSS, 0, 0, 0);
    x->lost = 0;
    return 1;
  }
  x->lost++;
  s->lost++;
  f->lost_records++;
  return 0;
}
static inline int fx_put(struct fx *f, unsigned t, unsigned type, unsigned flags, unsigned label, unsigned depth,
                         uint64_t count)
{
  struct fx_thread *x = &f->thread[t];
  if (!fx_room(f, t, 1)) return 0;
  uint64_t at = m6_ring_claim(&x->producer, 1);
  if (f->hole_percent && (int)fx_random(f, 100) < f->hole_percent) {
    f->holes++;
    return 0;
  }
  m6_ring_commit(&x->producer, at, f->clock, f->slots[t + 1].live, count, type, flags, label, depth);
  f->records++;
  return 1;
}
static inline int fx_start(struct fx *f, unsigned t, uint32_t tid)
{
  f->slots[t + 1].tid = tid;
  f->thread[t].depth = 0;
  return fx_put(f, t, M6_REC_START, 0, 0, 0, tid);
}
static inline int fx_end(struct fx *f, unsigned t)
{
  f->slots[t + 1].tid = 0;
  return fx_put(f, t, M6_REC_END, 0, 0, 0, f->slots[t + 1].allocs);
}
static inline int fx_mark(struct fx *f, unsigned t, unsigned label)
{
  return fx_put(f, t, M6_REC_MARK, 0, label, f->thread[t].depth++, f->slots[t + 1].allocs & M6_COUNT_MASK);
}
static inline int fx_done_to(struct fx *f, unsigned t, unsigned depth, int abandoned)
{
  f->thread[t].depth = depth;
  return fx_put(f, t, M6_REC_DONE, abandoned ? M6_FLAG_ABANDONED : 0, 0, depth, f->slots[t + 1].allocs & M6_COUNT_MASK);
}
static inline int fx_done(struct fx *f, unsigned t) { return fx_done_to(f, t, f->thread[t].depth - 1, 0); }

/* A present that takes `ns`, during which the process changes by `gap` bytes on thread t. */
static inline int fx_present(struct fx *f, unsigned t, unsigned stream, uint64_t ns, int64_t gap)
{
  struct m6_stream *s = &f->header->streams[stream];
  struct m6_slot *slot = &f->slots[t + 1];
  struct m6_point e = fx_process(f);
  uint64_t own = slot->live, own_allocs = slot->allocs;
  f->clock += ns;
  if (gap) fx_alloc(f, t, gap);
  struct m6_point r = fx_process(f);
  if (s->presents++ == 0) {
    s->kind = 1;
    s->first_clock = e.clock;
    s->drawable = 100 + stream;
    s->tid = slot->tid;
  }
  if (!fx_room(f, t, M6_FRAME_UNITS)) return 0;
  struct m6_producer *p = &f->thread[t].producer;
  uint64_t at = m6_ring_claim(p, M6_FRAME_UNITS);
  m6_ring_commit(p, at + 1, r.clock, (uint64_t)r.live, r.allocs & M6_COUNT_MASK, M6_REC_CONTINUED, 0, stream, 1);
  m6_ring_commit(p, at + 2, s->presents, own, own_allocs & M6_COUNT_MASK, M6_REC_CONTINUED, 0, stream, 2);
  m6_ring_commit(p, at + 3, 0, slot->live, slot->allocs & M6_COUNT_MASK, M6_REC_CONTINUED, 0, stream, 3);
  if (f->hole_percent && (int)fx_random(f, 100) < f->hole_percent) {
    f->holes++;
    return 0;
  }
  m6_ring_commit(p, at, e.clock, (uint64_t)e.live, e.allocs & M6_COUNT_MASK, M6_REC_FRAME, 0, stream, M6_FRAME_UNITS);
  f->records += M6_FRAME_UNITS;
  return 1;
}

/* The final snapshot, as the collector would publish it; free() it. */
static inline void fx_finish_into(struct m6_capture *c, int final, void *block)
{
  struct m6_outside o = {
    .pid = 1, .state = final ? M6_ENDED : M6_COLLECTING, .end_reason = final ? M6_END_EXIT : 0, .price = {0, 0, 0}};
  m6_capture_sample(c, final);
  size_t n = m6_snapshot_build(c, &o, final, block);
  assert_true(n >= sizeof(struct m6_snapshot) && n <= M6_SNAPSHOT_BYTES_MAX && n % 8 == 0);
}
static inline struct m6_snapshot *fx_finish(struct m6_capture *c, int final)
{
  void *block = aligned_alloc(64, M6_SNAPSHOT_BYTES_MAX);
  assert_non_null(block);
  fx_finish_into(c, final, block);
  return block;
}

static inline const struct m6_snap_node *fx_nodes(const struct m6_snapshot *s)
{
  return (const struct m6_snap_node *)((const char *)s + s->nodes_offset);
}
static inline int fx_labelled(const struct m6_snapshot *s, const struct m6_snap_node *n, const char *label)
{
  return n->label_bytes == strlen(label) &&
         memcmp((const char *)s + s->text_offset + n->label_offset, label, n->label_bytes) == 0;
}
/* A node by its path, "frame/a/b"; NULL when there is none. */
static inline const struct m6_snap_node *fx_find(const struct m6_snapshot *s, const char *path)
{
  const struct m6_snap_node *nodes = fx_nodes(s);
  uint32_t at = 0;
  char part[256];
  while (*path) {
    size_t n = strcspn(path, "/");
    memcpy(part, path, n);
    part[n] = 0;
    path += n + (path[n] == '/');
    uint32_t child = nodes[at].first_child;
    while (child != 0 && !fx_labelled(s, &nodes[child], part)) child = nodes[child].next_sibling;
    if (child == 0) return NULL;
    at = child;
  }
  return &nodes[at];
}
/* What every snapshot must be: offsets inside, a proper tree, no number that cannot be. */
static inline void fx_check(const struct m6_snapshot *s)
{
  assert_int_equal(s->magic, M6_SNAPSHOT_MAGIC);
  assert_true(s->node_count >= 1 && s->node_count <= M6_NODES_MAX);
  assert_true(s->nodes_offset + s->node_count * sizeof(struct m6_snap_node) <= s->bytes);
  assert_true(s->spikes_offset + s->spike_count * sizeof(struct m6_snap_spike) <= s->bytes);
  assert_true(s->frames_offset + s->frame_count * sizeof(struct m6_snap_frame) <= s->bytes);
  assert_true(s->buckets_offset + s->bucket_count * sizeof(struct m6_snap_bucket) <= s->bytes);
  assert_true(s->growth_offset + s->growth_count * sizeof(struct m6_snap_growth) <= s->bytes);
  assert_true(s->stalls_offset + s->stall_count * sizeof(struct m6_snap_stall) <= s->bytes);
  assert_true(s->samples_offset + s->sample_count * sizeof(float) <= s->bytes && s->samples_offset % 8 == 0);
  assert_true(s->text_offset + s->text_bytes <= s->bytes);
  for (uint32_t i = 0; i < s->stall_count; i++)
    assert_true(((const struct m6_snap_stall *)((const char *)s + s->stalls_offset))[i].node < s->node_count);
  const struct m6_snap_node *n = fx_nodes(s);
  uint32_t linked = 0;
  for (uint32_t i = 0; i < s->node_count; i++) {
    assert_true(n[i].label_offset + n[i].label_bytes <= s->text_bytes);
    assert_true(n[i].reservoir <= M6_RESERVOIR);
    assert_true(n[i].time_p10 <= n[i].time_p50 && n[i].time_p50 <= n[i].time_p90 && n[i].time_p90 <= n[i].time_max);
    for (uint32_t c = n[i].first_child; c != 0; c = n[c].next_sibling) {
      assert_true(c < s->node_count && c > i);
      assert_int_equal(n[c].parent, i);
      linked++;
    }
  }
  assert_int_equal(linked, s->node_count - 1);
  for (uint32_t i = 0; i < s->spike_count; i++) {
    const struct m6_snap_spike *p = (const struct m6_snap_spike *)((const char *)s + s->spikes_offset) + i;
    for (int k = 0; k < M6_SPIKE_CAUSES; k++) assert_true(p->cause[k].node < s->node_count);
  }
}

#endif
