/* kernel_frames.h - what the kernel knows at each present boundary: where the presenting thread's time went, by cause.
 *
 * The counters' handle does it (kernel_counters.h), so that each event is handled once:
 *
 *   struct m6_counters_options o = {.tgids = &pid, .count = 1, .frames = M6_FRAMES_SHIM};
 *   m6_counters_open(&c, &o, &fault);
 *   ... some 10 times a second:  m6_counters_frames(c, each, arg);
 *   m6_counters_stop(c); m6_counters_frames(c, each, arg);   the last ones
 *   m6_counters_close(c);
 *
 * Frame N's interval is entry(N) - entry(N-1): a present and the frame after it. Within the records of
 * one tid and one `lives` the readings never go back, and each interval's on + wait + off is its time, to the
 * nanosecond. A record that found no room in the ring is counted, and costs resolution alone: the readings of the next
 * one are as they would have been.
 *
 * Promise: a boundary costs the game one hit of a uprobe and no wake-up (two when a present is not what it began as);
 * nothing is written but to kernel memory of fixed size.
 * M6_FRAMES_SHIM: a process's libmach6.so has two places for it (preload/frame_probe.S), reached only while a session
 * collects; it is found by the process's mappings, also when it was deleted, replaced, or lies in another mount
 * namespace. M6_FRAMES_PLACE: each entry of one function of the target is a boundary, numbered here from 1; no shim is
 * needed. Frames are those of the first process of `tgids`.
 */
#ifndef M6_KERNEL_FRAMES_H
#define M6_KERNEL_FRAMES_H

#include "../bpf/frames.h"
#include "kernel_counters.h"

/* "lock", "sleep", ...: one word for each cause. */
const char *m6_off_cause_name(enum m6_off_cause cause);
/* The cause that a syscall number of this machine's stands for; M6_OFF_OTHER when it is not in the table, M6_OFF_FAULT
 * for -1. */
enum m6_off_cause m6_off_cause_of(long syscall_number);

/* Hands out the boundaries that came since the last call, a thread's in order, each one time: their number, or -errno.
 * A present that has begun is handed out when it is known to be one: with its thread's next, or when the counters are
 * stopped. No system call when there are none. `each` may be NULL: they are thrown away. Does not block. */
int m6_counters_frames(struct m6_counters *c, void (*each)(const struct m6_kernel_frame *, void *arg), void *arg);
/* Boundaries that were not recorded so far: no room in the ring, or a thread that has no entry. */
uint64_t m6_counters_frames_lost(const struct m6_counters *c);

#endif
