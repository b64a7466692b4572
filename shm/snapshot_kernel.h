/* snapshot_kernel.h - what the kernel knew of a target: the part of a snapshot that levels lite and full add.
 *
 * struct m6_snap_kernel is in the snapshot's head; it names sections by offset and count, as the head itself does.
 * Everything in it is optional: in a session at level memory all is zero, and what a machine refuses is missing with a
 * reason in `refusals`. Where the governor stepped, all is of the time at levels lite and full, calls of that at full
 * (govern.held_ns). Units: nanoseconds; counts are exact unless said otherwise. Counters begin when the kernel side was
 * attached, `began_ns` after the session's start (0 when before it).
 */
#ifndef M6_SNAPSHOT_KERNEL_H
#define M6_SNAPSHOT_KERNEL_H

#include <stdint.h>

/* Where numbers of a kind come from; 0 = they are not collected. */
enum m6_kernel_source {
  M6_KERNEL_NONE,
  M6_KERNEL_BPF,  /* programs in the kernel: CAP_BPF and CAP_PERFMON */
  M6_KERNEL_PERF, /* perf events: of one's own processes without a capability */
  M6_KERNEL_PROC, /* /proc, read once a second: what threads did between the last read and their end is missing */
};

/* Parts that can be refused, each on its own. X(enum suffix, JSON name, what is missing without it) */
#define M6_KERNEL_PARTS(X)                                                                                             \
  X(COUNTERS, "counters", "counters by thread in the kernel")                                                          \
  X(FRAMES, "frames", "what each frame waited for")                                                                    \
  X(SAMPLES, "samples", "CPU samples")                                                                                 \
  X(SYMBOLS, "symbols", "names of functions")                                                                          \
  X(FAULTS, "faults", "page faults")
#define M6_ENUM_PART(e, name, text) M6_KERNEL_PART_##e,
enum m6_kernel_part { M6_KERNEL_PARTS(M6_ENUM_PART) M6_KERNEL_PART_COUNT };
#undef M6_ENUM_PART

/* Why a thread was off its CPU: from the system call that it was in; all of it is UNNAMED where that is not seen.
 * X(enum suffix, JSON name, words for people) */
#define M6_WHYS(X)                                                                                                     \
  X(LOCK, "lock", "waited for a lock (futex)")                                                                         \
  X(SLEEP, "sleep", "slept")                                                                                           \
  X(POLL, "poll", "waited for events (poll)")                                                                          \
  X(IO, "io", "waited for input or output")                                                                            \
  X(DRIVER, "driver", "waited for a driver (ioctl)")                                                                   \
  X(FAULT, "page_fault", "waited for memory (page fault)")                                                             \
  X(STOLEN, "stolen", "lost to interrupts or to the host")                                                             \
  X(OTHER, "other", "waited for something else")                                                                       \
  X(UNNAMED, "unnamed", "off CPU (it waited; for what is not seen)")
#define M6_ENUM_WHY(e, name, text) M6_WHY_##e,
enum m6_why { M6_WHYS(M6_ENUM_WHY) M6_WHY_COUNT };
#undef M6_ENUM_WHY

/* Where the time went from one present's entry to the next one's, of the thread that presented. on + wait + all off =
 * time. */
struct m6_snap_causes {
  uint64_t time;              /* 0 = not known: the two readings are not there, or not of one thread */
  uint64_t on;                /* on a CPU */
  uint64_t wait;              /* could run, had no CPU */
  uint64_t off[M6_WHY_COUNT]; /* could not run */
  uint64_t call_ns;           /* part of `on` that was spent in system calls; 0 below level full */
  uint32_t calls;
  uint32_t minor, major; /* page faults */
  uint32_t voluntary, involuntary, migrations;
};

#define M6_LATENCY_BUCKETS 32
struct m6_snap_thread {
  uint32_t tid; /* as the collector's pid namespace counts; 0 = ended threads that were folded together */
  uint32_t lives;
  uint32_t name_offset, name_bytes;
  uint64_t elapsed, on, off, wait; /* on + off + wait = elapsed */
  uint64_t off_by[M6_WHY_COUNT];   /* off, divided; all 0 when the source is /proc */
  uint64_t calls, call_ns;         /* system calls, and the part of `on` spent in them; 0 below level full */
  uint64_t voluntary, involuntary, minor, major, migrations, slices;
  uint64_t samples;
  uint64_t waits;                       /* in the histogram */
  uint32_t latency[M6_LATENCY_BUCKETS]; /* of the run queue: bucket i has [2^i, 2^(i+1)) ns */
};

/* One second of the session, as in struct m6_snap_bucket: what the threads' sums went up by between two readings is in
 * the second of the later one. Readings of counters are a second apart or more, so now and then a second has none, and
 * the next one has more for it: `covered` says of how long. Time that the kernel settles later than it is read (a wait
 * for a CPU looks like off until its thread runs) is taken back where that is seen: a number can be below 0. Sums over
 * all seconds are exact for that. */
