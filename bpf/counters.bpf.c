/* counters.bpf.c - what the threads of a target did: on a CPU, waiting for one, off and why; switches, faults,
 * migrations; syscalls (counters_calls.h); and their readings at frame boundaries (counters_frames.h).
 *
 * User side: collector/kernel_counters.c. Each tracepoint has two programs, of which one is loaded: by the kernel's
 * types (tp_btf, which reads the task directly), or raw, which reads it with a helper. For a task that is no target's a
 * switch costs two loads and two comparisons. No event of these leaves the kernel, but for a record a frame.
 *
 * Why a thread is off is told by the syscall that it is in, and that by its own saved registers: no tracepoint of
 * syscalls, which every process of the machine would pay for.
 *
 * Order: the kernel emits sched_switch, sched_wakeup and sched_wakeup_new of one task under its run-queue's lock; only
 * a task that wakes itself has none, and then it is on its CPU and nothing is done. Some never come (counters.h): what
 * each handler finds is taken as it is, and the readings decide.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "counters.h"
#include "kernel_types.h"

#include <asm/ptrace.h> /* registers of a uprobe */

char m6_license[] SEC("license") = "Dual MIT/GPL";

const volatile struct m6_counters_config config = {};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, M6_COUNTERS_THREADS);
  __type(key, __u32);
  __type(value, struct m6_counters_thread);
} m6_threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct m6_counters_taken);
} m6_taken SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, M6_COUNTERS_CALLS);
  __type(key, struct m6_counters_call_key);
  __type(value, struct m6_counters_call);
} m6_calls SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, M6_COUNTERS_LOSSES);
  __type(key, __u32);
  __type(value, __u64);
} m6_losses SEC(".maps");

/* CLOCK_MONOTONIC less the run queues' clock, as of the last boundary of a thread whose arrival was seen. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} m6_clocks SEC(".maps");

#define READ(task, direct, field) ((direct) ? (task)->field : BPF_CORE_READ(task, field))

/* Nearly always there is one target: one comparison then, and the rest is no part of the program (constants are known
 * to the verifier, which drops what cannot be reached). */
static __always_inline int wanted(__u32 tgid)
{
  if (config.tgid[0] == tgid) return 1;
  if (config.targets < 2) return 0;
#pragma unroll
  for (__u32 i = 1; i < M6_COUNTERS_TARGETS; i++)
    if (i < config.targets && config.tgid[i] == tgid) return 1;
  return 0;
}

static __always_inline void lose(__u32 what)
{
  __u64 *n = bpf_map_lookup_elem(&m6_losses, &what);
  if (n) *n += 1;
}

static __always_inline __u32 log2_of(__u64 v)
{
  __u32 r = 0;
  if (v >> 31) return 31;
  __u32 w = v;
  if (w >> 16) r += 16, w >>= 16;
  if (w >> 8) r += 8, w >>= 8;
  if (w >> 4) r += 4, w >>= 4;
  if (w >> 2) r += 2, w >>= 2;
  return r + (w >> 1);
}

#define has_sched_info() bpf_core_field_exists(((struct task_struct *)0)->sched_info.run_delay)
static __always_inline void read_task(struct task_struct *t, int direct, __u64 r[M6_READINGS])
{
  r[M6_VOLUNTARY] = READ(t, direct, nvcsw);
  r[M6_INVOLUNTARY] = READ(t, direct, nivcsw);
  r[M6_MINOR] = READ(t, direct, min_flt);
  r[M6_MAJOR] = READ(t, direct, maj_flt);
  r[M6_MIGRATIONS] = READ(t, direct, se.nr_migrations);
  r[M6_SLICES] = has_sched_info() ? READ(t, direct, sched_info.pcount) : 0;
}
static __always_inline void read_times(struct task_struct *t, int direct, __u64 *run, __u64 *delay)
{
  *run = READ(t, direct, se.sum_exec_runtime);
  *delay = has_sched_info() ? READ(t, direct, sched_info.run_delay) : 0;
}

