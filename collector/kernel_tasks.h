/* kernel_tasks.h - which thread is which: kernel programs see numbers of the initial pid namespace, this process may
 * live in another, and the target in a third (a container in a container).
 *
 * In the initial namespace /proc says it all. In another one a task iterator does (bpf/tasks.bpf.c), which walks the
 * tasks that this process may see: a namesake outside is never met. It needs CAP_BPF and CAP_PERFMON there. Calls
 * kernel_object, reads /proc.
 */
#ifndef M6_KERNEL_TASKS_H
#define M6_KERNEL_TASKS_H

#include <stdint.h>
#include <sys/types.h>

#include "../bpf/tasks.h"
#include "kernel_fault.h"

/* The threads of process `pid` (as this process's namespace counts), `max` at most: their number, at least 1; or -errno
 * and the fault, -ESRCH when there is no such process. */
int m6_tasks_find(pid_t pid, struct m6_task *out, unsigned max, struct m6_fault *fault);
/* The inode of this process's pid namespace when it is not the initial one, else 0. */
uint32_t m6_tasks_namespace(void);

#endif
