/* books.c - see books.h. */
#include "books.h"

#include <string.h>

#include "../shm/record.h"
#include "clock.h"

#define SEED 0x626f6f6b73ull

int64_t m6_clamp(__int128 v, uint32_t *saturated)
{
  if (v >= INT64_MIN && v <= INT64_MAX) return (int64_t)v;
  *saturated = 1;
  return v < 0 ? INT64_MIN : INT64_MAX;
}

void m6_books_open(struct m6_books *b, struct m6_point start, void (*ended)(void *, const struct m6_ended *), void *arg)
{
  memset(b, 0, sizeof *b);
  b->start = start;
  b->ended = ended;
  b->ended_arg = arg;
  m6_rng_seed(&b->rng, SEED);
}

static uint64_t allocs_between(uint64_t later, uint64_t earlier) { return (later - earlier) & M6_COUNT_MASK; }

static void add(struct m6_account *a, uint64_t count, uint64_t time, __int128 d, uint64_t allocs)
{
  a->count += count;
  a->time_sum += time;
  a->d += d;
  a->allocs += allocs;
}

static void apply(struct m6_books *b, const struct m6_boundary *n)
{
  const struct m6_boundary *l = &b->last;
  int first = l->number == 0;
  struct m6_ended e = {.number = n->number, .done = n->entry, .cause = n->cause, .live = n->ret.live};
  e.mark = first ? b->start : l->ret;
  e.frames = first ? 0 : n->number - l->number;
  e.d = (__int128)n->entry.live - e.mark.live;
  e.i = (__int128)n->ret.live - n->entry.live;
  e.allocs = allocs_between(n->entry.allocs, e.mark.allocs);
  e.gap = m6_ticks_since(n->ret.clock, n->entry.clock);
  uint64_t time = m6_ticks_since(n->entry.clock, e.mark.clock);
  if (first) {
    add(&b->startup, 1, time, e.d, e.allocs);
    b->startup.i += e.i;
    b->startup.time_max = time;
    b->startup.d_max = e.d;
    b->first_entry = n->entry.clock;
    b->first_number = n->number;
  } else {
    e.interval = m6_ticks_since(n->entry.clock, l->entry.clock);
    add(&b->frame, e.frames, time, e.d, e.allocs);
    b->frame.i += e.i;
    if (n->previous == l->number) {
      b->d_scopes += n->d_scopes;
      b->d_thread_rest += n->d_thread - n->d_scopes;
      b->d_others += e.d - n->d_thread;
    } else {
      b->d_others += e.d;
    }
    if (e.frames == 1) {
      if (time > b->frame.time_max) b->frame.time_max = time;
      if (b->times.seen == 0 || e.d > b->frame.d_max) b->frame.d_max = e.d;
      m6_reservoir_add(&b->times, &b->rng, (float)time);
    }
  }
  b->recorded++;
  b->last = *n;
  b->ended(b->ended_arg, &e);
}

static void apply_waiting(struct m6_books *b, uint32_t at)
{
  struct m6_boundary n = b->waiting[at];
  b->waiting[at] = b->waiting[--b->waiting_count];
  if (n.number > b->last.number) apply(b, &n);
  else b->late++;
}

static uint32_t smallest_waiting(const struct m6_books *b)
{
  uint32_t best = 0;
  for (uint32_t i = 1; i < b->waiting_count; i++)
    if (b->waiting[i].number < b->waiting[best].number) best = i;
  return best;
}

static void apply_consecutive(struct m6_books *b)
{
  while (b->waiting_count != 0) {
    uint32_t i = smallest_waiting(b);
    if (b->waiting[i].number > b->last.number + 1) return;
    apply_waiting(b, i);
  }
}

void m6_books_boundary(struct m6_books *b, const struct m6_boundary *new)
{
  if (__builtin_expect(new->number == b->last.number + 1, 1)) {
    apply(b, new);
  } else if (new->number <= b->last.number) {
    b->late++;
    return;
  } else {
    if (b->waiting_count == M6_BOUNDARIES_WAITING) apply_waiting(b, smallest_waiting(b));
    if (new->number <= b->last.number) {
      b->late++;
      return;
    }
    b->waiting[b->waiting_count] = *new;
    b->waiting[b->waiting_count++].polls = 0;
  }
  apply_consecutive(b);
}

void m6_books_poll(struct m6_books *b, int all)
{
  while (b->waiting_count != 0) {
    uint32_t i = smallest_waiting(b);
    if (!all && b->waiting[i].polls < M6_BOUNDARY_PATIENCE) break;
    apply_waiting(b, i);
    apply_consecutive(b);
  }
  for (uint32_t i = 0; i < b->waiting_count; i++) b->waiting[i].polls++;
}

struct m6_closing m6_books_close(const struct m6_books *b, struct m6_point now, uint64_t presents)
{
  struct m6_closing c;
  memset(&c, 0, sizeof c);
  c.startup = b->startup;
  c.frame = b->frame;
  c.d_scopes = b->d_scopes;
  c.d_thread_rest = b->d_thread_rest;
  c.d_others = b->d_others;
  c.presents = presents > b->last.number ? presents : b->last.number;
  const struct m6_point *from = b->last.number ? &b->last.ret : &b->start;
  uint64_t time = m6_ticks_since(now.clock, from->clock), allocs = allocs_between(now.allocs, from->allocs);
  __int128 d = (__int128)now.live - from->live;
  struct m6_account *rest = c.presents ? &c.shutdown : &c.startup;
  add(rest, 1, time, d, allocs);
  rest->time_max = time;
  rest->d_max = d;
  if (c.presents && !b->last.number) c.startup.count = 1; /* presents, but no boundary arrived: all lies in the tail */
  c.frames_lost = c.presents - b->recorded;
  c.frame.count = c.presents ? c.presents - 1 : 0;
  c.sum_d = c.startup.d + c.frame.d + c.shutdown.d;
  c.sum_i = c.startup.i + c.frame.i + c.shutdown.i;
  c.closed = c.sum_d + c.sum_i == (__int128)now.live - b->start.live &&
             c.d_scopes + c.d_thread_rest + c.d_others == c.frame.d;
  return c;
}
