/* outlets_dump.c - a session's dumps: the one at its end (--out), and those on demand. See session.h and dump_write.h.
 *
 * On demand: m6_outlets_dump asks for the names of sites, as the debug information has them; m6_outlets_dump_poll,
 * which is called each turn of the drain loop, takes a snapshot into a block of its own when they are there, and
 * begins. At the end nothing is left to drain, so that dump is waited for; SIGTERM gives it up.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "budgets.h"
#include "session.h"
#include "site_publish.h"

#define M6_DUMP_NAMES_MS 10000 /* then a dump is written with the names that there are */

static void say_refused(struct m6_outlets *o, const struct m6_dump *d)
{
  int e = m6_dump_refused(d);
  if (e && !o->dumps.told_refused++)
    m6_say(M6_NORMAL, "io_uring is refused (%s): dumps are written by a thread with plain writes", strerror(e));
}

/* The words for how a dump ended; 0 or its errno. */
static int say_end(const struct m6_dump *d, const char *path, enum m6_dump_state state)
{
  const char *tried;
  int e = m6_dump_error(d, &tried);
  if (state == M6_DUMP_DONE) {
    uint64_t lacking = m6_dump_lacking(d);
    m6_budget_most(M6_BUDGET_DUMP, m6_dump_bytes(d));
    m6_budget_most(M6_BUDGET_DUMP_OBJECT, m6_dump_largest(d));
    m6_budget_overrun(M6_BUDGET_DUMP, lacking);
    m6_say(M6_VERBOSE, "dump of %" PRIu64 " bytes in %s", m6_dump_bytes(d), path);
    if (lacking) m6_say(M6_NORMAL, "%" PRIu64 " rows did not fit into the dump %s; it says so", lacking, path);
    return 0;
  }
  if (e == EINTR) m6_say(M6_QUIET, "no dump: %s: interrupted; what was there before is as it was", path);
  else m6_say(M6_QUIET, "no dump: %s: %s: %s; what was there before is as it was", path, tried, strerror(e));
  return e ? e : EIO;
}

int m6_outlets_dump_open(struct m6_outlets *o, struct m6_error *e)
{
  const char *path = o->options->out;
  if (path == NULL) return 0;
  int error = m6_dump_check(path);
  if (error == 0) return 0;
  const char *why = error == EISDIR   ? "that is a folder; name a file in it"
                    : error == EINVAL ? "that is no regular file, and cannot become one"
                                      : strerror(error);
  return m6_fail(e, M6_EXIT_DUMP, "--out %s: nothing can be written there: %s", path, why);
}

static int asked_to_stop(void *outlets)
{
  struct m6_outlets *o = outlets;
  return m6_watch_wait(&o->watch, 0).signal != 0;
}

static struct m6_dump_options as_budgets_say(const char *path)
{
  return (struct m6_dump_options){
    .path = path, .most = m6_budget_cap(M6_BUDGET_DUMP), .object = m6_budget_cap(M6_BUDGET_DUMP_OBJECT)};
}

void m6_outlets_dump_final(struct m6_outlets *o)
{
  const char *path = o->options->out;
  struct m6_dump *d;
  if (path == NULL) return;
  m6_outlets_dump_end(o);
  struct m6_dump_options options = as_budgets_say(path);
  int e = m6_dump_begin(o->block, &options, &d);
  if (e) {
    m6_say(M6_QUIET, "no dump: %s: %s; what was there before is as it was", path, strerror(e));
  } else {
    say_refused(o, d);
    e = say_end(d, path, m6_dump_finish(d, asked_to_stop, o));
    m6_dump_end(d);
  }
  if (e) o->dumps.failed = e;
}

/* 0, or why it can't be. */
static int begin(struct m6_outlets *o, struct m6_image *i)
{
  struct m6_dumps *x = &o->dumps;
  struct m6_session_state now = {.state = M6_COLLECTING};
  if (i == NULL || i->capture == NULL || m6_image_sample(i, 0) != 0) return EFAULT;
  m6_outlets_build(o, i, &now, M6_SNAPSHOT_WHOLE, x->block);
  struct m6_dump_options options = as_budgets_say(x->path);
  int e = m6_dump_begin(x->block, &options, &x->dump);
  if (e == 0) say_refused(o, x->dump);
  return e;
}

int m6_outlets_dump(struct m6_outlets *o, struct m6_image *i, const char *path)
{
  struct m6_dumps *x = &o->dumps;
  if (i->capture == NULL) return ENODATA;
  if (x->path) return EBUSY;
  if (x->block == NULL && (x->block = aligned_alloc(64, M6_SNAPSHOT_BYTES_MAX)) == NULL) return ENOMEM;
  if ((x->path = strdup(path)) == NULL) return ENOMEM;
  x->asked_ns = m6_monotonic_ns();
  m6_site_publish_ask(i->sites, i->capture, i->capture->books.last.number);
  int e = i->sites ? m6_dump_check(path) : begin(o, i);
  if (e) m6_outlets_dump_end(o);
  return e;
}

int m6_outlets_dump_poll(struct m6_outlets *o, struct m6_image *i, int *error)
{
  struct m6_dumps *x = &o->dumps;
  if (x->path == NULL) return 0;
  if (x->dump == NULL) {
    int late = m6_monotonic_ns() - x->asked_ns > M6_DUMP_NAMES_MS * 1000000ull;
    if (i && !m6_site_side_wait(i->sites, 0) && !late) return 0;
    if ((*error = begin(o, i)) != 0) {
      m6_outlets_dump_end(o);
      return 1;
    }
  }
  enum m6_dump_state state = m6_dump_poll(x->dump);
  if (state == M6_DUMP_BUSY) return 0;
  *error = say_end(x->dump, x->path, state);
  m6_outlets_dump_end(o);
  return 1;
}

void m6_outlets_dump_end(struct m6_outlets *o)
{
  struct m6_dumps *x = &o->dumps;
  m6_dump_end(x->dump);
  free(x->path);
  x->dump = NULL;
  x->path = NULL;
}
