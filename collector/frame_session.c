/* frame_session.c - a session on a program without the shim, whose frames are the calls of one function
 * (--frame-symbol).
 *
 * The kernel tells each call; the collector plays the shim: it keeps a segment of its own, in private memory, and
 * writes each boundary into the same books. So all that follows (frame times, spikes, snapshots, reports) is as ever,
 * and what only a shim can know, allocations and scopes, is marked as unseen. The process may be about to execute the
 * program: it is the same one afterwards. Its children are not followed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../shm/present.h"
#include "budgets.h"
#include "kernel_side.h"
#include "session.h"
#include "stats_proc.h"
#include "stats_words.h"

static int make_image(struct m6_image *i, const struct m6_options *options, struct m6_error *e)
{
  struct m6_proc p;
  int error = m6_proc_read(options->pid, &p);
  if (error == ESRCH || (error == 0 && p.state == 'Z'))
    return m6_fail(e, M6_EXIT_NO_TARGET, "no process %d: check its number", (int)options->pid);
  if (error) return m6_fail(e, M6_EXIT_OTHER, "cannot read /proc/%d/stat: %s", (int)options->pid, strerror(error));
  i->fd = -1;
  i->pidfd = (int)syscall(SYS_pidfd_open, options->pid, 0);
  i->who.pid = options->pid;
  i->who.uid = p.euid;
  i->who.load_ns = p.start_ns;
  i->cpu_start_ns = i->cpu_ns = p.cpu_ns;
  i->segment = mmap(NULL, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (i->segment == MAP_FAILED) {
    i->segment = NULL;
    return m6_fail(e, M6_EXIT_OTHER, "no memory for a session: %s", strerror(errno));
  }
  struct m6_header *h = m6_segment_header(i->segment);
  h->magic = M6_SEGMENT_MAGIC;
  h->pid = (uint32_t)options->pid;
  h->pointer_bits = 64;
  h->state = M6_COLLECTING;
  h->clock_kind = M6_CLOCK_MONOTONIC;
  h->start_clock = h->start_mono_ns = m6_monotonic_ns();
  h->unseen = M6_UNSEEN_NO_SHIM;
  h->rings_used = 1;
  h->slots_used = 1;
  h->streams[0] = (struct m6_stream){.symbol = M6_SYM_FRAME_SYMBOL, .route = M6_ROUTE_PROBE, .kind = 1};
  snprintf(i->caller[0], sizeof i->caller[0], "%s", options->frame_symbol);
  if (m6_image_capture(i) != 0) return m6_fail(e, M6_EXIT_OTHER, "no memory for a session");
  return 0;
}

/* The name and path of what it runs by now: exec may have come since. */
static void look(struct m6_image *i)
{
  struct m6_proc p;
  struct m6_header *h = m6_segment_header(i->segment);
  if (m6_proc_read(i->who.pid, &p) == 0) {
    memset(h->name, 0, sizeof h->name);
    memcpy(h->name, p.comm, sizeof h->name - 1 < sizeof p.comm ? sizeof h->name - 1 : sizeof p.comm);
  }
  char path[sizeof i->exe];
  if (m6_proc_exe_path(i->who.pid, path, sizeof path) >= 0 && strcmp(path, i->exe) != 0) {
    memcpy(i->exe, path, sizeof path);
    m6_kernel_changed(i->kernel);
  }
}

/* The call is the frame's end and the next one's beginning, at one moment. */
static void boundary(void *arg, const struct m6_kernel_frame *f)
{
  struct m6_image *i = arg;
  struct m6_capture *c = i->capture;
  struct m6_stream *s = &m6_segment_header(i->segment)->streams[0];
  if (f->entry.time_ns < c->start_clock) {
    c->base_presents[0] = s->presents = f->number; /* before the session */
    return;
  }
  s->presents = f->number;
  s->tid = f->own_tid;
  if (s->first_clock == 0) s->first_clock = f->entry.time_ns;
  uint32_t ring = 0;
  struct m6_thread *t = c->rings[ring].thread;
  if (t && t->tid != f->own_tid) { /* another thread calls it now */
    m6_capture_thread_ended(c, ring);
    t = NULL;
  }
  if (t == NULL && (t = m6_capture_thread(c, ring, f->own_tid)) == NULL) return;
  struct m6_record unit[M6_FRAME_UNITS];
  memset(unit, 0, sizeof unit);
  for (int u = 0; u < 2; u++) unit[u].clock = f->entry.time_ns;
  unit[0].word = m6_word(0, M6_REC_FRAME, M6_FLAG_EXPLICIT, 0, M6_FRAME_UNITS);
  unit[2].clock = f->number;
  m6_capture_boundary(c, t, unit);
}

