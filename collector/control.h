/* control.h - the control line of a segment: asking the shim for a session, showing that the collector lives, ending
 * it.
 *
 * The line is the collector's to write, all else the shim's. Every function goes through the guard, and gives 0 or -1
 * when the segment is no longer there (the image has failed then). Callers: attach.c, run.c, session.c,
 * bounds.c, chain.c.
 */
#ifndef M6_CONTROL_H
#define M6_CONTROL_H

#include "target.h"

struct m6_control {
  uint32_t state, end_reason, rings_used, sites_used, site_interval, sessions_started, sessions_allowed;
};
int m6_control_read(struct m6_image *i, struct m6_control *out);
/* Asks for a session: takes the readings that it starts from, leaves a former session's records behind, then says
 * so. A session that runs already (started by `mach6 run`, or left by a collector that died) is taken over where it
 * stands. */
int m6_control_on(struct m6_image *i, uint32_t level);
int m6_control_beat(struct m6_image *i);
/* The session that runs gives way to the next, without a gap; the shim takes it off its grant at the next boundary. */
int m6_control_next(struct m6_image *i);
/* How much is collected from now on. */
int m6_control_level(struct m6_image *i, uint32_t level, uint32_t sites);
/* Ends it; `let_go`: and says that no collector is here any more. */
int m6_control_off(struct m6_image *i, int let_go);

/* Says that a collector is here, though no session is. */
int m6_control_here(struct m6_image *i);

/* Opens the capture when a session runs and records are there; drains it. 0, or -1 when the image failed. */
int m6_image_drain(struct m6_image *i, struct m6_drained *got);
/* Readings and totals as they are now. `rest`: nobody counts. */
int m6_image_sample(struct m6_image *i, int rest);
/* A capture even without records: books need none. 0 or an errno. */
int m6_image_capture(struct m6_image *i);

#endif
