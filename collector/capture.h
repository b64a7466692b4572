/* capture.h - what the collector knows of one image's session, from its first record to its last snapshot.
 *
 *   drain.c    rings -> records -> events
 *   scope.c    marks and dones of a thread -> nodes of its private tree
 *   thread.c   threads come, get names, present, end; where their trees settle
 *   capture.c  opening; boundaries -> books and frames; sampling what is not in records
 *   publish.c, publish_tree.c  all of it -> a snapshot
 *
 * Promise: everything foreign is copied once and then checked; whatever a segment holds costs at most its own figures.
 * Functions marked "foreign" touch the segment: call them inside m6_guarded, and give the target up when that fails;
 * the capture stays consistent and can still be published. One thread.
 */
#ifndef M6_CAPTURE_H
#define M6_CAPTURE_H

#include "../shm/label.h"
#include "../shm/layout.h"
#include "../shm/ring.h"
#include "books.h"
#include "clock.h"
#include "frame.h"
#include "retained.h"
#include "scope.h"
#include "tree.h"

#define M6_THREAD_NAMES 512     /* distinct thread names; later ones share "(other threads)" */
#define M6_THREAD_NAME_BYTES 16 /* as the kernel keeps them, with the NUL */
#define M6_PRESENTS_AHEAD 64    /* a present's record may be written before its stream's counter, by so many at most */

struct m6_totals { /* sums over all slots; unsigned ones stay at UINT64_MAX when they get there */
  __int128 live, mapped;
  uint64_t allocs, bytes, frees, maps, lost;
  uint64_t kind_count[4], kind_bytes[4]; /* calloc, realloc, aligned, new */
  uint32_t threads;                      /* slots that have an owner */
};

struct m6_capture;
struct m6_ring {
  uint64_t at; /* index of the next record to read */
  uint64_t hole_at;
  uint32_t hole_polls, seen;
  struct m6_thread *thread;
};

struct m6_label_text {   /* a label of the segment, once it could be read */
  char *text;            /* valid UTF-8 */
  uint32_t bytes, flags; /* as in struct m6_snap_node; flags M6_LABEL_KNOWN too */
};
#define M6_LABEL_CUT 1u
#define M6_LABEL_REPLACED 2u
#define M6_LABEL_KNOWN 4u

/* CPU samples wait until the records of their thread have come. Without functions there are none. */
struct m6_credit {
  void *arg;
  uint64_t (*next)(void *arg, const struct m6_capture *c, uint32_t tid); /* clock of the first; UINT64_MAX = none */
  /* Those before `clock` are this thread's, where it is now; `present`: inside the present that it has just made. */
  void (*until)(void *arg, struct m6_capture *c, struct m6_thread *t, uint64_t clock, int present);
  /* NULL, or who is told of each present of the main stream: its number in the stream, and the clock at its entry. */
  void (*presented)(void *arg, const struct m6_capture *c, uint32_t tid, uint32_t stream, uint64_t number,
                    uint64_t clock);
};
struct m6_site_sink { /* who wants sampled allocations: site_side.h. NULL: nobody */
  void *arg;
  void (*take)(void *arg, struct m6_capture *c, const struct m6_record *birth_or_death);
};

struct m6_capture {
  void *segment; /* NULL once it was let go */
  pid_t pid;     /* 0: not known to this machine's /proc (tests) */
  uint32_t clock_kind;
  struct m6_rate rate; /* as known at the last poll */
  uint64_t start_clock, start_mono_ns, started_unix_ns;
  int64_t start_live;

