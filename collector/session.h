/* session.h - the two ways to run the collector: on one target (attach), and for `mach6 run` (run).
 *
 * Promise: a session is bounded, its end has a name, and at the end the shim is told, the rings are drained, the final
 * snapshot is written, and nothing stays behind in /dev/shm but the segment of a target that lives.
 */
#ifndef M6_SESSION_H
#define M6_SESSION_H

#include "calibrate.h"
#include "control.h"
#include "publish.h"
#include "watch.h"

/* A wake-up costs more than the records that it finds, and takes a CPU from the game: so the collector sleeps until the
 * fullest ring should be a third full. Twice the rate, a burst of three, or the longest sleep's worth at any rate, still fits. */
#define M6_POLL_FULL 33 /* percent */
#define M6_POLL_MIN_MS 2
#define M6_POLL_BUSY_MS 5 /* while something is waited for */
#define M6_POLL_MAX_MS 30
#define M6_PUBLISH_MS 500
#define M6_LOOK_MS 200      /* /proc is looked at so often */
#define M6_PATIENCE_MS 2000 /* then it is said what the collector waits for */
#define M6_OFF_MS 1000      /* how long the shim may take to hear that the session is over */

struct m6_options {
  pid_t pid; /* the target; the direct child of a run */
  const char *name, *wait;
  uint64_t run_token; /* 0: attach */
  unsigned ttl_s;
  unsigned level;                 /* enum m6_level */
  uint32_t site_interval;         /* mean bytes between two sampled ones; 1 = every allocation, 0 = no sites */
  int final_fd, end_fd, ready_fd; /* -1: none */
};

struct m6_outlets { /* where snapshots go; shared by both ways */
  const struct m6_options *options;
  struct m6_watch watch;
  struct m6_calibration calibration;
  struct m6_live live;
  struct m6_image *published; /* whose live stats these are */
  void *block;
  uint64_t publishes, live_ns, cpu_start_ns;
  int poll_ms; /* how long it slept the last time */
  int told_no_room;
};

int m6_outlets_open(struct m6_outlets *o, const struct m6_options *options, struct m6_error *e);
void m6_outlets_ready(struct m6_outlets *o); /* says so on the ready descriptor */
/* One snapshot of an image into the live stats, or, when `final`, into the final descriptor as well. */
struct m6_session_state {
  uint32_t state, end_reason, images_other;
  uint64_t images_other_allocs;
};
void m6_outlets_publish(struct m6_outlets *o, struct m6_image *i, const struct m6_session_state *s, int final);
void m6_outlets_close(struct m6_outlets *o);

/* How long to wait before the next poll, from what this one found. */
int m6_poll_ms(struct m6_outlets *o, const struct m6_drained *got);
const char *m6_end_words(uint32_t reason);

/* An exit status; *e filled when it is not 0. */
int m6_attach(const struct m6_options *options, struct m6_error *e);
int m6_run(const struct m6_options *options, struct m6_error *e);

#endif
