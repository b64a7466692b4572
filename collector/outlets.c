/* outlets.c - where a session's snapshots go, and what else both ways to run share. See session.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "budgets.h"
#include "kernel_side.h"
#include "session.h"
#include "site_publish.h"
#include "site_queue.h"
#include "site_side.h"
#include "symbols_debuginfod.h"

/* Stacks come in bursts, and have little room; the more bytes lie between two samples, the smaller the bursts are. */
static uint32_t longest_ms(const struct m6_outlets *o)
{
  const struct m6_rung *now = &o->bounds.governor.at;
  uint64_t ms = M6_POLL_MAX_MS;
  if (o->options->site_interval) {
    uint32_t distance = now->sites ? now->sites : o->options->site_interval;
    uint64_t stacks_ms = (uint64_t)M6_POLL_SITES_MS * distance / M6_POLL_SITES_BYTES;
    if (stacks_ms < M6_POLL_SITES_MS) stacks_ms = M6_POLL_SITES_MS;
    if (stacks_ms < ms) ms = stacks_ms;
  }
  return (uint32_t)ms * (now->interval > 1 ? 2 : 1);
}

int m6_poll_ms(struct m6_outlets *o, const struct m6_drained *got)
{
  uint32_t last = (uint32_t)o->poll_ms, fullest = got->fullest ? got->fullest : 1, next = last * M6_POLL_FULL / fullest;
  uint32_t most = longest_ms(o);
  if (o->options->site_interval == 1 && o->bounds.governor.at.sites == 1)
    return got->records || got->more ? 0 : M6_WAIT_BRIEF;
  if (next > 2 * last) next = 2 * last; /* a quiet moment is no promise */
  if (next < M6_POLL_MIN_MS) next = M6_POLL_MIN_MS;
  return o->poll_ms = (int)(next > most ? most : next);
}

int m6_poll_pending_ms(const struct m6_outlets *o)
{
  return o->options->site_interval == 1 ? M6_WAIT_BRIEF : M6_POLL_BUSY_MS;
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
  o->watch = (struct m6_watch){.epoll = -1, .inotify = -1, .signals = -1, .end = -1, .command = -1};
  o->commands.fd = -1;
  o->calibration.pipe = -1;
  o->cpu_start_ns = own_cpu_ns();
  o->poll_ms = M6_POLL_BUSY_MS;
  o->bounds.site_interval = options->site_interval;
  m6_bounds_begin(&o->bounds, options->level, 1, m6_monotonic_ns());
  int status = m6_outlets_dump_open(o, e);
  if (status) return status;
  o->room = M6_SNAPSHOT_BYTES_MAX;
  o->block = aligned_alloc(64, o->room);
  if (o->block == NULL) return m6_fail(e, M6_EXIT_OTHER, "no memory for a snapshot (%zu bytes)", o->room);
  m6_calibrate_start(&o->calibration,
                     options->level != M6_LEVEL_MEMORY); /* a fork: before there is a socket to listen at */
  m6_site_queue_prepare(options->site_interval);
  int error = m6_watch_open(&o->watch, options->end_fd, options->run_token != 0 && options->end_fd >= 0);
  if (error) return m6_fail(e, M6_EXIT_OTHER, "cannot wait for events (epoll, signalfd): %s", strerror(error));
  if ((error = m6_command_open(&o->commands)) != 0)
    m6_say(M6_VERBOSE, "no control socket: %s; `mach6 on`, `off` and `dump` cannot reach this collector",
           strerror(error));
  else m6_watch_add(&o->watch, o->watch.command = o->commands.fd);
  return 0;
}

void m6_outlets_ready(struct m6_outlets *o)
{
  if (o->options->ready_fd < 0) return;
  int e = m6_write_all(o->options->ready_fd, "", 1);
  if (e) m6_say(M6_VERBOSE, "nobody listens on descriptor %d: %s", o->options->ready_fd, strerror(e));
  close(o->options->ready_fd);
}

