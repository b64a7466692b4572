/* session.h - the two ways to run the collector: on one target (attach), and for `mach6 run` (run), and the loop that
 * both share (session.c): it turns what happens into the lifecycle's events, and does what its transitions ask for.
 *
 * Promise: a session is bounded, its end has a name, and at the end the shim is told, the rings are drained, the final
 * snapshot is written, and nothing stays behind in /dev/shm but the segment of a target that lives.
 */
#ifndef M6_SESSION_H
#define M6_SESSION_H

#include "bounds.h"
#include "calibrate.h"
#include "command.h"
#include "control.h"
#include "dump_write.h"
#include "lifecycle.h"
#include "live.h"
#include "publish.h"
#include "watch.h"

/* A wake-up costs more than the records that it finds, and takes a CPU from the game: so the collector sleeps until the
 * fullest ring should be a third full. Twice the rate, a burst of three, or the longest sleep's worth at any rate,
 * still fits. */
#define M6_POLL_FULL 33 /* percent */
#define M6_POLL_MIN_MS 2
#define M6_POLL_BUSY_MS 5 /* while something is waited for */
#define M6_POLL_MAX_MS 30 /* twice as long where the governor says so */
/* With sites, whose stacks have little room: so long for each M6_POLL_SITES_BYTES between two samples, and no less. */
#define M6_POLL_SITES_MS 10
#define M6_POLL_SITES_BYTES (M6_SITE_INTERVAL / 2)
/* When every allocation is a sample a ring is full in a quarter of a millisecond: no sleep while there are records, and
 * M6_WAIT_BRIEF while there are none. */
#define M6_PUBLISH_MS 500
#define M6_LOOK_MS 200      /* /proc is looked at so often */
#define M6_PATIENCE_MS 2000 /* then it is said what the collector waits for */
#define M6_OFF_MS 1000      /* how long the shim may take to hear that the session is over */

struct m6_options {
  pid_t pid; /* the target; the direct child of a run */
  const char *name, *wait;
  uint64_t run_token;       /* 0: attach */
  const char *shim;         /* of a run: the file that its programs load; NULL: not known */
  const char *frame_symbol; /* frames are the calls of this function, and there is no shim; NULL: the usual */
  unsigned ttl_s;
  unsigned level;                 /* enum m6_level */
  uint32_t site_interval;         /* mean bytes between two sampled ones; 1 = every allocation, 0 = no sites */
  int final_fd, end_fd, ready_fd; /* -1: none */
  int stay;                       /* after a session wait for the next, as long as the grant allows one */
  uint32_t sessions;              /* a chain of so many; 1: one session */
  uint64_t session_frames;        /* a session of a chain has so many presents; 0: its time alone bounds it */
  const char *out;                /* a file for the dump at the end; NULL: none */
};

struct m6_dumps {
  char *path;           /* of the one on demand that is under way */
  struct m6_dump *dump; /* NULL: it waits for names */
  void *block;
  uint64_t asked_ns;
  int failed; /* the errno that the last dump at an end failed with */
  int told_refused;
};

struct m6_outlets { /* where snapshots go; shared by both ways */
  const struct m6_options *options;
  struct m6_watch watch;
  struct m6_calibration calibration;
  struct m6_commands commands;
  struct m6_bounds bounds;
  enum m6_life_event event; /* what the last publication led to */
  struct m6_live live;
  struct m6_image *published; /* whose live stats these are */
  void *block;
  size_t room; /* of it */
  uint64_t publishes, live_ns, cpu_start_ns;
  int poll_ms; /* how long it slept the last time */
  int told_no_room;
  struct m6_dumps dumps;
};

int m6_outlets_open(struct m6_outlets *o, const struct m6_options *options, struct m6_error *e);
void m6_outlets_ready(struct m6_outlets *o); /* says so on the ready descriptor */
/* One snapshot of an image into the live stats, or, when `final`, into the final descriptor as well. */
struct m6_session_state {
  uint32_t state, end_reason, images_other;
  uint64_t images_other_allocs;
  const struct m6_lost_exec *lost; /* or NULL */
};
void m6_outlets_publish(struct m6_outlets *o, struct m6_image *i, const struct m6_session_state *s, int final);
void m6_outlets_close(struct m6_outlets *o);
/* The snapshot alone (enum m6_snapshot_kind), into a block of M6_SNAPSHOT_BYTES_MAX bytes; its size. */
size_t m6_outlets_build(struct m6_outlets *o, struct m6_image *i, const struct m6_session_state *s, int kind,
                        void *block);

/* outlets_dump.c. The first says early what would fail at the end: 0 or a status. */
int m6_outlets_dump_open(struct m6_outlets *o, struct m6_error *e);
void m6_outlets_dump_final(struct m6_outlets *o); /* of the block that was just published; waits; sets dumps.failed */
/* On demand: 0 when it has begun, EBUSY while one is under way, or another errno. */
int m6_outlets_dump(struct m6_outlets *o, struct m6_image *i, const char *path);
/* Each turn of the drain loop: 1 when one has just ended, *error its errno or 0. Never waits. */
int m6_outlets_dump_poll(struct m6_outlets *o, struct m6_image *i, int *error);
void m6_outlets_dump_end(struct m6_outlets *o); /* gives it up */

/* How long to wait before the next poll, from what this one found. */
int m6_poll_pending_ms(const struct m6_outlets *o); /* until the session begins */
int m6_poll_ms(struct m6_outlets *o, const struct m6_drained *got);

/* ---- the loop that both ways share --------------------------------------------------------------------------------
 * */

struct m6_due { /* what this turn of the loop is to do, beside draining */
  uint64_t now;
  int beat, look;
};

/* What a session collects from: one image, or all those of a run. Every function gets `arg`. */
struct m6_source {
  /* Drains, shows that the collector lives, and sees whether the targets do: what happened, or M6_EVENT_NOTHING. */
  enum m6_life_event (*poll)(void *arg, const struct m6_due *due, enum m6_life state, struct m6_drained *got);
  enum m6_life_event (*created)(void *arg); /* there may be new segments */
  void (*ask)(void *arg);                   /* M6_DO_ASK: write the wish for a session */
  void (*stop)(void *arg); /* M6_DO_CANCEL, M6_DO_STOP, M6_DO_FLUSH: tell the shim, wait a moment, drain what is left */
  /* The session's last snapshot when final. 0: there is nothing to publish yet; then it is tried again at the next
   * turn. */
  int (*publish)(void *arg, int final, uint32_t reason);
  struct m6_image *(*image)(void *arg); /* the image that the session is about, or NULL */
  /* Between two sessions of a collector that stays: what the grant is now. 0 when the target is gone. NULL: there is no
   * second one. */
  int (*grant)(void *arg, struct m6_lifecycle *life);
};

struct m6_session {
  struct m6_outlets *o;
  const struct m6_source *source;
  void *arg;
  struct m6_lifecycle life;
  int quit; /* a signal: nothing begins any more */
};

/* From granted to the end of the last session that is wanted; life.end says how that one ended. */
void m6_session_run(struct m6_session *s);

/* An exit status; *e filled when it is not 0. */
int m6_attach(const struct m6_options *options, struct m6_error *e);
int m6_run(const struct m6_options *options, struct m6_error *e);
int m6_frame_session(const struct m6_options *options, struct m6_error *e);

#endif
