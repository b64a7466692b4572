/* kernel_switches.h - when each thread of one's own process was on a CPU, by perf's context-switch records: no BPF, no
 * capability.
 *
 *   m6_switches_open(pid, &s, &fault)
 *   each poll:  m6_switches_poll(s);                          takes what the rings hold; nothing wakes the reader
 *               m6_switches_at(s, tid, ns, &reading, &lives)  for moments in their order, up to m6_switches_known(s)
 *               m6_switches_until(s, m6_switches_known(s))
 *   rows = m6_switches_rows(s, &count)
 *
 * A thread that is switched out because another one gets its CPU could run: that is its wait_ns. Else it is off, and
 * nobody says why; the time from its wake-up to its next run is part of that, which only programs in the kernel can
 * tell apart; so are the switches themselves, of which a record marks the beginning of one and the end of the other. On
 * + off + wait = the time since the thread was first seen, always, and counts never go back.
 * Records that found no room are counted; between two moments with such a loss in between, `lives` differs: what lies
 * between is not known. Memory is bounded: M6_COUNTERS_THREADS threads (ended ones are folded into one row of tid 0),
 * M6_SWITCHES_BATCH records. Costs the target a record at each switch (tests/bench/switches.c measures it), and the
 * collector a copy of it. One handle, one thread. Calls the sampler's perf parts; reads /proc for threads in another
 * pid namespace.
 */
#ifndef M6_KERNEL_SWITCHES_H
#define M6_KERNEL_SWITCHES_H

#include "kernel_counters.h"

#define M6_SWITCHES_BATCH 65536u
#define M6_SWITCHES_HOLD_NS 1000000u /* a record may come so much later than its time says */

struct m6_switches;

/* 0, or an errno and the fault. */
int m6_switches_open(pid_t pid, struct m6_switches **out, struct m6_fault *fault);
void m6_switches_poll(struct m6_switches *s);
uint64_t m6_switches_began(const struct m6_switches *s); /* CLOCK_MONOTONIC: nothing is known of the time before */
/* CLOCK_MONOTONIC: all that was recorded before it has been taken. */
uint64_t m6_switches_known(const struct m6_switches *s);
/* What the thread (`own_tid`: as it is numbered in its own pid namespace) had done until `ns`: 1, or 0 when that is not
 * known, because it was not seen yet, or because something later was already asked for. */
int m6_switches_at(struct m6_switches *s, uint32_t own_tid, uint64_t ns, struct m6_kernel_reading *r, uint32_t *lives);
void m6_switches_until(struct m6_switches *s, uint64_t ns);
/* Threads as of the last m6_switches_until, in no order; holds until the next call. Faults and migrations are not
 * known. */
const struct m6_thread_counters *m6_switches_rows(struct m6_switches *s, uint32_t *count);
/* Goes on after m6_switches_stop, when all up to m6_switches_known was asked for: what is known begins anew. What a
 * thread did meanwhile is off in its row; its moments are known from its first switch on. */
void m6_switches_resume(struct m6_switches *s);
uint64_t m6_switches_taken(const struct m6_switches *s);
uint64_t m6_switches_ring_bytes(const struct m6_switches *s);
uint64_t m6_switches_dropped(const struct m6_switches *s); /* records that found their ring full */
uint64_t m6_switches_lost(const struct m6_switches *s);    /* records, and pairs of which one half is missing */
/* Nothing is recorded any more; what was can still be read, all of it. */
void m6_switches_stop(struct m6_switches *s);
void m6_switches_close(struct m6_switches *s); /* NULL is fine */

#endif
