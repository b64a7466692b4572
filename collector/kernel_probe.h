/* kernel_probe.h - one selected uprobe that counts its hits (user side of bpf/probe.bpf.c).
 *
 * Promise: no listener, no ring buffer, no file; a hit costs the trap and one add. The link is closed before the
 * program and its map, and nothing outlives the process: all of it is descriptors. Calls kernel_object, kernel_uprobe
 * and libbpf.
 */
#ifndef M6_KERNEL_PROBE_H
#define M6_KERNEL_PROBE_H

#include <bpf/libbpf.h>
#include <stdint.h>
#include <sys/types.h>

#include "../shm/budget.h"
#include "kernel_object.h"
#include "kernel_uprobe.h"

#define M6_PROBE_READ_MS 1000 /* at most one read of the counters in this time */

struct m6_probe {
  struct bpf_object *object;
  struct m6_mapping lines; /* struct m6_probe_line, one a possible CPU */
  int program, link, event;
  unsigned cpus;
  enum m6_uprobe_kind kind;
};
#define M6_PROBE_NONE                                                                                                  \
  {                                                                                                                    \
    .program = -1, .link = -1, .event = -1                                                                             \
  }

/* Some kernels (6.6 to 6.9) let a uprobe_multi link with a pid reach that one thread alone. -1: not known yet, found
 * out by trying it on a thread of our own; 0: it reaches all; 1: one alone, and the program sorts out who comes. Tests
 * set it. */
extern int m6_probe_one_thread;
/* The same, found out when it is not known yet. */
int m6_probe_is_one_thread(void);

/* pid 0: every process that runs the file. 0 or an errno; on failure nothing is left open. Tries a uprobe_multi link,
 * then a perf event; when both are refused the fault is the first one's, unless that is only missing in this kernel. */
int m6_probe_open(struct m6_probe *p, const char *path, uint64_t offset, pid_t pid, struct m6_fault *fault);
/* By one of the two ways alone. */
int m6_probe_open_as(struct m6_probe *p, enum m6_uprobe_kind kind, const char *path, uint64_t offset, pid_t pid,
                     struct m6_fault *fault);
/* The hits so far, and by CPU when `by_cpu` is not NULL (p->cpus words). No syscall. */
uint64_t m6_probe_read(const struct m6_probe *p, uint64_t *by_cpu);
/* Hits that the kernel could not count (a perf uprobe within a running program), or 0. */
uint64_t m6_probe_missed(const struct m6_probe *p);
/* Takes the probe out of the code; the counters can still be read. May block for tens of milliseconds. */
void m6_probe_detach(struct m6_probe *p);
void m6_probe_close(struct m6_probe *p);

#endif
