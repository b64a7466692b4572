/* retained.c - see retained.h. */
#include "retained.h"

#include <string.h>

#define AHEAD_S 2u /* seconds that a frame may be ahead of the last reading: readings are taken twice a second */

void m6_retained_init(struct m6_retained *r, const struct m6_moment *start)
{
  memset(r, 0, sizeof *r);
  r->buckets_most = M6_BUCKETS_RETAINED;
  r->growth_most = M6_GROWTH_RETAINED;
  r->stalls_most = M6_STALLS_RETAINED;
  r->last = *start;
  r->high = m6_clamp(start->live, &r->saturated);
}

/* The bucket of that second; a new one when it is later than all. */
static struct m6_snap_bucket *bucket(struct m6_retained *r, uint64_t second)
{
  if (second > r->second + AHEAD_S) second = r->second + AHEAD_S; /* a clock that jumps must not claim the future */
  uint64_t n = r->bucket_total;
  if (n == 0 || r->bucket[(n - 1) % r->buckets_most].second < second) {
    uint64_t at = r->bucket_total++ % r->buckets_most;
    struct m6_snap_bucket *b = &r->bucket[at];
    r->kernel[at] = (struct m6_snap_kernel_second){.second = second};
    r->sites[at] = (struct m6_snap_site_second){.second = second};
    *b = (struct m6_snap_bucket){.second = second,
                                 .live = m6_clamp(r->last.live, &r->saturated),
                                 .mapped = m6_clamp(r->last.mapped, &r->saturated),
                                 .threads = r->last.threads};
    return b;
  }
  uint64_t kept = n < r->buckets_most ? n : r->buckets_most, k = 1;
  while (k < kept && r->bucket[(n - k - 1) % r->buckets_most].second >= second) k++;
  return &r->bucket[(n - k) % r->buckets_most];
}

static void grown(struct m6_retained *r, uint64_t at, __int128 reading, int64_t d, uint64_t allocs)
{
  int64_t live = m6_clamp(reading, &r->saturated), step = r->high / M6_GROWTH_SHARE;
  if (step < M6_GROWTH_STEP) step = M6_GROWTH_STEP;
  if ((__int128)live < (__int128)r->high + step) return;
  r->growth[r->growth_total++ % r->growth_most] = (struct m6_snap_growth){
    at, r->frame, live, m6_clamp((__int128)live - r->high, &r->saturated), d, allocs};
  r->high = live;
}

static int64_t sum(int64_t a, __int128 b, uint32_t *saturated) { return m6_clamp((__int128)a + b, saturated); }

void m6_retained_frame(struct m6_retained *r, const struct m6_ended *e, const struct m6_frame_seen *seen)
{
  if (seen->frames == 0) { /* startup: the present that ended it is the first */
    r->frame = e->number;
    return;
  }
  uint64_t end = seen->at;
  if (__builtin_add_overflow(end, seen->record->time, &end)) end = UINT64_MAX;
  struct m6_snap_bucket *b = bucket(r, end / 1000000000u);
  uint64_t each = seen->interval / seen->frames;
  b->frames += seen->frames;
  b->time_sum += seen->interval;
  if (each > b->time_max) b->time_max = each;
  b->d = sum(b->d, e->d, &r->saturated);
  b->i = sum(b->i, e->i, &r->saturated);
  r->frame = e->number;
  grown(r, end, e->live, seen->record->d, e->allocs);
  if (!seen->stall) return;
  b->stalls++;
  r->stall[r->stall_total++ % r->stalls_most] = (struct m6_snap_stall){
    e->number,       seen->at,         seen->interval,    seen->median,    e->allocs,
    seen->record->d, e->cause[0].node, e->cause[0].calls, e->cause[0].time};
}

/* Of a counter that only goes up, unless its bytes are hostile. */
static uint64_t more(uint64_t now, uint64_t then) { return now > then ? now - then : 0; }

void m6_retained_sample(struct m6_retained *r, const struct m6_moment *now)
{
  uint64_t second = now->at / 1000000000u;
  if (second > r->second) r->second = second;
  struct m6_snap_bucket *b = bucket(r, second);
  b->allocs += more(now->allocs, r->last.allocs);
  b->bytes += more(now->bytes, r->last.bytes);
  b->frees += more(now->frees, r->last.frees);
  b->records += more(now->records, r->last.records);
  b->lost += more(now->lost, r->last.lost);
  b->live = m6_clamp(now->live, &r->saturated);
  b->mapped = m6_clamp(now->mapped, &r->saturated);
  b->threads = now->threads;
  grown(r, now->at, now->live, 0, more(now->allocs, r->last.allocs));
  r->last = *now;
}

