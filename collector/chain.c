/* chain.c - see chain.h. */
#include "chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"

static int ascending(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The median of the readings at the frames' ends, as the series has them. */
static int64_t level_of(const struct m6_capture *c)
{
  int64_t live[M6_SERIES];
  uint32_t n = c->frames.series_count;
  for (uint32_t i = 0; i < n; i++) live[i] = c->frames.series[i].live;
  if (n == 0) return c->start_live;
  qsort(live, n, sizeof live[0], ascending);
  uint32_t clamped = 0;
  return m6_clamp((__int128)live[(n - 1) / 2] + c->frames.reading_start, &clamped);
}

void m6_chain_link(struct m6_chain *c, const struct m6_capture *capture, uint32_t end, int joint)
{
  if (c->count >= M6_SNAP_LINKS) return;
  struct m6_snap_link *l = &c->links[c->count];
  const struct m6_books *b = &capture->books;
  uint32_t clamped = 0;
  struct m6_point now = b->last.ret;
  uint64_t presents = b->last.number;
  if (!joint || presents == 0) {
    now = (struct m6_point){capture->now_clock, m6_clamp(capture->now.live, &clamped),
                            capture->now.allocs & M6_COUNT_MASK};
    presents = capture->presents;
  }
  struct m6_closing k = m6_books_close(b, now, presents);
  memset(l, 0, sizeof *l);
  l->reading_start = capture->start_live;
  l->reading_end = now.live;
  l->sum_d = m6_clamp(k.sum_d, &clamped);
  l->sum_i = m6_clamp(k.sum_i, &clamped);
  l->level = level_of(capture);
  l->presents = presents;
  l->middle = c->frames + presents / 2;
  l->elapsed_ns = m6_ticks_to_ns(capture->rate, m6_ticks_since(now.clock, capture->start_clock));
  l->end = end;
  l->closed = k.closed && !clamped && (joint || capture->agrees) &&
              (c->count == 0 || c->links[c->count - 1].reading_end == l->reading_start);
  c->frames += presents;
  c->count++;
}

int m6_chain_closed(const struct m6_chain *c)
{
  __int128 sum = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    if (!c->links[i].closed) return 0;
    sum += (__int128)c->links[i].sum_d + c->links[i].sum_i;
  }
  return c->count == 0 || sum == (__int128)c->links[c->count - 1].reading_end - c->links[0].reading_start;
}

struct m6_trend m6_chain_trend(const struct m6_chain *c)
{
  double x[M6_SNAP_LINKS], y[M6_SNAP_LINKS];
  uint32_t n = 0, from = (uint32_t)(M6_CHAIN_WARM_UP * c->count);
  if (from == 0 && c->count > M6_TREND_MIN) from = 1;
  for (uint32_t i = from; i < c->count; i++) {
    if (c->links[i].presents < 2) continue; /* no frame, no level */
    x[n] = (double)c->links[i].middle;
    y[n++] = (double)(c->links[i].level - c->links[from].level);
  }
  return m6_trend_of(x, y, n, M6_CHAIN_LEAST);
}

/* ---- joints -------------------------------------------------------------------------------------------------------
 * */

struct opening {
  struct m6_image *i;
  struct m6_capture *next;
  int error;
};

static void open_next(void *arg)
{
  struct opening *o = arg;
  struct m6_capture *old = o->i->capture;
  uint64_t presents[M6_STREAMS];
  m6_books_poll(&old->books, 1);
  m6_capture_sample(old, 0);
  for (uint32_t s = 0; s < M6_STREAMS; s++) presents[s] = old->head.streams[s].presents;
  presents[old->main_stream] = old->base_presents[old->main_stream] + old->books.last.number;
  o->error = m6_capture_open(o->next, o->i->segment, old->pid, &old->now, presents);
  if (o->error == 0) m6_capture_follow(o->next, old);
}

int m6_chain_join(struct m6_chain *c, struct m6_image *i)
{
  struct opening o = {i, calloc(1, sizeof *o.next), 0};
  if (o.next == NULL) return ENOMEM;
  int gone = m6_image_guarded(i, open_next, &o);
  if (gone != 0 || o.error != 0 || m6_control_next(i) != 0) {
    if (gone == 0 && o.error == 0) m6_capture_close(o.next);
    free(o.next);
    return gone == 0 && o.error ? o.error : -1;
  }
  m6_chain_link(c, i->capture, M6_END_NONE, 1);
  m6_capture_close(i->capture);
  free(i->capture);
  i->capture = o.next;
  return 0;
}
