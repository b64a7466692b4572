/* kernel_samples.h - CPU samples of one target: which thread was on a CPU, when, in which stacks.
 *
 *   struct m6_samples *s;
 *   int e = m6_samples_open(&(struct m6_samples_options){.pid = pid, .period_us =
 *   m6_samples_period(M6_SAMPLES_HZ_LITE)}, &s);
 *   ...                                              each poll:
 *   m6_samples_poll(s, each, arg);                   retained samples, in the order in which they were taken
 *   ...                                              at the end, or whenever a table is wanted:
 *   m6_samples_totals(s, total, arg);                thread and stacks with their count, all samples since the start
 *   m6_samples_close(s);
 *
 * One cpu-clock event for each thread that exists at the start, inherited by the threads that these create (not by
 * child processes): a thread that does not run costs nothing, and no thread is ever listed again. A period is CPU time
 * of one thread.
 *
 * Tiers, tried in this order (the other way round with options.unwind); status.refused says what closed the better
 * ones, with the errno:
 *   M6_SAMPLES_BPF   a program in the kernel aggregates (bpf/samples.bpf.c); user and kernel stacks. CAP_BPF + CAP_PERFMON.
 *   M6_SAMPLES_PERF  perf's ring buffers, aggregated here; poll at least once a second. No capability for one's own processes;
 *                    kernel mode is then not sampled at all: such time is missing, not misplaced. With CAP_PERFMON both
 *                    are.
 * A thread is sampled for the first time after a whole period: half a period of each thread is missing on average, and
 * all of one that uses less than a period. status.cpu_ns says how much that comes to.
 * Stacks follow frame pointers. The innermost frame is always right; callers are missing or wrong in code built without
 * (symbols.h tells them apart), which is what distributions ship. options.unwind is the way out: M6_SAMPLES_STACK_BYTES
 * of stack come with each sample, and m6_symbols_unwind finds the callers by .eh_frame. Poll ten times a second then.
 * Where that cannot be had (as many events as threads times CPUs; a machine that lets nobody lock that much memory),
 * frame pointers are followed after all; status.unwound says which.
 * Stack ids are stable for the life of the handle; M6_STACK_NONE = no such stack.
 *
 * THE JOIN WITH SCOPES. sample.tid is the thread as the target's own pid namespace counts (what the shim writes into
 * its slots); sample.time_ns is CLOCK_MONOTONIC (what collector/clock.h turns ticks into). Samples of one thread come
 * in the order of time. A poll of the collector goes: first m6_samples_poll, then the rings. Then every record that a
 * sample has to be compared with is at hand: a thread that was sampled at t had written, when it was, whatever it wrote
 * before t. So, thread by thread:
 *     for each record of the thread, in order: samples of this thread with time_ns < record's time go to the scope that
 *     is open now; then apply the record.
 *     at the end of the thread's records: the samples that remain go to the scope that is open then.
 * sample_join.h keeps the samples until they are asked for. A scope's self count = samples that fell to it, its total =
 * these and its descendants', each with its weight; times the period = CPU time. A record's clock is read a few ns
 * before it is published; a sample between the two falls on the wrong side of an edge, once in 10^6.
 *
 * Errors: 0 or an errno. One thread. May use bpf/, shm/budget.h, kernel_object.h, kernel_fault.h; nothing else of the
 * collector.
 */
#ifndef M6_KERNEL_SAMPLES_H
#define M6_KERNEL_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../bpf/samples.h"
#include "kernel_fault.h"
#include "sample_weight.h"

enum m6_samples_tier { M6_SAMPLES_OFF, M6_SAMPLES_BPF, M6_SAMPLES_PERF };

#define M6_SAMPLES_WITHOUT_BPF 1u    /* for tests, and for those who want it: not that tier */
#define M6_SAMPLES_WITHOUT_KERNEL 2u /* user mode alone */

/* A thread's registers and the top of its stack, as they were at a sample: what an unwinder needs. */
struct m6_user_state {
  uint64_t ip, sp, bp, bx, r12, r13, r14, r15;
  const unsigned char *stack; /* from sp upwards; not aligned */
  uint32_t bytes;
};

