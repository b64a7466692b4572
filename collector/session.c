/* session.c - the loop that attach.c and run.c share. See session.h.
 *
 * Promise: whatever happens is an event of the lifecycle, in the order in which it happened; what its transitions ask
 * for is done before anything else; time is looked at once a turn.
 */
#include <errno.h>
#include <string.h>

#include "kernel_side.h"
#include "session.h"
#include "stats_words.h"

/* Answers all who wait for this. */
static void answer(struct m6_session *s, enum m6_verb verb, int status, const char *text, const char *detail)
{
  for (unsigned i = 0; i < M6_CONTROL_CLIENTS; i++) {
    struct m6_client *k = &s->o->commands.client[i];
    if (k->fd >= 0 && k->verb == verb) m6_command_answer(k, status, "%s%s", text, detail);
  }
}

static void finish(struct m6_session *s)
{
  m6_outlets_dump_end(s->o); /* one on demand that is not done: what was there before stays */
  s->source->stop(s->arg);
  m6_bounds_end(&s->o->bounds, s->source->image(s->arg), s->life.end);
  s->source->publish(s->arg, 1, s->life.end);
  m6_lifecycle_event(&s->life, M6_EVENT_FLUSHED, m6_monotonic_ns());
  answer(s, M6_VERB_OFF, M6_EXIT_OK,
         s->life.began ? "the session ended: " : "cancelled before the session began: ", m6_end_text(s->life.end));
  answer(s, M6_VERB_DUMP, M6_EXIT_DUMP, "no dump: the session ended before it was written: ", m6_end_text(s->life.end));
  answer(s, M6_VERB_ON, M6_EXIT_OTHER, "the session never began: ", m6_end_text(s->life.end));
}

static int active(const struct m6_session *s)
{
  return s->life.state == M6_LIFE_PENDING || s->life.state == M6_LIFE_COLLECTING;
}

/* One event, and what it asks for. */
static void happened(struct m6_session *s, enum m6_life_event event, uint64_t now)
{
  const struct m6_options *p = s->o->options;
  struct m6_image *i = s->source->image(s->arg);
  uint64_t since = now;
  if (event == M6_EVENT_NOTHING) return;
  if (event == M6_EVENT_STARTED && i && i->capture)
    since = i->capture->start_mono_ns; /* a session that is taken over is not made longer */
  unsigned todo = m6_lifecycle_event(&s->life, event, since);
  if (todo & M6_DO_ASK) {
    m6_bounds_begin(&s->o->bounds, p->level, p->sessions, now);
    s->source->ask(s->arg);
    /* Loading programs into the kernel may have taken a second: that was no wait for the target. */
    s->life.since_ns = m6_monotonic_ns();
  }
  if (todo & M6_DO_FLUSH) finish(s);
  if (event == M6_EVENT_STARTED && s->life.state == M6_LIFE_COLLECTING)
    answer(s, M6_VERB_ON, M6_EXIT_OK, "collecting", "");
}

/* ---- commands ------------------------------------------------------------------------------------------------------
 * */

/* A dump of the session as it is now; answered when it is in its place, or is not going to be. */
static void begin_dump(struct m6_session *s, struct m6_client *k)
{
  struct m6_image *i = s->source->image(s->arg);
  if (s->life.state != M6_LIFE_COLLECTING || i == NULL || i->capture == NULL) {
    m6_command_answer(k, M6_EXIT_DUMP, "no session runs, so there is nothing to dump");
    return;
  }
  int e = k->text[0] != '/' ? EINVAL : m6_outlets_dump(s->o, i, k->text);
  if (e)
    m6_command_answer(k, M6_EXIT_DUMP, "no dump: %s: %s", k->text,
                      e == EBUSY ? "another one is under way; try again when it is done" : strerror(e));
}

static void poll_dump(struct m6_session *s)
{
  int error = 0;
  if (!m6_outlets_dump_poll(s->o, s->source->image(s->arg), &error)) return;
  if (error) answer(s, M6_VERB_DUMP, M6_EXIT_DUMP, "no dump; what was there before is as it was: ", strerror(error));
  else answer(s, M6_VERB_DUMP, M6_EXIT_OK, "the dump is written", "");
}

static void obey(struct m6_session *s, struct m6_client *k, uint64_t now)
{
  switch (k->verb) {
  case M6_VERB_STATE: m6_command_answer(k, M6_EXIT_OK, "%s", m6_life_name(s->life.state)); return;
  case M6_VERB_OFF:
    if (active(s)) happened(s, M6_EVENT_OFF, now); /* it is answered when what there is was flushed */
    else m6_command_answer(k, M6_EXIT_OK, "no session runs");
    return;
  case M6_VERB_ON:
    if (s->life.state == M6_LIFE_COLLECTING) m6_command_answer(k, M6_EXIT_OK, "collecting already");
    else happened(s, M6_EVENT_ON, now); /* a pending one goes on pending */
    return;
  case M6_VERB_DUMP: begin_dump(s, k); return;
  case M6_VERB_NONE: return;
  }
}

