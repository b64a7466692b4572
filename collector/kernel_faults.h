/* kernel_faults.h - a process's page faults, minor and major, by counting perf events: exact, without BPF and without a
 * capability (faults that the kernel itself takes on the process's memory are then not seen, and `user_only` says so).
 *
 * One pair of events a thread that is there, inherited by those it starts; what ended threads took stays. Counts begin
 * at open. A thread that is started while this opens, by one that was not reached yet, is missed. Calls
 * perf_event_open; reads /proc once.
 */
#ifndef M6_KERNEL_FAULTS_H
#define M6_KERNEL_FAULTS_H

#include <stdint.h>
#include <sys/types.h>

#include "kernel_fault.h"

#define M6_FAULTS_THREADS 512 /* threads with events of their own; more are an error */

struct m6_faults {
  int *fds;       /* minor, major, minor, major, ... */
  unsigned count; /* of descriptors */
  int user_only;
};

int m6_faults_open(struct m6_faults *f, pid_t pid, struct m6_fault *fault);
/* 0 or an errno. One system call a thread and kind: once a second at most. */
int m6_faults_read(const struct m6_faults *f, uint64_t *minor, uint64_t *major);
void m6_faults_close(struct m6_faults *f);

#endif
