/* kernel_counters.h - what the threads of up to 8 processes did, counted in the kernel (user side of
 * bpf/counters.bpf.c).
 *
 *   struct m6_counters *c;
 *   struct m6_counters_options o = {.tgids = &pid, .count = 1};
 *   if (m6_counters_open(&c, &o, &fault)) puts(m6_fault_text(&fault, text, sizeof text));
 *   ... once a second at most:  m6_counters_read(c, 0, &fault);  c->threads[0 .. c->thread_count)
 *   m6_counters_close(c);
 *
 * Promise: all counts begin at open, are the kernel's own, and never go back; a thread's stay when it ends. On + off +
 * waiting = the time since the thread was first seen, always; how the time since its last switch divides is settled at
 * the next: until then what it waited for a CPU is part of off. Nothing wakes the reader; a read is a few system calls
 * at most. What was not counted for lack of room is counted in `lost`. Everything closes with the handle, links first,
 * and with the process.
 * Needs CAP_BPF and CAP_PERFMON. Syscalls are counted only when asked for: that taxes every process of the machine.
 * Times in ns. One handle, one thread. Calls kernel_object and libbpf; reads /proc of the processes once, and for
 * threads that had no event yet.
 */
#ifndef M6_KERNEL_COUNTERS_H
#define M6_KERNEL_COUNTERS_H

#include <stdint.h>
#include <sys/types.h>

#include "../bpf/counters.h"
#include "../bpf/frames.h"
#include "kernel_fault.h"

#define M6_COUNTERS_READ_MS 1000 /* at most one read in this time, but for the last one */

/* What is a frame boundary of the first process (kernel_frames.h). */
enum m6_frames_by {
  M6_FRAMES_NONE,
  M6_FRAMES_SHIM, /* what its libmach6.so calls a present */
  M6_FRAMES_PLACE /* each entry of the function at `frame_place` */
};

struct m6_counters_options {
  const pid_t *tgids; /* as this process's pid namespace counts */
  unsigned count;     /* 1 .. M6_COUNTERS_TARGETS */
  int syscalls;       /* count syscalls, too */
  int raw;            /* 1: by raw tracepoints even where the kernel's types would do */
  /* 1: see each wake-up even where the kernel keeps the wait for a CPU itself: then a thread that was woken and has not
   * run yet is waiting already, and not off until it runs; each costs as much as a switch. */
  int wakeups;
  enum m6_frames_by frames;
  int frames_pmu;          /* 1: by perf events even where a uprobe_multi link would do */
  const char *shim;        /* M6_FRAMES_SHIM: the file; NULL: the one that the process has mapped */
  const char *frame_place; /* BINARY:SYMBOL, PID:SYMBOL or BINARY+OFFSET, as kernel_place.h reads it; else NULL */
};

struct m6_thread_counters {
  pid_t tid; /* as this process's pid namespace counts; 0: threads that ended and were folded together, to make room */
  pid_t own_tid;  /* as the thread's own namespace counts: what gettid() gives there, and the shim's slots hold */
  pid_t tgid;     /* as it was given in the options */
  uint32_t state; /* enum m6_counters_state */
  uint32_t lives; /* threads that had this tid, one after the other */
  uint64_t elapsed_ns, on_ns, off_ns, wait_ns;
  uint64_t off_by[M6_OFF_CAUSES]; /* off_ns, divided */
  uint64_t calls, call_on_ns; /* syscalls that returned, and the part of on_ns that was spent in them; when counted */
  uint64_t counted[M6_READINGS]; /* enum m6_reading; of a running thread, as of its last switch */
  uint64_t waits; /* sum of the histogram; what it lacks to the slices are latencies whose beginning was not seen */
  uint32_t latency[M6_COUNTERS_BUCKETS];
  int32_t call; /* the syscall that it is in, -1 = none, unknown, or a 32-bit one; it is not in `calls` yet */
  uint64_t call_ns;
};
struct m6_call_counters {
  pid_t tid; /* 0: of folded threads */
  uint32_t number;
  uint32_t is_32bit; /* 1: `number` is one of the 32-bit table, in which numbers mean other calls */
  uint64_t count, ns, max_ns;
};

struct m6_counters {
  /* what the last read brought */
  struct m6_thread_counters *threads;
  struct m6_call_counters *calls;
  unsigned thread_count, call_count;
  uint64_t lost[M6_COUNTERS_LOSSES];
  uint64_t unseen_slices; /* in `counted`, and no program ran for them: the threads' while it was paused */
  uint64_t read_ns;       /* CLOCK_MONOTONIC of it; 0 = none yet */
  uint64_t open_ns;
  int raw; /* by raw tracepoints */
  struct m6_counters_inside *inside;
};

/* 0, or an errno and the fault; nothing is left open then. */
int m6_counters_open(struct m6_counters **out, const struct m6_counters_options *options, struct m6_fault *fault);
/* 0; EAGAIN when the last read is less than a second ago and this is not the `last` one: what it brought still stands;
 * or an errno. */
int m6_counters_read(struct m6_counters *c, int last, struct m6_fault *fault);
/* The sum over threads of one process (0: of all). Its tid is 0. */
struct m6_thread_counters m6_counters_total(const struct m6_counters *c, pid_t tgid);
/* kernel_pause.c: less for a while. What was counted stays. Detaching waits until no program runs any more, some 10 ms;
 * resuming reads
 * /proc, some 0.1 ms a thread. They may run beside m6_counters_frames, and beside nothing else of this handle.
 * Of system calls alone: those that are entered and return while they are attached are counted. */
void m6_counters_calls_stop(struct m6_counters *c);
/* 0, or an errno and the fault: stopped then. */
int m6_counters_calls_resume(struct m6_counters *c, struct m6_fault *fault);
/* Of all of it. Reads bring what there was at the pause, until it is resumed: 0, or an errno and the fault, and it
 * rests on. Then the books go on from where they were: what a thread ran, waited and was off meanwhile is in its times,
 * off without a cause unless it slept through; its switches, faults and migrations are in its counts; its calls and
 * latencies are not. A thread that ended meanwhile ended at the pause; one that was born counts from its beginning, to
 * a clock tick; one that was born and ended in there is not seen. */
void m6_counters_pause(struct m6_counters *c);
int m6_counters_resume(struct m6_counters *c, int calls, struct m6_fault *fault);
/* Detaches: nothing is counted any more, and the last read can be made in peace. */
void m6_counters_stop(struct m6_counters *c);
void m6_counters_close(struct m6_counters *c); /* NULL is fine */

#endif
