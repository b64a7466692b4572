/* outlets.c - where a session's snapshots go, and what else both ways to run share. See session.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "session.h"
#include "site_publish.h"

const char *m6_end_words(uint32_t reason)
{
  static const char *const words[] = {
    [M6_END_NONE] = "it never began",
    [M6_END_OFF] = "by request",
    [M6_END_TTL] = "its time was up",
    [M6_END_EXIT] = "the target exited",
    [M6_END_EXEC] = "the target executed another program",
    [M6_END_COLLECTOR_LOST] = "the target missed the collector's heartbeat",
    [M6_END_FAILURE] = "the target's memory is not valid",
  };
  return reason < sizeof words / sizeof words[0] ? words[reason] : "for a reason that this collector does not know";
}

int m6_poll_ms(struct m6_outlets *o, const struct m6_drained *got)
{
  uint32_t last = (uint32_t)o->poll_ms, fullest = got->fullest ? got->fullest : 1, next = last * M6_POLL_FULL / fullest;
  if (next > 2 * last) next = 2 * last; /* a quiet moment is no promise */
  if (next < M6_POLL_MIN_MS) next = M6_POLL_MIN_MS;
  return o->poll_ms = next > M6_POLL_MAX_MS ? M6_POLL_MAX_MS : (int)next;
}

static uint64_t own_cpu_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int m6_outlets_open(struct m6_outlets *o, const struct m6_options *options, struct m6_error *e)
{
  memset(o, 0, sizeof *o);
  o->options = options;
  o->live.fd = -1;
  o->watch = (struct m6_watch){-1, -1, -1, -1};
  o->calibration.pipe = -1;
  o->cpu_start_ns = own_cpu_ns();
  o->poll_ms = M6_POLL_BUSY_MS;
  o->block = aligned_alloc(64, M6_SNAPSHOT_BYTES_MAX);
  if (o->block == NULL) return m6_fail(e, M6_EXIT_OTHER, "no memory for a snapshot (%u bytes)", M6_SNAPSHOT_BYTES_MAX);
  int error = m6_watch_open(&o->watch, options->end_fd, options->run_token != 0 && options->end_fd >= 0);
  if (error) return m6_fail(e, M6_EXIT_OTHER, "cannot wait for events (epoll, signalfd): %s", strerror(error));
  m6_calibrate_start(&o->calibration);
  if (options->level != M6_LEVEL_MEMORY)
    m6_say(M6_VERBOSE, "this build has no kernel programs: the level is recorded, what it would add is not collected");
  return 0;
}

void m6_outlets_ready(struct m6_outlets *o)
{
  if (o->options->ready_fd < 0) return;
  int e = m6_write_all(o->options->ready_fd, "", 1);
  if (e) m6_say(M6_VERBOSE, "nobody listens on descriptor %d: %s", o->options->ready_fd, strerror(e));
  close(o->options->ready_fd);
}

void m6_outlets_publish(struct m6_outlets *o, struct m6_image *i, const struct m6_session_state *s, int final)
{
  if (i->capture == NULL) return;
  m6_image_look(i);
  m6_calibrate_poll(&o->calibration, final ? 100 : 0);
  struct m6_outside out = {
    .pid = (uint32_t)i->who.pid,
    .uid = i->who.uid,
    .load_ns = i->who.load_ns,
    .session = i->session,
    .level = o->options->level,
    .state = s->state,
    .end_reason = s->end_reason,
    .ttl_ns = o->options->ttl_s * 1000000000ull,
    .collector_ns = own_cpu_ns() - o->cpu_start_ns,
    .target_cpu_ns = i->cpu_ns > i->cpu_start_ns ? i->cpu_ns - i->cpu_start_ns : 0,
    .publishes = ++o->publishes,
    .images_other = s->images_other,
    .images_other_allocs = s->images_other_allocs,
    .exe = i->exe,
    .caller = (const char(*)[256])i->caller,
    .price = o->calibration.price,
  };
  if (i->sites) out.sites = (struct m6_site_view){i->sites, m6_site_publish};
  size_t bytes = m6_snapshot_build(i->capture, &out, final, o->block);
  o->live_ns = m6_monotonic_ns();
  if (o->published != i) {
    m6_live_close(&o->live);
    int e = m6_live_open(&o->live, i->who.pid, i->who.load_ns, i->who.uid);
    if (e && !o->told_no_room++)
      m6_say(M6_NORMAL, "no live stats: cannot create a file in " M6_SEGMENT_DIR ": %s; the session goes on",
             strerror(e));
    o->published = i;
  }
  int e = m6_live_publish(&o->live, o->block, bytes, final);
  if (e && e != EBADF && !o->told_no_room++)
    m6_say(M6_NORMAL, "live stats could not be written: %s; the session goes on", strerror(e));
  if (final && o->options->final_fd >= 0 && (e = m6_write_all(o->options->final_fd, o->block, bytes)) != 0)
    m6_say(M6_NORMAL, "the final snapshot could not be written to descriptor %d: %s", o->options->final_fd,
           strerror(e));
}

void m6_outlets_close(struct m6_outlets *o)
{
  m6_calibrate_stop(&o->calibration);
  m6_live_close(&o->live);
  m6_watch_close(&o->watch);
  free(o->block);
}
