/* run.c - the collector of `mach6 run`: every image that carries the run's token, one of which is the game.
 *
 * A command is often a chain (sh, env, timeout, a launcher, then the game) and a game has helpers. Each loaded shim is
 * an image, mapped as soon as its segment appears, drained while the main one is not known, and let go when its process
 * is dead. Main is the image that presents first; if none does, the one with scopes, then that of the direct child
 * which became a program without the shim (lost_exec.h), then the one with most allocations, then the direct child's
 * last. The others are counted: how many, and what they allocated.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "kernel_side.h"
#include "lost_exec.h"
#include "session.h"
#include "site_side.h"
#include "stats_proc.h"
#include "stats_words.h"

struct run {
  struct m6_outlets o;
  struct m6_image **images; /* those alive, and of the dead the one that may be main */
  size_t count, room;
  struct m6_image *main;             /* the first to present; NULL = not known yet */
  uint64_t dead_images, dead_allocs; /* of images that were let go */
  uint64_t scan_ns;                  /* when the segments' folder was last looked through */
  uint64_t began_ns, elsewhere_ns;   /* the first look, and when other processes' such folders were looked through */
  int retry;                         /* a segment was seen that was not finished */
  struct m6_kernel_side *kernel;     /* of the image that may be main */
  struct m6_kernel_follow {          /* where it goes */
    pid_t pid;
    uint64_t since_ns; /* it has been the best one */
    uint32_t moves;
  } follow;
  struct m6_lost_execs lost;
  struct m6_error refused; /* why the direct child's segment is of no use; status 0: nothing was refused */
};

static uint64_t allocs(const struct m6_image *i) { return i->now.allocs - i->base.allocs; }

static void forget(struct m6_image *i)
{
  m6_image_release(i, 1);
  if (i->capture) m6_capture_close(i->capture);
  m6_site_side_close(i->sites);
  free(i->capture);
  free(i);
}

static int known(const struct run *r, const char *file)
{
  for (size_t n = 0; n < r->count; n++)
    if (strcmp(r->images[n]->who.file, file) == 0) return 1;
  return 0;
}

static void take(struct run *r, const char *file, pid_t via)
{
  struct m6_error e;
  struct m6_target t;
  m6_target_look(file, via, &t);
  if (t.problem == M6_TARGET_UNFINISHED && t.alive && t.mine) r->retry = 1;
  if (via == 0 && t.problem == M6_TARGET_VERSION && t.pid == r->o.options->pid)
    m6_target_refuse(&t, &r->refused); /* its token can't be read */
  if (t.problem == M6_TARGET_NAMESPACE && t.run_token == r->o.options->run_token)
    m6_target_resolve(&t); /* started by this run inside a container */
  if ((t.problem != M6_TARGET_FINE && t.problem != M6_TARGET_STALE) || t.run_token != r->o.options->run_token) return;
  if (r->count == r->room) {
    size_t room = r->room ? 2 * r->room : 64;
    struct m6_image **more = realloc(r->images, room * sizeof(void *));
    if (more == NULL) return;
    r->images = more;
    r->room = room;
  }
  struct m6_image *i = malloc(sizeof *i);
  if (i == NULL) return;
  if (m6_image_open(i, &t, r->o.options->run_token, &e) != 0) {
    m6_say(M6_VERBOSE, "an image of this run is left out: %s", e.text);
    free(i);
    return;
  }
  i->site_interval = r->o.options->site_interval;
  /* The governor's steps are the session's: an image that comes later (exec, say) goes on where they led, or what was
   * too much would be so again for seconds. */
  const struct m6_rung *at = &r->o.bounds.governor.at;
  m6_control_on(i, at->level);
  if (at->sites != i->site_interval) m6_control_level(i, at->level, at->sites);
  if (i->pidfd >= 0) m6_watch_add(&r->o.watch, i->pidfd);
  m6_lost_exec_found(&r->lost, i->who.pid, i->who.load_ns);
  for (size_t n = 0; n < r->count; n++) { /* exec: the same process, a later image */
    struct m6_image *old = r->images[n];
    if (old->who.pid != i->who.pid || old->dead || old->who.load_ns >= i->who.load_ns) continue;
    old->dead = 1;
    old->end_reason = M6_END_EXEC;
  }
  r->images[r->count++] = i;
  m6_say(M6_VERBOSE, "image %s, process %d", m6_plain(i->who.name, sizeof i->who.name), (int)i->who.pid);
}

static void scan(struct run *r)
{
  DIR *d = opendir(M6_SEGMENT_DIR);
  struct dirent *e;
  r->retry = 0;
  while (d && (e = readdir(d)) != NULL) {
    pid_t pid;
    uint64_t load;
    if (m6_target_parse(e->d_name, &pid, &load) && !known(r, e->d_name)) take(r, e->d_name, 0);
  }
  if (d) closedir(d);
}

