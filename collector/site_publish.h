/* site_publish.h - the sites of an image into a snapshot that is being built: the head, and at most M6_SITES_SHOWN rows.
 *
 * Names are looked up here, for the rows that are shown. Callers: publish.c, by the pointer in struct m6_outside.
 */
#ifndef M6_SITE_PUBLISH_H
#define M6_SITE_PUBLISH_H

#include "publish.h"
#include "site_side.h"

/* As m6_site_view.put: `arg` is the struct m6_site_side. */
uint32_t m6_site_publish(void *arg, const struct m6_capture *c, struct m6_snapshot *snap, struct m6_snap_site *rows,
                         const struct m6_site_text *text);
/* And those of mappings, at most M6_SITE_MAPS_SHOWN: as m6_site_view.put_maps, after the others. */
uint32_t m6_site_publish_maps(void *arg, const struct m6_capture *c, struct m6_snapshot *snap,
                              struct m6_snap_site *rows, const struct m6_site_text *text);

#endif
