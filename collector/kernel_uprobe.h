/* kernel_uprobe.h - attaches a program to one place in a file: by a uprobe_multi link (CAP_BPF and CAP_PERFMON are
 * enough, Linux 6.6), else by a perf event (CAP_SYS_ADMIN).
 *
 * Never by tracefs: what is written there outlives a SIGKILL. Both kinds here are descriptors, and the kernel drops
 * them with the process. Closing a perf uprobe blocks for tens of milliseconds.
 */
#ifndef M6_KERNEL_UPROBE_H
#define M6_KERNEL_UPROBE_H

#include <stdint.h>
#include <sys/types.h>

#include "kernel_fault.h"

enum m6_uprobe_kind { M6_UPROBE_NONE, M6_UPROBE_MULTI, M6_UPROBE_PMU };

/* The attach type that a program must be loaded with for a uprobe_multi link (enum bpf_attach_type of Linux 6.6). */
#define M6_BPF_TRACE_UPROBE_MULTI 48

/* pid 0: every process. 0 and the link's descriptor, or an errno. The program must have been loaded with that attach
 * type. */
int m6_uprobe_multi(int program, const char *path, uint64_t offset, pid_t pid, int *link, struct m6_fault *fault);
/* Two descriptors, to be closed in this order: *link, then *event. *link is -1 where the kernel ties the program to the
 * event itself. */
int m6_uprobe_pmu(int program, const char *path, uint64_t offset, pid_t pid, int *link, int *event,
                  struct m6_fault *fault);

#endif
