/* kernel_side.h - the kernel side of one session: what level lite and full add to what the shim writes.
 *
 *   level    counters by thread      CPU samples                       frames
 *   memory   none: nothing is opened, m6_kernel_open gives NULL
 *   lite     without syscalls        49 Hz, unwound by .eh_frame       what each frame waited for
 *   full     with syscalls           99 Hz, unwound by .eh_frame       the same, with its syscalls
 *
 * Each part that the machine refuses leaves one reason and is missing; nothing of it is ever an error of the session.
 * Without programs in the kernel, threads are read from /proc and page faults from perf events.
 * A poll: m6_kernel_poll, then the rings are drained, then m6_kernel_drained: THE JOIN WITH SCOPES of kernel_samples.h.
 * Opened on a pid before or while it runs; keeps through exec; what was counted can be read after it has ended.
 *
 *   kernel_side.c          opening, polling, closing
 *   kernel_side_level.c    what the governor's rung leaves of it
 *   kernel_side_hold.c     detaching and attaching for it
 *   kernel_side_proc.c     threads from /proc, where the kernel counts nothing for us
 *   kernel_side_price.c    what all of it cost the target
 *   kernel_side_switches.c what frames waited for by switch records, there
 *   kernel_side_scopes.c   samples and frames to the capture
 *   kernel_side_seconds.c  what was counted to the capture's seconds
 *   kernel_side_view.c     all of it into a snapshot
 * Every function takes NULL for a session without a kernel side. One thread but for opening, detaching and attaching,
 * which are inside. Callers: control.c, outlets.c, attach.c, run.c, session.c (the level), modules.c, frame_session.c.
 */
#ifndef M6_KERNEL_SIDE_H
#define M6_KERNEL_SIDE_H

#include <pthread.h>

#include "kernel_counters.h"
#include "kernel_faults.h"
#include "kernel_frames.h"
#include "kernel_samples.h"
#include "kernel_switches.h"
#include "profile.h"
#include "publish.h"
#include "sample_join.h"

struct m6_kernel_refusal {
  enum m6_kernel_part part;
  int error;
  char what[256];
  struct m6_hint hint;
};
#define M6_KERNEL_PLACES 8192u /* twice as many as threads are counted */
struct m6_kernel_thread {      /* what outlives a thread */
  uint32_t tid, looked;
  uint64_t samples;
  char name[M6_THREAD_NAME_BYTES];
};
struct m6_kernel_table { /* by tid; M6_KERNEL_PLACES places, open addressing */
  struct m6_kernel_thread *places;
  uint32_t used;
};
struct m6_kernel_row { /* what the interval that ended with this present was made of */
  uint64_t number;     /* in its stream, since the stream's first; 0 = empty */
  uint32_t stream;
  struct m6_snap_causes causes;
};

struct m6_kernel_measured { /* calibrate_kernel.h: ns; NaN or 0 when it is not known */
  double record, sample, stack, probe;
};
struct m6_kernel_price { /* ns, of one event to the target */
  double record_ns, switch_ns, call_ns, boundary_ns, sample_ns;
};

#define M6_PRESENTS_WAITING 4096u
struct m6_present_waiting { /* for the switch records of its time */
  uint64_t ns, number;
  uint32_t tid, stream;
};
struct m6_kernel_switching {
  struct m6_switches *switches; /* NULL: there are none, and nothing else holds */
  struct m6_present_waiting *waiting;
  uint32_t count;
  uint64_t lost; /* presents that came too late, or of a thread that was not seen */
  struct m6_thread_counters *rows;
};

struct m6_kernel_change { /* from one level to another: all but `running` is its thread's until `done` */
  pthread_t thread;
  int running, threaded, done;
  uint32_t to;
  int err;
  struct m6_fault fault;
};

struct m6_kernel_side {
  pid_t pid;
  uint32_t level;
  const char *frame_place, *shim;
  /* Loading programs takes up to a second on a busy machine, in which rings would fill: a thread does it. All below is
   * that thread's until `ready`. */
  pthread_t opener;
  int opening, ready;
  uint64_t opened_ns; /* CLOCK_MONOTONIC */
  struct m6_kernel_refusal refused[M6_KERNEL_REFUSALS_MAX];
  uint32_t refused_count;