/* A thread's numbers: as its own pid namespace counts, and as user space does; 0 when it has none there. */
static __always_inline void number(struct m6_counters_thread *e, struct task_struct *t, __u32 tid)
{
  e->own = tid;
  e->here = config.pid_namespace ? 0 : tid;
  if (!bpf_core_field_exists(((struct task_struct *)0)->thread_pid)) return;
  struct pid *p = BPF_CORE_READ(t, thread_pid);
  __u32 level = BPF_CORE_READ(p, level);
  char *numbers = (char *)p + bpf_core_field_offset(((struct pid *)0)->numbers);
  for (__u32 i = 0; i < M6_PID_LEVELS && i <= level; i++) {
    struct upid *u = (struct upid *)(numbers + i * bpf_core_type_size(struct upid));
    __u32 nr = BPF_CORE_READ(u, nr);
    if (config.pid_namespace && BPF_CORE_READ(u, ns, ns.inum) == config.pid_namespace) e->here = nr;
    e->own = nr;
  }
}

/* Where the first look did not find it. Out of line: that is seldom. */
static __attribute__((noinline)) struct m6_counters_thread *search(__u32 tid)
{
  for (__u32 i = 1; i < M6_COUNTERS_PROBES; i++) {
    __u32 place = m6_counters_place(tid, i);
    struct m6_counters_thread *e = bpf_map_lookup_elem(&m6_threads, &place);
    if (e && e->tid == tid) return e;
  }
  return 0;
}
static __always_inline struct m6_counters_thread *find(__u32 tid)
{
  __u32 place = m6_counters_place(tid, 0);
  struct m6_counters_thread *e = bpf_map_lookup_elem(&m6_threads, &place);
  return e && e->tid == tid ? e : search(tid);
}

/* A place of its own. Nobody else makes an entry for this tid meanwhile, but for user space: see seed in
 * kernel_counters.c. */
static __always_inline struct m6_counters_thread *claim(__u32 tid)
{
  for (__u32 i = 0; i < M6_COUNTERS_PROBES; i++) {
    __u32 place = m6_counters_place(tid, i), zero = 0;
    struct m6_counters_thread *e = bpf_map_lookup_elem(&m6_threads, &place);
    if (!e || __sync_val_compare_and_swap(&e->tid, 0, tid) != 0) continue;
    struct m6_counters_taken *taken = bpf_map_lookup_elem(&m6_taken, &zero);
    if (taken) __sync_fetch_and_or(&taken->bits[place / 64 & (M6_COUNTERS_THREADS / 64 - 1)], 1ull << (place & 63));
    return e;
  }
  return 0;
}

static __always_inline void begin(struct m6_counters_thread *e)
{
  e->writing |= 1;
  barrier();
}
static __always_inline void done(struct m6_counters_thread *e)
{
  barrier();
  e->writing++;
}

/* A new entry, which is begun. Out of line, as all that is seldom: a switch finds its code in few cache lines. */
static __attribute__((noinline)) struct m6_counters_thread *fresh(struct task_struct *t, __u32 tid, __u32 tgid,
                                                                  __u64 now)
{
  struct m6_counters_thread *e = claim(tid);
  if (!e) {
    lose(M6_LOST_THREADS);
    return 0;
  }
  begin(e);
  e->tgid = tgid;
  e->lives = 1;
  e->cause = M6_OFF_OTHER;
  number(e, t, tid);
  e->first_ns = e->out_ns = e->since_ns = now;
  return e;
}

/* The thread's entry, made when it is new: *made says so. */
static __always_inline struct m6_counters_thread *entry(struct task_struct *t, __u32 tid, __u32 tgid, __u64 now,
                                                        int *made)
{
  struct m6_counters_thread *e = find(tid);
  *made = !e;
  return e ?: fresh(t, tid, tgid, now);
}

/* The first reading of a thread whose birth was not seen: what it has is its beginning, and 0 is given; or it was born
 * after all, while nobody was told: its beginning is nothing, and 1 is given. */
static __always_inline int adopt(struct m6_counters_thread *e, struct task_struct *t, int direct)
{
  __u64 born = READ(t, direct, start_time);
  read_task(t, direct, e->last);
  if (born >= config.open_ns) {
    e->first_ns = e->out_ns = e->since_ns = born;
    return 1;
  }
  for (int i = 0; i < M6_READINGS; i++) e->base[i] = e->last[i];
  read_times(t, direct, &e->last_run_ns, &e->last_delay_ns);
  e->read_delay_ns = e->last_delay_ns;
  return 0;
}

