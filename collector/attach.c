/* attach.c - one session on one target that runs already, or will. See session.h. */
#include <stdlib.h>
#include <string.h>

#include "kernel_side.h"
#include "session.h"
#include "site_side.h"
#include "stats_proc.h"
#include "stats_words.h"

struct attach {
  struct m6_outlets o;
  struct m6_image image; /* big */
  uint64_t asked_ns;
  int told;  /* what it waits for */
  int began; /* the shim collected, and the session is ours */
};

static uint64_t ms_since(uint64_t then) { return (m6_monotonic_ns() - then) / 1000000u; }

/* The target: by pid, by name, or when it comes. 0, -1 when a signal came first, or a status. */
static int find(struct m6_outlets *o, struct m6_target *who, struct m6_error *e)
{
  const struct m6_options *p = o->options;
  if (p->pid) return m6_find_pid(p->pid, who, e);
  if (p->name) return m6_find_name(p->name, who, e);
  m6_say(M6_NORMAL, "waiting for a target named '%s'", p->wait);
  for (;;) {
    int status = m6_find_name(p->wait, who, e);
    if (status != M6_EXIT_NO_TARGET) return status;
    if (m6_watch_wait(&o->watch, M6_RESCAN_MS).signal) return -1;
  }
}

static int check_grant(struct m6_image *i, struct m6_lifecycle *life, struct m6_error *e)
{
  struct m6_control now;
  if (m6_control_read(i, &now) != 0)
    return m6_fail(e, M6_EXIT_INVALID, "the segment of process %d went away while it was read", (int)i->who.pid);
  int running = now.state == M6_COLLECTING && now.sessions_started > 0; /* then that one is taken over */
  m6_lifecycle_grant(life, now.sessions_allowed, now.sessions_started - (uint32_t)running);
  if (life->state == M6_LIFE_GRANTED) return 0;
  return e->status = m6_refuse_grant(i->who.pid, now.sessions_allowed, now.sessions_started - (uint32_t)running,
                                     e->text, sizeof e->text);
}

/* Has this process loaded a newer image? Then exec replaced ours. */
static int replaced(const struct m6_image *i)
{
  struct m6_target *list;
  size_t count;
  int newer = 0;
  if (m6_targets_list_here(&list, &count) != 0) return 0;
  for (size_t n = 0; n < count; n++)
    newer |= list[n].problem == M6_TARGET_FINE && list[n].pid == i->who.pid && list[n].load_ns > i->who.load_ns;
  free(list);
  return newer;
}

/* ---- the session's source (session.h) -----------------------------------------------------------------------------
 * */

static void ask(void *arg)
{
  struct attach *a = arg;
  if (a->image.capture) { /* the session before this one */
    m6_capture_close(a->image.capture);
    free(a->image.capture);
    a->image.capture = NULL;
    a->o.published = NULL;
  }
  m6_kernel_close(a->image.kernel);
  a->image.kernel = m6_kernel_open(
    &(struct m6_kernel_options){.pid = a->image.who.pid, .level = a->o.options->level, .now = 1});
  a->asked_ns = m6_monotonic_ns();
  a->told = a->began = 0;
  m6_control_on(&a->image, a->o.options->level); /* a segment that is gone is seen at the next poll */
}

static enum m6_life_event poll_pending(struct attach *a, uint32_t state)
{
  struct m6_image *i = &a->image;
  if (state == M6_COLLECTING) {
    if (m6_image_capture(i) != 0) return M6_EVENT_FAILURE;
    a->began = 1;
    m6_say(M6_NORMAL, "capturing %s (pid %d) for up to %u s; `mach6 stat %d` shows it",
           m6_plain(i->who.name, sizeof i->who.name), (int)i->who.pid, a->o.options->ttl_s, (int)i->who.pid);
    return M6_EVENT_STARTED;
  }
  if (!m6_image_alive(i)) return m6_lifecycle_end(i->end_reason);
  if (!a->told && ms_since(a->asked_ns) >= M6_PATIENCE_MS) {
    a->told = 1;
    m6_say(
      M6_NORMAL,
      "process %d has not started to collect: it does so at its next present, scope, thread start or memory mapping; "
      "interrupt to give up",
      (int)i->who.pid);
  }
  m6_control_beat(i);
  return M6_EVENT_NOTHING;
}

static enum m6_life_event poll_image(void *arg, const struct m6_due *due, enum m6_life state, struct m6_drained *got)
{
  struct attach *a = arg;
  struct m6_image *i = &a->image;
  struct m6_control control;
  if (m6_control_read(i, &control) != 0) return M6_EVENT_FAILURE;
  if (state == M6_LIFE_PENDING) return poll_pending(a, control.state);
  if (m6_image_drain(i, got) != 0) return M6_EVENT_FAILURE;
  if (control.state != M6_COLLECTING)
    return control.state == M6_ENDED && control.end_reason <= M6_END_FAILURE ? m6_lifecycle_end(control.end_reason)
                                                                             : M6_EVENT_FAILURE;
  if (due->beat && m6_control_beat(i) != 0) return M6_EVENT_FAILURE;
  int alive = due->look ? m6_image_alive(i) : m6_image_running(i);
  if (due->look || !alive) m6_image_look(i);
  return alive ? M6_EVENT_NOTHING : m6_lifecycle_end(i->end_reason);
}

