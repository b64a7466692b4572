/* layout.h - the segment: the target's shared memory, written by the shim, read by the collector.
 *
 * One file, /dev/shm/mach6.<pid>.<load time in hex>, mode 0600, owned by the target's user. Its length is fixed and
 * sparse; the shim populates a region (MADV_POPULATE_WRITE, which reserves as posix_fallocate would and needs no
 * descriptor) before it first writes there, so that a full /dev/shm is an error code and never a SIGBUS.
 *
 *   header        one page: identity, grant and state, control line, shared counters, streams
 *   slots         M6_SLOTS x 128 bytes
 *   ring heads    M6_RINGS x 128 bytes
 *   labels        head, hash table, text
 *   site head     one page: who has which granule, counters (sites.h)
 *   ring records  32 rings of 64 KiB, then 128 of 8 KiB
 *   sites         live samples, the mappings' ring, then stacks: 1 MiB of the rings' budget
 *
 * Offsets must not change within one M6_LAYOUT_VERSION. Only 64- and 32-bit words at their natural alignment, so the
 * layout is the same for 32- and 64-bit targets. Every line has one writer, named in its comment.
 * The collector treats all of it as foreign bytes: copy once, then check; geometry comes from this file, never from the
 * segment.
 */
#ifndef M6_LAYOUT_H
#define M6_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "budget.h"
#include "record.h"

#define M6_SEGMENT_MAGIC 0x314745533648434dull /* "MCH6SEG1" in memory */
#define M6_LAYOUT_VERSION 3u
#define M6_SEGMENT_DIR "/dev/shm"
#define M6_SEGMENT_PREFIX "mach6."

/* ---- header ---------------------------------------------------------------------------------------------------- */

enum m6_state { M6_INERT = 0, M6_COLLECTING = 1, M6_ENDED = 2 };
enum m6_want { M6_WANT_NOTHING = 0, M6_WANT_ON = 1, M6_WANT_OFF = 2 };
enum m6_level { M6_LEVEL_MEMORY = 0, M6_LEVEL_LITE = 1, M6_LEVEL_FULL = 2 };
#define M6_LEVELS 3u
enum m6_clock { M6_CLOCK_MONOTONIC = 0, M6_CLOCK_TSC = 1 };
enum m6_end {
  M6_END_NONE = 0,
  M6_END_OFF,
  M6_END_TTL,
  M6_END_EXIT,
  M6_END_EXEC,
  M6_END_COLLECTOR_LOST,
  M6_END_FAILURE,
  M6_END_BUDGET /* the collector's alone: mach6 cost more than it may */
};

/* What the shim knows that it cannot see. Bits of header.unseen. */
#define M6_UNSEEN_MALLOC_NOT_FIRST 1u /* another malloc comes before ours: allocations are not counted */
#define M6_UNSEEN_DEEPBIND 2u         /* a library was loaded with RTLD_DEEPBIND: its mallocs may be unseen */
#define M6_UNSEEN_NAMESPACE 4u        /* dlmopen was called: a second libc's heap is unseen */
#define M6_UNSEEN_OWN_NEW 8u          /* the program replaces operator new: what its pool does is unseen */
#define M6_UNSEEN_PROC_ROUTE 16u      /* a present was handed out that no variant was left for */
#define M6_UNSEEN_SIZES 32u /* the next malloc brings no malloc_usable_size: calls are counted, bytes are not */
#define M6_UNSEEN_NO_SHIM                                                                                              \
  128u /* there is no shim: frames come from the kernel (--frame-symbol), and nothing else is seen */
#define M6_UNSEEN_PRESENT_NOT_FIRST 64u /* another library's present or dlsym comes before ours: frames may be unseen */

/* What a program is about to become (exec.c). Bits of header.exec. */
#define M6_EXEC_UNDER_WAY 1u
#define M6_EXEC_PRELOAD 2u /* the next program's LD_PRELOAD names the shim */
#define M6_EXEC_TOKEN 4u   /* and its environment has MACH6_RUN */

struct m6_stream {      /* one present stream; claimed by CAS on kind, then written by presenting threads */
  uint64_t display;     /* the API's display, device or renderer; 0 where it has none */
  uint64_t drawable;    /* the API's surface, window or swapchain */
  uint64_t presents;    /* successful outermost presents; shared add */
  uint64_t first_clock; /* entry clock of the first one */
  uint64_t caller;      /* return address of the first one, for the module's name */
  uint32_t symbol;      /* enum m6_symbol (present.h) of the first one */
  uint32_t route;       /* enum m6_route of the first one */
  uint32_t tid;         /* thread of the first one */
  uint32_t kind;        /* 0 free, 1 live, 2 its drawable was destroyed */
  uint64_t failed;      /* presents that failed, and so were no frame; shared add */
};