size_t m6_outlets_build(struct m6_outlets *o, struct m6_image *i, const struct m6_session_state *state, int kind,
                        void *block)
{
  m6_image_look(i);
  int final = kind == M6_SNAPSHOT_FINAL;
  /* Another image may be collecting while one that has ended is shown. */
  m6_debuginfod_patience(state->state == M6_COLLECTING ? -1 : final ? M6_DEBUGINFOD_END_MS : 0);
  m6_calibrate_poll(&o->calibration, final ? 100 : 0);
  if (i->kernel) i->kernel->measured = o->calibration.kernel;
  if (final) m6_kernel_stop(i->kernel);
  if (final) m6_kernel_drained(i->kernel, i->capture);
  const struct m6_appendix *appendix = m6_kernel_view(i->kernel, i->capture, final); /* before its own cost is read */
  m6_kernel_budgets(i->kernel, i->kernel && i->kernel->have_frames ? m6_counters_frames_lost(i->kernel->counters) : 0);
  m6_budget_most(M6_BUDGET_CLIENTS, m6_command_clients(&o->commands));
  m6_budget_overrun(M6_BUDGET_CLIENTS, o->commands.refused);
  m6_bounds_fill(&o->bounds, i, final, m6_monotonic_ns());
  struct m6_outside out = {
    .pid = (uint32_t)i->who.pid,
    .uid = i->who.uid,
    .load_ns = i->who.load_ns,
    .session = i->session,
    .level = o->bounds.governor.at.level,
    .state = state->state,
    .end_reason = state->end_reason,
    .ttl_ns = o->options->ttl_s * 1000000000ull,
    .collector_ns = own_cpu_ns() - o->cpu_start_ns,
    .target_cpu_ns = i->cpu_ns > i->cpu_start_ns ? i->cpu_ns - i->cpu_start_ns : 0,
    .publishes = ++o->publishes,
    .images_other = state->images_other,
    .images_other_allocs = state->images_other_allocs,
    .lost = state->lost,
    .exe = i->exe,
    .caller = (const char(*)[256])i->caller,
    .price = o->calibration.price,
    .govern = &o->bounds.snap,
    .appendix = appendix,
    .room = kind == M6_SNAPSHOT_LIVE ? M6_SNAPSHOT_LIVE_MAX : o->room,
  };
  if (i->sites) out.sites = (struct m6_site_view){i->sites, m6_site_publish, m6_site_publish_maps};
  if (i->sites || i->kernel) out.modules = (struct m6_module_view){i, m6_modules_of_image};
  if (kind != M6_SNAPSHOT_LIVE) m6_site_side_forget_rows(i->sites); /* who keeps it wants rows of the same moment */
  size_t bytes = m6_snapshot_build(i->capture, &out, kind, block);
  if (final && !m6_site_side_wait(i->sites, 0))
    m6_say(M6_NORMAL, "reading debug information takes too long: some sites are named by symbol tables alone");
  ((struct m6_snapshot *)block)->ending_known = o->watch.ending_known > 0;
  ((struct m6_snapshot *)block)->ending = o->watch.ending_known > 0 ? o->watch.ending : 0;
  return bytes;
}

void m6_outlets_publish(struct m6_outlets *o, struct m6_image *i, const struct m6_session_state *s, int final)
{
  if (i->capture == NULL) return;
  m6_site_side_watched(i->sites, i == o->published && m6_live_watched(&o->live));
  size_t bytes = m6_outlets_build(o, i, s, final ? M6_SNAPSHOT_FINAL : M6_SNAPSHOT_LIVE, o->block);
  o->live_ns = m6_monotonic_ns();
  if (!final) {
    const struct m6_snapshot *built = o->block;
    struct m6_spent spent = {o->live_ns,   built->shim_ns, built->kernel.kernel_ns,
                             own_cpu_ns(), i->cpu_ns,      built->sites.cost_ns + i->site_ns};
    uint64_t samples = built->kernel.samples_taken, most = m6_budget_cap(M6_BUDGET_SAMPLES);
    m6_budget_use(M6_BUDGET_SAMPLES, samples < most ? samples : most);
    m6_budget_overrun(M6_BUDGET_SAMPLES, (samples > most ? samples - most : 0) + built->kernel.samples_lost);
    o->event = m6_bounds_look(&o->bounds, i, spent, !isnan(built->price_pair_ns));
  }
  if (o->published != i) {
    m6_live_close(&o->live);
    int e = m6_live_open(&o->live, i->who.pid, i->who.load_ns, i->who.uid);
    if (e && !o->told_no_room++)
      m6_say(M6_NORMAL, "no live stats: cannot create a file in " M6_SEGMENT_DIR ": %s; the session goes on",
             strerror(e));
    o->published = i;
  }
  int e = m6_live_publish(&o->live, o->block, bytes, final);
  if (e && e != EBADF && e != E2BIG && !o->told_no_room++) /* too big: a final one, whose file goes away now */
    m6_say(M6_NORMAL, "live stats could not be written: %s; the session goes on", strerror(e));
  if (final && o->options->final_fd >= 0 && (e = m6_write_all(o->options->final_fd, o->block, bytes)) != 0)
    m6_say(M6_NORMAL, "the final snapshot could not be written to descriptor %d: %s", o->options->final_fd,
           strerror(e));
  if (final) m6_outlets_dump_final(o);
}

/* What the user asked for by DEBUGINFOD_URLS and did not get. */
static void end_debuginfod(void)
{
  int error;
  uint32_t missed = m6_debuginfod_close(&error);
  if (missed)
    m6_say(M6_NORMAL, "debuginfod (DEBUGINFOD_URLS): %u debug file%s could not be had: %s", missed,
           missed == 1 ? "" : "s",
           error == ELIBACC ? "libdebuginfod.so.1 cannot be loaded; Debian has it in libdebuginfod1"
           : error          ? strerror(error)
                            : "still on the way when the report was made");
}

void m6_outlets_close(struct m6_outlets *o)
{
  end_debuginfod();
  m6_command_close(&o->commands);
  m6_outlets_dump_end(o);
  free(o->dumps.block);
  m6_calibrate_stop(&o->calibration);
  m6_live_close(&o->live);
  m6_watch_close(&o->watch);
  free(o->block);
  m6_site_queue_prepared_free();
}
