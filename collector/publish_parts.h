/* publish_parts.h - what publish.c (the snapshot) and publish_tree.c (its nodes) share. Nobody else includes it. */
#ifndef M6_PUBLISH_PARTS_H
#define M6_PUBLISH_PARTS_H

#include "publish.h"

struct m6_writer { /* the block: head, nodes, spikes, frames, and text at the end */
  char *base;
  struct m6_snapshot *head;
  struct m6_snap_node *nodes;
  uint32_t node_count;
  char *text;
  uint32_t text_bytes, text_room;
  uint32_t label_at[M6_LABELS]; /* 1 + offset in the text of a label that is there already */
};

#define M6_CLEAN_MOST 4096 /* bytes of one foreign text */
/* publish.c. Appends a text as it is: gives where it lies; *length becomes 0 when there was no room. */
uint32_t m6_put_text(struct m6_writer *w, const char *s, size_t *length);
/* Foreign text, NUL-terminated, M6_CLEAN_MOST bytes of it at most: valid UTF-8 when it is there. `flags` may be NULL.
 * */
void m6_put_clean(struct m6_writer *w, const char *s, uint32_t *offset, uint32_t *bytes, uint32_t *flags);

/* publish_tree.c. Lays out all nodes that have something to show; their `out` is their index from then on. */
void m6_put_tree(struct m6_capture *c, struct m6_writer *w, uint32_t shutdown_shown);
/* What the open frame's scopes add to their homes: only the private tree knows of it until the next boundary. */
void m6_put_open(struct m6_capture *c, struct m6_writer *w);
/* Startup, a frame, shutdown or all of the session, from the books. */
void m6_put_account(struct m6_snap_node *n, const struct m6_account *a, struct m6_rate rate, uint32_t *saturated);
/* Percentiles; after time_max, which bounds them. */
void m6_put_times(struct m6_snap_node *n, struct m6_rate rate, const struct m6_reservoir *r);
/* The samples behind each node's percentiles, in the order of nodes, ns; gives how many. */
uint32_t m6_put_samples(const struct m6_capture *c, const struct m6_writer *w, float *to);

#endif
