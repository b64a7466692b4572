/* tasks.h - what the task iterator and its user side share: the numbers of one thread. */
#ifndef M6_BPF_TASKS_H
#define M6_BPF_TASKS_H

#include <linux/types.h>

struct m6_tasks_config {
  __u32 pid_namespace; /* inode of the one that user space counts in */
  __u32 pid;           /* of the process whose threads are wanted, as that one counts */
};

struct m6_task {
  __u32 tid, tgid; /* as the initial pid namespace counts: what kernel programs see */
  __u32 here;      /* the tid as this process's pid namespace counts */
  __u32 own;       /* as the thread's own does */
};

#endif
