/* kernel_seed.h - entries that user space makes of what /proc says: for threads that are there already and may have no
 * event for long. Calls kernel_proc, kernel_tasks, kernel_table. One thread. Callers: kernel_counters.c;
 * kernel_pause.c, which brings entries over a time in which no program ran.
 */
#ifndef M6_KERNEL_SEED_H
#define M6_KERNEL_SEED_H

#include "kernel_counters_parts.h"

/* Entries for the threads of one process that have none: 0, or an errno and the fault. Those that began after
 * `since_ns` (UINT64_MAX: none did) count from their beginning, the others from now. After the programs are attached:
 * an entry that an event made meanwhile stands, and where none did, nothing happened between the reading and the entry.
 * */
int m6_seed(struct m6_counters_inside *in, pid_t tgid, uint64_t since_ns, struct m6_fault *fault);

#endif