/* Did the direct child lose the shim when this image became another program? That one may have been the game. */
static int lost_child(const struct run *r, const struct m6_image *i)
{
  return i->who.pid == r->o.options->pid && m6_lost_exec_of(&r->lost, i) != NULL;
}

/* Those of a container, or of a launcher that has mounted a /dev/shm of its own. */
static void take_elsewhere(void *arg, const char *file, pid_t via)
{
  if (!known(arg, file)) take(arg, file, via);
}

/* No event tells of these, and a look goes through all of /proc: the longer there was none, the less often. */
static void scan_elsewhere(struct run *r, uint64_t now, int at_once)
{
  if (r->main != NULL) return;
  if (r->began_ns == 0) r->began_ns = now;
  uint64_t wait = (now - r->began_ns) / 8, most = 20 * M6_RESCAN_MS * 1000000ull;
  if (wait < M6_RESCAN_MS * 1000000ull) wait = M6_RESCAN_MS * 1000000ull;
  if (!at_once && now - r->elsewhere_ns < (wait < most ? wait : most)) return;
  m6_targets_elsewhere(take_elsewhere, r);
  r->elsewhere_ns = m6_monotonic_ns();
}

/* Is `a` rather the main image than `b`, when neither is known to be? */
static int better(const struct run *r, const struct m6_image *a, const struct m6_image *b)
{
  if (b == NULL) return 1;
  uint64_t fa = a->capture && a->capture->boundaries ? a->capture->books.first_entry : 0;
  uint64_t fb = b->capture && b->capture->boundaries ? b->capture->books.first_entry : 0;
  if (fa != fb) return fa != 0 && (fb == 0 || fa < fb);
  int sa = a->capture && a->capture->marks != 0, sb = b->capture && b->capture->marks != 0;
  if (sa != sb) return sa;
  int la = lost_child(r, a), lb = lost_child(r, b);
  if (la != lb) return la;
  if (allocs(a) != allocs(b)) return allocs(a) > allocs(b);
  int ca = a->who.pid == r->o.options->pid, cb = b->who.pid == r->o.options->pid;
  if (ca != cb) return ca;
  return a->who.load_ns > b->who.load_ns;
}

static struct m6_image *best(const struct run *r)
{
  struct m6_image *b = r->main;
  for (size_t n = 0; b == NULL && n < r->count; n++) {
    b = r->images[n];
    for (size_t k = 0; k < r->count; k++)
      if (r->images[k] != b && better(r, r->images[k], b)) b = r->images[k];
  }
  return b;
}

static int has_later(const struct run *r, const struct m6_image *i)
{
  for (size_t n = 0; n < r->count; n++)
    if (r->images[n]->who.pid == i->who.pid && r->images[n]->who.load_ns > i->who.load_ns) return 1;
  return 0;
}

/* An image whose writers are gone: the rest of its records, its last readings, then its segment goes. One that wrote
 * no records stays mapped as long as it may be the main one: most images of a run are small and short, and need no
 * more than their totals. */
static void settle(struct run *r, struct m6_image *i)
{
  struct m6_drained got;
  if (i->settled || i->segment == NULL) return;
  i->settled = 1;
  struct m6_control now;
  if (m6_control_read(i, &now) == 0 && now.state == M6_ENDED && now.end_reason == M6_END_COLLECTOR_LOST)
    i->end_reason = M6_END_COLLECTOR_LOST; /* we were stopped for too long: what came after is not in the books */
  if (m6_image_exec(i)) i->end_reason = M6_END_EXEC; /* however it was found to be dead */
  if (i->end_reason == M6_END_EXEC && !has_later(r, i)) m6_lost_exec_add(&r->lost, i, r->o.options->pid);
  m6_image_look(i);
  if (r->main == NULL || i == r->main) m6_image_drain(i, &got);
  m6_image_sample(i, 1);
  if (i->capture) m6_image_release(i, 1);
  else m6_image_unlink(i);
}

/* Of the dead, only the one that may be main is kept. */
static void let_go(struct run *r)
{
  struct m6_image *keep = best(r);
  size_t n = 0;
  for (size_t k = 0; k < r->count; k++) {
    struct m6_image *i = r->images[k];
    if (i->dead && i != keep && i != r->o.published) {
      r->dead_images++;
      r->dead_allocs += allocs(i);
      forget(i);
    } else {
      r->images[n++] = i;
    }
  }
  r->count = n;
}

