/* attach.c - one session on one target that runs already, or will. See session.h. */
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "site_side.h"
#include "stats_proc.h"

static uint64_t ms_since(uint64_t then) { return (m6_monotonic_ns() - then) / 1000000u; }

/* The target's file: by pid, by name, or when it comes. 0, -1 when a signal came first, or a status. */
static int find(struct m6_outlets *o, char file[64], struct m6_error *e)
{
  const struct m6_options *p = o->options;
  if (p->pid) return m6_find_pid(p->pid, file, e);
  if (p->name) return m6_find_name(p->name, file, e);
  m6_say(M6_NORMAL, "waiting for a target named '%s'", p->wait);
  for (;;) {
    int status = m6_find_name(p->wait, file, e);
    if (status != M6_EXIT_NO_TARGET) return status;
    if (m6_watch_wait(&o->watch, M6_RESCAN_MS).signal) return -1;
  }
}

static int check_grant(struct m6_image *i, struct m6_error *e)
{
  struct m6_control now;
  if (m6_control_read(i, &now) != 0)
    return m6_fail(e, M6_EXIT_INVALID, "the segment of process %d went away while it was read", (int)i->who.pid);
  if (now.state == M6_COLLECTING || now.sessions_started < now.sessions_allowed) return 0;
  if (now.sessions_allowed == 0)
    return m6_fail(e, M6_EXIT_NOT_PERMITTED, "process %d allows no session (MACH6_SESSIONS=0): restart it without that",
                   (int)i->who.pid);
  return m6_fail(e, M6_EXIT_NOT_PERMITTED,
                 "process %d allowed %u session%s, and has had %s: restart it, or start it with "
                 "MACH6_SESSIONS=n for more",
                 (int)i->who.pid, now.sessions_allowed, now.sessions_allowed == 1 ? "" : "s",
                 now.sessions_allowed == 1 ? "it" : "them");
}

/* Has this process loaded a newer image? Then exec replaced ours. */
static int replaced(const struct m6_image *i)
{
  struct m6_target *list;
  size_t count;
  int newer = 0;
  if (m6_targets_list(&list, &count) != 0) return 0;
  for (size_t n = 0; n < count; n++)
    newer |= list[n].problem == M6_TARGET_FINE && list[n].pid == i->who.pid && list[n].load_ns > i->who.load_ns;
  free(list);
  return newer;
}

/* Until the shim collects: 0, or the reason why it never will. */
static uint32_t wait_for_start(struct m6_outlets *o, struct m6_image *i)
{
  uint64_t from = m6_monotonic_ns();
  int told = 0;
  for (;;) {
    struct m6_control now;
    if (m6_control_read(i, &now) != 0) return M6_END_FAILURE;
    if (now.state == M6_COLLECTING) return M6_END_NONE;
    if (!m6_image_alive(i)) return i->end_reason;
    if (!told && ms_since(from) >= M6_PATIENCE_MS) {
      told = 1;
      m6_say(
        M6_NORMAL,
        "process %d has not started to collect: it does so at its next present, scope, thread start or memory mapping; "
        "interrupt to give up",
        (int)i->who.pid);
    }
    m6_control_beat(i);
    struct m6_woken w = m6_watch_wait(&o->watch, M6_POLL_BUSY_MS);
    if (w.created && replaced(i)) {
      i->dead = 1;
      return i->end_reason = M6_END_EXEC;
    }
    if (w.signal) return M6_END_OFF;
    if (ms_since(from) >= o->options->ttl_s * 1000ull) return M6_END_TTL;
  }
}