struct m6_samples_options {
  pid_t pid;          /* of any thread of the target, as the caller's own pid namespace counts */
  uint32_t period_us; /* CPU time between two samples of one thread */
  uint32_t flags;     /* M6_SAMPLES_WITHOUT_* */
  /* samples with their time, and different stacks, that are kept; 0 = M6_SAMPLES_RETAINED, which is the most */
  uint32_t retained;
  /* Instead of following frame pointers: writes at most `most` addresses, innermost first, as in a stack; gives their
   * number. Called in m6_samples_poll, for each sample. Wants M6_SAMPLES_PERF: the kernel cannot do that. NULL: frame
   * pointers. */
  uint32_t (*unwind)(void *arg, const struct m6_user_state *state, uint64_t *ip, uint32_t most);
  void *unwind_arg;
};

struct m6_sample {
  uint64_t time_ns;
  uint64_t user, kernel; /* stack ids */
  uint32_t tid;
  uint32_t weight; /* periods that it stands for: see m6_samples_weight */
};
struct m6_sample_total {
  uint64_t count; /* the weights of its samples: periods, which without a step is samples */
  uint64_t user, kernel;
  uint32_t tid;
};

/* What could not be done, on what, and why. Repeated ones are one entry. */
struct m6_refusal {
  const char *what; /* "load the sampling program", "open a cpu-clock event", ... */
  int error;
  enum m6_area area; /* with the errno, what closes it and what opens it: m6_fault_hint */
  uint32_t tid;      /* the first thread that it was about; 0 = none */
  uint32_t times;
};
#define M6_REFUSALS 12

struct m6_samples_status {
  enum m6_samples_tier tier;
  int kernel_mode; /* 1 when time in the kernel is sampled too */
  int unwound;     /* 1 when options.unwind finds the callers */
  uint32_t period_us;
  uint32_t threads;       /* that had an event of their own at the start */
  uint64_t samples;       /* taken, all of them */
  uint64_t periods;       /* the sum of their weights: times the period, the CPU time that they stand for */
  uint64_t lost;          /* of these, not in the totals: no room, or the kernel's buffer was full */
  uint64_t lost_stacks;   /* stacks not kept: their samples count under M6_STACK_LOST */
  uint64_t lost_retained; /* samples that were overwritten before a poll came: in the totals, but without a time */
  /* the target's CPU time since the start as the scheduler counts it: what samples * period should come near */
  uint64_t cpu_ns;
  uint64_t throttled; /* times that the kernel slowed the events down */
  uint32_t refusals;
  struct m6_refusal refused[M6_REFUSALS];
};

struct m6_samples;

static inline uint32_t m6_samples_period(uint32_t hz) { return 1000000u / hz; }

/* 0 and *out, or an errno with *out NULL; *why (may be NULL) is filled in either case. */
int m6_samples_open(const struct m6_samples_options *o, struct m6_samples **out, struct m6_samples_status *why);
void m6_samples_status(struct m6_samples *s, struct m6_samples_status *out);
/* Hands out what came since the last poll; each may be NULL. Number of samples. At M6_SAMPLES_BPF without a
 * syscall, but for a clock read now and then. */
uint32_t m6_samples_poll(struct m6_samples *s, void (*each)(void *arg, const struct m6_sample *sample), void *arg);
/* All samples since the start, aggregated, in no order. At M6_SAMPLES_BPF a few syscalls a row: once a second at most.
 * */
int m6_samples_totals(struct m6_samples *s, void (*each)(void *arg, const struct m6_sample_total *total), void *arg);
/* A stack's frames, innermost first; M6_STACK_LOST is one frame, of address 1, which symbols.h
 * names so. NULL and 0 for M6_STACK_NONE or one that is not known. Holds until close. */
const uint64_t *m6_samples_stack(struct m6_samples *s, uint64_t id, uint32_t *frames);
/* The thread's name at its last sample; "" when not known. Holds until the next call. */
const char *m6_samples_thread(struct m6_samples *s, uint32_t tid);
/* Of all ring buffers between the kernel and this process; 0 where there are none. */
uint64_t m6_samples_ring_bytes(const struct m6_samples *s);
/* Stops sampling; what was taken can still be read. */
void m6_samples_stop(struct m6_samples *s);
/* No samples until it is taken back; threads that are born meanwhile follow. */
void m6_samples_pause(struct m6_samples *s, int pause);
/* None for a long while, which counts for nothing: neither in status.cpu_ns. It ends paused. */
void m6_samples_rest(struct m6_samples *s, int rest);
/* Each sample that is taken from now on stands for so many periods: who samples for one part in n of the time says n.
 * */
void m6_samples_weight(struct m6_samples *s, uint32_t weight);
void m6_samples_close(struct m6_samples *s);
const char *m6_samples_tier_name(enum m6_samples_tier tier);

#endif
