/* kernel_proc.h - what /proc says of one thread: the same readings that the programs in the kernel have, for where none
 * of them runs. Any thread. Callers: kernel_counters.c, kernel_seed.c, kernel_pause.c, kernel_side_proc.c.
 */
#ifndef M6_KERNEL_PROC_H
#define M6_KERNEL_PROC_H

#include "kernel_counters.h"

struct m6_proc_thread {
  char state;
  int timed;                     /* 0: the kernel keeps no schedstat, and so neither the next two nor slices */
  uint64_t began_ns;             /* CLOCK_MONOTONIC; up to a clock tick before its real beginning, never after */
  uint64_t run_ns, delay_ns;     /* on a CPU; waiting for one */
  uint64_t counted[M6_READINGS]; /* but for migrations, which /proc does not tell */
};
/* 0 when it has ended. */
int m6_proc_thread_read(pid_t tgid, pid_t tid, struct m6_proc_thread *r);
/* As /proc has it, one letter; 'X' when it has ended. */
char m6_proc_thread_state(pid_t tgid, pid_t tid);
/* Why a thread that is off its CPU is so, when /proc tells: that takes the rights of a debugger. */
uint32_t m6_proc_thread_cause(pid_t tgid, pid_t tid);

#endif