  struct m6_tree tree;
  struct m6_books books;
  struct m6_frames frames;
  struct m6_retained retained;
  struct m6_ring rings[M6_RINGS];
  struct m6_ring maps; /* the mappings' ring; without a thread */
  uint64_t maps_hole_ns;
  struct m6_thread *presenter; /* who made the main stream's last present; lives in a ring or in `tails` */
  struct m6_thread *tails;     /* presenters that ended: their last scopes belong to a frame, or to shutdown */
  int main_stream;             /* -1: nobody presented yet */
  uint64_t boundaries;         /* of the main stream, in any order */
  uint64_t base_presents[M6_STREAMS];
  struct m6_totals base; /* at the session's start */
  /* The same and start_live, at the start of the first session of a chain: sites are of all of it. */
  struct m6_totals first;
  uint64_t first_presents[M6_STREAMS];
  int64_t first_live;

  /* what sampling saw last */
  struct m6_header head;
  struct m6_totals now;
  uint64_t now_clock, now_mono_ns, presents;
  int agrees;                   /* two sums over the slots at rest were equal */
  struct m6_label_text *labels; /* M6_LABELS */
  char (*names)[M6_THREAD_NAME_BYTES];
  uint32_t name_count;
  uint32_t slot_tid[M6_SLOTS];
  uint64_t threads_seen;

  uint64_t records, marks, holes, bad;
  struct m6_credit credit;
  struct m6_site_sink sites;
};

/* Foreign. Opens the books on a segment whose session runs (or has run). `base`: totals when the session began. 0 or
 * an errno. */
int m6_capture_open(struct m6_capture *c, void *segment, pid_t pid, const struct m6_totals *base,
                    const uint64_t base_presents[M6_STREAMS]);
void m6_capture_close(struct m6_capture *c);
/* A capture that was just opened goes on where another one's last boundary was: same streams and rings, its books start
 * with that boundary's reading. */
void m6_capture_follow(struct m6_capture *c, const struct m6_capture *before);

/* Foreign. Reads all rings. `dead`: nobody writes any more, so holes are passed at once and nothing waits. */
struct m6_drained {
  uint64_t records;
  uint32_t fullest; /* of any ring on arrival, in percent */
  uint32_t more;    /* 1: every allocation is a sample, and some wait that were drained before */
};
struct m6_drained m6_capture_drain(struct m6_capture *c, int dead);
/* Foreign. Takes the readings that are not in records: totals, streams, label texts. `rest`: the target does not
 * count now. */
void m6_capture_sample(struct m6_capture *c, int rest);
/* Foreign. */
void m6_totals_read(const void *segment, struct m6_totals *out);

/* The session is over: whatever is open is closed, the last present's rest becomes shutdown. After the last drain
 * and sample. */
void m6_capture_finish(struct m6_capture *c);

/* thread.c */
struct m6_thread *m6_capture_thread(struct m6_capture *c, uint32_t ring,
                                    uint32_t tid); /* the ring's owner, made when new */
void m6_capture_thread_ended(struct m6_capture *c, uint32_t ring);
void m6_capture_settle(struct m6_capture *c,
                       uint64_t now_ns); /* before a snapshot: what can be settled is; names are looked up */
void m6_capture_present(struct m6_capture *c, struct m6_thread *t); /* this thread presents on the main stream, now */
void m6_capture_settle_last(struct m6_capture *c);
const char *m6_capture_name(const struct m6_capture *c, uint32_t label);

/* capture.c: a boundary's four records, in order */
void m6_capture_boundary(struct m6_capture *c, struct m6_thread *t, const struct m6_record unit[M6_FRAME_UNITS]);

static inline struct m6_header *m6_segment_header(void *segment) { return segment; }
static inline struct m6_slot *m6_segment_slots(const void *segment)
{
  return (struct m6_slot *)((char *)(uintptr_t)segment + M6_OFF_SLOTS);
}
static inline struct m6_ring_head *m6_segment_ring(void *segment, uint32_t i)
{
  return (struct m6_ring_head *)((char *)segment + M6_OFF_RING_HEADS) + i;
}
static inline struct m6_record *m6_segment_records(void *segment, uint32_t i)
{
  return (struct m6_record *)((char *)segment + m6_ring_offset(i));
}

#endif
