/* chain.h - sessions that follow each other without a gap: what a soak is made of.
 *
 * The shim goes on counting across a joint: blocks that come and go while it is inert would open the books. So a joint
 * is a place in its stream of records, the last boundary that has arrived: there one session's books close, and the
 * next one's open with the same reading. Readings cross, no difference does. The shim is told, and takes the next
 * session off its grant.
 * A link's level is the median of its frames' readings, which other threads' blocks that are alive for a moment do not
 * move; the leak is the trend of the levels over the frames (trend.h), the first tenth of the links left out as
 * warm-up.
 * Callers: bounds.c, session.c. One thread.
 */
#ifndef M6_CHAIN_H
#define M6_CHAIN_H

#include "target.h"
#include "trend.h"

#define M6_CHAIN_WARM_UP 0.10
#define M6_CHAIN_LEAST 1.0 /* bytes a frame: less is no leak that anybody would look for */

struct m6_chain {
  uint32_t wanted, count;
  uint64_t frames; /* presents of the links that are closed */
  struct m6_snap_link links[M6_SNAP_LINKS];
};

/* Closes a link on a capture at its last boundary (`joint`), or where it was sampled last, when that is the end. */
void m6_chain_link(struct m6_chain *c, const struct m6_capture *capture, uint32_t end, int joint);
/* The next session of an image: its capture is replaced by one that begins at the last boundary of the one before,
 * which is closed as a link. 0, -1 when the image failed, or an errno: then all is as before. */
int m6_chain_join(struct m6_chain *c, struct m6_image *i);
/* The chain's own books: all links closed, each begins where the one before ended, and the sums span the whole. */
int m6_chain_closed(const struct m6_chain *c);
struct m6_trend m6_chain_trend(const struct m6_chain *c);

#endif
