/* kernel_side_scopes.c - samples to the scopes that they fell into, and what a frame was made of to its present. See
 * kernel_side.h, and THE JOIN WITH SCOPES in kernel_samples.h. */
#include "kernel_side.h"

#include <stdlib.h>

static uint64_t next_sample(void *arg, const struct m6_capture *c, uint32_t tid)
{
  struct m6_kernel_side *k = arg;
  uint64_t ns = m6_join_next(k->join, tid);
  return ns == UINT64_MAX ? UINT64_MAX : m6_clock_ticks(c->rate, ns);
}

static void credit_until(void *arg, struct m6_capture *c, struct m6_thread *t, uint64_t clock, int present)
{
  struct m6_kernel_side *k = arg;
  struct m6_sample s;
  while (t->sample_at < clock && m6_join_take(k->join, t->tid, UINT64_MAX, &s)) {
    if (present) k->in_presents += s.weight;
    else m6_scope_sample(t, s.weight);
    t->sample_at = next_sample(k, c, t->tid);
  }
}

void m6_kernel_join(struct m6_kernel_side *k, struct m6_capture *c)
{
  if (k == NULL || k->opening || k->join == NULL || c == NULL) return;
  c->credit = (struct m6_credit){k, next_sample, credit_until,
                                 k->switching.switches && !k->resting ? m6_kernel_presented : NULL};
}

/* What remains was taken after the last record: it falls to what is open now. */
void m6_kernel_drained(struct m6_kernel_side *k, struct m6_capture *c)
{
  struct m6_sample s;
  if (k == NULL || k->opening || k->join == NULL || c == NULL) return;
  if (c->main_stream >= 0) {
    k->stream = (uint32_t)c->main_stream;
    k->base_presents = c->base_presents[c->main_stream];
  }
  for (uint32_t i = 0; i < M6_RINGS; i++) {
    struct m6_thread *t = c->rings[i].thread;
    if (t == NULL) continue;
    t->sample_at = UINT64_MAX;
    while (m6_join_take(k->join, t->tid, UINT64_MAX, &s)) m6_scope_sample(t, s.weight);
  }
  while (m6_join_take_any(k->join, &s)) k->elsewhere += s.weight;
  m6_kernel_switches_settle(k);
  if (k->slow_ns == 0 || k->slow_ns == k->told_ns) return;
  k->told_ns = k->slow_ns;
  /* The last reading of a session that is over is of its last second, however late it was taken. */
  m6_kernel_seconds(k, c, k->stopped && c->now_mono_ns < k->slow_ns ? c->now_mono_ns : k->slow_ns);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

_Static_assert((int)M6_WHY_UNNAMED == (int)M6_OFF_CAUSES && (int)M6_WHY_LOCK == (int)M6_OFF_LOCK &&
                 (int)M6_WHY_SLEEP == (int)M6_OFF_SLEEP && (int)M6_WHY_POLL == (int)M6_OFF_POLL &&
                 (int)M6_WHY_IO == (int)M6_OFF_IO && (int)M6_WHY_DRIVER == (int)M6_OFF_DRIVER &&
                 (int)M6_WHY_FAULT == (int)M6_OFF_FAULT && (int)M6_WHY_STOLEN == (int)M6_OFF_STOLEN,
               "the kernel programs and the snapshot count causes alike");

static uint32_t few(uint64_t later, uint64_t earlier)
{
  uint64_t n = later - earlier;
  return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static struct m6_snap_causes between(const struct m6_kernel_reading *a, const struct m6_kernel_reading *b)
{
  struct m6_snap_causes c = {.time = b->time_ns - a->time_ns,
                             .on = b->on_ns - a->on_ns,
                             .wait = b->wait_ns - a->wait_ns,
                             .call_ns = b->call_ns - a->call_ns,
                             .calls = few(b->calls, a->calls),
                             .minor = few(b->minor, a->minor),
                             .major = few(b->major, a->major),
                             .voluntary = few(b->voluntary, a->voluntary),
                             .involuntary = few(b->involuntary, a->involuntary),
                             .migrations = few(b->migrations, a->migrations)};
  for (int i = 0; i < M6_OFF_CAUSES; i++) c.off[i] = b->off_ns[i] - a->off_ns[i];
  return c;
}

/* Switch records say that a thread was off its CPU, and never why. */
void m6_kernel_unname(uint64_t off[M6_WHY_COUNT])
{
  off[M6_WHY_UNNAMED] += off[M6_WHY_OTHER];
  off[M6_WHY_OTHER] = 0;
}

void m6_kernel_boundary(const struct m6_kernel_frame *f, void *arg)
{
  struct m6_kernel_side *k = arg;
  if (f->stream >= M6_STREAMS) return;
  struct m6_kernel_frame *last = &k->last[f->stream];
  if (k->frames == NULL) {
    k->frames = calloc(M6_FRAMES_RETAINED, sizeof *k->frames);
    k->stream = f->stream;
  }
  if (k->frames && f->stream == k->stream && f->number == last->number + 1 && f->tid == last->tid &&
      f->lives == last->lives) {
    struct m6_kernel_row *row = &k->frames[f->number % M6_FRAMES_RETAINED];
    *row = (struct m6_kernel_row){f->number, f->stream, between(&last->entry, &f->entry)};
    if (k->switching.switches) m6_kernel_unname(row->causes.off);
  }
  *last = *f;
  k->boundaries++;
  if (k->each) k->each(k->each_arg, f);
}

const struct m6_snap_causes *m6_kernel_causes(const struct m6_kernel_side *k, uint64_t present)
{
  if (k == NULL || k->frames == NULL) return NULL;
  uint64_t number = present + k->base_presents;
  const struct m6_kernel_row *f = &k->frames[number % M6_FRAMES_RETAINED];
  return f->number == number && f->stream == k->stream && f->causes.time ? &f->causes : NULL;
}
