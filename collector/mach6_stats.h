/* mach6_stats.h - read the live stats of a target: the library that every inspector uses, a game on itself included.
 *
 *   mach6_stats *s;
 *   int e = mach6_stats_open(pid, &s);
 *   if (e) fprintf(stderr, "%s\n", mach6_stats_strerror(e));
 *   mach6_stats_refresh(s);
 *   const mach6_node *root = mach6_stats_root(s);
 *   ...
 *   mach6_stats_close(s);
 *
 * Promise: the library copies a snapshot once and then checks it, so a hostile or dying writer costs an error code and
 * never a crash. Nodes belong to the handle and hold until the next refresh or close.
 * Thread-safety: one handle, one thread; different handles are independent. Not for signal handlers: refresh allocates.
 * Units: as in the payload, seconds and KiB (1024 bytes). Errors: 0, or a negative enum mach6_error.
 */
#ifndef MACH6_STATS_H
#define MACH6_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mach6_stats mach6_stats;
typedef struct mach6_node mach6_node;

enum mach6_error {
  MACH6_OK = 0,
  MACH6_ENOTFOUND = -1, /* no live stats for this pid: nobody captures it */
  MACH6_EPERM = -2,     /* they are another user's */
  MACH6_EVERSION = -3,  /* written by another version of mach6 */
  MACH6_EINVALID = -4,  /* not what a collector writes: damaged or hostile */
  MACH6_EBUSY = -5,     /* the writer was at it, or died at it, in every try */
  MACH6_ENOMEM = -6,
  MACH6_ESYSTEM = -7, /* errno says more */
};

/* What a node's stats are, in the payload's units. Percentiles are NaN for a node without samples. */
struct mach6_node_stats {
  uint64_t count;                                          /* calls, or frames */
  double time_avg, time_p10, time_p50, time_p90, time_max; /* s */
  double mem_delta_avg, mem_delta_total;                   /* KiB */
  double inverse_mem_total, mem_net; /* KiB; inverse is noise for scopes, see inverse_is_measure */
  int inverse_is_measure;            /* 1 for frames, 0 for scopes */
  uint64_t allocs;    /* allocating calls within: a frame's are the process's, a scope's its own thread's */
  uint64_t abandoned; /* calls that were left by longjmp, a throw or a thread's end; not in count */
  uint64_t lost;      /* calls whose end is not known, as records were lost; not in count */
};

enum mach6_format { MACH6_JSON, MACH6_MSGPACK };

/* What a collector publishes of that process, its newest snapshot copied. *out is to be closed; after an error it is
 * NULL. */
int mach6_stats_open(pid_t pid, mach6_stats **out);
/* A final snapshot: the plain contents of fd, which stays the caller's. */
int mach6_stats_open_fd(int fd, mach6_stats **out);
/* A dump that a collector wrote (`mach6 run --out FILE`). One that was cut or damaged gives what comes before that, and
 * says so: ask mach6_stats_dump. */
int mach6_stats_load(const char *path, mach6_stats **out);
int mach6_stats_refresh(mach6_stats *s);     /* the newest snapshot; open has done it once */
int mach6_stats_ended(const mach6_stats *s); /* 1 when the session is over and nothing newer will come */
void mach6_stats_close(mach6_stats *s);
const char *mach6_stats_strerror(int error); /* of enum mach6_error; never NULL */

const mach6_node *mach6_stats_root(const mach6_stats *s);
const mach6_node *mach6_node_first_child(const mach6_node *n);
const mach6_node *mach6_node_next_sibling(const mach6_node *n);
const mach6_node *mach6_node_find(const mach6_node *n, const char *label); /* a child by its label, or NULL */
const char *mach6_node_label(const mach6_node *n);                         /* NUL-terminated UTF-8 */
struct mach6_node_stats mach6_node_stats(const mach6_node *n);

/* A node and all below it as {label, stats, children}. *out is the caller's to free(); JSON is NUL-terminated as
 * well. */
int mach6_convert(const mach6_node *n, enum mach6_format format, char **out, size_t *bytes);
/* The whole report as one object: target, session, presents, frame_source, books, allocs, losses, overhead, kernel,
 * root, ... */
int mach6_stats_convert(const mach6_stats *s, enum mach6_format format, char **out, size_t *bytes);

/* What became of a dump on its way here. */
struct mach6_dump_info {
  int whole;               /* 1: this is all of the recording: nothing was overwritten, left out, cut off or damaged */
  uint64_t bytes, objects; /* that were read and made sense */
  const char *broke_why;   /* NULL: the file is sound; else what is wrong at offset broke_at: a clause */
  uint64_t broke_at;
  uint64_t left_out;    /* rows that did not fit when it was written */
  uint64_t overwritten; /* frame records that later ones overwrote while the session ran */
};
const struct mach6_dump_info *mach6_stats_dump(const mach6_stats *s); /* NULL: it was not loaded from a dump */

/* The checked snapshot itself (shm/snapshot.h), for tools of this project. */
struct m6_snapshot;
const struct m6_snapshot *mach6_stats_snapshot(const mach6_stats *s);

#ifdef __cplusplus
}
#endif
#endif