  struct m6_counters *counters;
  struct m6_faults faults;
  int have_frames, have_faults;
  uint64_t minor, major; /* by those */
  struct m6_proc_threads *proc;
  struct m6_kernel_switching switching;
  uint64_t slow_ns; /* when what is read once a second was read */
  uint64_t told_ns; /* the last of these that a capture was told of, and all that captures were told of */
  struct m6_snap_kernel_second told;

  struct m6_samples *samples;
  struct m6_samples_status sampling;
  struct m6_symbols *symbols;
  struct m6_join *join;
  int uncovered; /* a sample fell into code that is not known yet */
  uint32_t refreshes;
  uint64_t refreshed_ns;
  uint64_t in_presents, elsewhere;

  uint64_t boundaries;
  void (*each)(void *arg, const struct m6_kernel_frame *f); /* or NULL */
  void *each_arg;
  struct m6_kernel_row *frames;            /* a ring of M6_FRAMES_RETAINED, by number; NULL: none came */
  struct m6_kernel_frame last[M6_STREAMS]; /* the last boundary of each stream */
  uint32_t stream;                         /* the main one: the first that was seen, until the capture knows better */
  uint64_t base_presents;                  /* of it, at the session's start */

  struct m6_kernel_table names; /* by tid as this process's pid namespace counts */
  struct m6_kernel_table seen;  /* samples, by tid as the target's own counts */
  struct m6_profile *profile;
  struct m6_kernel_view *view;
  int stopped, paused;
  int resting;         /* nothing is counted nor sampled for a while */
  uint64_t rested_ns;  /* since when */
  int due;             /* what is read once a second is to be read now */
  uint32_t level_now;  /* the governor's: `level` or lower */
  uint32_t held, most; /* what is attached is this level's; what can be had is no more than this one's */
  struct m6_kernel_change change;
  uint32_t duty, looks; /* samples are taken in one look of so many; looks at this duty */
  struct m6_kernel_measured measured;
};

struct m6_kernel_options {
  pid_t pid;
  uint32_t level;          /* enum m6_level */
  const char *frame_place; /* frames are the calls of that function (kernel_place.h); NULL: the shim's presents */
  const char *shim; /* the shim's file, for a process that has not loaded it yet; NULL: the one that it has mapped */
  int now;          /* waits until all is open; else it opens in the background */
};
/* NULL at level memory, or without memory. The strings must outlive it. */
struct m6_kernel_side *m6_kernel_open(const struct m6_kernel_options *options);
/* exec has put another program there. */
void m6_kernel_changed(struct m6_kernel_side *k);
void m6_kernel_poll(struct m6_kernel_side *k);
/* Nothing is counted or sampled any more; the last readings are taken. */
void m6_kernel_stop(struct m6_kernel_side *k);
/* kernel_side_level.c: what the governor's rung leaves. To be called at each look, which are as long as each other.
 * Gives the highest level that can be had: a lower one than that of the session when what it adds was refused when it
 * was to come back. */
uint32_t m6_kernel_level(struct m6_kernel_side *k, uint32_t level, uint32_t interval);
/* kernel_side_hold.c: the same, but for the rate of samples. Is a change over: when it is, or when it is waited for, it
 * is put down. */
