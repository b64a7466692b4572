/* publish.c - a capture as a snapshot: the head, and the regions behind the nodes. Nodes are in publish_tree.c. See
 * publish.h. */
#include "lost_exec.h"
#include "publish_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../shm/present.h"
#include "utf8.h"

uint32_t m6_put_text(struct m6_writer *w, const char *s, size_t *length)
{
  size_t n = *length;
  if (n > w->text_room - w->text_bytes) n = *length = 0;
  uint32_t at = w->text_bytes;
  memcpy(w->text + at, s, n);
  w->text_bytes += (uint32_t)n;
  return at;
}

void m6_put_clean(struct m6_writer *w, const char *s, uint32_t *offset, uint32_t *bytes, uint32_t *flags)
{
  char clean[M6_CLEAN_MOST * 3]; /* a bad byte becomes three */
  int replaced = 0;
  size_t n = m6_utf8_clean(s, strnlen(s, M6_CLEAN_MOST), clean, sizeof clean, &replaced);
  *offset = m6_put_text(w, clean, &n);
  *bytes = (uint32_t)n;
  if (replaced && flags) *flags |= M6_LABEL_REPLACED;
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static void put_streams(struct m6_capture *c, const struct m6_outside *o, struct m6_writer *w)
{
  struct m6_snapshot *s = w->head;
  s->main_stream = c->main_stream < 0 ? 0 : (uint32_t)c->main_stream;
  for (uint32_t i = 0; i < M6_STREAMS; i++) {
    const struct m6_stream *from = &c->head.streams[i];
    struct m6_snap_stream *to = &s->streams[i];
    if (from->kind == 0) continue;
    s->stream_count = i + 1;
    *to = (struct m6_snap_stream){from->presents - c->base_presents[i],
                                  from->failed,
                                  from->display,
                                  from->drawable,
                                  from->symbol,
                                  from->route,
                                  0,
                                  0,
                                  from->tid,
                                  from->kind};
    if (o->caller && (o->caller[i][0] == '/' || from->symbol == M6_SYM_FRAME_SYMBOL))
      m6_put_clean(w, o->caller[i], &to->caller_offset, &to->caller_bytes, NULL);
  }
  if (s->main_stream >= s->stream_count) s->main_stream = 0; /* a target can take its streams back */
}

static void put_frame_times(struct m6_capture *c, struct m6_snapshot *s)
{
  const struct m6_books *b = &c->books;
  const struct m6_frames *f = &c->frames;
  struct m6_rate rate = c->rate;
  s->frames_recorded = b->recorded;
  uint64_t first = b->first_entry, first_number = b->first_number;
  if (first_number > 1) { /* its record was lost, but the stream kept its clock */
    uint64_t clock = c->head.streams[s->main_stream].first_clock;
    if (c->base_presents[s->main_stream] == 0 && clock >= c->start_clock && clock < first) {
      first = clock;
      first_number = 1;
    }
  }
  if (b->recorded) {
    s->first_present_ns = m6_ticks_to_ns(rate, m6_ticks_since(first, c->start_clock));
    s->last_present_ns = m6_ticks_to_ns(rate, m6_ticks_since(b->last.entry.clock, c->start_clock));
  }
  uint64_t time = m6_ticks_to_ns(rate, m6_ticks_since(b->last.entry.clock, first));
  s->fps = b->recorded && b->last.number > first_number && time != 0
             ? (double)(b->last.number - first_number) / ((double)time * 1e-9)
             : NAN;
  s->interval_p50 = m6_histogram_quantile(&f->intervals, 0.50);
  s->interval_p90 = m6_histogram_quantile(&f->intervals, 0.90);
  s->interval_p99 = m6_histogram_quantile(&f->intervals, 0.99);
  s->interval_max = f->intervals.max;
  s->low_1pct_fps = m6_histogram_low(&f->intervals, 0.01, 100);
  s->low_01pct_fps = m6_histogram_low(&f->intervals, 0.001, 1000);
  s->spikes_total = f->spikes_total;
  s->unjudged = f->unjudged;
  s->unjudged_max = f->unjudged_max;
  s->unjudged_frame = f->unjudged_frame;
  memcpy(s->histogram, f->intervals.n, sizeof s->histogram);
  memcpy(s->series, f->series, f->series_count * sizeof f->series[0]);
  s->series_count = f->series_count;
  s->series_frames_each = (uint32_t)f->series_each;
}

/* What a counter went up by, as far as JSON's integers reach. */
static uint64_t grown(uint64_t now, uint64_t base, uint32_t *saturated)
{
  if (now >= base && now - base <= INT64_MAX) return now - base;
  *saturated = 1;
  return now < base ? 0 : INT64_MAX;
}

static void put_books(struct m6_capture *c, struct m6_writer *w, const struct m6_closing *k, int64_t now, int final)
{
  struct m6_snapshot *s = w->head;
  struct m6_tree *t = &c->tree;
  uint32_t clamped = 0;
  s->reading_start = c->start_live;
  s->reading_now = now;
  s->sum_d = m6_clamp(k->sum_d, &clamped);
  s->sum_i = m6_clamp(k->sum_i, &clamped);
  s->tail_d = m6_clamp(k->shutdown.d, &clamped);
  s->closed = k->closed && (!final || c->agrees);
  m6_put_account(&w->nodes[t->nodes[t->startup].out], &k->startup, c->rate, &clamped);
  struct m6_snap_node *frame = &w->nodes[t->nodes[t->frame].out];
  m6_put_account(frame, &k->frame, c->rate, &clamped);
  m6_put_times(frame, c->rate, &c->books.times);
  frame->d_scopes = m6_clamp(k->d_scopes, &clamped);
  frame->d_thread_rest = m6_clamp(k->d_thread_rest, &clamped);
  frame->d_others = m6_clamp(k->d_others, &clamped);
  if (t->nodes[t->shutdown].out) m6_put_account(&w->nodes[t->nodes[t->shutdown].out], &k->shutdown, c->rate, &clamped);
  struct m6_account all = {
    1, k->startup.time_sum + k->frame.time_sum + k->shutdown.time_sum, 0, 0, k->sum_d, k->sum_i, k->sum_d};
  all.allocs = grown(c->now.allocs, c->base.allocs, &clamped);
  all.time_max = all.time_sum;
  m6_put_account(&w->nodes[0], &all, c->rate, &clamped);
  w->nodes[0].time_sum = w->nodes[0].time_max = s->elapsed_ns;
  w->nodes[0].time_p10 = w->nodes[0].time_p50 = w->nodes[0].time_p90 = s->elapsed_ns;
  s->books_saturated = clamped || t->saturated || c->frames.saturated || c->retained.saturated;
  struct m6_leak leak = m6_leak_of(s->series, s->series_count);
  s->leak_per_frame = leak.per_frame;
  s->leak_ci = leak.ci;
  s->verdict = leak.verdict;
  s->verdict_batches = leak.batches;
}

/* `rest`: nobody counts any more. While somebody does, a block may be in one of two counters and not yet in the
 * other. */
static void put_allocs(const struct m6_capture *c, struct m6_snapshot *s, int rest)
{
  const struct m6_totals *n = &c->now, *b = &c->base;
  static const int kinds[4] = {M6_ALLOC_CALLOC, M6_ALLOC_REALLOC, M6_ALLOC_ALIGNED, M6_ALLOC_NEW};
  uint32_t clamped = 0, torn = 0;
  uint64_t count = grown(n->allocs, b->allocs, &clamped), bytes = grown(n->bytes, b->bytes, &clamped);
  __int128 freed = (__int128)bytes - (n->live - b->live);
  torn |= freed < 0;
  s->freed_bytes = freed < 0 ? 0 : (uint64_t)m6_clamp(freed, &clamped);
  for (int k = 0; k < 4; k++) { /* of the total, so that the kinds always sum up to it */
    uint64_t kc = grown(n->kind_count[k], b->kind_count[k], &clamped),
             kb = grown(n->kind_bytes[k], b->kind_bytes[k], &clamped);
    torn |= kc > count || kb > bytes;
    count -= s->allocs[kinds[k]].count = kc < count ? kc : count;
    bytes -= s->allocs[kinds[k]].bytes = kb < bytes ? kb : bytes;
  }
  s->allocs[M6_ALLOC_MALLOC].count = count;
  s->allocs[M6_ALLOC_MALLOC].bytes = bytes;
  s->frees = grown(n->frees, b->frees, &clamped);
  s->mapped = m6_clamp(n->mapped - b->mapped, &clamped);
  s->map_calls = grown(n->maps, b->maps, &clamped);
  s->brk_growth = (int64_t)(c->head.brk_now - c->head.brk_start);
  s->books_saturated |= clamped || (torn && rest);
}

static void put_losses(const struct m6_capture *c, struct m6_snapshot *s)
{
  s->records = c->records;
  s->records_lost = c->now.lost - c->base.lost;
  s->holes = c->holes;
  s->labels_refused = c->head.labels_refused;
  s->streams_refused = c->head.streams_refused;
  s->slots_refused = c->head.slots_refused;
  s->rings_refused = c->head.rings_refused;
  s->underflows = c->head.underflows;
  s->nodes_refused = c->tree.refused;
  s->bad_records = c->bad + c->tree.backwards;
  if (c->frames.retained_total > c->frames.retained_most)
    s->frames_overwritten = c->frames.retained_total - c->frames.retained_most;
}

static uint64_t cost(const struct m6_capture *c, const struct m6_snapshot *s, const struct m6_price *p)
{
  if (isnan(p->pair) || isnan(p->scope) || isnan(p->frame) || (s->unseen & M6_UNSEEN_NO_SHIM)) return 0;
  double pairs = ((double)(c->now.allocs - c->base.allocs) + (double)s->frees) / 2;
  double ns = pairs * p->pair + (double)(c->marks + s->records_lost) * p->scope + (double)s->presents * p->frame;
  return ns > 0 && ns < 1e18 ? (uint64_t)ns : 0;
}

/* ---- spikes, frames ---------------------------------------------------------------------------------------------- */

static int worst_first(const void *a, const void *b)
{
  const struct m6_snap_spike *x = a, *y = b;
  return x->time < y->time ? 1 : x->time > y->time ? -1 : 0;
}

static void put_spikes(struct m6_capture *c, struct m6_snap_spike *to)
{
  for (uint32_t i = 0; i < c->frames.spike_count; i++) {
    const struct m6_spike *s = &c->frames.spikes[i];
    to[i] = (struct m6_snap_spike){s->frame, s->time, s->median, s->at, s->allocs, s->d, {{0, 0, 0, 0}}};
    for (int k = 0; k < M6_SPIKE_CAUSES; k++) {
      uint32_t node = s->cause[k].node ? c->tree.nodes[s->cause[k].node].out : 0;
      if (node == 0) continue;
      to[i].cause[k].node = node;
      to[i].cause[k].calls = s->cause[k].calls;
      to[i].cause[k].time = m6_ticks_to_ns(c->rate, s->cause[k].time);
      to[i].cause[k].allocs = s->cause[k].allocs;
    }
  }
  if (c->frames.spike_count > 1) qsort(to, c->frames.spike_count, sizeof *to, worst_first);
}

static uint32_t put_frames(const struct m6_capture *c, struct m6_snap_frame *to)
{
  uint64_t total = c->frames.retained_total, most = c->frames.retained_most, n = total < most ? total : most;
  for (uint64_t i = 0; i < n; i++) to[i] = c->frames.retained[(total - n + i) % most];
  return (uint32_t)n;
}

static uint32_t put_site_text(void *arg, const char *text, uint32_t *bytes)
{
  uint32_t at;
  m6_put_clean(arg, text, &at, bytes, NULL);
  return at;
}

/* After the head of the sites: what it counts is the reading. */
static size_t put_site_seconds(struct m6_capture *c, struct m6_writer *w, size_t at)
{
  struct m6_snap_sites *s = &w->head->sites;
  m6_retained_sites(&c->retained, &(struct m6_snap_site_second){.samples = (int64_t)s->samples,
                                                                .dropped = (int64_t)s->dropped,
                                                                .dropped_bytes = (int64_t)s->dropped_bytes,
                                                                .maps = (int64_t)s->maps,
                                                                .maps_dropped = (int64_t)s->maps_dropped});
  struct m6_snap_site_second *to = (struct m6_snap_site_second *)(w->base + at);
  s->seconds_offset = at;
  s->second_count = m6_retained_sites_put(&c->retained, to);
  return s->second_count * sizeof *to;
}

/* Gives the bytes that it took. */
static size_t put_sites(struct m6_capture *c, const struct m6_outside *o, struct m6_writer *w, size_t at)
{
  struct m6_site_text text = {put_site_text, w};
  w->head->sites.rows_offset = at;
  uint32_t n = o->sites.put ? o->sites.put(o->sites.arg, c, w->head, (struct m6_snap_site *)(w->base + at), &text) : 0;
  struct m6_snap_sites *s = &w->head->sites;
  s->rows_offset = at;
  s->maps_offset = at + n * sizeof(struct m6_snap_site);
  uint32_t maps = o->sites.put_maps ? o->sites.put_maps(o->sites.arg, c, w->head,
                                                        (struct m6_snap_site *)(w->base + s->maps_offset), &text)
                                    : 0;
  s->price_ns = o->price.sample;
  double ns = (double)s->samples * o->price.sample;
  if (ns > 0 && ns < 1e18) w->head->shim_ns += s->cost_ns = (uint64_t)ns;
  size_t bytes = (n + maps) * sizeof(struct m6_snap_site);
  return bytes + (o->sites.put ? put_site_seconds(c, w, at + bytes) : 0);
}

static uint32_t put_modules(const struct m6_outside *o, struct m6_writer *w, size_t at)
{
  static struct m6_modules found;
  struct m6_snap_modules *s = &w->head->modules;
  struct m6_snap_module *to = (struct m6_snap_module *)(w->base + at);
  s->offset = at;
  if (!o->modules.fill) return 0;
  o->modules.fill(o->modules.arg, &found);
  s->more = found.more;
  for (uint32_t i = 0; i < found.count; i++) {
    const struct m6_module *m = &found.list[i];
    to[i] = (struct m6_snap_module){.start = m->start, .end = m->end, .offset = m->offset};
    m6_put_clean(w, m->path, &to[i].path_offset, &to[i].path_bytes, NULL);
    m6_put_clean(w, m->build_id, &to[i].build_id_offset, &to[i].build_id_bytes, NULL);
  }
  return s->count = found.count;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static size_t room_of(const struct m6_outside *o) { return o->room ? o->room : M6_SNAPSHOT_LIVE_MAX; }

/* Nodes stand at their place from the start. Text goes last: it is written behind the room that everything else could
 * take, and moved down when its place is known. */
static void start_block(struct m6_writer *w, void *block, size_t room, int whole)
{
  memset(w, 0, sizeof *w);
  w->base = block;
  w->head = block;
  memset(w->head, 0, sizeof *w->head);
  w->nodes = (struct m6_snap_node *)(w->base + sizeof *w->head);
  size_t before_text = sizeof *w->head + M6_NODES_MAX * sizeof(struct m6_snap_node) +
                       M6_SPIKES_RETAINED * sizeof(struct m6_snap_spike) + M6_RETAINED_SNAP_BYTES +
                       (M6_SITES_SHOWN + M6_SITE_MAPS_SHOWN) * sizeof(struct m6_snap_site) +
                       M6_BUCKETS_RETAINED * sizeof(struct m6_snap_site_second);
  if (whole)
    before_text += M6_FRAMES_RETAINED * sizeof(struct m6_snap_frame) + M6_NODES_MAX * M6_RESERVOIR * sizeof(float) +
                   M6_MODULES_SHOWN * sizeof(struct m6_snap_module);
  w->text = w->base + before_text;
  w->text_room = (uint32_t)(room - before_text);
}

static void put_identity(const struct m6_capture *c, const struct m6_outside *o, struct m6_writer *w)
{
  struct m6_snapshot *s = w->head;
  s->magic = M6_SNAPSHOT_MAGIC;
  s->version = M6_SNAPSHOT_VERSION;
  s->head_bytes = sizeof *s;
  s->pid = o->pid;
  s->uid = o->uid;
  s->load_ns = o->load_ns;
  s->pointer_bits = c->head.pointer_bits;
  s->unseen = c->head.unseen;
  if (o->exe) m6_put_clean(w, o->exe, &s->exe_offset, &s->exe_bytes, NULL);
  m6_put_clean(w, c->head.name, &s->name_offset, &s->name_bytes, NULL);
  s->state = o->state;
  s->end_reason = o->end_reason;
  s->level = o->level;
  s->session = o->session;
  s->started_unix_ns = c->started_unix_ns;
  s->elapsed_ns = m6_ticks_since(c->now_mono_ns, c->start_mono_ns);
  s->ttl_ns = o->ttl_ns;
  s->published_ns = m6_monotonic_ns();
  s->clock_kind = c->clock_kind;
  s->threads_seen = (uint32_t)c->threads_seen;
  s->threads_now = c->now.threads;
  s->images_other = o->images_other;
  s->images_other_allocs = o->images_other_allocs;
  if (o->lost == NULL) return;
  s->lost = o->lost->why;
  s->lost_pid = (uint32_t)o->lost->pid;
  m6_put_clean(w, o->lost->from, &s->lost_from_offset, &s->lost_from_bytes, NULL);
  m6_put_clean(w, o->lost->to, &s->lost_to_offset, &s->lost_to_bytes, NULL);
}

/* Where the books close: a running session's at the last boundary, where process and records agree; the final ones at
 * the end. */
static struct m6_point closing_point(const struct m6_capture *c, int final, uint32_t end_reason, uint32_t *clamped)
{
  if ((!final || end_reason == M6_END_FAILURE) && c->books.last.number != 0) return c->books.last.ret;
  if (c->head.magic == 0) return c->books.start; /* the segment went away before it was ever sampled */
  return (struct m6_point){c->now_clock, m6_clamp(c->now.live, clamped), c->now.allocs & M6_COUNT_MASK};
}

static void put_costs(const struct m6_capture *c, const struct m6_outside *o, struct m6_snapshot *s)
{
  s->price_pair_ns = o->price.pair;
  s->price_scope_ns = o->price.scope;
  s->price_frame_ns = o->price.frame;
  s->shim_ns = cost(c, s, &o->price);
  s->collector_ns = o->collector_ns;
  s->target_cpu_ns = o->target_cpu_ns;
  s->publishes = o->publishes;
}

static uint32_t place_of(void *arg, uint32_t node) { return ((const struct m6_tree *)arg)->nodes[node].out; }

/* Text, and what comes behind it; gives where the snapshot ends. */
static size_t end_block(struct m6_capture *c, const struct m6_outside *o, struct m6_writer *w, size_t at)
{
  struct m6_snapshot *s = w->head;
  uint32_t more_bytes = 0, more_at = 0;
  if (o->appendix) {
    const char *more = o->appendix->text(o->appendix->arg, &more_bytes);
    size_t length = more_bytes;
    more_at = m6_put_text(w, more, &length);
    if (length < more_bytes) more_at = UINT32_MAX;
  }
  s->text_offset = at;
  s->text_bytes = w->text_bytes;
  memmove(w->base + at, w->text, w->text_bytes);
  at += w->text_bytes;
  while (at % 8) w->base[at++] = 0;
  if (o->appendix && more_at != UINT32_MAX) at = o->appendix->append(o->appendix->arg, c, s, more_at, at, room_of(o));
  return at;
}

/* What follows the nodes, region by region. */
static size_t put_regions(struct m6_capture *c, const struct m6_outside *o, struct m6_writer *w, int whole)
{
  struct m6_snapshot *s = w->head;
  size_t at = sizeof *s + w->node_count * sizeof(struct m6_snap_node);
  s->node_count = w->node_count;
  s->nodes_offset = sizeof *s;
  s->spikes_offset = at;
  s->spike_count = c->frames.spike_count;
  put_spikes(c, (struct m6_snap_spike *)(w->base + at));
  at += s->spike_count * sizeof(struct m6_snap_spike);
  s->frames_offset = at;
  if (whole) s->frame_count = put_frames(c, (struct m6_snap_frame *)(w->base + at));
  at += s->frame_count * sizeof(struct m6_snap_frame);
  m6_retained_cost(&c->retained, o->collector_ns, o->target_cpu_ns);
  at = m6_retained_put(&c->retained, c->rate, place_of, &c->tree, w->base, at, s);
  s->samples_offset = at;
  if (whole) s->sample_count = m6_put_samples(c, w, (float *)(w->base + at));
  at += s->sample_count * sizeof(float);
  at = (at + 7) & ~(size_t)7;
  at += put_sites(c, o, w, at);
  if (whole) at += put_modules(o, w, at) * sizeof(struct m6_snap_module);
  return end_block(c, o, w, at);
}

size_t m6_snapshot_build(struct m6_capture *c, const struct m6_outside *o, int kind, void *block)
{
  int final = kind == M6_SNAPSHOT_FINAL, whole = kind != M6_SNAPSHOT_LIVE;
  static struct m6_writer writer; /* 16 KiB of label places: not for the stack of a signal-laden process */
  struct m6_writer *w = &writer;
  start_block(w, block, room_of(o), whole);
  struct m6_snapshot *s = w->head;
  c->rate = m6_clock_rate(c->clock_kind);
  if (final) m6_capture_finish(c);
  else m6_capture_settle(c, c->now_mono_ns);

  put_identity(c, o, w);
  uint32_t clamped = 0;
  struct m6_point now = closing_point(c, final, o->end_reason, &clamped);
  struct m6_closing k = m6_books_close(&c->books, now, c->presents);
  s->presents = k.presents;
  s->frames_lost = final ? k.frames_lost : c->books.last.number - c->books.recorded;
  put_streams(c, o, w);
  m6_put_tree(c, w, k.presents != 0);
  m6_put_open(c, w);
  put_frame_times(c, s);
  put_books(c, w, &k, now.live, final);
  s->books_saturated |= clamped;
  put_allocs(c, s, final && c->agrees);
  put_losses(c, s);
  for (uint32_t i = 0; i < w->node_count; i++) s->abandoned += w->nodes[i].abandoned;
  put_costs(c, o, s);
  if (o->govern) s->govern = *o->govern;
  return s->bytes = put_regions(c, o, w, whole);
}