/* Is the time over: the session's, or that of the probe, which is opened after the session began? */
static int time_over(const struct m6_outlets *o, const struct m6_image *i, uint64_t now)
{
  int session = now >= i->capture->start_mono_ns + o->options->ttl_s * 1000000000ull;
  int probe = now >= i->kernel->opened_ns + m6_budget_cap(M6_BUDGET_PROBE_TTL) * 1000000ull;
  if (session) m6_budget_overran(M6_BUDGET_SESSION_TTL);
  if (probe) m6_budget_overran(M6_BUDGET_PROBE_TTL);
  return session || probe;
}

static uint32_t collect(struct m6_outlets *o, struct m6_image *i)
{
  struct m6_session_state running = {.state = M6_COLLECTING};
  uint64_t published_ns = 0, look_ns = 0;
  for (;;) {
    uint64_t now = m6_monotonic_ns();
    struct m6_drained got;
    const struct m6_rung *rung = &o->bounds.governor.at;
    if (now - look_ns >= M6_LOOK_MS * 1000000ull) {
      look(i);
      if (rung->level != M6_LEVEL_MEMORY)
        m6_bounds_refused(&o->bounds, i, m6_kernel_level(i->kernel, rung->level, rung->interval), now);
      look_ns = now;
    }
    m6_image_drain(i, &got);
    if (now - published_ns >= rung->interval * M6_PUBLISH_MS * 1000000ull) {
      m6_image_sample(i, 0);
      o->event = M6_EVENT_NOTHING;
      m6_outlets_publish(o, i, &running, 0);
      published_ns = now;
      /* Below lite there would be no frames: all that is collected here is the kernel's. */
      if (o->event == M6_EVENT_BUDGET || rung->level == M6_LEVEL_MEMORY) return M6_END_BUDGET;
    }
    if (time_over(o, i, now)) return M6_END_TTL;
    struct m6_woken w = m6_watch_wait(&o->watch, M6_POLL_BUSY_MS * 10);
    if (w.signal) return M6_END_OFF;
    if (w.ended || !m6_image_running(i)) return M6_END_EXIT;
  }
}

int m6_frame_session(const struct m6_options *options, struct m6_error *e)
{
  struct m6_outlets o;
  static struct m6_image image; /* big, and zero */
  int status = m6_outlets_open(&o, options, e);
  if (status == 0) status = make_image(&image, options, e);
  if (status == 0) {
    image.kernel = m6_kernel_open(&(struct m6_kernel_options){
      .pid = options->pid, .level = options->level, .frame_place = options->frame_symbol, .now = 1});
    if (image.kernel == NULL || !image.kernel->have_frames) {
      char why[512] = "no memory";
      for (uint32_t n = 0; image.kernel && n < image.kernel->refused_count; n++) {
        const struct m6_kernel_refusal *r = &image.kernel->refused[n];
        if (r->part != M6_KERNEL_PART_FRAMES && r->part != M6_KERNEL_PART_COUNTERS) continue;
        snprintf(why, sizeof why, "cannot %s: %s%s%s%s%s", r->what, strerror(r->error),
                 *r->hint.setting ? "; closed by: " : "", r->hint.setting, *r->hint.command ? "; opened by: " : "",
                 r->hint.command);
        if (r->part == M6_KERNEL_PART_FRAMES) break;
      }
      status = m6_fail(e, M6_EXIT_OTHER, "no frames by %s: %s", options->frame_symbol, why);
    }
  }
  if (status == 0 && image.kernel) {
    image.kernel->each = boundary;
    image.kernel->each_arg = &image;
    if (image.pidfd >= 0) m6_watch_add(&o.watch, image.pidfd);
    m6_outlets_ready(&o);
    int said = options->end_fd >= 0 ? M6_VERBOSE : M6_NORMAL; /* `mach6 run` has a report to say it in */
    m6_say(said, "capturing process %d by the calls of %s for up to %u s", (int)options->pid, options->frame_symbol,
           options->ttl_s);
    uint32_t reason = collect(&o, &image);
    m6_kernel_stop(image.kernel);
    m6_image_sample(&image, 1);
    struct m6_session_state over = {.state = M6_ENDED, .end_reason = reason};
    m6_outlets_publish(&o, &image, &over, 1);
    m6_say(said, "session ended: %s", m6_end_text(reason));
  }
  m6_image_release(&image, 0);
  if (image.capture) m6_capture_close(image.capture);
  free(image.capture);
  m6_kernel_close(image.kernel);
  m6_outlets_close(&o);
  return status;
}
