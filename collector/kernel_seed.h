/* kernel_seed.h - what /proc says of a thread, and entries that user space makes of it: for threads that are there already and may have no
 * event for long. With kernel_pause.c, which brings entries over a time in which no program ran. Reads /proc; calls kernel_tasks,
 * kernel_table. One thread.
 */
#ifndef M6_KERNEL_SEED_H
#define M6_KERNEL_SEED_H

#include "kernel_counters_parts.h"

struct m6_seed_reading {
  char state;
  uint64_t began_ns; /* CLOCK_MONOTONIC; up to a clock tick before its real beginning, never after */
  uint64_t run_ns, delay_ns;
  uint64_t counted[M6_READINGS]; /* but for migrations, which /proc does not tell */
};
/* 0 when it has ended. */
int m6_seed_read(pid_t tgid, pid_t tid, struct m6_seed_reading *r);
/* As /proc has it, one letter; 'X' when it has ended. */
char m6_seed_state(pid_t tgid, pid_t tid);
/* Why a thread that is off its CPU is so, when /proc tells: that takes the rights of a debugger. */
uint32_t m6_seed_cause(pid_t tgid, pid_t tid);

/* Entries for the threads of one process that have none: 0, or an errno and the fault. Those that began after `since_ns` (UINT64_MAX: none
 * did) count from their beginning, the others from now. After the programs are attached: an entry that an event made meanwhile stands,
 * and where none did, nothing happened between the reading and the entry. */
int m6_seed(struct m6_counters_inside *in, pid_t tgid, uint64_t since_ns, struct m6_fault *fault);

#endif
