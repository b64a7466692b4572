/* calibrate_kernel.h - what the kernel's side of mach6 costs on this machine: measured on this very process, as nothing
 * that the kernel says of itself is near the truth (its run_time_ns leaves out the traps, and a half of what a switch
 * pays).
 *
 * Each is the difference of the same work with and without, the fastest of some, interleaved; all together some 20 ms,
 * at a priority that nobody notices (calibrate.c):
 *   record   a thread's switch out and in again, recorded by perf (kernel_switches.h)
 *   sample   a CPU sample in user mode, with its callers by frame pointers; stack: with M6_SAMPLES_STACK_BYTES of stack
 *   probe    a hit of a uprobe with a small program
 * What a program at each switch, at each system call and at a present costs a target can't be had without a target of
 * its own: the figures of the machine where tests/bench measured them are scaled by how much dearer `record` and
 * `probe` are here than there. NaN: not measured, the machine refused or was too busy; the other machine's figure
 * stands in. Calls the kernel side.
 */
#ifndef M6_CALIBRATE_KERNEL_H
#define M6_CALIBRATE_KERNEL_H

#include "kernel_side.h"

void m6_calibrate_kernel(struct m6_kernel_measured *m);

#endif
