/* site_publish.h - the sites of an image into a snapshot that is being built: the head, and at most M6_SITES_SHOWN
 * rows.
 *
 * Names are looked up here, for the rows that are shown: brief ones while the session runs, whole ones when somebody
 * watches it, at its end, which is waited for, and for a dump, by whoever writes it: m6_site_publish_ask and then
 * m6_site_side_wait, before the snapshot. Callers: publish.c, by the pointer in struct m6_outside; outlets_dump.c.
 */
#ifndef M6_SITE_PUBLISH_H
#define M6_SITE_PUBLISH_H

#include "publish.h"
#include "site_side.h"
#include "symbols_debuginfod.h"

/* Of the 20 s that `mach6 run` waits for a report. Debuginfod's servers may take a part of it. */
#define M6_SITE_NAMES_END_MS (M6_DEBUGINFOD_END_MS + 5000u)

/* As m6_site_view.put: `arg` is the struct m6_site_side. */
uint32_t m6_site_publish(void *arg, const struct m6_capture *c, struct m6_snapshot *snap, struct m6_snap_site *rows,
                         const struct m6_site_text *text);
/* And those of mappings, at most M6_SITE_MAPS_SHOWN: as m6_site_view.put_maps, after the others. */
uint32_t m6_site_publish_maps(void *arg, const struct m6_capture *c, struct m6_snapshot *snap,
                              struct m6_snap_site *rows, const struct m6_site_text *text);
/* Asks for whole names of the rows that a snapshot of now would have. */
void m6_site_publish_ask(struct m6_site_side *side, const struct m6_capture *c, uint64_t presents);

#endif
