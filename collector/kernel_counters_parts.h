/* kernel_counters_parts.h - the inside of the counters' handle, which kernel_counters.c, kernel_seed.c, kernel_pause.c,
 * kernel_table.c and kernel_frames.c share. */
#ifndef M6_KERNEL_COUNTERS_PARTS_H
#define M6_KERNEL_COUNTERS_PARTS_H

#include <bpf/libbpf.h>

#include "kernel_counters.h"
#include "kernel_frames.h"
#include "kernel_object.h"
#include "kernel_place.h"
#include "kernel_uprobe.h"

#define M6_COUNTERS_PROGRAMS 5
#define M6_FRAMES_PLACES 2 /* where a present begins, and where it is corrected */

/* What was told of a thread last: readings are kept from going back (kernel_frames.c). */
struct m6_frames_told;

struct m6_counters_frames {
  enum m6_frames_by by;
  pid_t pid;
  unsigned places; /* in use */
  struct m6_place place[M6_FRAMES_PLACES];
  int links[M6_FRAMES_PLACES], events[M6_FRAMES_PLACES]; /* -1: none */
  struct ring_buffer *ring;
  void (*each)(const struct m6_kernel_frame *, void *);
  void *arg;
  int handed, stopped;
  struct m6_frames_told *told;
};

struct m6_counters_inside {
  struct bpf_object *object;
  struct bpf_link *links[M6_COUNTERS_PROGRAMS];
  int calls_fd, losses_fd;
  struct m6_counters_thread *table; /* the kernel's, mapped */
  struct m6_counters_taken *taken;
  uint64_t seeded_ns;     /* since when only the programs make entries */
  uint64_t paused_ns;     /* since when no program counts; 0: they do */
  uint64_t unseen_slices; /* of all threads, while none did */
  enum m6_uprobe_kind kind;
  unsigned targets;
  int cpus, syscalls;
  struct m6_counters_frames frames;
  /* what a read is made of */
  struct m6_counters_call_key *call_keys;
  struct m6_counters_call *call_entries;
  uint32_t target_here[M6_COUNTERS_TARGETS], target_global[M6_COUNTERS_TARGETS]; /* the same processes */
  /* threads that were folded, and their syscalls by number; those of the 32-bit table after them */
  struct m6_thread_counters past;
  struct m6_call_counters past_calls[2 * M6_COUNTERS_NUMBERS];
};

/* Attaches what is loaded and not attached yet: 0, or an errno and the fault, and then nothing of it is. Detaches. */
enum { M6_ATTACH_TASKS = 1, M6_ATTACH_CALLS = 2 }; /* switches, wake-ups and frames; system calls */
int m6_counters_attach(struct m6_counters *c, unsigned what, struct m6_fault *fault);
void m6_counters_detach(struct m6_counters *c, unsigned what);

/* Finds the places where boundaries are seen, before anything is loaded: 0, or an errno and the fault. */
int m6_frames_find(struct m6_counters_frames *f, const struct m6_counters_options *o, struct m6_fault *fault);
/* Which programs of the object are loaded, and how they will be attached. */
int m6_frames_choose(struct m6_counters_frames *f, struct bpf_object *object, enum m6_uprobe_kind kind,
                     const char *ending, struct m6_fault *fault);
/* Again after they were detached, too. */
int m6_frames_attach(struct m6_counters_frames *f, struct bpf_object *object, enum m6_uprobe_kind kind,
                     const char *ending, struct m6_fault *fault);
void m6_frames_detach(struct m6_counters_frames *f);
void m6_frames_close(struct m6_counters_frames *f);

#endif
