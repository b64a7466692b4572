/* lifecycle.c - see lifecycle.h. */
#include "lifecycle.h"

#include <string.h>

/* Each end of a running session: tell the shim, flush. Of a pending one: take the wish back, and flush too, since the
 * shim may have started in that very moment. */
#define ENDS(event)                                                                                                    \
  {M6_LIFE_PENDING, event, M6_LIFE_ENDED, M6_DO_CANCEL | M6_DO_FLUSH},                                                 \
  {                                                                                                                    \
    M6_LIFE_COLLECTING, event, M6_LIFE_ENDED, M6_DO_STOP | M6_DO_FLUSH                                                 \
  }

static const struct m6_transition table[] = {
  {M6_LIFE_INERT, M6_EVENT_GRANT, M6_LIFE_GRANTED, 0},
  {M6_LIFE_GRANTED, M6_EVENT_REFUSE, M6_LIFE_INERT, 0},
  {M6_LIFE_GRANTED, M6_EVENT_ON, M6_LIFE_PENDING, M6_DO_ASK},
  {M6_LIFE_PENDING, M6_EVENT_STARTED, M6_LIFE_COLLECTING, 0},
  {M6_LIFE_COLLECTING, M6_EVENT_NEXT, M6_LIFE_COLLECTING, M6_DO_JOIN},
  ENDS(M6_EVENT_OFF),
  ENDS(M6_EVENT_TTL),
  ENDS(M6_EVENT_EXIT),
  ENDS(M6_EVENT_EXEC),
  ENDS(M6_EVENT_LOST),
  ENDS(M6_EVENT_FAILURE),
  {M6_LIFE_COLLECTING, M6_EVENT_BUDGET, M6_LIFE_ENDED, M6_DO_STOP | M6_DO_FLUSH},
  {M6_LIFE_ENDED, M6_EVENT_FLUSHED, M6_LIFE_INERT, 0},
};

const struct m6_transition *m6_lifecycle_table(unsigned *count)
{
  *count = sizeof table / sizeof *table;
  return table;
}

static const uint8_t end_of[M6_EVENTS] = {
  [M6_EVENT_OFF] = M6_END_OFF,
  [M6_EVENT_TTL] = M6_END_TTL,
  [M6_EVENT_EXIT] = M6_END_EXIT,
  [M6_EVENT_EXEC] = M6_END_EXEC,
  [M6_EVENT_LOST] = M6_END_COLLECTOR_LOST,
  [M6_EVENT_FAILURE] = M6_END_FAILURE,
  [M6_EVENT_BUDGET] = M6_END_BUDGET,
};

enum m6_life_event m6_lifecycle_end(enum m6_end end)
{
  for (unsigned e = 0; e < M6_EVENTS; e++)
    if (end != M6_END_NONE && end_of[e] == end) return (enum m6_life_event)e;
  return end == M6_END_NONE ? M6_EVENT_NOTHING : M6_EVENT_FAILURE;
}

const char *m6_life_name(enum m6_life state)
{
  static const char *const names[] = {"inert", "granted", "pending", "collecting", "ended"};
  return state < M6_LIFE_STATES ? names[state] : "?";
}

void m6_lifecycle_init(struct m6_lifecycle *l, uint64_t ttl_ns)
{
  memset(l, 0, sizeof *l);
  l->ttl_ns = ttl_ns;
}

void m6_lifecycle_grant(struct m6_lifecycle *l, uint32_t allowed, uint32_t started)
{
  l->allowed = allowed;
  l->started = started;
  m6_lifecycle_event(l, started < allowed ? M6_EVENT_GRANT : M6_EVENT_REFUSE, 0);
}

unsigned m6_lifecycle_event(struct m6_lifecycle *l, enum m6_life_event event, uint64_t now_ns)
{
  const struct m6_transition *t = table, *last = table + sizeof table / sizeof *table;
  while (t < last && (t->from != (uint8_t)l->state || t->event != (uint8_t)event)) t++;
  if (t == last) return 0;
  if (event == M6_EVENT_NEXT && l->started >= l->allowed) return 0; /* the grant is used up */
  l->state = (enum m6_life)t->to;
  switch (event) {
  case M6_EVENT_ON:
    l->end = M6_END_NONE;
    l->began = 0;
    l->since_ns = now_ns;
    break;
  case M6_EVENT_STARTED:
  case M6_EVENT_NEXT:
    l->began = 1;
    l->started++;
    l->since_ns = now_ns;
    break;
  default:
    if (end_of[event]) l->end = (enum m6_end)end_of[event];
  }
  return t->todo;
}

unsigned m6_lifecycle_tick(struct m6_lifecycle *l, uint64_t now_ns)
{
  if (l->state != M6_LIFE_PENDING && l->state != M6_LIFE_COLLECTING) return 0;
  if (now_ns < l->since_ns || now_ns - l->since_ns < l->ttl_ns) return 0;
  return m6_lifecycle_event(l, M6_EVENT_TTL, now_ns);
}
