/* session.c - the loop that attach.c and run.c share. See session.h.
 *
 * Promise: whatever happens is an event of the lifecycle, in the order in which it happened; what its transitions ask for is done
 * before anything else; time is looked at once a turn.
 */
#include "session.h"

static void finish(struct m6_session *s)
{
  s->source->stop(s->arg);
  s->source->publish(s->arg, 1, s->life.end);
  m6_lifecycle_event(&s->life, M6_EVENT_FLUSHED, m6_monotonic_ns());
}

/* One event, and what it asks for. */
static void happened(struct m6_session *s, enum m6_life_event event, uint64_t now)
{
  if (event == M6_EVENT_STARTED) {
    struct m6_image *i = s->source->image(s->arg);
    if (i && i->capture) now = i->capture->start_mono_ns; /* a session that is taken over is not made longer */
  }
  unsigned todo = m6_lifecycle_event(&s->life, event, now);
  if (todo & M6_DO_ASK) s->source->ask(s->arg);
  if (todo & M6_DO_FLUSH) finish(s);
}

static int due(uint64_t now, uint64_t *last, uint64_t every_ns)
{
  if (now - *last < every_ns) return 0;
  *last = now;
  return 1;
}

void m6_session_run(struct m6_session *s)
{
  uint64_t beat_ns = 0, look_ns = 0, published_ns = 0;
  happened(s, M6_EVENT_ON, m6_monotonic_ns());
  while (s->life.state == M6_LIFE_PENDING || s->life.state == M6_LIFE_COLLECTING) {
    uint64_t now = m6_monotonic_ns();
    struct m6_drained got = {0, 0};
    struct m6_due d = {now, due(now, &beat_ns, M6_HEARTBEAT_MS * 500000ull) /* twice as often as promised */,
                       due(now, &look_ns, M6_LOOK_MS * 1000000ull)};
    happened(s, s->source->poll(s->arg, &d, s->life.state, &got), now);
    if (s->life.state == M6_LIFE_COLLECTING && due(now, &published_ns, M6_PUBLISH_MS * 1000000ull))
      s->source->publish(s->arg, 0, M6_END_NONE);
    if (m6_lifecycle_tick(&s->life, now) & M6_DO_FLUSH) finish(s);
    if (s->life.state != M6_LIFE_PENDING && s->life.state != M6_LIFE_COLLECTING) break;
    struct m6_woken w = m6_watch_wait(&s->o->watch,
                                      s->life.state == M6_LIFE_PENDING ? M6_POLL_BUSY_MS : m6_poll_ms(&got));
    if (w.signal) s->quit = 1;
    if (w.created) happened(s, s->source->created(s->arg), m6_monotonic_ns());
    if (w.signal) happened(s, M6_EVENT_OFF, m6_monotonic_ns());
    if (w.ended) happened(s, M6_EVENT_EXIT, m6_monotonic_ns());
  }
}