struct m6_header {
  /* line 0: identity; written once, before magic is published. It keeps its place in every version, so that what a dead
   * target of any version has left can be told */
  uint64_t magic;
  uint32_t version;
  uint32_t pointer_bits;
  uint64_t size;
  uint32_t pid;       /* as the target's own pid namespace counts */
  uint32_t uid;       /* effective user at load */
  uint64_t load_ns;   /* CLOCK_BOOTTIME when the image was loaded: a pid that started later is another process */
  uint64_t run_token; /* from MACH6_RUN; 0 when not started by `mach6 run` */
  uint64_t pidns;     /* inode of /proc/self/ns/pid, 0 when unknown */
  uint32_t header_bytes;
  uint32_t record_bytes;

  /* line 1: grant and state; written by the shim */
  uint32_t state;            /* enum m6_state */
  uint32_t sessions_allowed; /* the grant */
  uint32_t sessions_started;
  uint32_t end_reason; /* enum m6_end of the last session */
  uint64_t start_clock;
  uint64_t start_mono_ns; /* CLOCK_MONOTONIC taken beside start_clock */
  uint32_t clock_kind;    /* enum m6_clock */
  uint32_t slots_used;    /* 1 + highest slot that was ever taken in */
  uint32_t rings_used;    /* number of rings ever taken, from 0 up */
  uint32_t unseen;        /* M6_UNSEEN_*; shared or */
  int64_t start_live;     /* process heap reading at the session's start, bytes */
  uint64_t exited_clock;  /* non-zero: the shim's destructor ran at that clock */

  /* line 2: control; written by the collector, read by the shim at frame boundaries and other rare points. It has no
   * version of its own: a collector writes nothing here, nor anywhere else, unless line 0 has its very own version */
  uint32_t want;         /* enum m6_want */
  uint32_t session;      /* the collector's number for it; the shim starts once for each new one */
  uint64_t heartbeat_ns; /* CLOCK_MONOTONIC; 0 = no collector was ever here */
  uint32_t level;
  uint32_t collector_pid;
  uint32_t site_interval; /* mean bytes between two sampled ones; 1 = every allocation, 0 = none */
  uint32_t site_stack;    /* bytes of a stack that are copied at most */
  uint32_t main_stream;   /* whose presents are the frames that samples carry */
  uint32_t control_free32;
  uint64_t control_free[3];

  /* line 3: counters of rare events; shared adds by the shim */
  uint64_t labels_refused;  /* marks whose label found no room and became "(other)" */
  uint64_t streams_refused; /* presents on streams beyond M6_STREAMS */
  uint64_t slots_refused;   /* threads that found no slot */
  uint64_t rings_refused;   /* threads that found no ring */
  uint64_t underflows;      /* done without a mark */
  uint64_t brk_start;       /* program break at the session's start */
  uint64_t brk_now;         /* and when the shim last looked */
  uint64_t preboot_allocs;  /* allocations before the shim could read its environment; already in slot 0 */

  char name[64];       /* program_invocation_short_name, NUL-terminated */
  uint64_t loads;      /* calls of dlopen so far, each counted before it is done; shared add by the shim */
  uint32_t sites_used; /* 1: the site head is there, and may be read; written by the shim */
  uint32_t exec;       /* M6_EXEC_*: an exec that did not come back; 0: none. Written by the shim, as the next one */
  char exec_path[256]; /* the file it was for, or the end of its path */
  uint8_t page_free[1024 - 592];
  struct m6_stream streams[M6_STREAMS];
};

/* ---- slots ----------------------------------------------------------------------------------------------------- */

/* One writer: the thread that owns the slot (slot 0: every thread, with locked adds). Never reset. Sums over all slots
 * are the process's totals. "bytes" are usable sizes. Kind "malloc" is what remains: allocs - calloc - realloc -
 * aligned - new; writers add to the total first and the kind second, so a reader that reads kinds first never sees
 * less than nothing. */
struct m6_kind {
  uint64_t count;
  uint64_t bytes;
};
struct m6_slot {
  uint64_t live;   /* bytes live, two's complement: one thread may free what another allocated */
  uint64_t allocs; /* successful allocating calls of every kind */
  uint64_t bytes;  /* bytes they handed out; a realloc counts its whole new block. freed bytes = bytes - live */
  uint64_t frees;  /* blocks given back: free, delete, realloc(p, 0) that returned NULL */
  uint64_t mapped; /* bytes mapped minus unmapped by mmap, munmap, mremap, brk, sbrk, two's complement */
  uint64_t maps;   /* calls of them that succeeded */
  uint64_t lost;   /* records that this thread could not write */
  uint32_t tid;    /* the owner; 0 when given back */
  uint32_t ring;   /* 1 + index of its ring, 0 = none */
  struct m6_kind calloc_, realloc_, aligned, new_;
};

/* ---- rings ----------------------------------------------------------------------------------------------------- */

struct m6_ring_head {
  uint64_t claimed; /* producer: index of the next record to claim */
  uint64_t producer_free[7];
  uint64_t consumed; /* consumer: index of the next record to read */
  uint64_t consumer_free[7];
};

/* ---- labels ---------------------------------------------------------------------------------------------------- */

