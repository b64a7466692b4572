/* counters_frames.h - the part of counters.bpf.c that runs at frame boundaries: uprobes in the presenting thread, one
 * hit a frame: a present's entry is told with the number that it will have. What turns out otherwise is corrected on
 * its return (frames.h).
 *
 * These run with preemption on: the thread may be switched out in the middle, and its entry be changed. So what belongs
 * together is copied, and taken again when a program wrote meanwhile. Nothing here writes what those write.
 */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, M6_FRAMES_RING_BYTES);
} m6_frames SEC(".maps");

/* Boundaries of a function that is counted here. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} m6_numbers SEC(".maps");

/* On CPU since it was switched out the last time. When its arrival was not seen, the kernel's own mark of it tells, by
 * another clock; what it ran before that in the same span is known as of the last tick. */
#define has_arrival() bpf_core_field_exists(((struct task_struct *)0)->sched_info.last_arrival)
static __always_inline __u64 on_now(const struct m6_counters_thread *e, struct task_struct *t, __u64 now, __u64 span,
                                    int unseen, int direct)
{
  __u32 zero = 0;
  __u64 *clock = has_arrival() ? bpf_map_lookup_elem(&m6_clocks, &zero) : 0;
  if (!unseen) {
    if (clock && e->state == M6_COUNTERS_ON) *clock = e->since_ns - READ(t, direct, sched_info.last_arrival);
    return e->ran_ns + now - e->since_ns;
  }
  __u64 on = READ(t, direct, se.sum_exec_runtime) - e->last_run_ns;
  if (!clock || !*clock) return on;
  __s64 run = now - READ(t, direct, sched_info.last_arrival) - *clock;
  return run > (__s64)on && run < (__s64)span ? run : on;
}

/* The thread's readings now: 0 when it was switched in the middle. */
static __always_inline int try_reading(const volatile struct m6_counters_thread *v, struct task_struct *t,
                                       struct m6_kernel_reading *r, int direct)
{
  const struct m6_counters_thread *e = (const struct m6_counters_thread *)v;
  __u32 begun = v->writing;
  if (begun & 1) return 0;
  barrier();
  __u64 now = bpf_ktime_get_ns(), span = now - e->out_ns, run, delay;
  read_times(t, direct, &run, &delay);
  int unseen = missed(e, t, direct);
  __u64 on = on_now(e, t, now, span, unseen, direct);
  __u64 wait = has_sched_info() ? delay - e->last_delay_ns : e->later_wait_ns;
  if (on > span) on = span;
  if (wait > span - on) wait = span - on;
  __u64 off = span - on - wait, known = explained(e, off, wait, now);
  r->time_ns = now;
  r->on_ns = e->on_ns + on;
  r->wait_ns = e->wait_ns + wait;
#pragma unroll
  for (int i = 0; i < M6_OFF_CAUSES; i++) r->off_ns[i] = e->off_ns[i];
  r->off_ns[e->cause & (M6_OFF_CAUSES - 1)] += known;
  r->off_ns[unseen ? M6_OFF_OTHER : M6_OFF_STOLEN] += off - known;
  r->call_ns = e->call_on_ns;
  r->calls = e->calls;
  r->voluntary = READ(t, direct, nvcsw) - e->base[M6_VOLUNTARY];
  r->involuntary = READ(t, direct, nivcsw) - e->base[M6_INVOLUNTARY];
  r->minor = READ(t, direct, min_flt) - e->base[M6_MINOR];
  r->major = READ(t, direct, maj_flt) - e->base[M6_MAJOR];
  /* User space cannot read it: a seeded thread's beginning is known by its first event. */
  r->migrations = e->state == M6_COUNTERS_SEEDED && !e->resumed
                    ? 0
                    : READ(t, direct, se.nr_migrations) - e->base[M6_MIGRATIONS];
  barrier();
  return v->writing == begun;
}
static __always_inline int reading(struct m6_counters_thread *e, struct task_struct *t, struct m6_kernel_reading *r,
                                   int direct)
{
  for (int i = 0; i < 3; i++)
    if (try_reading(e, t, r, direct)) return 1;
  return 0;
}

/* The entry of the current thread, when it is one of the process whose frames are wanted. */
static __always_inline struct m6_counters_thread *presenting(void)
{
  __u64 id = bpf_get_current_pid_tgid();
  __u32 tid = id;
  if (id >> 32 != config.tgid[0]) return 0;
  struct m6_counters_thread *e = find(tid);
  if (!e) lose(M6_LOST_FRAMES);
  return e;
}

static __always_inline int tell(struct task_struct *t, enum m6_frame_told told, __u32 stream, __u64 number, int direct)
{
  struct m6_counters_thread *e = presenting();
  if (!e) return 0;
  struct m6_frame_record *r = bpf_ringbuf_reserve(&m6_frames, sizeof *r, 0);
  if (!r) {
    lose(M6_LOST_FRAMES);
    return 0;
  }
  struct m6_kernel_frame *f = &r->frame;
  if (told != M6_FRAME_CORRECTED && !reading(e, t, &f->entry, direct)) {
    bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
    lose(M6_LOST_FRAMES);
    return 0;
  }
  f->tid = e->here;
  f->own_tid = e->own;
  f->stream = stream;
  f->lives = e->lives;
  f->number = number;
  r->told = told;
  bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
  return 0;
}

/* A function that is counted here. What is not told has its number all the same. */
static __always_inline int tell_place(struct task_struct *t, int direct)
{
  __u32 zero = 0;
  if (bpf_get_current_pid_tgid() >> 32 != config.tgid[0]) return 0;
  __u64 *count = bpf_map_lookup_elem(&m6_numbers, &zero);
  return count ? tell(t, M6_FRAME_WHOLE, 0, __sync_fetch_and_add(count, 1) + 1, direct) : 0;
}

/* Each by the kernel's types, or raw, as the tracepoints are. Arguments: preload/frame_probe.S says which. */
#define FRAME_PAIR(name, call, ...)                                                                                    \
  SEC("uprobe") int m6_##name##_btf(struct pt_regs *registers)                                                         \
  {                                                                                                                    \
    return call((struct task_struct *)bpf_get_current_task_btf(), ##__VA_ARGS__, 1);                                   \
  }                                                                                                                    \
  SEC("uprobe") int m6_##name##_raw(struct pt_regs *registers)                                                         \
  {                                                                                                                    \
    return call((struct task_struct *)bpf_get_current_task(), ##__VA_ARGS__, 0);                                       \
  }

FRAME_PAIR(frame_entry, tell, PT_REGS_PARM3(registers) ? M6_FRAME_WHOLE : M6_FRAME_BEGAN, PT_REGS_PARM1(registers),
           PT_REGS_PARM2(registers))
FRAME_PAIR(frame_correct, tell, M6_FRAME_CORRECTED, PT_REGS_PARM1(registers), PT_REGS_PARM2(registers))
FRAME_PAIR(frame_place, tell_place)
