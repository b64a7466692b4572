/* tasks.bpf.c - an iterator over tasks: the threads of one process, which is named by its number in a pid namespace,
 * with their numbers in all that matter. The kernel walks the tasks of the reader's namespace and of those below it,
 * and no other's.
 *
 * User side: collector/kernel_tasks.c.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "kernel_types.h"
#include "tasks.h"

char m6_license[] SEC("license") = "Dual MIT/GPL";

const volatile struct m6_tasks_config config = {};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct seq_file;
struct bpf_iter_meta {
  struct seq_file *seq;
};
struct bpf_iter__task {
  struct bpf_iter_meta *meta;
  struct task_struct *task;
};
#pragma clang attribute pop

/* A task's number in the reader's namespace (0: none), and in its own. */
static __always_inline __u32 number_here(struct task_struct *t, __u32 *own)
{
  struct pid *p = BPF_CORE_READ(t, thread_pid);
  __u32 level = BPF_CORE_READ(p, level), here = 0;
  char *numbers = (char *)p + bpf_core_field_offset(((struct pid *)0)->numbers);
  *own = 0;
  for (__u32 i = 0; p && i < M6_PID_LEVELS && i <= level; i++) {
    struct upid *u = (struct upid *)(numbers + i * bpf_core_type_size(struct upid));
    *own = BPF_CORE_READ(u, nr);
    if (BPF_CORE_READ(u, ns, ns.inum) == config.pid_namespace) here = *own;
  }
  return here;
}

SEC("iter/task")
int m6_tasks(struct bpf_iter__task *ctx)
{
  struct task_struct *t = ctx->task;
  if (!t) return 0;
  __u32 own;
  if (number_here(BPF_CORE_READ(t, group_leader), &own) != config.pid) return 0;
  struct m6_task row = {.tid = BPF_CORE_READ(t, pid), .tgid = BPF_CORE_READ(t, tgid)};
  row.here = number_here(t, &row.own);
  if (row.here) bpf_seq_write(ctx->meta->seq, &row, sizeof row);
  return 0;
}