void m6_retained_cost(struct m6_retained *r, uint64_t collector_ns, uint64_t target_cpu_ns)
{
  struct m6_snap_bucket *b = bucket(r, r->second);
  b->collector_ns += more(collector_ns, r->collector_ns);
  b->target_cpu_ns += more(target_cpu_ns, r->target_cpu_ns);
  if (collector_ns > r->collector_ns) r->collector_ns = collector_ns;
  if (target_cpu_ns > r->target_cpu_ns) r->target_cpu_ns = target_cpu_ns;
}

/* Rows of 64-bit words, of which the first is the second. Two's complement: a reading that went back is taken off. */
static void add(void *row, const void *then, const void *now, size_t bytes)
{
  uint64_t *sum = row;
  const uint64_t *a = then, *b = now;
  for (size_t i = 1; i < bytes / sizeof *sum; i++) sum[i] += b[i] - a[i];
}

void m6_retained_kernel(struct m6_retained *r, uint64_t at, const struct m6_snap_kernel_second *then,
                        const struct m6_snap_kernel_second *now)
{
  uint64_t second = at / 1000000000u;
  if (second > r->second) r->second = second;
  add(&r->kernel[bucket(r, second) - r->bucket], then, now, sizeof *now);
}

void m6_retained_sites(struct m6_retained *r, const struct m6_snap_site_second *now)
{
  add(&r->sites[bucket(r, r->second) - r->bucket], &r->sites_then, now, sizeof *now);
  r->sites_then = *now;
}

/* The entries of a ring, oldest first; gives their number. */
static uint32_t unroll(char *to, const void *ring, uint64_t total, uint64_t room, size_t size, uint64_t *overwritten)
{
  uint64_t n = total < room ? total : room, from = (total - n) % room, first = n < room - from ? n : room - from;
  memcpy(to, (const char *)ring + from * size, first * size);
  memcpy(to + first * size, ring, (n - first) * size);
  *overwritten = total - n;
  return (uint32_t)n;
}

size_t m6_retained_put(const struct m6_retained *r, struct m6_rate rate, uint32_t (*out)(void *, uint32_t), void *arg,
                       char *base, size_t at, struct m6_snapshot *s)
{
  s->buckets_offset = at;
  s->bucket_count = unroll(base + at, r->bucket, r->bucket_total, r->buckets_most, sizeof r->bucket[0],
                           &s->buckets_overwritten);
  at += s->bucket_count * sizeof r->bucket[0];
  s->growth_offset = at;
  s->growth_count = unroll(base + at, r->growth, r->growth_total, r->growth_most, sizeof r->growth[0],
                           &s->growth_overwritten);
  at += s->growth_count * sizeof r->growth[0];
  s->stalls_offset = at;
  struct m6_snap_stall *stall = (struct m6_snap_stall *)(base + at);
  s->stall_count = unroll(base + at, r->stall, r->stall_total, r->stalls_most, sizeof r->stall[0],
                          &s->stalls_overwritten);
  for (uint32_t i = 0; i < s->stall_count; i++) {
    stall[i].node = stall[i].node ? out(arg, stall[i].node) : 0;
    stall[i].node_time = stall[i].node ? m6_ticks_to_ns(rate, stall[i].node_time) : 0;
    if (!stall[i].node) stall[i].calls = 0;
  }
  return at + s->stall_count * sizeof r->stall[0];
}

uint32_t m6_retained_kernel_put(const struct m6_retained *r, struct m6_snap_kernel_second *to)
{
  uint64_t overwritten;
  return unroll((char *)to, r->kernel, r->bucket_total, r->buckets_most, sizeof *to, &overwritten);
}

uint32_t m6_retained_sites_put(const struct m6_retained *r, struct m6_snap_site_second *to)
{
  uint64_t overwritten;
  return unroll((char *)to, r->sites, r->bucket_total, r->buckets_most, sizeof *to, &overwritten);
}