static void choose_main(struct run *r)
{
  struct m6_image *first = NULL;
  for (size_t n = 0; n < r->count; n++) {
    struct m6_image *i = r->images[n];
    if (i->capture && i->capture->books.last.number != 0 && better(r, i, first)) first = i;
  }
  if (first == NULL) return;
  r->main = first;
  m6_say(M6_VERBOSE, "process %d presents: it is the game", (int)first->who.pid);
  if (!first->dead && m6_image_sample(first, 0) == 0) m6_image_look(first); /* while its modules can still be seen */
  for (size_t n = 0; n < r->count; n++) { /* trees of the others are of no use any more */
    struct m6_image *i = r->images[n];
    if (i == first || i->capture == NULL || i == r->o.published) continue;
    m6_capture_close(i->capture);
    free(i->capture);
    i->capture = NULL;
  }
}

#define CALIBRATED_MS 200      /* the game waits for the prices no longer */
#define FOLLOW_NS 300000000ull /* a better image must have been it for so long */
#define FOLLOW_MAX 8u          /* a run of many small programs is not worth loading programs for each */

/* The kernel side belongs to the process that is, or will be, the main one. It is opened on the direct child while that
 * is still held (loading programs takes a core for a tenth of a second, which would be frames), and moved when another
 * one turns out to be it. A new image of the same process (exec) keeps it. */
static void follow(struct run *r)
{
  if (r->o.options->level == M6_LEVEL_MEMORY) return;
  struct m6_image *b = best(r);
  if (b == NULL || b->dead || (b->kernel != NULL && b->kernel == r->kernel)) return;
  uint64_t now = m6_monotonic_ns();
  if (r->kernel != NULL && r->kernel->pid == b->who.pid) {
    m6_kernel_changed(r->kernel);
  } else {
    if (r->follow.pid != b->who.pid) r->follow.pid = b->who.pid, r->follow.since_ns = now;
    if (r->kernel != NULL && b != r->main && now - r->follow.since_ns < FOLLOW_NS) return;
    if (r->follow.moves == FOLLOW_MAX) return;
    r->follow.moves++;
    for (size_t n = 0; n < r->count; n++) r->images[n]->kernel = NULL;
    m6_kernel_close(r->kernel);
    r->kernel = m6_kernel_open(&(struct m6_kernel_options){.pid = b->who.pid, .level = r->o.options->level});
  }
  for (size_t n = 0; n < r->count; n++) r->images[n]->kernel = NULL;
  b->kernel = r->kernel;
}

static struct m6_drained poll_images(struct run *r, int beat, int look)
{
  struct m6_drained all = {0};
  int died = 0;
  for (size_t n = 0; n < r->count; n++) {
    struct m6_image *i = r->images[n];
    struct m6_drained got = {0};
    if (i->segment == NULL || i->settled) continue;
    if (look) m6_image_alive(i);
    else m6_image_running(i);
    if (i->dead) {
      settle(r, i);
      died = 1;
      continue;
    }
    if (beat) m6_control_beat(i);
    if (r->main == NULL || i == r->main) m6_image_drain(i, &got);
    all.records += got.records;
    all.more |= got.more;
    if (got.fullest > all.fullest) all.fullest = got.fullest;
    if (i->failed) {
      i->dead = 1;
      m6_say(M6_NORMAL, "process %d: its segment was truncated, or is not what a shim writes", (int)i->who.pid);
      m6_image_release(i, 1);
      died = 1;
    }
  }
  if (r->main == NULL) choose_main(r);
  if (died) let_go(r);
  follow(r);
  return all;
}

static int publish_run(void *arg, int final, uint32_t reason)
{
  struct run *r = arg;
  struct m6_session_state s = {.state = final ? M6_ENDED : M6_COLLECTING, .end_reason = final ? reason : M6_END_NONE};
  for (size_t n = 0; n < r->count; n++)
    if (r->images[n]->segment && !r->images[n]->settled) m6_image_sample(r->images[n], final);
  struct m6_image *main = best(r);
  if (main == NULL) return 0;
  if (final && main->failed) s.end_reason = M6_END_FAILURE;
  else if (final && reason == M6_END_EXIT && main->end_reason != M6_END_NONE)
    s.end_reason = main->end_reason; /* exec, say */
  if (main->capture == NULL) {
    struct m6_control now; /* its segment has its name a moment before it begins to collect */
    if (main->segment == NULL || m6_control_read(main, &now) != 0 || (now.state == M6_INERT && !main->dead)) return 0;
    if (m6_image_capture(main) != 0) return 0;
    m6_image_sample(main, main->dead);
  }
  /* Where frames were seen, a helper that became something else is nobody's concern. */
  s.lost = r->main ? m6_lost_exec_of(&r->lost, main) : m6_lost_exec_first(&r->lost, main, r->o.options->pid);
  s.images_other = (uint32_t)(r->dead_images + r->count - 1);
  s.images_other_allocs = r->dead_allocs;
  for (size_t n = 0; n < r->count; n++)
    if (r->images[n] != main) s.images_other_allocs += allocs(r->images[n]);
  if (main->dead && !final) s.state = M6_ENDED;
  m6_outlets_publish(&r->o, main, &s, final);
  return 1;
}