/* User space could not read how often a seeded thread had migrated: what it has by its first event is its beginning. */
static __always_inline void complete_seed(struct m6_counters_thread *e, struct task_struct *t, int direct)
{
  if (e->state == M6_COUNTERS_SEEDED && !e->resumed)
    e->base[M6_MIGRATIONS] = e->last[M6_MIGRATIONS] = READ(t, direct, se.nr_migrations);
}

/* Was an event of this thread not seen since it was switched out the last time? It is on its CPU now. */
static __always_inline int missed(const struct m6_counters_thread *e, struct task_struct *t, int direct)
{
  if (e->state != M6_COUNTERS_ON && e->state != M6_COUNTERS_SEEDED) return 1;
  return has_sched_info() && (__u32)READ(t, direct, sched_info.pcount) != e->arrived;
}

/* How much of this time off CPU has the thread's cause? Up to what went by from when it left until it came, less its
 * wait in there for a CPU; up to all since it left when its arrival was not seen. */
static __always_inline __u64 explained(const struct m6_counters_thread *e, __u64 off, __u64 wait, __u64 now)
{
  __u64 most = e->later_off_ns + e->unseen_ns + (e->state == M6_COUNTERS_OFF ? now - e->since_ns : 0);
  __u64 waited = wait > e->later_wait_ns ? wait - e->later_wait_ns : 0;
  most = most > waited ? most - waited : 0;
  return off < most ? off : most;
}

static __always_inline void count_latency(struct m6_counters_thread *e, __u64 ns)
{
  e->waits++;
  e->latency[log2_of(ns) & (M6_COUNTERS_BUCKETS - 1)]++;
}

/* The thread is switched out: the time since it was the last time, as the readings divide it. They are of the run
 * queue's clock, which stands still from when the scheduler begins until it has switched, and now and then that is
 * long: a wait can have begun before the event of the switch to which it belongs. What there was no time for is cut
 * when it is from before the first event, and else counted as soon as there is. What is neither on CPU nor waiting has
 * the cause that was seen; beyond that it was stolen, or the event was not seen. The wait for the one slice that it had
 * is a latency; that of several cannot be divided. */
static __always_inline void settle(struct m6_counters_thread *e, struct task_struct *t, __u64 slices, __u64 now,
                                   int direct)
{
  __u64 span = now - e->out_ns, run, delay;
  read_times(t, direct, &run, &delay);
  __u64 on = run - e->last_run_ns, wait = has_sched_info() ? delay - e->last_delay_ns : e->later_wait_ns;
  if (on > span) on = span;
  if (wait > span - on) wait = span - on;
  __u64 off = span - on - wait, known = explained(e, off, wait, now);
  if (has_sched_info() && slices == 1) count_latency(e, delay - e->read_delay_ns);
  e->on_ns += on;
  e->wait_ns += wait;
  e->off_ns[e->cause & (M6_OFF_CAUSES - 1)] += known;
  e->off_ns[missed(e, t, direct) ? M6_OFF_OTHER : M6_OFF_STOLEN] += off - known;
  e->later_off_ns = e->later_wait_ns = e->unseen_ns = e->ran_ns = 0;
  e->last_run_ns = run;
  e->last_delay_ns = !has_sched_info() || e->out_ns == e->first_ns ? delay : e->last_delay_ns + wait;
  e->read_delay_ns = delay;
  e->out_ns = e->since_ns = now;
}

static __attribute__((noinline)) int count_call(struct m6_counters_thread *e, __u32 tid, __u64 now)
{
  if (!e) return 0; /* for the verifier */
  struct m6_counters_call_key key = {tid, e->call - 1};
  struct m6_counters_call *c = bpf_map_lookup_elem(&m6_calls, &key);
  if (!c) {
    struct m6_counters_call none = {};
    bpf_map_update_elem(&m6_calls, &key, &none, BPF_NOEXIST);
    c = bpf_map_lookup_elem(&m6_calls, &key);
    if (!c) {
      lose(M6_LOST_CALLS);
      e->call = 0;
      return 0;
    }
  }
  __u64 took = now - e->call_ns;
  c->count++;
  c->ns += took;
  if (took > c->max_ns) c->max_ns = took;
  e->call = 0;
  return 0;
}

