/* kernel_side_scopes.c - samples to the scopes that they fell into, and what a frame was made of to its present. See
 * kernel_side.h, and THE JOIN WITH SCOPES in kernel_samples.h. */
#include "kernel_side.h"

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
    if (present) k->in_presents++;
    else m6_scope_sample(t);
    t->sample_at = next_sample(k, c, t->tid);
  }
}

void m6_kernel_join(struct m6_kernel_side *k, struct m6_capture *c)
{
  if (k == NULL || k->join == NULL || c == NULL) return;
  c->credit = (struct m6_credit){k, next_sample, credit_until};
}

/* What remains was taken after the last record: it falls to what is open now. */
void m6_kernel_drained(struct m6_kernel_side *k, struct m6_capture *c)
{
  struct m6_sample s;
  if (k == NULL || k->join == NULL || c == NULL) return;
  for (uint32_t i = 0; i < M6_RINGS; i++) {
    struct m6_thread *t = c->rings[i].thread;
    if (t == NULL) continue;
    t->sample_at = UINT64_MAX;
    while (m6_join_take(k->join, t->tid, UINT64_MAX, &s)) m6_scope_sample(t);
  }
  while (m6_join_take_any(k->join, &s)) k->elsewhere++;
}

const struct m6_snap_causes *m6_kernel_frame(const struct m6_kernel_side *k, uint64_t present)
{
  if (k == NULL || k->frames == NULL) return NULL;
  const struct m6_kernel_frame *f = &k->frames[present % M6_FRAMES_RETAINED];
  return f->present == present && f->causes.time ? &f->causes : NULL;
}