uint32_t m6_kernel_hold(struct m6_kernel_side *k, uint32_t level);
void m6_kernel_settled(struct m6_kernel_side *k, int wait);
/* What is read once a second; `last`: at once. */
void m6_kernel_read(struct m6_kernel_side *k, int last);
/* CPU samples are taken in one look of so many on that rung, where their events have this period. */
uint32_t m6_kernel_duty(uint32_t period_us, uint32_t level, uint32_t interval);
uint32_t m6_kernel_period(int full); /* between two samples of a thread, us: what the budgets leave */
void m6_kernel_budgets(const struct m6_kernel_side *k, uint64_t frames_lost); /* says what is used of them */
void m6_kernel_close(struct m6_kernel_side *k);
/* The files that CPU samples led through, as far as they were looked at. */
void m6_kernel_modules(struct m6_kernel_side *k, void (*each)(void *arg, const struct m6_sym_module *m), void *arg);
void m6_kernel_refuse(struct m6_kernel_side *k, enum m6_kernel_part part, const struct m6_fault *fault);
/* The thread's name as it was last seen; "" when it never was. */
const char *m6_kernel_name(const struct m6_kernel_side *k, uint32_t tid);
uint64_t m6_kernel_samples(const struct m6_kernel_side *k, uint32_t own_tid); /* that were handed out so far */

/* kernel_side_scopes.c. `c` may be NULL: no record came yet. Before the first drain of a capture, and after each. */
void m6_kernel_join(struct m6_kernel_side *k, struct m6_capture *c);
void m6_kernel_drained(struct m6_kernel_side *k, struct m6_capture *c);
/* The frame that this present of the session ended; NULL when it is not known. */
const struct m6_snap_causes *m6_kernel_causes(const struct m6_kernel_side *k, uint64_t present);
/* A boundary from the kernel: for m6_counters_frames, with the kernel side as `arg`. */
void m6_kernel_boundary(const struct m6_kernel_frame *f, void *arg);
void m6_kernel_unname(uint64_t off[M6_WHY_COUNT]);

/* kernel_side_proc.c: the same rows as kernel_counters.h has, as far as /proc goes. */
struct m6_proc_threads *m6_proc_threads_open(void);
void m6_proc_threads_read(struct m6_proc_threads *p, pid_t pid);
const struct m6_thread_counters *m6_proc_threads_rows(const struct m6_proc_threads *p, uint32_t *count);
void m6_proc_threads_close(struct m6_proc_threads *p);

/* kernel_side_price.c */
struct m6_kernel_price m6_kernel_prices(const struct m6_kernel_measured *m, int unwound);
uint64_t m6_kernel_cost(const struct m6_kernel_side *k, uint64_t samples, int unwound);

/* kernel_side_switches.c: without counters, a frame's time by switch records: on a CPU, preempted, off for reasons
 * unknown. */
void m6_kernel_switches_open(struct m6_kernel_side *k);
void m6_kernel_switches_poll(struct m6_kernel_side *k); /* before the rings are drained */
void m6_kernel_presented(void *arg, const struct m6_capture *c, uint32_t tid, uint32_t stream, uint64_t number,
                         uint64_t clock);
void m6_kernel_switches_settle(struct m6_kernel_side *k); /* after */
void m6_kernel_switches_stop(struct m6_kernel_side *k);
void m6_kernel_switches_rest(struct m6_kernel_side *k);
void m6_kernel_switches_wake(struct m6_kernel_side *k);
void m6_kernel_switches_close(struct m6_kernel_side *k);
/* Threads: these records' where there are any, with what /proc alone knows; else /proc's. */
const struct m6_thread_counters *m6_kernel_switches_rows(struct m6_kernel_side *k, uint32_t *count);

/* kernel_side_seconds.c. What was counted since the last call, by the readings that there are, goes to the second of
 * `at_ns` (CLOCK_MONOTONIC). */
void m6_kernel_seconds(struct m6_kernel_side *k, struct m6_capture *c, uint64_t at_ns);
/* The threads as they were last read; holds until the next call. */
const struct m6_thread_counters *m6_kernel_threads(struct m6_kernel_side *k, uint32_t *count);

/* kernel_side_view.c. Makes what the snapshot that is built next shows. `final`: all of it, after m6_kernel_stop;
 * functions and folded stacks are only in that one, because reading debug information may take a second, in which rings
 * would fill. */
const struct m6_appendix *m6_kernel_view(struct m6_kernel_side *k, struct m6_capture *c, int final);
void m6_kernel_view_free(struct m6_kernel_view *v);

#endif