/* The session itself; gives the reason for its end. */
static uint32_t collect(struct m6_outlets *o, struct m6_image *i)
{
  struct m6_session_state running = {.state = M6_COLLECTING};
  uint64_t beat_ns = 0, look_ns = 0, published_ns = 0;
  if (m6_image_capture(i) != 0) return M6_END_FAILURE;
  uint64_t end_ns = i->capture->start_mono_ns + o->options->ttl_s * 1000000000ull;
  for (;;) {
    uint64_t now = m6_monotonic_ns();
    struct m6_drained got;
    struct m6_control control;
    if (m6_control_read(i, &control) != 0 || m6_image_drain(i, &got) != 0) return M6_END_FAILURE;
    if (control.state != M6_COLLECTING)
      return control.state == M6_ENDED && control.end_reason <= M6_END_FAILURE ? control.end_reason : M6_END_FAILURE;
    if (now - beat_ns >= M6_HEARTBEAT_MS * 500000ull) { /* twice as often as promised */
      if (m6_control_beat(i) != 0) return M6_END_FAILURE;
      beat_ns = now;
    }
    if (now - published_ns >= M6_PUBLISH_MS * 1000000ull) {
      if (m6_image_sample(i, 0) != 0) return M6_END_FAILURE;
      m6_outlets_publish(o, i, &running, 0);
      published_ns = now;
    }
    if (now >= end_ns) return M6_END_TTL;
    struct m6_woken w = m6_watch_wait(&o->watch, m6_poll_ms(o, &got));
    if (w.signal) return M6_END_OFF;
    if (w.created && replaced(i)) {
      i->dead = 1;
      i->end_reason = M6_END_EXEC;
    }
    int look = now - look_ns >= M6_LOOK_MS * 1000000ull;
    int alive = look ? m6_image_alive(i) : m6_image_running(i);
    if (look || !alive) m6_image_look(i);
    if (look) look_ns = now;
    if (!alive) return i->end_reason;
  }
}

/* Tells the shim, waits a moment until it has heard, drains what is left. */
static void end(struct m6_outlets *o, struct m6_image *i)
{
  uint64_t from = m6_monotonic_ns();
  struct m6_drained got;
  struct m6_control now = {0, 0, 0, 0, 0};
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
  struct m6_outlets o;
  static struct m6_image image; /* big, and zero */
  char file[64];
  m6_reap();
  int status = m6_outlets_open(&o, options, e);
  if (status == 0) m6_outlets_ready(&o);
  if (status == 0) status = find(&o, file, e);
  if (status == 0) {
    struct m6_target who;
    m6_target_look(file, &who);
    status = m6_image_open(&image, &who, 0, e);
  }
  if (status != 0) {
    m6_outlets_close(&o);
    return status < 0 ? M6_EXIT_OK : status;
  }
  const char *name = m6_plain(image.who.name, sizeof image.who.name);
  status = check_grant(&image, e);
  uint32_t reason = M6_END_NONE;
  if (status == 0) {
    if (image.pidfd >= 0) m6_watch_add(&o.watch, image.pidfd);
    image.site_interval = options->site_interval;
    reason = m6_control_on(&image, options->level) != 0 ? M6_END_FAILURE : wait_for_start(&o, &image);
    int began = reason == M6_END_NONE;
    if (began) {
      m6_say(M6_NORMAL, "capturing %s (pid %d) for up to %u s; `mach6 stat %d` shows it", name, (int)image.who.pid,
             options->ttl_s, (int)image.who.pid);
      reason = collect(&o, &image);
    }
    end(&o, &image);
    if (began && image.capture) {
      struct m6_session_state over = {.state = M6_ENDED, .end_reason = reason};
      m6_outlets_publish(&o, &image, &over, 1);
    }
    if (reason == M6_END_FAILURE)
      status = m6_fail(e, M6_EXIT_INVALID,
                       "process %d: the segment was truncated, or is not what a shim writes; the session ended there",
                       (int)image.who.pid);
    else if (!began && reason != M6_END_OFF)
      status = m6_fail(e, M6_EXIT_OTHER, "process %d never started to collect: %s", (int)image.who.pid,
                       m6_end_words(reason));
    else if (!began) m6_say(M6_NORMAL, "cancelled before the session began");
    else m6_say(M6_NORMAL, "session ended: %s", m6_end_words(reason));
  }
  m6_image_release(&image, image.dead);
  if (image.capture) m6_capture_close(image.capture);
  m6_site_side_close(image.sites);
  free(image.capture);
  m6_outlets_close(&o);
  return status;
}
