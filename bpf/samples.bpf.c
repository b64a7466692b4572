/* samples.bpf.c - one CPU sample: who, when, with which stacks; aggregated here, so that nothing is sent.
 *
 * Runs at each overflow of a per-task cpu-clock event, in the sampled thread. A sample is added to counts (thread and
 * stacks) and written into the ring of retained samples (with its time, for the join with scopes). Stacks are kept
 * once, by hash. Promise: bounded work (two stacks of M6_SAMPLES_STACK_MAX frames), no allocation, what finds no room
 * is counted. Needs a kernel of 5.12 at least (atomics that return). Hand-declared types: no vmlinux.h, no BTF at build
 * time.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "samples.h"

char _license[] SEC("license") = "Dual MIT/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct m6_bpf_samples_state);
} state SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, M6_SAMPLES_RETAINED);
  __type(key, __u32);
  __type(value, struct m6_bpf_sample);
} samples SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, M6_SAMPLES_RETAINED);
  __type(key, struct m6_bpf_count_key);
  __type(value, __u64);
} counts SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, M6_SAMPLES_RETAINED);
  __type(key, __u64);
  __type(value, struct m6_bpf_stack);
} stacks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, M6_SAMPLES_THREADS);
  __type(key, __u32);
  __type(value, struct m6_bpf_thread);
} threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct m6_bpf_stack);
} scratch SEC(".maps");

/* The id of the current stack, which is stored when it is new. One multiply and one shift a frame. */
static __always_inline __u64 keep_stack(void *ctx, struct m6_bpf_samples_state *st, __u64 flags)
{
  __u32 zero = 0;
  struct m6_bpf_stack *s = bpf_map_lookup_elem(&scratch, &zero);
  if (!s) return M6_STACK_NONE;
  long bytes = bpf_get_stack(ctx, s->ip, sizeof s->ip, flags);
  if (bytes < 8) return M6_STACK_NONE;
  __u32 n = (__u32)bytes / 8;
  __u64 h = 0x9e3779b97f4a7c15ull ^ n;
  for (__u32 i = 0; i < M6_SAMPLES_STACK_MAX; i++) {
    if (i >= n) break;
    h = (h ^ s->ip[i]) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  if (h <= M6_STACK_LOST) h = 2;
  if (bpf_map_lookup_elem(&stacks, &h)) return h;
  s->n = n;
  long e = bpf_map_update_elem(&stacks, &h, s, BPF_NOEXIST);
  if (e && e != -17 /* EEXIST: another CPU was faster */) {
    __sync_fetch_and_add(&st->lost_stacks, 1);
    return M6_STACK_LOST;
  }
  return h;
}

static __always_inline __u32 own_tid(const struct m6_bpf_samples_state *st)
{
  struct bpf_pidns_info ns = {};
  if (st->ns_ino && !bpf_get_ns_current_pid_tgid(st->ns_dev, st->ns_ino, &ns, sizeof ns)) return ns.pid;
  return (__u32)bpf_get_current_pid_tgid();
}

SEC("perf_event")
int m6_cpu_sample(void *ctx)
{
  __u32 zero = 0;
  struct m6_bpf_samples_state *st = bpf_map_lookup_elem(&state, &zero);
  if (!st) return 0;
  __u64 time = bpf_ktime_get_ns();
  struct m6_bpf_count_key key = {.tid = own_tid(st)};
  key.user = keep_stack(ctx, st, BPF_F_USER_STACK);
  key.kernel = keep_stack(ctx, st, 0);

  __u32 weight = *(volatile __u32 *)&st->weight ?: 1;
  __u64 number = __sync_fetch_and_add(&st->samples, 1);
  __sync_fetch_and_add(&st->periods, weight);
  __u32 at = number % (st->retained ?: 1);
  struct m6_bpf_sample *r = bpf_map_lookup_elem(&samples, &at);
  if (r) {
    /* An exchange is a full barrier: a reader that sees the number before and after its copy has a whole entry. */
    __sync_lock_test_and_set(&r->seq, 0);
    r->time_ns = time;
    r->user = key.user;
    r->kernel = key.kernel;
    r->tid = key.tid;
    r->weight = weight;
    __sync_lock_test_and_set(&r->seq, number + 1);
  }

  __u64 *count = bpf_map_lookup_elem(&counts, &key);
  if (!count) {
    __u64 none = 0;
    bpf_map_update_elem(&counts, &key, &none, BPF_NOEXIST);
    count = bpf_map_lookup_elem(&counts, &key);
  }
  if (count) __sync_fetch_and_add(count, weight);
  else __sync_fetch_and_add(&st->lost_counts, 1);

  struct m6_bpf_thread *t = bpf_map_lookup_elem(&threads, &key.tid);
  if (!t) {
    struct m6_bpf_thread fresh = {};
    bpf_map_update_elem(&threads, &key.tid, &fresh, BPF_NOEXIST);
    t = bpf_map_lookup_elem(&threads, &key.tid);
  }
  if (t) {
    t->samples++; /* its own thread's alone */
    bpf_get_current_comm(t->name, sizeof t->name);
  } else {
    __sync_fetch_and_add(&st->lost_threads, 1);
  }
  return 0;
}
