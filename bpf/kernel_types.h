/* kernel_types.h - the kernel's structs, declared by hand: only the fields that are read, in any order. Each access is
 * relocated when a program is loaded (CO-RE), so the running kernel's layout counts, and no dump of a build machine's
 * types is needed.
 */
#ifndef M6_BPF_KERNEL_TYPES_H
#define M6_BPF_KERNEL_TYPES_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
  unsigned int status; /* TS_COMPAT among it; x86 alone */
};

/* A task's numbers, one for each pid namespace from the initial one down to its own. */
struct ns_common {
  unsigned int inum;
};
struct pid_namespace {
  struct ns_common ns;
};
struct upid {
  int nr;
  struct pid_namespace *ns;
};
struct pid {
  unsigned int level; /* of its own namespace; the initial one is 0 */
  struct upid numbers[];
};

struct sched_entity {
  __u64 sum_exec_runtime; /* ns on a CPU; up to date when the task is switched out, and at each tick */
  __u64 nr_migrations;
};

struct sched_info {                /* empty without CONFIG_SCHED_INFO */
  unsigned long pcount;            /* times it was switched in */
  unsigned long long run_delay;    /* ns in a run queue, up to date from the moment that it runs */
  unsigned long long last_arrival; /* when it was given a CPU, as the run queue's clock goes */
};

/* User registers, as they were on the way into the kernel. */
struct pt_regs___x86 {
  unsigned long orig_ax; /* the syscall's number; -1 in an exception */
};
struct pt_regs___arm64 {
  int syscallno; /* the same */
};

struct task_struct {
  struct thread_info thread_info;
  unsigned int __state; /* since Linux 5.14 */
  int pid;              /* a thread's number, as the initial namespace counts */
  int tgid;
  unsigned long nvcsw, nivcsw; /* voluntary and involuntary switches */
  unsigned long min_flt, maj_flt;
  __u64 start_time; /* CLOCK_MONOTONIC, ns */
  struct sched_entity se;
  struct sched_info sched_info;
  struct pid *thread_pid;
  struct task_struct *group_leader;
  unsigned in_iowait : 1; /* it waits for a device */
};

#pragma clang attribute pop

#define TASK_STOPPED_OR_TRACED 0x800c /* of __state: by a signal, a debugger, the freezer */
#define TASK_DEAD 0x80                /* of __state: it will not run again */
#define M6_PID_LEVELS 33              /* nested pid namespaces, at most */
#define TS_COMPAT 0x2                 /* of thread_info.status: in a syscall by the 32-bit table */

#endif