static enum m6_life_event created(void *arg)
{
  struct attach *a = arg;
  if (!replaced(&a->image)) return M6_EVENT_NOTHING;
  a->image.dead = 1;
  a->image.end_reason = M6_END_EXEC;
  return M6_EVENT_EXEC;
}

/* The target is told that its collector is still here, so that `mach6 on` finds it. */
static int grant(void *arg, struct m6_lifecycle *life)
{
  struct attach *a = arg;
  struct m6_control now;
  if (!m6_image_alive(&a->image) || m6_control_read(&a->image, &now) != 0) return 0;
  if (a->began) {
    m6_say(M6_NORMAL, "session ended: %s; `mach6 on %d` starts another", m6_end_text(life->end), (int)a->image.who.pid);
    a->began = 0;
  }
  m6_lifecycle_grant(life, now.sessions_allowed, now.sessions_started);
  if (life->state == M6_LIFE_GRANTED) m6_control_here(&a->image);
  return 1;
}

static struct m6_image *image_of(void *arg) { return &((struct attach *)arg)->image; }

static int publish(void *arg, int final, uint32_t reason)
{
  struct attach *a = arg;
  struct m6_session_state s = {.state = final ? M6_ENDED : M6_COLLECTING, .end_reason = reason};
  if (!a->began) return 0; /* the shim may have started while the wish was taken back: nobody's session */
  if (!final && m6_image_sample(&a->image, 0) != 0) return 0; /* the next poll says so */
  m6_outlets_publish(&a->o, &a->image, &s, final);
  return 1;
}

/* Tells the shim, waits a moment until it has heard, drains what is left. */
static void stop(void *arg)
{
  struct attach *a = arg;
  struct m6_outlets *o = &a->o;
  struct m6_image *i = &a->image;
  uint64_t from = m6_monotonic_ns();
  struct m6_drained got;
  struct m6_control now = {.state = 0};
  m6_control_off(i, 0);
  while (m6_image_alive(i) && m6_control_read(i, &now) == 0 && now.state == M6_COLLECTING &&
         ms_since(from) < M6_OFF_MS) {
    if (m6_image_drain(i, &got) != 0) break;
    m6_watch_wait(&o->watch, M6_POLL_BUSY_MS);
  }
  int dead = i->dead;
  if (!dead) { /* a thread may still be at its last record */
    m6_watch_wait(&o->watch, M6_POLL_BUSY_MS);
    m6_image_drain(i, &got);
  }
  i->dead = 1; /* nothing more is waited for */
  m6_image_drain(i, &got);
  m6_image_sample(i, dead || now.state != M6_COLLECTING);
  m6_control_off(i, 1);
  i->dead = dead;
}

int m6_attach(const struct m6_options *options, struct m6_error *e)
{
  static const struct m6_source source = {poll_image, created, ask, stop, publish, image_of, grant};
  static struct attach a; /* zero */
  struct m6_session s = {.o = &a.o, .source = &source, .arg = &a};
  struct m6_target who;
  m6_reap();
  int status = m6_outlets_open(&a.o, options, e);
  if (status == 0) m6_outlets_ready(&a.o);
  if (status == 0) status = find(&a.o, &who, e);
  if (status == 0) status = m6_image_open(&a.image, &who, 0, e);
  if (status != 0) {
    m6_outlets_close(&a.o);
    return status < 0 ? M6_EXIT_OK : status;
  }
  m6_lifecycle_init(&s.life, options->ttl_s * 1000000000ull);
  status = check_grant(&a.image, &s.life, e);
  if (status == 0) {
    int pid = (int)a.image.who.pid;
    a.image.site_interval = options->site_interval;
    if (a.image.pidfd >= 0) m6_watch_add(&a.o.watch, a.image.pidfd);
    m6_session_run(&s);
    if (s.life.end == M6_END_FAILURE)
      status = m6_fail(e, M6_EXIT_INVALID,
                       "process %d: the segment was truncated, or is not what a shim writes; the session ended there",
                       pid);
    else if (!s.life.began && s.life.end != M6_END_OFF)
      status = m6_fail(
        e, M6_EXIT_OTHER,
        "process %d never started to collect: %s; it does so at its next present, scope, thread start or "
        "memory mapping, and had none",
        pid, m6_end_text(s.life.end));
    else if (!s.life.began) m6_say(M6_NORMAL, "cancelled before the session began");
    else if (a.began || !options->stay) m6_say(M6_NORMAL, "session ended: %s", m6_end_text(s.life.end));
    if (options->stay) m6_control_off(&a.image, 1); /* it was told that we are here */
  }
  m6_image_release(&a.image, a.image.dead);
  if (a.image.capture) m6_capture_close(a.image.capture);
  m6_kernel_close(a.image.kernel);
  m6_site_side_close(a.image.sites);
  free(a.image.capture);
  if (status == 0 && a.o.dumps.failed) status = m6_fail(e, M6_EXIT_DUMP, "the session has no dump");
  m6_outlets_close(&a.o);
  return status;
}