/* An entry is claimed by CAS on hash, then its text is written, then text is published. Identity is the hash. Index 0
 * is never used: label 0 is "(other)". */
struct m6_label {
  uint64_t hash; /* 0 = free */
  /* 0 = not there yet; else length in bits 0..15, bit 16 truncated, bit 17 there, offset in bits 32..63 */
  uint64_t text;
};
struct m6_labels_head {
  uint32_t used;
  uint32_t text_used;
  uint8_t page_free[4088];
};

/* ---- where things are ------------------------------------------------------------------------------------------ */

#define M6_PAGE 4096u
#define M6_OFF_SLOTS M6_PAGE
#define M6_OFF_RING_HEADS (M6_OFF_SLOTS + M6_SLOTS * 128u)
#define M6_OFF_LABELS (M6_OFF_RING_HEADS + M6_RINGS * 128u)
#define M6_OFF_LABEL_TABLE (M6_OFF_LABELS + M6_PAGE)
#define M6_OFF_LABEL_TEXT (M6_OFF_LABEL_TABLE + M6_LABELS * 16u)
#define M6_OFF_SITE_HEAD (M6_OFF_RINGS - M6_PAGE)
#define M6_OFF_RINGS 491520u
#define M6_SEGMENT_BYTES (M6_OFF_RINGS + M6_RING_BYTES)

/* Sampled allocations, at the end of the rings' budget: the table of live ones, the ring of mappings, then the stacks,
 * in granules. */
#define M6_OFF_SITE_TABLE (M6_SEGMENT_BYTES - M6_SITE_BYTES)
#define M6_OFF_MAPS (M6_OFF_SITE_TABLE + M6_SITE_TABLE * 8u)
#define M6_MAPS_RECORDS 2048u
#define M6_OFF_STACKS (M6_OFF_MAPS + M6_MAPS_RECORDS * 32u)
#define M6_SITE_BUCKET 16u
#define M6_STACK_GRANULE 1024u
#define M6_STACK_GRANULES ((M6_SITE_BYTES - M6_SITE_TABLE * 8u - M6_MAPS_RECORDS * 32u) / M6_STACK_GRANULE)

/* Ring i of M6_RINGS: the first M6_RINGS_LARGE hold 2048 records, the rest 256. */
#define M6_RINGS_LARGE 32u
#define M6_RING_LARGE_RECORDS 2048u
#define M6_RING_SMALL_RECORDS 256u
static inline uint32_t m6_ring_capacity(uint32_t i)
{
  return i < M6_RINGS_LARGE ? M6_RING_LARGE_RECORDS : M6_RING_SMALL_RECORDS;
}
static inline uint32_t m6_ring_offset(uint32_t i)
{
  uint32_t large = M6_RING_LARGE_RECORDS * 32u, small = M6_RING_SMALL_RECORDS * 32u;
  return i < M6_RINGS_LARGE ? M6_OFF_RINGS + i * large
                            : M6_OFF_RINGS + M6_RINGS_LARGE * large + (i - M6_RINGS_LARGE) * small;
}

#define M6_AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), "offset must not change")
_Static_assert(sizeof(struct m6_stream) == 64, "a stream is one cache line");
_Static_assert(sizeof(struct m6_header) == M6_PAGE, "the header is one page");
_Static_assert(sizeof(struct m6_slot) == 128, "a slot is two cache lines");
_Static_assert(sizeof(struct m6_ring_head) == 128, "producer and consumer have a line each");
_Static_assert(sizeof(struct m6_label) == 16 && sizeof(struct m6_labels_head) == M6_PAGE, "labels");
_Static_assert(M6_RINGS_LARGE *M6_RING_LARGE_RECORDS * 32u + (M6_RINGS - M6_RINGS_LARGE) * M6_RING_SMALL_RECORDS * 32u +
                   M6_SITE_BYTES ==
                 M6_RING_BYTES,
               "rings fill their budget");
_Static_assert(M6_STACK_GRANULES % 64 == 0 && M6_STACK_GRANULES <= 1024 && M6_OFF_STACKS % M6_PAGE == 0,
               "granules are whole words of bits, and fill whole pages");
_Static_assert(M6_OFF_LABEL_TEXT + M6_LABEL_TEXT_BYTES <= M6_OFF_SITE_HEAD && M6_OFF_LABELS % M6_PAGE == 0,
               "regions do not overlap");
M6_AT(struct m6_header, load_ns, 32);
M6_AT(struct m6_header, state, 64);
M6_AT(struct m6_header, start_clock, 80);
M6_AT(struct m6_header, exited_clock, 120);
M6_AT(struct m6_header, want, 128);
M6_AT(struct m6_header, site_interval, 152);
M6_AT(struct m6_header, labels_refused, 192);
M6_AT(struct m6_header, name, 256);
M6_AT(struct m6_header, exec, 332);
M6_AT(struct m6_header, streams, 1024);
M6_AT(struct m6_slot, tid, 56);
M6_AT(struct m6_slot, calloc_, 64);
M6_AT(struct m6_ring_head, consumed, 64);

#endif
