/* frame.c - see frame.h. */
#include "frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RETAINED_BYTES (M6_FRAMES_RETAINED * sizeof(struct m6_snap_frame))

static uint32_t lower_bound(const uint64_t *sorted, uint32_t n, uint64_t value)
{
  uint32_t low = 0;
  while (n > 0) {
    uint32_t half = n / 2;
    if (sorted[low + half] < value) {
      low += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return low;
}

void m6_median_add(struct m6_median *m, uint64_t value)
{
  uint32_t most = m->most ? m->most : M6_SPIKE_WINDOW;
  if (m->count == most) {
    uint32_t old = lower_bound(m->sorted, m->count, m->arrived[m->next]);
    memmove(m->sorted + old, m->sorted + old + 1, (m->count - old - 1) * sizeof value);
    m->count--;
  }
  uint32_t at = lower_bound(m->sorted, m->count, value);
  memmove(m->sorted + at + 1, m->sorted + at, (m->count - at) * sizeof value);
  m->sorted[at] = value;
  m->count++;
  m->arrived[m->next] = value;
  m->next = (m->next + 1) % most;
}

uint64_t m6_median_value(const struct m6_median *m)
{
  if (m->count == 0) return 0;
  uint64_t a = m->sorted[(m->count - 1) / 2], b = m->sorted[m->count / 2];
  return a + (b - a) / 2;
}

int m6_frames_init(struct m6_frames *f, int64_t reading_start)
{
  memset(f, 0, sizeof *f);
  f->reading_start = reading_start;
  f->series_each = 1;
  f->retained_most = M6_FRAMES_RETAINED;
  f->spikes_most = M6_SPIKES_RETAINED;
  f->median_min = M6_SPIKE_WINDOW_MIN;
  void *p = mmap(NULL, RETAINED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return errno;
  f->retained = p;
  return 0;
}

void m6_frames_free(struct m6_frames *f)
{
  if (f->retained) munmap(f->retained, RETAINED_BYTES);
  f->retained = NULL;
}

static int spike(struct m6_frames *f, const struct m6_ended *e, uint64_t time, uint64_t at)
{
  uint64_t median = m6_median_value(&f->median);
  if (f->median.count < f->median_min) {
    f->unjudged++;
    if (time > f->unjudged_max) {
      f->unjudged_max = time;
      f->unjudged_frame = e->number;
    }
    return 0;
  }
  if (time <= M6_SPIKE_FACTOR * median || time <= median + M6_SPIKE_OVER_NS) return 0;
  f->spikes_total++;
  uint32_t place = f->spike_count;
  if (place == f->spikes_most) { /* the least of them gives way */
    place = 0;
    for (uint32_t i = 1; i < f->spikes_most; i++)
      if (f->spikes[i].time < f->spikes[place].time) place = i;
    if (f->spikes[place].time >= time) return 1;
  } else {
    f->spike_count++;
  }
  struct m6_spike *s = &f->spikes[place];
  *s = (struct m6_spike){e->number, time, median, at, e->allocs, m6_clamp(e->d, &f->saturated), {{0, 0, 0, 0}}};
  memcpy(s->cause, e->cause, sizeof s->cause);
  return 1;
}

/* Points hold series_each frames; when all are full, neighbours are joined and a point holds twice as many. */
static void series(struct m6_frames *f, const struct m6_ended *e, uint64_t time)
{
  struct m6_snap_point *p = f->series_count ? &f->series[f->series_count - 1] : NULL;
  if (p == NULL || p->frames >= f->series_each) {
    if (f->series_count == M6_SERIES) {
      for (uint32_t i = 0; i < M6_SERIES / 2; i++) {
        struct m6_snap_point *a = &f->series[2 * i], *b = a + 1;
        f->series[i] = (struct m6_snap_point){a->frames + b->frames, a->time_sum + b->time_sum,
                                              a->time_max > b->time_max ? a->time_max : b->time_max, b->live};
      }
      f->series_count = M6_SERIES / 2;
      f->series_each *= 2;
    }
    p = &f->series[f->series_count++];
    memset(p, 0, sizeof *p);
  }
  uint64_t each = e->frames > 1 ? time / e->frames : time;
  p->frames += e->frames;
  p->time_sum += time;
  if (each > p->time_max) p->time_max = each;
  p->live = m6_clamp((__int128)e->live - f->reading_start, &f->saturated);
}

struct m6_frame_seen m6_frames_add(struct m6_frames *f, const struct m6_ended *e, struct m6_rate rate,
                                   uint64_t start_clock)
{
  if (e->frames == 0) return (struct m6_frame_seen){0, 0, 0, 0, 0, NULL}; /* startup */
  uint64_t time = m6_ticks_to_ns(rate, e->interval);
  uint64_t at = m6_ticks_to_ns(rate, m6_ticks_since(e->mark.clock, start_clock));
  uint64_t median = m6_median_value(&f->median);
  int is_spike = 0;
  if (e->frames == 1) {
    is_spike = spike(f, e, time, at);
    m6_histogram_add(&f->intervals, time);
    m6_median_add(&f->median, time);
  }
  series(f, e, time);
  struct m6_snap_frame *record = &f->retained[f->retained_total++ % f->retained_most];
  *record = (struct m6_snap_frame){
    .present = e->number,
    .at = at,
    .time = m6_ticks_to_ns(rate, m6_ticks_since(e->done.clock, e->mark.clock)),
    .gap = m6_ticks_to_ns(rate, e->gap),
    .d = m6_clamp(e->d, &f->saturated),
    .i = m6_clamp(e->i, &f->saturated),
    .allocs = e->allocs,
    .spike = (uint32_t)is_spike,
    .lumped = e->frames > UINT32_MAX ? UINT32_MAX : (uint32_t)e->frames,
  };
  return (struct m6_frame_seen){e->frames, time, median, at, is_spike, record};
}
