/* bounds.c - see bounds.h. */
#include "bounds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "budgets.h"
#include "control.h"
#include "stats_proc.h"
#include "stats_words.h"

void m6_capture_bounds(struct m6_capture *c)
{
  c->frames.retained_most = (uint32_t)m6_budget_cap(M6_BUDGET_FRAMES);
  c->frames.spikes_most = (uint32_t)m6_budget_cap(M6_BUDGET_SPIKES);
  c->frames.median.most = (uint32_t)m6_budget_cap(M6_BUDGET_MEDIAN);
  c->frames.median_min = (uint32_t)m6_budget_cap(M6_BUDGET_MEDIAN_MIN);
  if (c->frames.median_min > c->frames.median.most) c->frames.median_min = c->frames.median.most;
  c->retained.buckets_most = m6_budget_cap(M6_BUDGET_BUCKETS);
  c->retained.growth_most = m6_budget_cap(M6_BUDGET_GROWTH);
  c->retained.stalls_most = m6_budget_cap(M6_BUDGET_STALLS);
  c->tree.limit = (uint32_t)m6_budget_cap(M6_BUDGET_NODES);
}

void m6_bounds_begin(struct m6_bounds *b, uint32_t level, uint32_t sessions_wanted, uint64_t now_ns)
{
  static const enum m6_budget_id overhead[M6_LEVELS] = {M6_BUDGET_OVERHEAD_MEMORY, M6_BUDGET_OVERHEAD_LITE,
                                                        M6_BUDGET_OVERHEAD_FULL};
  double budget[M6_LEVELS];
  for (uint32_t l = 0; l < M6_LEVELS; l++) budget[l] = (double)m6_budget_cap(overhead[l]) / 1e6;
  m6_budget_begin();
  m6_governor_begin(&b->governor, (enum m6_level)level, budget, b->site_interval, now_ns);
  m6_heap_begin(&b->heap, m6_budget_cap(M6_BUDGET_HEAP) * 1000000ull, now_ns);
  memset(&b->chain, 0, sizeof b->chain);
  b->chain.wanted = sessions_wanted;
  b->start_ns = now_ns;
  b->heap_at_ns = b->shim_before = b->shim_ns = b->held_until_ns = 0;
  memset(b->snap.held_ns, 0, sizeof b->snap.held_ns);
  b->priced = b->lives_on = 0;
  b->sessions++;
}

/* ---- what is used --------------------------------------------------------------------------------------------------
 * */

static uint64_t ring_bytes(uint32_t rings)
{
  return rings == 0 ? 0 : m6_ring_offset(rings - 1) - M6_OFF_RINGS + m6_ring_capacity(rings - 1) * 32ull;
}

static void use_capture(const struct m6_capture *c)
{
  const struct m6_frames *f = &c->frames;
  const struct m6_header *h = &c->head;
  uint32_t rings = h->rings_used < M6_RINGS ? h->rings_used : M6_RINGS, streams = 0;
  for (uint32_t s = 0; s < M6_STREAMS; s++) streams += h->streams[s].kind != 0;
  uint64_t over = f->retained_total > f->retained_most ? f->retained_total - f->retained_most : 0;
  m6_budget_use(M6_BUDGET_FRAMES, f->retained_total - over);
  m6_budget_overrun(M6_BUDGET_FRAMES, over);
  m6_budget_use(M6_BUDGET_MEDIAN, f->median.count);
  m6_budget_use(M6_BUDGET_MEDIAN_MIN, f->median.count < f->median_min ? f->median.count : f->median_min);
  m6_budget_use(M6_BUDGET_SPIKES, f->spike_count);
  m6_budget_overrun(M6_BUDGET_SPIKES, f->spikes_total - f->spike_count);
  m6_budget_use(M6_BUDGET_NODES, c->tree.settled);
  m6_budget_overrun(M6_BUDGET_NODES, c->tree.refused);
  m6_budget_use(M6_BUDGET_RING_BYTES, ring_bytes(rings));
  m6_budget_overrun(M6_BUDGET_RING_BYTES, c->now.lost - c->base.lost);
  m6_budget_use(M6_BUDGET_RINGS, rings);
  m6_budget_overrun(M6_BUDGET_RINGS, h->rings_refused);
  m6_budget_use(M6_BUDGET_SLOTS, h->slots_used < 1 ? 0 : h->slots_used <= M6_SLOTS ? h->slots_used - 1 : M6_SLOTS - 1);
  m6_budget_overrun(M6_BUDGET_SLOTS, h->slots_refused);
  m6_budget_use(M6_BUDGET_STREAMS, streams);
  m6_budget_overrun(M6_BUDGET_STREAMS, h->streams_refused);
}

