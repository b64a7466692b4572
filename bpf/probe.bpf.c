/* probe.bpf.c - counts the hits of one uprobe, by CPU. No clock, no stack, no event: one add.
 *
 * User side: collector/kernel_probe.c, which sets the map's size to the number of possible CPUs and says how the
 * program is attached.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "probe.h"

char m6_license[] SEC("license") = "Dual MIT/GPL";

const volatile struct m6_probe_config config = {};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct m6_probe_line);
} m6_probe_hits SEC(".maps");

SEC("uprobe")
int m6_probe_hit(void *registers)
{
  (void)registers;
  if (config.tgid && bpf_get_current_pid_tgid() >> 32 != config.tgid) return 0;
  __u32 cpu = bpf_get_smp_processor_id();
  struct m6_probe_line *line = bpf_map_lookup_elem(&m6_probe_hits, &cpu);
  if (line) __sync_fetch_and_add(&line->hits, 1);
  return 0;
}
