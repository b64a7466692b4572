/* samples.h - what samples.bpf.c and collector/kernel_samples_bpf.c share: the layouts of the maps.
 *
 * Fixed 64- and 32-bit words at their natural alignment; both sides are built from this file, from one tree, so there
 * is no version. Includes nothing but shm/budget.h: the kernel side has its own words for uint64_t.
 */
#ifndef M6_BPF_SAMPLES_H
#define M6_BPF_SAMPLES_H

#include "../shm/budget.h"

#define M6_STACK_NONE 0ull /* there was no such stack: no kernel frames, or user memory that could not be read */
#define M6_STACK_LOST 1ull /* there was one, but the table of stacks was full */

/* samples: the last state.retained, a ring. Entry i % state.retained is whole when seq is i + 1 before and after the
 * copy. */
struct m6_bpf_sample {
  unsigned long long seq;          /* 1 + its number; 0 while it is written */
  unsigned long long time_ns;      /* CLOCK_MONOTONIC */
  unsigned long long user, kernel; /* ids: keys of stacks */
  unsigned int tid;                /* as the target's own pid namespace counts */
  unsigned int weight;             /* state.weight as it was then */
};

/* counts: how many periods of its CPU time this thread was seen with these stacks: each sample adds its weight. */
struct m6_bpf_count_key {
  unsigned long long user, kernel;
  unsigned int tid, free_;
};

/* stacks: by a 64-bit hash of the frames. Two different stacks with one id: 1 in 3 * 10^11 for a full table. */
struct m6_bpf_stack {
  unsigned int n, free_;
  unsigned long long ip[M6_SAMPLES_STACK_MAX]; /* innermost first; all but the first are return addresses */
};

/* threads: what outlives the thread. */
struct m6_bpf_thread {
  unsigned long long samples;
  char name[16]; /* as it was at its last sample */
};

/* state: one element. The first line is written by the collector before anything is attached, the rest by the program.
 * */
struct m6_bpf_samples_state {
  unsigned long long ns_dev, ns_ino; /* of the target's pid namespace; ino 0: the global numbers do */
  unsigned int retained;             /* entries of samples, counts and stacks: M6_SAMPLES_RETAINED, or fewer */
  unsigned int weight;               /* periods that a sample stands for from now on; this one may change meanwhile */
  unsigned long long free_[5];
  unsigned long long samples;      /* taken: the next one's number */
  unsigned long long periods;      /* the sum of their weights */
  unsigned long long lost_counts;  /* of these, not in counts, which was full */
  unsigned long long lost_stacks;  /* stacks (user or kernel) that found no room */
  unsigned long long lost_threads; /* samples whose thread found no room in threads */
};

#define M6_SAMPLES_THREADS 4096 /* thread names kept */

#endif
