/* site_side.h - sampled allocations of one image: from records and stacks in its segment to statistics by site, with
 * names.
 *
 *   m6_site_side_record   called by the drain, under the guard: copies what the record says and its stack, gives the stack's place back
 *   m6_site_side_look     foreign too, after the work: counters, what was lost
 *   m6_site_side_work     afterwards, on copies only: unwinds, tells the site, sums up (sites.h)
 *   m6_site_side_ask      for a stack's functions, innermost first: site_names.h says which kind when
 *
 * A stack is kept as places in files (symbols.h), not as addresses: what was unloaded since keeps its names, whatever
 * lies there now. The shim's own functions are left out. Memory: M6_SITE_STACKS_MAX different stacks,
 * M6_SITE_QUEUE_BYTES on their way. Every function takes NULL for an image whose sites nobody asked for. One thread.
 * Callers: control.c, outlets.c, outlets_dump.c, site_publish.c, modules.c, run.c, attach.c.
 */
#ifndef M6_SITE_SIDE_H
#define M6_SITE_SIDE_H

#include "capture.h"
#include "site_names.h"
#include "sites.h"
#include "../shm/snapshot.h"

#define M6_GRANULE_LOST_S 5u

struct m6_site_counts {                   /* of stacks */
  uint64_t stacks, whole, none;           /* unwound; to the thread's first function; samples that came without */
  uint64_t dropped, deaths_lost, samples; /* of the shim, since the session's start */
  uint64_t maps, maps_dropped;
  uint64_t dropped_bytes, maps_dropped_bytes; /* what those stand for, at most */
  uint64_t unmaps_dropped, unmaps_dropped_bytes;
  uint64_t unmaps_found_bytes;                  /* of these, whose end the kernel's list has told since */
  int64_t unmapped_elsewhere, placed_elsewhere; /* bytes: see m6_snap_sites */
};

/* The rows that were shown last (site_publish.c): without their texts, and whose they are. */
struct m6_site_shown {
  uint64_t at_ns, took_ns; /* CLOCK_MONOTONIC; what choosing and judging took */
  uint32_t count;
  struct m6_site *site[M6_SITES_SHOWN];
  struct m6_snap_site row[M6_SITES_SHOWN];
};

struct m6_site_side;
struct m6_site_side *m6_site_side_open(pid_t pid, uint32_t interval); /* NULL: no memory */
void m6_site_side_close(struct m6_site_side *s);
void m6_site_side_record(void *side, struct m6_capture *c, const struct m6_record *r);
void m6_site_side_look(struct m6_site_side *s, struct m6_capture *c, int rest);
/* `every`: each allocation is a sample; `came`: the last drain found something. Gives how full the stacks' place was,
 * in percent, or more, as they come in bursts; 100 when there is more to do, for which there was no time before the
 * next drain. */
uint32_t m6_site_side_work(struct m6_site_side *s, const struct m6_capture *c, int every, int came);
void m6_site_side_finish(struct m6_site_side *s, const struct m6_capture *c); /* all that is left of it */
void m6_site_side_ended(struct m6_site_side *s, const struct m6_capture *c);  /* the same, and no more will come */

struct m6_sites *m6_site_side_sites(struct m6_site_side *s);
struct m6_sites *m6_site_side_maps(struct m6_site_side *s); /* the same of mappings: every one of them */
/* The rows are judged anew when they are next asked for. */
void m6_site_side_forget_rows(struct m6_site_side *s);
struct m6_site_shown *m6_site_side_shown(struct m6_site_side *s,
                                         const struct m6_sites *which); /* of the one or the other */
struct m6_site_counts m6_site_side_counts(const struct m6_site_side *s);
/* The files that stacks led through. */
void m6_site_side_modules(const struct m6_site_side *s, void (*each)(void *arg, const struct m6_sym_module *m),
                          void *arg);
/* Somebody watches the session as it runs: then names are whole (site_names.h) at once. */
void m6_site_side_watched(struct m6_site_side *s, int watched);
int m6_site_side_is_watched(const struct m6_site_side *s);
/* The stack's functions as text (site_names.h): asks for them; gives the best that is known, NULL for nothing yet;
 * waits, for so long at most, until what was asked for is known (1). */
void m6_site_side_ask(struct m6_site_side *s, uint32_t stack, enum m6_site_naming kind);
const char *m6_site_side_text(struct m6_site_side *s, uint32_t stack);
int m6_site_side_wait(struct m6_site_side *s, unsigned ms);

#endif