/* ---- the session's source (session.h) -----------------------------------------------------------------------------
 * */

/* Pending until the first image of the run is there: a shim with the run's token collects from its first moment. */
static enum m6_life_event poll_run(void *arg, const struct m6_due *due, enum m6_life state, struct m6_drained *got)
{
  struct run *r = arg;
  const struct m6_options *p = r->o.options;
  if (r->retry || due->now - r->scan_ns >= (r->o.watch.inotify >= 0 ? 10 : 1) * M6_RESCAN_MS * 1000000ull) {
    scan(r);
    r->scan_ns = due->now;
  }
  scan_elsewhere(r, due->now, 0);
  *got = poll_images(r, due->beat, due->look);
  if (state == M6_LIFE_PENDING && r->count + r->dead_images != 0) return M6_EVENT_STARTED;
  return p->end_fd < 0 && due->look && !m6_proc_alive(p->pid) ? M6_EVENT_EXIT : M6_EVENT_NOTHING;
}

static enum m6_life_event created(void *arg)
{
  scan(arg);
  return M6_EVENT_NOTHING;
}

static void ask(void *arg) { scan(arg); } /* each image is asked when it is taken in */

static struct m6_image *image_of(void *arg) { return best(arg); }

/* Ends what still runs, takes what is left of all. */
static void stop(void *arg)
{
  struct run *r = arg;
  scan(r);
  scan_elsewhere(r, m6_monotonic_ns(), 1);
  for (size_t n = 0; n < r->count; n++)
    if (r->images[n]->segment && m6_image_alive(r->images[n])) m6_control_off(r->images[n], 0);
  for (uint64_t from = m6_monotonic_ns(); m6_monotonic_ns() - from < M6_OFF_MS * 1000000ull;) {
    int running = 0;
    for (size_t n = 0; n < r->count; n++) {
      struct m6_control now;
      struct m6_drained got;
      struct m6_image *i = r->images[n];
      if (i->segment == NULL || i->settled || (r->main && i != r->main) || !m6_image_alive(i)) continue;
      m6_image_drain(i, &got);
      running |= m6_control_read(i, &now) == 0 && now.state == M6_COLLECTING;
    }
    if (!running) break;
    m6_watch_wait(&r->o.watch, M6_POLL_BUSY_MS);
  }
  for (size_t n = 0; n < r->count; n++) {
    struct m6_image *i = r->images[n];
    if (i->segment == NULL || i->settled) continue;
    m6_image_alive(i);
    if (!i->dead) m6_control_off(i, 1);
    i->dead = 1;
    settle(r, i);
  }
  if (r->main == NULL) choose_main(r);
}

int m6_run(const struct m6_options *options, struct m6_error *e)
{
  struct run r;
  memset(&r, 0, sizeof r);
  struct rlimit files; /* two descriptors an image */
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  static const struct m6_source source = {poll_run, created, ask, stop, publish_run, image_of, NULL};
  struct m6_session s = {.o = &r.o, .source = &source, .arg = &r};
  int status = m6_outlets_open(&r.o, options, e);
  if (status == 0) {
    if (options->shim)
      r.kernel = m6_kernel_open(
        &(struct m6_kernel_options){.pid = options->pid, .level = options->level, .shim = options->shim, .now = 1});
    m6_calibrate_poll(&r.o.calibration, CALIBRATED_MS); /* beside the first frames it would slow them */
    m6_outlets_ready(&r.o);
    m6_lifecycle_init(&s.life, options->ttl_s * 1000000000ull);
    m6_lifecycle_grant(&s.life, options->sessions, 0); /* whoever started the program with the run's token granted it */
    m6_session_run(&s);
    struct m6_image *main = best(&r);
    if (main == NULL && r.refused.status != 0) status = m6_fail(e, r.refused.status, "%s", r.refused.text);
    else if (main == NULL)
      status = m6_fail(
        e, M6_EXIT_NOT_LOADED,
        "no program of this run loaded the shim: one that is static or privileged, clears LD_PRELOAD, or "
        "failed to start cannot be profiled");
    else if (main->failed)
      status = m6_fail(e, M6_EXIT_INVALID, "process %d: its segment was truncated, or is not what a shim writes",
                       (int)main->who.pid);
    m6_say(M6_VERBOSE, "session ended: %s", m6_end_text(s.life.end));
  }
  for (size_t n = 0; n < r.count; n++) forget(r.images[n]);
  m6_kernel_close(r.kernel);
  free(r.images);
  if (status == 0 && r.o.dumps.failed) status = m6_fail(e, M6_EXIT_DUMP, "the session has no dump");
  m6_outlets_close(&r.o);
  return status;
}
