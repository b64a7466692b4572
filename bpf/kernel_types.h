/* kernel_types.h - the kernel's structs, declared by hand: only the fields that are read, in any order. Each access is relocated
 * when a program is loaded (CO-RE), so the running kernel's layout counts, and no dump of a build machine's types is needed.
 */
#ifndef M6_BPF_KERNEL_TYPES_H
#define M6_BPF_KERNEL_TYPES_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_entity {
  __u64 sum_exec_runtime; /* ns on a CPU; up to date when the task is switched out */
  __u64 nr_migrations;
};

struct sched_info {             /* empty without CONFIG_SCHED_INFO */
  unsigned long pcount;         /* times it was switched in */
  unsigned long long run_delay; /* ns in a run queue, up to date from the moment that it runs */
};

struct task_struct {
  unsigned int __state; /* since Linux 5.14 */
  int pid;              /* a thread's number, as the initial namespace counts */
  int tgid;
  unsigned long nvcsw, nivcsw; /* voluntary and involuntary switches */
  unsigned long min_flt, maj_flt;
  __u64 start_time; /* CLOCK_MONOTONIC, ns */
  struct sched_entity se;
  struct sched_info sched_info;
};

#pragma clang attribute pop

#define TASK_DEAD 0x80 /* of __state: it will not run again */

#endif
