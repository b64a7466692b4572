/* sample_join.c - see sample_join.h. A queue for each thread, threaded through one array of entries. */
#include "sample_join.h"
#include "hash_free.h"

#include <stdlib.h>
#include <uthash.h>

struct entry {
  struct m6_sample sample;
  uint32_t next; /* 1 + index, 0 = none: of the same thread, later; or of the next free entry */
};
struct queue {
  uint32_t tid, first, last; /* 1 + index */
  UT_hash_handle hh;
};
struct m6_join {
  struct entry entries[M6_SAMPLES_RETAINED];
  uint32_t free_, used;
  struct queue *queues;
  uint64_t refused;
};

struct m6_join *m6_join_new(void) { return calloc(1, sizeof(struct m6_join)); }

void m6_join_free(struct m6_join *j)
{
  if (!j) return;
  M6_HASH_FREE(j->queues, free);
  free(j);
}

void m6_join_add(void *join, const struct m6_sample *sample)
{
  struct m6_join *j = join;
  struct queue *q;
  HASH_FIND(hh, j->queues, &sample->tid, sizeof sample->tid, q);
  uint32_t at = j->free_ ? j->free_ : j->used < M6_SAMPLES_RETAINED ? j->used + 1 : 0;
  if (at && !q && (q = calloc(1, sizeof *q))) {
    q->tid = sample->tid;
    HASH_ADD(hh, j->queues, tid, sizeof q->tid, q);
  }
  if (!at || !q) {
    j->refused++;
    return;
  }
  struct entry *e = &j->entries[at - 1];
  if (j->free_) j->free_ = e->next;
  else j->used++;
  *e = (struct entry){.sample = *sample};
  if (q->last && j->entries[q->last - 1].sample.time_ns > sample->time_ns) {
    /* A thread that changed its CPU between two ring buffers: put it where it belongs. */
    uint32_t *link = &q->first;
    while (j->entries[*link - 1].sample.time_ns <= sample->time_ns) link = &j->entries[*link - 1].next;
    e->next = *link;
    *link = at;
    return;
  }
  if (q->last) j->entries[q->last - 1].next = at;
  else q->first = at;
  q->last = at;
}

/* An empty queue is taken out: threads come and go. */
static void take(struct m6_join *j, struct queue *q, struct m6_sample *out)
{
  uint32_t at = q->first;
  struct entry *e = &j->entries[at - 1];
  *out = e->sample;
  q->first = e->next;
  e->next = j->free_;
  j->free_ = at;
  if (q->first) return;
  HASH_DELETE(hh, j->queues, q);
  free(q);
}

int m6_join_take(struct m6_join *j, uint32_t tid, uint64_t before_ns, struct m6_sample *out)
{
  struct queue *q;
  HASH_FIND(hh, j->queues, &tid, sizeof tid, q);
  if (!q || j->entries[q->first - 1].sample.time_ns >= before_ns) return 0;
  take(j, q, out);
  return 1;
}

uint64_t m6_join_next(struct m6_join *j, uint32_t tid)
{
  struct queue *q;
  HASH_FIND(hh, j->queues, &tid, sizeof tid, q);
  return q ? j->entries[q->first - 1].sample.time_ns : UINT64_MAX;
}

int m6_join_take_any(struct m6_join *j, struct m6_sample *out)
{
  if (!j->queues) return 0;
  take(j, j->queues, out);
  return 1;
}

uint64_t m6_join_refused(const struct m6_join *j) { return j->refused; }