struct m6_snap_kernel_second {
  uint64_t second;
  int64_t covered;                /* from the reading before to the second's last; 0: there was none */
  int64_t elapsed, on, wait, off; /* ns; on + wait + off = elapsed */
  int64_t off_by[M6_WHY_COUNT];   /* as in struct m6_snap_thread */
  int64_t calls, call_ns;         /* 0 below level full */
  int64_t voluntary, involuntary, minor, major, migrations, slices;
  int64_t samples, periods; /* as samples_taken and samples_periods */
};

struct m6_snap_call {
  uint32_t number, threads; /* that made it */
  uint32_t name_offset, name_bytes;
  uint64_t count, ns, max_ns; /* ended calls */
};

struct m6_snap_function {
  uint32_t function_offset, function_bytes, module_offset, module_bytes;
  uint32_t file_offset, file_bytes, line;
  uint32_t inlined; /* seen inlined, and in no other way */
  uint64_t self, total;
};

struct m6_snap_refusal {
  uint32_t part;                        /* enum m6_kernel_part */
  int32_t error;                        /* errno */
  uint32_t what_offset, what_bytes;     /* "load the sampling program" */
  uint32_t closed_offset, closed_bytes; /* the setting in the way; may be empty */
  uint32_t opened_offset, opened_bytes; /* the command that opens it; may be empty */
};

/* How much of each at most; what is beyond is left out, the least of it, and `*_more` says how many. */
#define M6_KERNEL_THREADS_MAX 512u
#define M6_KERNEL_CALLS_MAX 512u
#define M6_KERNEL_FUNCTIONS_MAX 1024u /* in a final snapshot */
#define M6_KERNEL_REFUSALS_MAX 32u
#define M6_KERNEL_FOLDED_MAX (2u << 20)

struct m6_snap_kernel {
  uint32_t counters, samples, faults, frames; /* enum m6_kernel_source of each */
  uint32_t syscalls;                          /* calls are counted */
  uint32_t kernel_mode;                       /* samples see time in the kernel */
  uint32_t unwound;                           /* callers by .eh_frame, not by frame pointers */
  uint32_t period_us;                         /* CPU time between two samples of a thread */
  uint64_t began_ns;

  /* Samples. Where the governor sampled for a part of the time, each stands for several periods; all that tell what the
   * time went to count periods (of nodes, threads, functions, folded stacks; *_presents, *_elsewhere, profile_*): times
   * period_us, CPU time. samples_periods = in the tree + in_presents + elsewhere + waiting for their thread's records +
   * late */
  uint64_t samples_taken, samples_lost, stacks_lost,
    samples_late;               /* samples. late: overwritten before they got a time */
  uint64_t samples_periods;     /* that all of them stand for; samples_taken when there was no step */
  uint64_t samples_in_presents; /* of the presenting thread, inside the present itself */
  uint64_t samples_elsewhere;   /* of threads that never marked a scope */
  uint64_t profile_samples, profile_kernel, profile_cut,
    profile_bare;          /* the profile's: in the kernel, callers lost, no stack */
  uint64_t sampled_cpu_ns; /* CPU time of the target meanwhile, as the scheduler counts it */

  uint64_t minor, major; /* page faults of the process */
  uint32_t faults_user_only;
  uint32_t unnamed;       /* periods that are in no function, because naming them took too long */
  uint64_t counters_lost; /* threads or calls that found no room, events that did not come */
  uint64_t frames_lost;   /* readings that found the kernel's buffer full */
  uint64_t kernel_ns;     /* estimate of what all of it cost the target; 0 = not measured */
  /* of one event to the target; NaN where there are none. What was not measured on this machine is another machine's.
   * */
  double price_switch_ns, price_call_ns, price_boundary_ns, price_sample_ns;
  uint64_t prices_measured; /* of the four that calibration measures */

  uint32_t refusal_count, thread_count, call_count, function_count;
  uint32_t thread_more, call_more, function_more;
  uint32_t sample_count;      /* as many as nodes, or 0 */
  uint32_t spike_cause_count; /* as many as spikes, or 0 */
  uint32_t frame_cause_count; /* as many as retained frames, or 0 */
  uint64_t refusals_offset, threads_offset, calls_offset, functions_offset;
  uint64_t samples_offset;            /* uint64_t each: periods that fell to the node itself, not to those below it */
  uint64_t spike_causes_offset;       /* struct m6_snap_causes, in the order of the spikes */
  uint64_t frame_causes_offset;       /* the same, of the retained frames */
  uint64_t folded_offset;             /* text: folded stacks, a line each; final snapshots only */
  uint32_t folded_bytes, folded_more; /* more: they did not fit */
  /* What was read in this session. Of a chain of sessions, and of a process that ran another program before this one,
   * all else here is of the whole time since `began_ns`. */
  uint64_t seconds_offset;
  uint32_t second_count; /* as many as buckets; 0 where nothing was counted */
  uint32_t free_;
};

_Static_assert(sizeof(struct m6_snap_causes) == 128 && sizeof(struct m6_snap_thread) == 328 &&
                 sizeof(struct m6_snap_call) == 40 && sizeof(struct m6_snap_function) == 48 &&
                 sizeof(struct m6_snap_refusal) == 32 && sizeof(struct m6_snap_kernel_second) == 200,
               "size must not change within a version");

#endif
