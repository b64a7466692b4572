/* drain.c - rings to events.
 *
 * Promise: every committed record is taken once, in its ring's order; one that was claimed and never committed is
 * passed after M6_HOLE_PATIENCE polls and counted. A ring whose indices make no sense is put right and counted. A pass
 * takes at most two laps of a ring, so that no producer keeps the others waiting. In the mappings' ring a hole is
 * passed after MAPS_HOLE_MS. The segment is foreign: geometry comes from layout.h, each record is copied before it is
 * looked at, a frame's four at once.
 */
#include <stddef.h>

#include "../shm/sites.h"
#include "capture.h"

#define MAPS_HOLE_MS 1000u /* a thread may be without a processor for so long between claim and commit */
#define RELEASE_EVERY 256u /* records, so that a full ring gets room early */

static int later_committed(struct m6_ring_head *head, struct m6_record *records, uint32_t capacity, uint64_t at,
                           uint64_t claimed)
{
  struct m6_record r;
  for (uint64_t i = at + 1; i < claimed; i++)
    if (m6_ring_read(head, records, capacity, i, &r) == M6_RING_RECORD) return 1;
  return 0;
}

/* Is the uncommitted record at r->at one to pass by? */
static int pass_hole(struct m6_ring *r, struct m6_ring_head *head, struct m6_record *records, uint32_t capacity,
                     int dead)
{
  if (dead) return 1;
  if (r->hole_at != r->at || r->hole_polls == 0) {
    r->hole_at = r->at;
    r->hole_polls = 1;
    return 0;
  }
  if (++r->hole_polls <= M6_HOLE_PATIENCE) return 0;
  uint64_t claimed = m6_peek(&head->claimed);
  if (claimed - r->at > capacity || !later_committed(head, records, capacity, r->at, claimed)) return 0;
  r->hole_polls = 0;
  return 1;
}

/* Before a record of this thread is applied: samples that came before it belong to where the thread is now. */
static inline void credit(struct m6_capture *c, struct m6_thread *t, uint64_t clock, int present)
{
  if (__builtin_expect(clock > t->sample_at, 0)) c->credit.until(c->credit.arg, c, t, clock, present);
}
static void waiting_samples(struct m6_capture *c, struct m6_thread *t)
{
  if (c->credit.next) t->sample_at = c->credit.next(c->credit.arg, c, t->tid);
}

static void reading(struct m6_thread *t, const struct m6_record *rec)
{
  t->last_clock = rec->clock;
  t->last_live = rec->live;
  t->last_allocs = rec->count & M6_COUNT_MASK;
  if (__builtin_expect(t->first_clock == 0, 0)) {
    t->first_clock = rec->clock;
    t->first_live = rec->live;
  }
  if (__builtin_expect(t->first_allocs == 0, 0)) t->first_allocs = t->last_allocs;
}

/* One record that is no part of a boundary. */
static void event(struct m6_capture *c, uint32_t ring, const struct m6_record *rec)
{
  struct m6_thread *t = c->rings[ring].thread;
  unsigned type = m6_word_type(rec->word);
  if (__builtin_expect(t == NULL && type != M6_REC_START, 0)) {
    t = m6_capture_thread(c, ring, 0);
    if (t == NULL) return;
    waiting_samples(c, t);
  }
  if (t) credit(c, t, rec->clock, 0);
  switch (type) {
  case M6_REC_MARK: {
    unsigned label = m6_word_label(rec->word);
    if (__builtin_expect(label >= M6_LABELS, 0)) {
      label = M6_LABEL_OTHER;
      c->bad++;
    }
    c->marks++;
    reading(t, rec);
    m6_scope_mark(t, label, m6_word_depth(rec->word), rec->clock, rec->live, rec->count);
    return;
  }
  case M6_REC_DONE:
    reading(t, rec);
    m6_scope_done(t, m6_word_depth(rec->word), m6_word_flags(rec->word) & M6_FLAG_ABANDONED, rec->clock, rec->live,
                  rec->count);
    return;
  case M6_REC_START:
    m6_capture_thread_ended(c, ring);
    t = m6_capture_thread(c, ring, (uint32_t)rec->count);
    if (t == NULL) return;
    waiting_samples(c, t);
    t->first_clock = t->last_clock = rec->clock;
    t->first_live = t->last_live = rec->live;
    return;
  case M6_REC_END:
    reading(t, rec);
    m6_capture_thread_ended(c, ring);
    return;
  case M6_REC_LOSS: m6_scope_loss(t); return;
  case M6_REC_CONTINUED: /* what is left of a boundary whose first record was passed as a hole */
    m6_scope_loss(t);
    return;
  default: c->bad++; m6_scope_loss(t);
  }
}

