/* stats_proc.h - what /proc says of a process, read without trust in its being there a moment later.
 *
 * Part of the inspectors' library: libc only. Reads /proc/PID/stat and status, which need no permission; exe and maps,
 * which do. Thread-safe; not for signal handlers.
 */
#ifndef M6_STATS_PROC_H
#define M6_STATS_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct m6_proc {
  uint64_t start_ns; /* since boot, in whole clock ticks */
  uint64_t cpu_ns;   /* user and system time so far */
  uint64_t stack;    /* where its program's stack began, another after each exec; 0 where one may not know */
  uint32_t uid, euid;
  char state; /* R, S, D, Z, ...; Z only when all of its threads have ended, not its leader alone */
  char comm[64];
};

/* 0, ESRCH when there is no such process, or another errno (no /proc). */
int m6_proc_read(pid_t pid, struct m6_proc *out);
/* The same without uid and euid, from one file instead of two: for whoever asks several times a second. */
int m6_proc_stat(pid_t pid, struct m6_proc *out);
/* Length of a clock tick in ns: how far start_ns may be off. */
uint64_t m6_proc_tick_ns(void);
/* Does it run? A zombie does not. */
int m6_proc_alive(pid_t pid);
/* The process that has this number (0: any) in another pid namespace, by its number here. 0: there is none; -1: it
 * cannot be known, because only root may look into all of them. Looks through all of /proc. */
pid_t m6_proc_in_namespace(uint64_t pidns, pid_t number);
/* The thread whose files in /proc tell of its memory: itself, or another one where its leader has ended. */
pid_t m6_proc_speaker(pid_t pid);
/* Identity of the executable: 0 or an errno; non-dumpable processes hide it. */
int m6_proc_exe(pid_t pid, uint64_t *device, uint64_t *inode);
/* Its path (NUL-terminated), length, or -1. */
int m6_proc_exe_path(pid_t pid, char *out, size_t room);
/* A thread's name as the kernel has it: length (without newline), or -1. */
int m6_proc_thread_name(pid_t pid, pid_t tid, char *out, size_t room);
/* Path of what is mapped at an address: length, or -1. */
int m6_proc_module(pid_t pid, uint64_t address, char *out, size_t room);
/* Does it map a file with this inode? 1 or 0; -1: its maps cannot be read. */
int m6_proc_maps(pid_t pid, uint64_t inode);

#endif