/* ---- why it is off ---------------------------------------------------------------------------------------------- */

/* In a syscall by the 32-bit table? Its numbers mean other calls. */
static __always_inline int is_32bit(struct task_struct *t, int direct)
{
#ifdef __TARGET_ARCH_x86
  if (bpf_core_field_exists(((struct task_struct *)0)->thread_info.status))
    return READ(t, direct, thread_info.status) & TS_COMPAT;
#endif
  return 0;
}

/* The number of the syscall that a task is in; -1: it is in none, but in an exception; another negative: unknown. By
 * raw tracepoints only the current task's registers can be had. */
static __always_inline long syscall_number(struct task_struct *t, int is_current, int direct)
{
  void *registers;
  if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) return -2;
  if (direct) registers = (void *)bpf_task_pt_regs(t);
  else if (is_current && bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf))
    registers = (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
  else return -2;
  if (bpf_core_field_exists(((struct pt_regs___x86 *)0)->orig_ax)) return ((struct pt_regs___x86 *)registers)->orig_ax;
  if (bpf_core_field_exists(((struct pt_regs___arm64 *)0)->syscallno))
    return ((struct pt_regs___arm64 *)registers)->syscallno;
  return -2;
}

/* Why a task that cannot go on leaves its CPU, or left it. */
static __always_inline __u32 cause_of(struct task_struct *t, __u32 state, int is_current, int direct)
{
  if (state & TASK_STOPPED_OR_TRACED) return M6_OFF_OTHER;
  long number = syscall_number(t, is_current, direct);
  if (number == -1) return M6_OFF_FAULT;
  __u32 cause = M6_OFF_OTHER;
  if (number >= 0 && number < M6_COUNTERS_NUMBERS && !is_32bit(t, direct))
    cause = config.cause[number & (M6_COUNTERS_NUMBERS - 1)];
  if (cause == M6_OFF_OTHER && bpf_core_field_exists(((struct task_struct *)0)->in_iowait) &&
      (direct ? BPF_CORE_READ_BITFIELD(t, in_iowait) : BPF_CORE_READ_BITFIELD_PROBED(t, in_iowait)))
    cause = M6_OFF_IO;
  return cause;
}

/* ---- switches --------------------------------------------------------------------------------------------------- */

static __always_inline void leaves(struct task_struct *t, __u32 tgid, int preempted, __u64 now, int direct)
{
  __u32 tid = READ(t, direct, pid), state = READ(t, direct, __state);
  int made;
  struct m6_counters_thread *e = entry(t, tid, tgid, now, &made);
  if (!e) return;
  begin(e);
  if (made) {
    /* It ran before anyone looked: this switch is the first thing that counts. */
    if (adopt(e, t, direct)) settle(e, t, e->last[M6_SLICES], now, direct);
    else e->base[!preempted && state ? M6_VOLUNTARY : M6_INVOLUNTARY]--;
  } else {
    __u64 slices = e->last[M6_SLICES];
    complete_seed(e, t, direct);
    read_task(t, direct, e->last);
    settle(e, t, e->last[M6_SLICES] - slices, now, direct);
  }
  if (state & TASK_DEAD) {
    if (config.syscalls && e->call) count_call(e, tid, now); /* exit and exit_group do not return */
    e->state = M6_COUNTERS_ENDED;
  } else if (preempted || !state) e->state = M6_COUNTERS_WAITING;
  else {
    e->state = M6_COUNTERS_OFF;
    e->cause = cause_of(t, state, 1, direct);
  }
  done(e);
}

/* A thread was not seen to leave: how much of the time since is off will be known when it leaves the next time; why,
 * the syscall tells that it still is in. */
static __always_inline void left_unseen(struct m6_counters_thread *e, struct task_struct *t, __u64 now, int direct)
{
  e->unseen_ns += now - e->since_ns;
  if (!e->later_off_ns) e->cause = cause_of(t, 0, 0, direct);
}

