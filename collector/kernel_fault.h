/* kernel_fault.h - what the kernel side says when something cannot be had: what was tried, on what, the errno, and what
 * the user can do. The one place where the kernel's refusals become text; calls libc and kernel_confine.h only.
 */
#ifndef M6_KERNEL_FAULT_H
#define M6_KERNEL_FAULT_H

#include <stddef.h>

/* What the kernel was asked for: together with the errno it tells which setting is in the way. */
enum m6_area {
  M6_AREA_NONE,
  M6_AREA_BPF,        /* bpf(2): programs and maps */
  M6_AREA_BTF,        /* types of the running kernel */
  M6_AREA_MULTI,      /* a uprobe_multi link */
  M6_AREA_PMU_UPROBE, /* a uprobe by perf_event_open */
  M6_AREA_KPROBE,
  M6_AREA_TRAMPOLINE, /* fentry */
  M6_AREA_TRACEFS,
  M6_AREA_PERF_SELF,   /* a perf event on a task of one's own, user space only */
  M6_AREA_PERF_KERNEL, /* the same, kernel space included */
  M6_AREA_PERF_CPU,    /* a perf event on a CPU: everybody's tasks */
  M6_AREA_PERF_OTHER,  /* a perf event on another user's task */
  M6_AREA_PERF_HARDWARE,
  M6_AREA_PROC,      /* another process, by /proc or pidfd */
  M6_AREA_NAMESPACE, /* pids as the kernel counts them */
  M6_AREA_IO_URING,
  M6_AREA_FILE,
  M6_AREA_SHM, /* /dev/shm */
};

struct m6_fault {
  int err; /* an errno; 0 = nothing is wrong */
  enum m6_area area;
  const char *tried; /* static text: "attach", "load", ... */
  char on[224];      /* to what; cut when longer */
};

/* What closes it, and the command that opens it. Either may be empty: nothing that the user can do is known. */
struct m6_hint {
  char setting[160];
  char command[200];
};

/* Writes the fault and gives `err` back; with a NULL fault only the latter. `err` 0 is turned into EIO: it is a fault.
 * */
int m6_fault_set(struct m6_fault *f, int err, enum m6_area area, const char *tried, const char *on_format, ...)
  __attribute__((format(printf, 5, 6)));
struct m6_hint m6_fault_hint(enum m6_area area, int err);
/* "cannot TRIED ON: strerror (ERRNAME); closed by SETTING; opened by: COMMAND" into out; gives out. */
const char *m6_fault_text(const struct m6_fault *f, char *out, size_t size);

#endif
