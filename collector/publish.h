/* publish.h - a capture as a snapshot (shm/snapshot.h), in a block of memory. Who gets to read it is live.h's.
 *
 *   publish.c       the head, spikes, frames, what was kept of each second, sites, text
 *   publish_tree.c  nodes and the samples behind their percentiles
 *
 * Promise: a snapshot never exceeds the block that it is given; a live one fits in M6_SNAPSHOT_LIVE_MAX, any other in
 * M6_SNAPSHOT_BYTES_MAX; all text in it is valid UTF-8. Callers: outlets.c. One thread, one at a time: it keeps its
 * bookkeeping in static memory.
 */
#ifndef M6_PUBLISH_H
#define M6_PUBLISH_H

#include "capture.h"
#include "modules.h"

struct m6_price {                    /* ns, NaN when not calibrated */
  double pair, scope, frame, sample; /* sample: a sampled allocation, with its stack and its end */
};

/* What comes behind the text of a snapshot, and is not the capture's to know. `text` gives a text that is appended to
 * the snapshot's own as it is; `append` writes from `at` on, up to `room`, and gives where it ended. */
struct m6_appendix {
  void *arg;
  const char *(*text)(void *arg, uint32_t *bytes);
  size_t (*append)(void *arg, struct m6_capture *c, struct m6_snapshot *s, uint32_t text_at, size_t at, size_t room);
};

struct m6_site_text { /* foreign text into the snapshot: where it is; *bytes becomes what was put there */
  uint32_t (*put)(void *arg, const char *text, uint32_t *bytes);
  void *arg;
};
struct m6_site_view { /* site_publish.h */
  void *arg;
  uint32_t (*put)(void *arg, const struct m6_capture *c, struct m6_snapshot *snap, struct m6_snap_site *rows,
                  const struct m6_site_text *text);
  uint32_t (*put_maps)(void *arg, const struct m6_capture *c, struct m6_snapshot *snap, struct m6_snap_site *rows,
                       const struct m6_site_text *text);
};

struct m6_outside { /* what a snapshot says that is not the capture's to know */
  uint32_t pid, uid, session, level, state, end_reason;
  uint64_t load_ns, ttl_ns, collector_ns, target_cpu_ns, publishes;
  uint32_t images_other;
  uint64_t images_other_allocs;
  const struct m6_lost_exec *lost; /* or NULL */
  const char *exe;                 /* path, or NULL */
  const char (*caller)[256];       /* M6_STREAMS module paths, "" = unknown; or NULL */
  struct m6_price price;
  const struct m6_snap_govern *govern; /* or NULL */
  const struct m6_appendix *appendix;  /* or NULL */
  size_t room;                         /* of the block; 0 = M6_SNAPSHOT_LIVE_MAX */
  struct m6_site_view sites;           /* .put NULL: none */
  struct m6_module_view modules;       /* .fill NULL: none */
};

/* Builds a snapshot in `block` (o->room bytes, 8-aligned); gives its size. FINAL: the books close at the last
 * sample instead of the last boundary. FINAL and WHOLE have retained frames and reservoirs' samples: what a dump is
 * made from. */
enum m6_snapshot_kind { M6_SNAPSHOT_LIVE, M6_SNAPSHOT_FINAL, M6_SNAPSHOT_WHOLE };
size_t m6_snapshot_build(struct m6_capture *c, const struct m6_outside *o, int kind, void *block);

#endif
