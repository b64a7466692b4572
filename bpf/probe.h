/* probe.h - what the probe's kernel program and its user side share.
 *
 * One line of hits for each possible CPU, in an ARRAY that user space maps: read without a syscall. A CPU adds to its
 * own line alone; the add is atomic all the same, because a program on a uprobe can be preempted by another that hits
 * the same probe on the same CPU.
 */
#ifndef M6_BPF_PROBE_H
#define M6_BPF_PROBE_H

#include <linux/types.h>

struct m6_probe_config {
  __u32 tgid; /* count this process alone; 0 = whoever comes */
  __u32 free_;
};

struct m6_probe_line {
  __u64 hits;
  __u64 line_free[7];
};
_Static_assert(sizeof(struct m6_probe_line) == 64, "one cache line a CPU");

#endif
