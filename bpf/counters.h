/* counters.h - what the counters' kernel programs and their user side share: one entry a thread, one a thread and
 * syscall.
 *
 * An entry has one writer at a time: the CPU that holds the run-queue lock of the thread's queue, or the thread itself
 * for its syscalls. So entries are shared by CPUs without being contended, and copies by CPU would only multiply their
 * memory. They are keyed by tid and stay when the thread ends.
 *
 * The table is an array that user space has mapped: a hash with open addressing (double hashing, Knuth 6.4), for what a
 * switch costs is cache lines, and so finding the entry costs none beside its own. User space reads it without a system
 * call, and gives entries back.
 *
 * The truth is in the kernel's own absolute readings of a thread: they are taken when it is switched out, and
 * differences are made of them. So an event that never came (measured: one switch in a thousand, where certain other
 * processes run) costs resolution and no truth. Between two switch-outs the state below says where the time goes; when
 * the thread is switched out the next time, the readings settle it. on + off + wait = the time since the thread was
 * first seen, always.
 */
#ifndef M6_BPF_COUNTERS_H
#define M6_BPF_COUNTERS_H

#include <linux/types.h>

#include "frames.h"

#define M6_COUNTERS_TARGETS 8
#define M6_COUNTERS_THREADS 4096       /* entries, a power of two; further threads are counted as refused */
#define M6_COUNTERS_PROBES 64          /* places that an entry can have: all taken when the table is as good as full */
#define M6_COUNTERS_FILLED 0xffffffffu /* instead of a tid: user space is about to write it */
#define M6_COUNTERS_CALLS 16384        /* thread and syscall number together */
#define M6_COUNTERS_NUMBERS 512        /* syscall numbers lie below; a power of two */
#define M6_COUNTERS_32BIT                                                                                              \
  0x80000000u /* of a syscall's number: it is one of the 32-bit table, in which numbers mean other calls */
#define M6_COUNTERS_BUCKETS                                                                                            \
  32 /* of run-queue latency: bucket i has [2^i, 2^(i+1)) ns; 0 and 1 ns in the first, the last is open */

struct m6_counters_config {
  __u32 tgid[M6_COUNTERS_TARGETS];
  __u32 targets;
  __u32 syscalls;      /* they are counted */
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
  /* One cache line, which is all that a switch to the thread touches. */
  __u32 tid;      /* whose this is; 0: nobody's */
  __u32 writing;  /* odd while a program writes: a copy is whole when this was even, and the same afterwards */
  __u64 since_ns; /* when `state` began; from then on, too, the time is nobody's yet. CLOCK_MONOTONIC, as all of them */
  __u64 later_off_ns, later_wait_ns; /* since out_ns, as the events say */
  __u64 last_run_ns;                 /* a reading by which on and wait are settled */
  __u64 ran_ns;                      /* on CPU since out_ns and before since_ns: when it was not seen to leave */
  __u64 unseen_ns;                   /* between two arrivals without a leave: part of it was on CPU, part off */
  __u32 arrived; /* slices when it came the last time: another number now, and a switch was not seen */
  __u32 state;
  /* What is settled when it is switched out. */
  __u64 out_ns; /* when it was the last time: the totals are settled until then */
  __u64 last_delay_ns, on_ns, wait_ns;
  __u64 waits;       /* run-queue latencies in the histogram */
  __u64 first_ns;    /* 0: not ready yet */
  __u32 call;        /* the syscall that it is in: 1 + its number, 0 = none */
  __u32 cause;       /* enum m6_off_cause of later_off_ns, and of an OFF that goes on */
  __u32 tgid, lives; /* lives: threads that had this tid, one after the other */
  __u64 off_ns[M6_OFF_CAUSES];
  __u64 last[M6_READINGS], base[M6_READINGS]; /* counted = last - base, two's complement */
  __u32 here, own;                            /* its tid as user space counts, and as its own pid namespace does */
  __u64 calls, call_on_ns;                    /* syscalls that returned, and what it was on CPU in them */
  __u64 call_ns;                              /* when the syscall that it is in was entered */
  __u32 latency[M6_COUNTERS_BUCKETS];
  __u64 call_from_ns;  /* what it had been on CPU then */
  __u64 read_delay_ns; /* the last reading; last_delay_ns is how much of it is in wait_ns */
  __u64 resumed;       /* 1 when SEEDED: after a pause (user space), and all that came before is counted */
  __u64 spare[5];
};
_Static_assert(sizeof(struct m6_counters_thread) == 8 * 64 &&
                 __builtin_offsetof(struct m6_counters_thread, out_ns) == 64 &&
                 __builtin_offsetof(struct m6_counters_thread, off_ns) == 128,
               "as both sides have it, and in whole cache lines");

/* The place of a tid's entry at a probe, from 0. Both sides look in this order, and take the first that is free. */
static inline __attribute__((always_inline)) __u32 m6_counters_place(__u32 tid, __u32 probe)
{
  __u32 h = tid * 0x9e3779b1u;
  return ((h >> 20) + probe * (h | 1)) & (M6_COUNTERS_THREADS - 1);
}

/* Which places are taken, or were since user space looked: a bit each. */
struct m6_counters_taken {
  __u64 bits[M6_COUNTERS_THREADS / 64];
};

struct m6_counters_call_key {
  __u32 tid, number;
};
struct m6_counters_call {
  __u64 count, ns, max_ns;
};

/* Losses, by CPU. Events are those that the kernel could not deliver because a program was running already; user space
 * adds them. */
enum m6_counters_loss { M6_LOST_THREADS, M6_LOST_CALLS, M6_LOST_EVENTS, M6_LOST_FRAMES, M6_COUNTERS_LOSSES };

#endif
