/* frames.h - what the frames' kernel programs and their user side share: a thread's readings at a moment, and the
 * record of a present boundary. Written by bpf/counters.bpf.c, handed out by collector/kernel_frames.c.
 */
#ifndef M6_BPF_FRAMES_H
#define M6_BPF_FRAMES_H

#include "../shm/budget.h"

#include <linux/types.h>

/* Why a thread is off its CPU, though it could not run: the syscall that it is in, or none. */
enum m6_off_cause {
  M6_OFF_LOCK,  /* futex: a lock, a condition, a join, somebody else's work */
  M6_OFF_SLEEP, /* nanosleep, clock_nanosleep: its own will */
  M6_OFF_POLL,  /* poll, select, epoll_wait and their kin */
  M6_OFF_IO,    /* read, write, fsync, open, recv, send, io_uring, ...; or the kernel says that it waits for a device */
  M6_OFF_DRIVER, /* ioctl: a graphics driver, mostly */
  M6_OFF_FAULT,  /* a page fault: in no syscall */
  M6_OFF_STOLEN, /* not switched out at all: interrupts and the hypervisor took the CPU, as far as the kernel accounts that */
  M6_OFF_OTHER, /* another syscall, a 32-bit one, stopped by a signal or a debugger, or not known */
  M6_OFF_CAUSES
};

/* Absolute readings of one thread, which never go back; differences are made by whoever reads.
 * on_ns + wait_ns + sum(off_ns) = time_ns - first_ns of that thread, always. */
struct m6_kernel_reading {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u64 on_ns;   /* on a CPU */
  __u64 wait_ns; /* could run, had no CPU */
  __u64 off_ns[M6_OFF_CAUSES];
  __u64 call_ns; /* part of on_ns that was spent in syscalls; 0 unless syscalls are counted */
  __u64 calls;   /* syscalls that returned; 0 unless they are counted */
  __u64 minor, major, voluntary, involuntary, migrations;
};

/* One boundary: a present's entry, or the moment itself by --frame-symbol and mach6_frame(). */
struct m6_kernel_frame {
  __u32 tid; /* of the thread that presented, as this process's pid namespace counts; 0 when it has no number there */
  __u32 own_tid; /* as the thread's own innermost pid namespace counts: what gettid() gives there, and slots hold */
  __u32 stream;  /* index in header.streams; 0 by --frame-symbol */
  __u32 lives;  /* threads that have had this tid, one after the other: readings of another life are another thread's */
  __u64 number; /* of the present in its stream, from 1: struct m6_stream.presents as it was then */
  struct m6_kernel_reading entry;
};

/* What goes through the ring: a present is told when it begins, as the one that it will be unless another thread comes
 * first, it fails, or it is another drawable's than this thread's last one. Then it is told again, and only then. */
enum m6_frame_told {
  M6_FRAME_WHOLE, /* a boundary, and that is all of it */
  M6_FRAME_BEGAN,
  M6_FRAME_CORRECTED /* the last that began in this thread has this stream and number; 0: it failed, and is no frame. No reading */
};
struct m6_frame_record {
  struct m6_kernel_frame frame;
  __u32 told, spare;
};
_Static_assert(sizeof(struct m6_kernel_reading) == 144 && sizeof(struct m6_kernel_frame) == 168 &&
                 sizeof(struct m6_frame_record) == 176,
               "as both sides have it");

#endif
