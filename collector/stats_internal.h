/* stats_internal.h - what the files of libmach6stats share. Not installed; nothing here is exported from the library.
 *
 *   stats.c          open, refresh, navigate; with stats_load.c the only files that touch files
 *   stats_load.c     a dump, by dump_read.c (dump.h)
 *   stats_check.c    is this block what a collector writes? Pure: bytes in, verdict out
 *   stats_check_kernel.c  the same, of the kernel side's part
 *   stats_kernel.c stats_sites.c  make these parts of a checked one easy to read; stats_words.c has its numbers in words
 *   stats_targets.c stats_elsewhere.c stats_proc.c stats_socket.c  targets on this machine, what /proc says, how a collector is spoken to
 *   stats_refuse.c   why a target cannot be had: words and exit statuses of all programs
 *   payload.c        a node as {label, stats, children}
 *   payload_report.c the whole report; payload_kernel.c, payload_seconds.c, payload_sites.c and payload_govern.c
 *                    parts of it
 *   payload_encode.c a JSON value as text or as msgpack
 */
#ifndef M6_STATS_INTERNAL_H
#define M6_STATS_INTERNAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "../shm/layout.h"
#include "../shm/snapshot.h"
#include "mach6_stats.h"

#define M6_HIDDEN __attribute__((visibility("hidden")))

/* Longest label in bytes: each byte of M6_LABEL_BYTES_MAX may have been replaced by U+FFFD (3 bytes), and a note that
 * it was cut. Paths and names in the text obey M6_TEXT_MAX. */
#define M6_SNAP_LABEL_MAX (3u * M6_LABEL_BYTES_MAX + 64u)
#define M6_TEXT_MAX 8192u

/* Nodes that deep below the one that is converted are the last; what lies below them is only counted (`nodes_below`).
 * Each level of a tree is two of JSON, and common readers stop at 256 or fewer than 1,000. jq 1.6, which has 256,
 * counts the key "children" as well: three a level. */
#define M6_PAYLOAD_DEPTH_MAX 80u

struct mach6_node {
  const mach6_stats *of;
  const struct m6_snap_node *raw;
  const char *label; /* a NUL-terminated copy */
};

struct mach6_stats {
  int fd;   /* of the live-stats file; -1 for a final snapshot */
  int said; /* the collector can see that we look more than once (shm/snapshot.h) */
  pid_t pid;
  int ended;
  struct m6_snapshot *snap; /* the checked copy, of snap->bytes bytes */
  struct mach6_node *nodes; /* snap->node_count of them */
  char *labels;             /* their texts, one after the other */
  uint64_t *samples;        /* of each node and all below it; NULL: none are collected */
  int from_dump;
  struct mach6_dump_info dump;
};

/* As mach6_stats_load; *info says where it broke also when nothing could be saved. */
int m6_stats_load(const char *path, mach6_stats **out, struct mach6_dump_info *info) M6_HIDDEN;
/* Is it less than the whole recording? Then a sentence that says why, in `out`; else 0 and "". */
int m6_stats_not_whole(const mach6_stats *s, char *out, size_t room) M6_HIDDEN;

/* 0, or MACH6_EVERSION or MACH6_EINVALID. After 0 every count, offset, link and text of the block can be used without a
 * further look: regions lie inside `bytes` and do not start in the head, links form one tree that reaches every node,
 * texts are UTF-8 without NUL. `block` is 8-aligned and private to the caller. */
int m6_snapshot_check(const void *block, size_t bytes) M6_HIDDEN;
int m6_snapshot_check_kernel(const struct m6_snapshot *s) M6_HIDDEN; /* 1 = it is; the rest of the block was checked */
/* 1 when all of it is valid UTF-8 (RFC 3629: no surrogates, shortest forms) without NUL. */
int m6_utf8_valid(const char *text, size_t n) M6_HIDDEN;

static inline const struct m6_snap_node *m6_snap_nodes(const struct m6_snapshot *s)
{
  return (const struct m6_snap_node *)((const char *)s + s->nodes_offset);
}
static inline const struct m6_snap_spike *m6_snap_spikes(const struct m6_snapshot *s)
{
  return (const struct m6_snap_spike *)((const char *)s + s->spikes_offset);
}
static inline const struct m6_snap_frame *m6_snap_frames(const struct m6_snapshot *s)
{
  return (const struct m6_snap_frame *)((const char *)s + s->frames_offset);
}
static inline const struct m6_snap_bucket *m6_snap_buckets(const struct m6_snapshot *s)
{
  return (const struct m6_snap_bucket *)((const char *)s + s->buckets_offset);
}
static inline const struct m6_snap_growth *m6_snap_growths(const struct m6_snapshot *s)
{
  return (const struct m6_snap_growth *)((const char *)s + s->growth_offset);
}
static inline const struct m6_snap_stall *m6_snap_stalls(const struct m6_snapshot *s)
{
  return (const struct m6_snap_stall *)((const char *)s + s->stalls_offset);
}
static inline const float *m6_snap_samples(const struct m6_snapshot *s)
{
  return (const float *)((const char *)s + s->samples_offset);
}
static inline const struct m6_snap_module *m6_snap_module_rows(const struct m6_snapshot *s)
{
  return (const struct m6_snap_module *)((const char *)s + s->modules.offset);
}
static inline const char *m6_snap_text(const struct m6_snapshot *s) { return (const char *)s + s->text_offset; }

/* stats.c: takes the block over, whatever the answer is. */
int m6_stats_adopt(mach6_stats *s, struct m6_snapshot *block, size_t bytes) M6_HIDDEN;
/* Seconds that a present of the main stream took on average, so that frame time is the frame node's plus this; NaN when
 * not known. */
double m6_snap_in_present(const struct m6_snapshot *s) M6_HIDDEN;

/* ---- JSON values: each gives a new reference, or NULL when memory ran out ---------------------------------------- */
json_t *m6_payload_node(const mach6_node *n) M6_HIDDEN;
json_t *m6_payload_node_alone(const mach6_node *n) M6_HIDDEN; /* without children: `nodes_below` says how many */
json_t *m6_payload_report(const mach6_stats *s, int with_frames) M6_HIDDEN;
/* That without what may be long: the tree, sites, the kernel's side. */
json_t *m6_payload_head(const mach6_stats *s) M6_HIDDEN;
/* payload_govern.c: what bounds a session */
json_t *m6_payload_budgets(const struct m6_snap_budget *rows, uint32_t count) M6_HIDDEN;
json_t *m6_payload_governor(const struct m6_snapshot *s) M6_HIDDEN;
json_t *m6_payload_chain(const struct m6_snapshot *s) M6_HIDDEN;
json_t *m6_payload_heap(const struct m6_snapshot *s) M6_HIDDEN;
json_t *m6_payload_seconds(const struct m6_snapshot *s) M6_HIDDEN; /* payload_seconds.c */
/* Takes the reference over. */
int m6_payload_encode(json_t *value, enum mach6_format format, char **out, size_t *bytes) M6_HIDDEN;

json_t *m6_json_real(double v) M6_HIDDEN;  /* NaN and infinities become null */
json_t *m6_json_u64(uint64_t v) M6_HIDDEN; /* saturates at 2^63-1, the largest that JSON writers agree on */
static inline json_t *m6_json_kib(int64_t bytes) { return m6_json_real((double)bytes / 1024.0); }
static inline json_t *m6_json_seconds(uint64_t ns) { return m6_json_real((double)ns / 1e9); }

#endif