/* What a buffer of `most` holds of what was ever put into it, and what was overwritten. */
static void use_kept(enum m6_budget_id id, uint64_t total, uint64_t most)
{
  m6_budget_use(id, total < most ? total : most);
  m6_budget_overrun(id, total > most ? total - most : 0);
}
static void use_retained(const struct m6_retained *r)
{
  use_kept(M6_BUDGET_BUCKETS, r->bucket_total, r->buckets_most);
  use_kept(M6_BUDGET_GROWTH, r->growth_total, r->growth_most);
  use_kept(M6_BUDGET_STALLS, r->stall_total, r->stalls_most);
}

/* Is it still that process? A run lets its images go before the last snapshot is built. */
static int is_alive(const struct m6_image *i)
{
  struct m6_proc p;
  return m6_proc_read(i->who.pid, &p) == 0 && p.state != 'Z' && p.state != 'X' &&
         p.start_ns <= i->who.load_ns + m6_proc_tick_ns();
}

/* What lives in the allocator, -1 when that is not known: of a program that allocated before its first session, or
 * between two that are not joined, the heap reading is only what changed since. */
static int64_t live_of(const struct m6_bounds *b, const struct m6_image *i)
{
  uint32_t clamped = 0;
  int64_t live = m6_clamp(i->capture->now.live, &clamped);
  return i->who.run_token && i->capture->head.sessions_started <= b->chain.count + 1 && live > 0 ? live : -1;
}

static void use_heap(struct m6_bounds *b, const struct m6_image *i, int final, uint64_t now)
{
  int64_t live = live_of(b, i);
  uint32_t clamped = 0;
  b->heap.mapped = m6_clamp(i->capture->now.mapped - i->capture->base.mapped, &clamped);
  int new = !final                         ? m6_heap_poll(&b->heap, i->who.pid, live, now, b->start_ns)
            : (b->lives_on && is_alive(i)) ? m6_heap_last(&b->heap, i->who.pid, live, now, b->start_ns)
                                           : m6_heap_end(&b->heap, b->start_ns);
  if (new) {
    const struct m6_snap_heap *l = &b->heap.last;
    if (l->error && !b->heap_told++)
      m6_say(M6_VERBOSE, "the heap of process %d cannot be measured as a whole (smaps_rollup): %s", (int)i->who.pid,
             strerror(l->error));
    if (l->count > 1 && l->at_ns != b->heap_at_ns) m6_budget_use(M6_BUDGET_HEAP, (l->at_ns - b->heap_at_ns) / 1000000u);
    b->heap_at_ns = l->at_ns;
  }
  m6_budget_overrun(M6_BUDGET_HEAP, b->heap.last.missed);
  m6_budget_use(M6_BUDGET_HEAP_PENDING, b->heap.pending != 0);
  m6_budget_overrun(M6_BUDGET_HEAP_PENDING, b->heap.last.missed);
}

static uint64_t ppm(double share) { return share > 0 && share < 1e6 ? (uint64_t)llround(share * 1e6) : 0; }

