/* counters.h - what the counters' kernel programs and their user side share: one entry a thread, one a thread and syscall.
 *
 * An entry has one writer at a time: the CPU that holds the run-queue lock of the thread's queue, or the thread itself for its
 * syscalls. So entries are shared by CPUs without being contended, and copies by CPU would only multiply their memory. They
 * are keyed by tid and stay when the thread ends.
 *
 * The truth is in the kernel's own absolute readings of a thread: they are taken when it is switched out, and differences are
 * made of them. So an event that never came (measured: one switch in a thousand, where certain other processes run) costs
 * resolution and no truth. Between two switch-outs the state below says where the time goes; when the thread is switched out
 * the next time, the readings settle it. on + off + wait = the time since the thread was first seen, always.
 */
#ifndef M6_BPF_COUNTERS_H
#define M6_BPF_COUNTERS_H

#include <linux/types.h>

#include "frames.h"

#define M6_COUNTERS_TARGETS 8
#define M6_COUNTERS_THREADS 4096 /* entries; further threads are counted as refused */
#define M6_COUNTERS_CALLS 16384  /* thread and syscall number together */
#define M6_COUNTERS_NUMBERS 512  /* syscall numbers lie below; a power of two */
#define M6_COUNTERS_32BIT                                                                                              \
  0x80000000u /* of a syscall's number: it is one of the 32-bit table, in which numbers mean other calls */
#define M6_COUNTERS_BUCKETS                                                                                            \
  32 /* of run-queue latency: bucket i has [2^i, 2^(i+1)) ns; 0 and 1 ns in the first, the last is open */

struct m6_counters_config {
  __u32 tgid[M6_COUNTERS_TARGETS];
  __u32 targets;
  __u32 pid_namespace; /* inode of the one that user space counts in; 0 = the initial one */
  __u64 open_ns;       /* CLOCK_MONOTONIC; all that a thread which started later has counted, it has counted since */
  __u8 cause[M6_COUNTERS_NUMBERS]; /* enum m6_off_cause, by syscall number */
};

enum m6_counters_state {
  M6_COUNTERS_SEEDED, /* known by user space, no event yet: the first one tells what it was */
  M6_COUNTERS_ON,
  M6_COUNTERS_WAITING, /* can run, has no CPU */
  M6_COUNTERS_OFF,
  M6_COUNTERS_ENDED,
};

/* The kernel's own counters of a task. Slices: how often it was given a CPU. */
enum m6_reading { M6_VOLUNTARY, M6_INVOLUNTARY, M6_MINOR, M6_MAJOR, M6_MIGRATIONS, M6_SLICES, M6_READINGS };

struct m6_counters_thread {
  /* A writer changes `begun` first and `done` last; the kernel copies in ascending order. So a copy with done == begun was not
   * being written. */
  __u64 done;
  __u64 first_ns; /* CLOCK_MONOTONIC, as all of them */
  __u64 out_ns;   /* when it was switched out the last time: the totals are settled until then */
  __u64 on_ns, wait_ns, off_ns[M6_OFF_CAUSES];
  __u64 later_off_ns, later_wait_ns;          /* since then, as the events say */
  __u64 since_ns;                             /* when `state` began; from then on, too, the time is nobody's yet */
  __u64 waits;                                /* run-queue latencies in the histogram */
  __u64 last_run_ns, last_delay_ns;           /* readings by which on and wait are settled */
  __u64 base[M6_READINGS], last[M6_READINGS]; /* counted = last - base, two's complement */
  __u64 ran_ns;             /* on CPU since out_ns and before since_ns: when it was not seen to leave */
  __u64 unseen_ns;          /* between two arrivals without a leave: part of it was on CPU, part off */
  __u64 arrived;            /* slices when it came the last time: another number now, and a switch was not seen */
  __u64 call_ns;            /* when the syscall that it is in was entered */
  __u64 call_from_ns;       /* what it had been on CPU then */
  __u64 calls, call_on_ns;  /* syscalls that returned, and what it was on CPU in them */
  __u32 call;               /* 1 + its number, 0 = none */
  __u32 cause;              /* enum m6_off_cause of later_off_ns, and of an OFF that goes on */
  __u32 here, own;          /* its tid as user space counts, and as its own pid namespace does */
  __u32 state, tgid, lives; /* lives: threads that had this tid, one after the other */
  __u32 latency[M6_COUNTERS_BUCKETS];
  __u64 begun;
};
_Static_assert(sizeof(struct m6_counters_thread) == 472, "as both sides have it");

struct m6_counters_call_key {
  __u32 tid, number;
};
struct m6_counters_call {
  __u64 count, ns, max_ns;
};

/* Losses, by CPU. Events are those that the kernel could not deliver because a program was running already; user space adds them. */
enum m6_counters_loss { M6_LOST_THREADS, M6_LOST_CALLS, M6_LOST_EVENTS, M6_LOST_FRAMES, M6_COUNTERS_LOSSES };

#endif