static uint64_t drain_ring(struct m6_capture *c, uint32_t i, int dead, uint32_t *fullest)
{
  struct m6_ring *r = &c->rings[i];
  struct m6_ring_head *head = m6_segment_ring(c->segment, i);
  struct m6_record *records = m6_segment_records(c->segment, i);
  uint32_t capacity = m6_ring_capacity(i), taken = 0;
  if (!r->seen) {
    r->at = m6_peek(&head->consumed); /* zero, or where an earlier collector left off */
    r->seen = 1;
  }
  uint64_t claimed = m6_observe(&head->claimed), waiting = claimed - r->at;
  if (waiting == 0) return 0;
  if (waiting > capacity) { /* no producer claims more than there is */
    c->bad++;
    if (r->thread) m6_scope_loss(r->thread);
    r->at = claimed;
    m6_ring_release(head, r->at);
    return 0;
  }
  uint32_t percent = (uint32_t)waiting * 100 / capacity;
  if (percent > *fullest) *fullest = percent;
  struct m6_record unit[M6_FRAME_UNITS];
  if (r->thread) waiting_samples(c, r->thread);
  while (taken < 2 * capacity) {
    enum m6_ring_read got = m6_ring_read(head, records, capacity, r->at, &unit[0]);
    if (got == M6_RING_EMPTY) break;
    if (got == M6_RING_HOLE) {
      if (!pass_hole(r, head, records, capacity, dead)) break;
      c->holes++;
      if (r->thread) m6_scope_loss(r->thread);
      r->at++;
      taken++;
      continue;
    }
    taken++;
    if (__builtin_expect(m6_word_type(unit[0].word) == M6_REC_FRAME, 0)) {
      unsigned n = 1;
      while (n < M6_FRAME_UNITS && m6_ring_read(head, records, capacity, r->at + n, &unit[n]) == M6_RING_RECORD &&
             m6_word_type(unit[n].word) == M6_REC_CONTINUED)
        n++;
      if (n == M6_FRAME_UNITS) {
        struct m6_thread *t = r->thread ? r->thread : m6_capture_thread(c, i, 0);
        if (t) {
          credit(c, t, unit[0].clock, 0);
          m6_capture_boundary(c, t, unit);
          credit(c, t, unit[1].clock, 1);
        }
        r->at += M6_FRAME_UNITS;
        taken += M6_FRAME_UNITS - 1;
      } else {
        c->bad++;
        r->at++;
      }
    } else if (m6_word_type(unit[0].word) == M6_REC_SITE || m6_word_type(unit[0].word) == M6_REC_FREE) {
      if (c->sites.take) c->sites.take(c->sites.arg, c, &unit[0]);
      r->at++;
    } else {
      event(c, i, &unit[0]);
      r->at++;
    }
    if (taken % RELEASE_EVERY < M6_FRAME_UNITS) m6_ring_release(head, r->at);
  }
  m6_ring_release(head, r->at);
  return taken;
}

/* The mappings' ring. It has many producers, so what was claimed after a hole says nothing of who left it: only time
 * does. */
static uint64_t drain_maps(struct m6_capture *c, int dead, uint32_t *fullest)
{
  struct m6_ring *r = &c->maps;
  if (!m6_observe(&m6_segment_header(c->segment)->sites_used)) return 0;
  struct m6_ring_head *head = &m6_site_head(c->segment)->maps_ring;
  struct m6_record *records = m6_site_maps(c->segment), got = {0};
  if (!r->seen) {
    r->at = m6_peek(&head->consumed);
    r->seen = 1;
  }
  uint64_t waiting = m6_observe(&head->claimed) - r->at, taken = 0;
  if (waiting == 0) return 0;
  if (waiting > M6_MAPS_RECORDS) {
    c->bad++;
    r->at += waiting;
    waiting = 0;
  }
  uint32_t percent = (uint32_t)waiting * 100 / M6_MAPS_RECORDS;
  if (percent > *fullest) *fullest = percent;
  for (; taken < waiting; taken++, r->at++) {
    enum m6_ring_read is = m6_ring_read(head, records, M6_MAPS_RECORDS, r->at, &got);
    unsigned type = m6_word_type(got.word);
    if (is == M6_RING_RECORD && type != M6_REC_MAP && type != M6_REC_UNMAP) c->bad++;
    else if (is == M6_RING_RECORD && c->sites.take) c->sites.take(c->sites.arg, c, &got);
    if (is == M6_RING_RECORD) continue;
    uint64_t now = m6_monotonic_ns();
    if (r->hole_at != r->at || c->maps_hole_ns == 0) r->hole_at = r->at, c->maps_hole_ns = now;
    if (!dead && now - c->maps_hole_ns < MAPS_HOLE_MS * 1000000ull) break;
    c->maps_hole_ns = 0;
    c->holes++;
  }
  m6_ring_release(head, r->at);
  return taken;
}

struct m6_drained m6_capture_drain(struct m6_capture *c, int dead)
{
  struct m6_drained d = {0};
  c->rate = m6_clock_rate(c->clock_kind);
  uint32_t used = m6_observe(&m6_segment_header(c->segment)->rings_used);
  if (used > M6_RINGS) used = M6_RINGS;
  for (uint32_t i = 0; i < used; i++) d.records += drain_ring(c, i, dead, &d.fullest);
  d.records += drain_maps(c, dead, &d.fullest);
  m6_books_poll(&c->books, dead);
  c->records += d.records;
  return d;
}