static __always_inline void comes(struct task_struct *t, __u32 tgid, __u64 now, int direct)
{
  __u32 tid = READ(t, direct, pid);
  int made;
  struct m6_counters_thread *e = entry(t, tid, tgid, now, &made);
  if (!e) return;
  __u64 gone = now - e->since_ns;
  begin(e);
  if (made) {
    if (adopt(e, t, direct)) e->later_wait_ns = now - e->since_ns;
  } else {
    complete_seed(e, t, direct);
    /* Off, and since its wake-up waiting: how long that was, the kernel counts in a moment. */
    if (e->state == M6_COUNTERS_OFF || e->state == M6_COUNTERS_SEEDED) e->later_off_ns += gone;
    else if (e->state != M6_COUNTERS_ON) e->later_wait_ns += gone;
    else left_unseen(e, t, now, direct);
    if (!has_sched_info() && e->state == M6_COUNTERS_WAITING) count_latency(e, gone);
  }
  if (has_sched_info()) e->arrived = READ(t, direct, sched_info.pcount) + 1; /* the kernel counts it in a moment */
  e->ran_ns = READ(t, direct, se.sum_exec_runtime) - e->last_run_ns;         /* none, unless it was not seen to leave */
  e->since_ns = now;
  e->state = M6_COUNTERS_ON;
  done(e);
}

static __always_inline int switched(int preempted, struct task_struct *prev, struct task_struct *next, int direct)
{
  __u32 from = READ(prev, direct, tgid), to = READ(next, direct, tgid);
  int out = wanted(from), in = wanted(to);
  if (!out && !in) return 0;
  __u64 now = bpf_ktime_get_ns();
  if (out) leaves(prev, from, preempted, now, direct);
  if (in) comes(next, to, now, direct);
  return 0;
}

static __always_inline int woken(struct task_struct *t, int is_new, int direct)
{
  __u32 tgid = READ(t, direct, tgid);
  if (!wanted(tgid)) return 0;
  __u32 tid = READ(t, direct, pid);
  __u64 now = bpf_ktime_get_ns();
  int made;
  struct m6_counters_thread *e = entry(t, tid, tgid, now, &made);
  if (!e) return 0;
  if (is_new) {
    /* Its counters begin at nothing. The tid may have had another thread before: the next owner counts on. */
    begin(e);
    for (int i = 0; i < M6_READINGS; i++) {
      e->base[i] -= e->last[i];
      e->last[i] = 0;
    }
    e->last_run_ns = e->last_delay_ns = e->read_delay_ns = 0;
    if (!made) {
      e->lives++;
      e->off_ns[M6_OFF_OTHER] += now - e->out_ns;
      number(e, t, tid);
      e->later_off_ns = e->later_wait_ns = e->unseen_ns = e->ran_ns = 0;
      e->out_ns = now;
    }
    e->call = 0;
    e->cause = M6_OFF_OTHER;
  } else if (made) {
    begin(e);
    if (adopt(e, t, direct)) e->later_off_ns = now - e->since_ns;
  } else if (e->state == M6_COUNTERS_OFF || e->state == M6_COUNTERS_SEEDED) {
    begin(e);
    complete_seed(e, t, direct);
    e->later_off_ns += now - e->since_ns;
  } else if (e->state == M6_COUNTERS_ON && READ(t, direct, nvcsw) != e->last[M6_VOLUNTARY]) {
    begin(e);
    left_unseen(e, t, now, direct);
  } else return 0; /* runs, or waits already */
  e->since_ns = now;
  e->state = M6_COUNTERS_WAITING;
  done(e);
  return 0;
}

#define PAIR(name, tracepoint, args, body, raw_body)                                                                   \
  SEC("tp_btf/" tracepoint) int BPF_PROG(m6_##name##_btf, args) { return body; }                                       \
  SEC("raw_tp/" tracepoint) int BPF_PROG(m6_##name##_raw, args) { return raw_body; }
#define SWITCH_ARGS _Bool preempted, struct task_struct *prev, struct task_struct *next

PAIR(switch, "sched_switch", SWITCH_ARGS, switched(preempted, prev, next, 1), switched(preempted, prev, next, 0))
PAIR(wakeup, "sched_wakeup", struct task_struct *task, woken(task, 0, 1), woken(task, 0, 0))
PAIR(wakeup_new, "sched_wakeup_new", struct task_struct *task, woken(task, 1, 1), woken(task, 1, 0))

#include "counters_calls.h"
#include "counters_frames.h"