/* Takes what came in; tells those who wait for a start that it is still to come. */
static void commands(struct m6_session *s, uint64_t now)
{
  for (struct m6_client *k; (k = m6_command_next(&s->o->commands, now)) != NULL;) obey(s, k, now);
  for (unsigned i = 0; i < M6_CONTROL_CLIENTS; i++) {
    struct m6_client *k = &s->o->commands.client[i];
    if (k->fd >= 0 && k->verb == M6_VERB_ON && now - k->since_ns > M6_PATIENCE_MS * 1000000ull)
      m6_command_answer(k, M6_EXIT_OK,
                        "pending: it begins at the target's next present, scope, thread start or memory mapping");
  }
}

/* ---- chains -------------------------------------------------------------------------------------------------------
 * */

/* Is this session's share of the chain done? By its frames, or by its time where the last boundary is not there yet. */
static int share_done(const struct m6_session *s, const struct m6_image *i, uint64_t now)
{
  const struct m6_options *p = s->o->options;
  uint64_t presents = i->capture->books.last.number;
  if (p->session_frames != 0 && presents >= p->session_frames) return 1;
  return now >= s->life.since_ns && now - s->life.since_ns >= s->life.ttl_ns;
}

static void chain(struct m6_session *s, uint64_t now)
{
  struct m6_image *i = s->source->image(s->arg);
  struct m6_chain *c = &s->o->bounds.chain;
  struct m6_control control;
  if (c->wanted < 2 || s->life.state != M6_LIFE_COLLECTING || i == NULL || i->capture == NULL) return;
  if (i->capture->main_stream < 0 || i->capture->books.last.number < 2 || !share_done(s, i, now)) return;
  if (c->count + 1 >= c->wanted) {
    happened(s, M6_EVENT_TTL, now); /* it was the last */
    return;
  }
  if (m6_control_read(i, &control) != 0) return; /* the next poll says so */
  /* The grant is asked anew, by the shim's own count: a session that was taken over, but ended in that very moment and
   * was followed by another, is in that and not in ours (lifecycle.pml, NEXT_BY_OWN_COUNT). */
  if (control.sessions_allowed < c->count + 2 || control.sessions_started >= control.sessions_allowed) {
    m6_say(M6_NORMAL, "process %d allows %u sessions (MACH6_SESSIONS): the chain ends with them", (int)i->who.pid,
           control.sessions_allowed);
    happened(s, M6_EVENT_TTL, now);
    return;
  }
  if (s->life.started >= s->life.allowed) return;
  int e = m6_bounds_join(&s->o->bounds, i);
  if (e == 0) happened(s, M6_EVENT_NEXT, i->capture->start_mono_ns);
  else if (e < 0) happened(s, M6_EVENT_FAILURE, now);
  /* else there was no memory for it: the session goes on, and it is tried again */
}

/* ---- the loop -----------------------------------------------------------------------------------------------------
 * */

/* Between two sessions of a collector that stays: may there be another? */
static int rests(struct m6_session *s)
{
  if (!s->o->options->stay || s->quit || s->source->grant == NULL) return 0;
  return s->source->grant(s->arg, &s->life) && s->life.state == M6_LIFE_GRANTED;
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
  int wait_ms = M6_POLL_BUSY_MS;
  struct m6_image *image;
  happened(s, M6_EVENT_ON, m6_monotonic_ns());
  for (;;) {
    uint64_t now = m6_monotonic_ns();
    struct m6_drained got = {0};
    struct m6_due d = {now, due(now, &beat_ns, M6_HEARTBEAT_MS * 500000ull) /* twice as often as promised */,
                       due(now, &look_ns, M6_LOOK_MS * 1000000ull)};
    uint32_t interval = s->o->bounds.governor.at.interval;
    if (s->life.state == M6_LIFE_GRANTED || s->life.state == M6_LIFE_INERT) {
      wait_ms = M6_LOOK_MS;
    } else {
      happened(s, s->source->poll(s->arg, &d, s->life.state, &got), now);
      chain(s, now);
    }
    commands(s, now);
    poll_dump(s);
    if (d.look && (image = s->source->image(s->arg)) != NULL)
      m6_bounds_refused(&s->o->bounds, image, m6_kernel_level(image->kernel, s->o->bounds.governor.at.level, interval),
                        now);
    if (s->life.state == M6_LIFE_COLLECTING && due(now, &published_ns, interval * M6_PUBLISH_MS * 1000000ull)) {
      s->o->event = M6_EVENT_NOTHING;
      if (!s->source->publish(s->arg, 0, M6_END_NONE))
        published_ns = 0; /* a short program has no half a second to lose */
      happened(s, s->o->event, now);
    }
    if (m6_lifecycle_tick(&s->life, now) & M6_DO_FLUSH) finish(s);
    if (!active(s) && !rests(s)) break;
    if (active(s)) wait_ms = s->life.state == M6_LIFE_PENDING ? m6_poll_pending_ms(s->o) : m6_poll_ms(s->o, &got);
    struct m6_woken w = m6_watch_wait(&s->o->watch, wait_ms);
    if (w.signal) s->quit = 1;
    if (w.called) s->o->commands.called = 1;
    if (w.created) happened(s, s->source->created(s->arg), m6_monotonic_ns());
    if (w.signal) happened(s, M6_EVENT_OFF, m6_monotonic_ns());
    if (w.ended) happened(s, M6_EVENT_EXIT, m6_monotonic_ns());
  }
}