void m6_bounds_fill(struct m6_bounds *b, const struct m6_image *i, int final, uint64_t now)
{
  struct m6_snap_govern *s = &b->snap;
  const struct m6_governor *g = &b->governor;
  if (i->capture) {
    uint64_t from = b->held_until_ns > i->capture->start_mono_ns ? b->held_until_ns : i->capture->start_mono_ns;
    s->held_ns[g->at.level] += m6_ticks_since(now, from);
    b->held_until_ns = now;
    use_capture(i->capture);
    use_retained(&i->capture->retained);
    use_heap(b, i, final, now);
    m6_budget_use(M6_BUDGET_SESSION_TTL, m6_ticks_since(now, i->capture->start_mono_ns) / 1000000u);
  }
  m6_budget_use(M6_BUDGET_SESSION_CHAIN, b->chain.count + !final);
  for (uint32_t l = 0; l < M6_LEVELS; l++) {
    m6_budget_use(M6_BUDGET_OVERHEAD_MEMORY + l, ppm(g->most[l]));
    m6_budget_overrun(M6_BUDGET_OVERHEAD_MEMORY + l, g->overs[l]);
  }
  s->budget_count = m6_budget_snap(s->budgets);
  s->step_count = m6_governor_steps(g, s->steps);
  s->steps_total = g->steps_total;
  s->level = g->at.level;
  s->interval = g->at.interval;
  s->cost = g->cost;
  s->cost_shim = g->shim;
  s->cost_kernel = g->kernel;
  s->cost_collector = g->collector;
  s->budget = g->budget[g->at.level];
  s->heap = b->heap.last;
  s->sessions_wanted = b->chain.wanted;
  s->link_count = b->chain.count;
  memcpy(s->links, b->chain.links, b->chain.count * sizeof s->links[0]);
  struct m6_trend t = m6_chain_trend(&b->chain);
  s->chain_per_frame = t.slope;
  s->chain_low = t.low;
  s->chain_high = t.high;
  s->chain_verdict = (uint32_t)t.verdict;
  s->chain_closed = (uint32_t)m6_chain_closed(&b->chain);
}

/* ---- the governor --------------------------------------------------------------------------------------------------
 * */

enum m6_life_event m6_bounds_look(struct m6_bounds *b, struct m6_image *i, struct m6_spent spent, int priced)
{
  b->shim_ns = spent.shim;
  spent.shim += b->shim_before;
  if (priced && !b->priced) b->governor.count = 0; /* what was spent before the price was known is no burst */
  b->priced = priced;
  enum m6_governor_says says = m6_governor_look(&b->governor, &spent);
  if (says == M6_GOVERNOR_STAY) return M6_EVENT_NOTHING;
  if (says == M6_GOVERNOR_END) return M6_EVENT_BUDGET;
  struct m6_governor *g = &b->governor;
  m6_say(M6_VERBOSE, "mach6 costs %.2f %%: now at level %s%s", g->cost * 100, m6_level_name(g->at.level),
         g->at.interval > 1 ? ", half as often" : "");
  if (i->site_interval) m6_say(M6_VERBOSE, "allocations are sampled every %u bytes", g->at.sites);
  m6_control_level(i, g->at.level, g->at.sites);
  return M6_EVENT_NOTHING;
}

void m6_bounds_refused(struct m6_bounds *b, struct m6_image *i, uint32_t level, uint64_t now)
{
  struct m6_governor *g = &b->governor;
  if (level >= g->top.level) return;
  int was_up = g->at.level > level;
  m6_governor_refused(g, (enum m6_level)level, now);
  if (was_up) m6_control_level(i, g->at.level, g->at.sites);
}

/* ---- the chain ------------------------------------------------------------------------------------------------------
 * */

int m6_bounds_join(struct m6_bounds *b, struct m6_image *i)
{
  int e = m6_chain_join(&b->chain, i);
  if (e != 0) return e;
  m6_capture_bounds(i->capture);
  b->shim_before += b->shim_ns;
  b->shim_ns = 0;
  b->governor.count = 0;
  b->sessions++;
  return 0;
}

void m6_bounds_end(struct m6_bounds *b, struct m6_image *i, uint32_t reason)
{
  b->lives_on = reason == M6_END_OFF || reason == M6_END_TTL || reason == M6_END_BUDGET;
  /* The last session of a chain ends as the others did: nothing was cut short. */
  int whole = b->chain.wanted > 1 && b->chain.count + 1 >= b->chain.wanted;
  if (reason == M6_END_TTL && !whole) m6_budget_overran(M6_BUDGET_SESSION_TTL);
  if (b->chain.wanted < 2 || i == NULL || i->capture == NULL) return;
  m6_books_poll(&i->capture->books, 1);
  m6_chain_link(&b->chain, i->capture, reason, 0);
}
