/* counters_calls.h - the part of counters.bpf.c that runs at system calls: how many a thread made, which, and what they
 * took. These tax every process of the machine, and are loaded only at level `full`.
 */
/* On CPU so far, of a thread that is on it. */
static __always_inline __u64 on_so_far(const struct m6_counters_thread *e, __u64 now)
{
  return e->on_ns + e->ran_ns + (e->state == M6_COUNTERS_ON || e->state == M6_COUNTERS_SEEDED ? now - e->since_ns : 0);
}

static __always_inline int entered(long number, int direct)
{
  __u64 id = bpf_get_current_pid_tgid();
  __u32 tid = id;
  if (!wanted(id >> 32)) return 0;
#ifdef __TARGET_ARCH_x86
  if (number == 335 || number == 336) return 0; /* the kernel's own uprobe trampolines */
  if (is_32bit(direct ? (struct task_struct *)bpf_get_current_task_btf() : (struct task_struct *)bpf_get_current_task(),
               direct))
    number |= M6_COUNTERS_32BIT;
#endif
  __u64 now = bpf_ktime_get_ns();
  struct m6_counters_thread *e = find(tid);
  if (!e) return 0; /* counted from its first switch on */
  e->call_ns = now;
  e->call_from_ns = on_so_far(e, now);
  e->call = number + 1;
  return 0;
}

static __always_inline int left(void)
{
  __u64 id = bpf_get_current_pid_tgid();
  __u32 tid = id;
  if (!wanted(id >> 32)) return 0;
  struct m6_counters_thread *e = find(tid);
  if (!e || !e->call) return 0;
  __u64 now = bpf_ktime_get_ns(), took = now - e->call_ns, on = on_so_far(e, now) - e->call_from_ns;
  /* When it was switched out meanwhile, what it was on CPU before is corrected by the kernel's reading: by some us. */
  e->call_on_ns += (__s64)on < 0 ? 0 : on > took ? took : on;
  e->calls++;
  count_call(e, tid, now);
  return 0;
}

#define ENTER_ARGS void *registers, long number
#define EXIT_ARGS void *registers, long result
PAIR(sys_enter, "sys_enter", ENTER_ARGS, entered(number, 1), entered(number, 0))
PAIR(sys_exit, "sys_exit", EXIT_ARGS, left(), left())
#undef ENTER_ARGS
#undef EXIT_ARGS
