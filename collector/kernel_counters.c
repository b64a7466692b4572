/* kernel_counters.c - loads, seeds, reads and takes down the counters by thread. */
#include "kernel_counters.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../shm/clock.h"
#include "kernel_counters_parts.h"
#include "kernel_proc.h"
#include "kernel_seed.h"
#include "kernel_table.h"
#include "kernel_tasks.h"

M6_BLOB(counters);

#define PROGRAMS M6_COUNTERS_PROGRAMS

/* One table of tracepoints: the program's name without its ending, and when it is loaded. Wake-ups, which are as many
 * as slices, only where the kernel does not keep itself how long a thread waited for a CPU. */
enum when { ALWAYS, WITHOUT_SCHED_INFO, WITH_SYSCALLS };
static const struct {
  const char *name;
  enum when when;
} tracepoints[PROGRAMS] = {{"m6_wakeup", WITHOUT_SCHED_INFO},
                           {"m6_wakeup_new", ALWAYS},
                           {"m6_switch", ALWAYS},
                           {"m6_sys_exit", WITH_SYSCALLS}, /* first: what is entered from then on is seen to end */
                           {"m6_sys_enter", WITH_SYSCALLS}};

/* CONFIG_SCHED_INFO: since Linux 5.14, whose names the programs know, it keeps what it shows here without being asked
 * to. */
static int keeps_sched_info(void) { return access("/proc/self/schedstat", F_OK) == 0; }
static int is_loaded(enum when when, const struct m6_counters_options *o)
{
  return when == ALWAYS || (when == WITH_SYSCALLS ? o->syscalls : o->wakeups || !keeps_sched_info());
}

/* ---- open ------------------------------------------------------------------------------------------------------- */

void m6_counters_detach(struct m6_counters *c, unsigned what)
{
  for (int i = 0; i < PROGRAMS; i++) {
    if (!(what & (tracepoints[i].when == WITH_SYSCALLS ? M6_ATTACH_CALLS : M6_ATTACH_TASKS))) continue;
    bpf_link__destroy(c->inside->links[i]); /* NULL is fine */
    c->inside->links[i] = NULL;
  }
  if (what & M6_ATTACH_TASKS) m6_frames_detach(&c->inside->frames);
}

int m6_counters_attach(struct m6_counters *c, unsigned what, struct m6_fault *fault)
{
  struct m6_counters_inside *in = c->inside;
  const char *ending = c->raw ? "raw" : "btf";
  int err = 0;
  for (int i = 0; i < PROGRAMS && !err; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", tracepoints[i].name, ending);
    struct bpf_program *p = bpf_object__find_program_by_name(in->object, name);
    if (!(what & (tracepoints[i].when == WITH_SYSCALLS ? M6_ATTACH_CALLS : M6_ATTACH_TASKS))) continue;
    if (!bpf_program__autoload(p) || in->links[i]) continue;
    in->links[i] = bpf_program__attach(p);
    if (!in->links[i]) err = m6_fault_set(fault, errno, M6_AREA_BPF, "attach", "%s", name);
  }
  if (!err && what & M6_ATTACH_TASKS) err = m6_frames_attach(&in->frames, in->object, in->kind, ending, fault);
  if (err) m6_counters_detach(c, what);
  return err;
}

void m6_counters_stop(struct m6_counters *c) { m6_counters_detach(c, M6_ATTACH_TASKS | M6_ATTACH_CALLS); }

void m6_counters_close(struct m6_counters *c)
{
  if (!c) return;
  struct m6_counters_inside *in = c->inside;
  if (in) {
    m6_counters_stop(c);
    m6_frames_close(&in->frames);
    m6_table_unmap(in);
    m6_close_object(&in->object);
    free(in->call_keys);
    free(in->call_entries);
    free(in);
  }
  free(c->threads);
  free(c->calls);
  free(c);
}

static struct m6_counters *allocate(const struct m6_counters_options *o)
{
  struct m6_counters *c = calloc(1, sizeof *c);
  struct m6_counters_inside *in = c ? calloc(1, sizeof *in) : NULL;
  if (!in) {
    free(c);
    return NULL;
  }
  c->inside = in;
  c->threads = calloc(M6_COUNTERS_THREADS + 1, sizeof *c->threads);
  size_t calls = o->syscalls ? M6_COUNTERS_CALLS : 1;
  in->call_keys = calloc(calls, sizeof *in->call_keys);
  in->call_entries = calloc(calls, sizeof *in->call_entries);
  c->calls = calloc(calls + 2 * M6_COUNTERS_NUMBERS, sizeof *c->calls);
  if (in->call_keys && in->call_entries && c->threads && c->calls) return c;
  m6_counters_close(c);
  return NULL;
}

/* Opens, sets, loads the programs of one ending ("btf" or "raw"), and attaches them. */
static int load(struct m6_counters *c, const struct m6_counters_options *o, const char *ending,
                enum m6_uprobe_kind kind, struct m6_fault *fault)
{
  struct m6_counters_inside *in = c->inside;
  struct m6_counters_config config = {.targets = o->count,
                                      .syscalls = !!o->syscalls,
                                      .pid_namespace = m6_tasks_namespace(),
                                      .open_ns = m6_monotonic_ns()};
  memcpy(config.tgid, in->target_global, sizeof config.tgid);
  for (int i = 0; i < M6_COUNTERS_NUMBERS; i++) config.cause[i] = (uint8_t)m6_off_cause_of(i);
  M6_AUTO_OBJECT object = NULL;
  int err = m6_open_blob(counters, &object, fault);
  if (err) return err;
  struct bpf_program *p;
  for (p = bpf_object__next_program(object, NULL); p; p = bpf_object__next_program(object, p))
    bpf_program__set_autoload(p, false);
  for (int i = 0; i < PROGRAMS; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", tracepoints[i].name, ending);
    p = bpf_object__find_program_by_name(object, name);
    if (!p) return m6_fault_set(fault, EINVAL, M6_AREA_BPF, "find", "program %s", name);
    bpf_program__set_autoload(p, is_loaded(tracepoints[i].when, o));
  }
  if (!o->syscalls) bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "m6_calls"), 1);
  err = m6_frames_choose(&in->frames, object, kind, ending, fault);
  if (err) return err;
  err = m6_object_configure(object, &config, sizeof config);
  if (err) return m6_fault_set(fault, err, M6_AREA_BPF, "set the constants of", "counters");
  err = m6_object_load("counters", object, fault);
  if (err) return err;
  in->object = object;
  object = NULL;
  in->calls_fd = m6_object_map(in->object, "m6_calls");
  in->losses_fd = m6_object_map(in->object, "m6_losses");
  in->cpus = m6_possible_cpus();
  err = m6_table_map(in, fault);
  in->kind = kind;
  if (!err) err = m6_counters_attach(c, M6_ATTACH_TASKS | M6_ATTACH_CALLS, fault);
  if (!err) return 0;
  m6_frames_close(&in->frames);
  m6_table_unmap(in);
  m6_close_object(&in->object);
  return err;
}

/* The same, by the one or the other kind of probe when frames are asked for. When both are refused the fault is the
 * first's, unless that kind is only missing in this kernel. */
static int load_any(struct m6_counters *c, const struct m6_counters_options *o, const char *ending,
                    struct m6_fault *fault)
{
  struct m6_fault second = {0};
  enum m6_uprobe_kind kind = !o->frames ? M6_UPROBE_NONE : o->frames_pmu ? M6_UPROBE_PMU : M6_UPROBE_MULTI;
  int err = load(c, o, ending, kind, fault);
  if (!err || kind != M6_UPROBE_MULTI || err == ENOENT || err == ESRCH || err == ENOMEM) return err;
  if (load(c, o, ending, M6_UPROBE_PMU, &second) == 0) return 0;
  if (err == EINVAL) *fault = second;
  return fault->err;
}

static int open_and_seed(struct m6_counters *c, const struct m6_counters_options *o, struct m6_fault *fault)
{
  struct m6_fault first;
  int err = o->raw ? ENOTSUP : load_any(c, o, "btf", &first);
  if (err && (o->raw || (err != EPERM && err != ENOMEM))) {
    c->raw = 1;
    err = load_any(c, o, "raw", fault);
  } else if (err) *fault = first;
  if (err) return err;
  c->inside->syscalls = o->syscalls;
  c->open_ns = m6_monotonic_ns();
  for (unsigned i = 0; i < o->count && !err; i++) err = m6_seed(c->inside, o->tgids[i], UINT64_MAX, fault);
  c->inside->seeded_ns = m6_monotonic_ns();
  return err;
}

/* Whom the options mean, as the kernel's programs see them; and where their frames end. */
static int resolve(struct m6_counters_inside *in, const struct m6_counters_options *o, struct m6_fault *fault)
{
  in->targets = o->count;
  for (unsigned i = 0; i < o->count; i++) {
    struct m6_task task;
    int found = m6_tasks_find(o->tgids[i], &task, 1, fault);
    if (found < 0) return -found;
    in->target_here[i] = (uint32_t)o->tgids[i];
    in->target_global[i] = task.tgid;
  }
  return m6_frames_find(&in->frames, o, fault);
}

int m6_counters_open(struct m6_counters **out, const struct m6_counters_options *o, struct m6_fault *fault)
{
  *out = NULL;
  if (o->count < 1 || o->count > M6_COUNTERS_TARGETS)
    return m6_fault_set(fault, EINVAL, M6_AREA_NONE, "count", "%u processes (1 to %d can be)", o->count,
                        M6_COUNTERS_TARGETS);
  struct m6_counters *c = allocate(o);
  if (!c) return m6_fault_set(fault, ENOMEM, M6_AREA_NONE, "allocate", "the counters");
  int err = resolve(c->inside, o, fault);
  if (!err) err = open_and_seed(c, o, fault);
  if (err) m6_counters_close(c);
  else *out = c;
  return err;
}

/* ---- read ------------------------------------------------------------------------------------------------------- */

/* All of a hash table in few system calls: the number of entries, or -errno. */
static int read_table(int fd, void *keys, size_t key_size, void *values, size_t value_size, uint32_t max)
{
  uint32_t at = 0, next = 0, have = 0;
  struct bpf_map_batch_opts options = {.sz = sizeof options, .flags = 0};
  for (int first = 1;; first = 0) {
    uint32_t n = max - have;
    int err = bpf_map_lookup_batch(fd, first ? NULL : &at, &next, (char *)keys + have * key_size,
                                   (char *)values + have * value_size, &n, &options);
    if (err && errno != ENOENT) return errno == ENOSPC && have == max ? (int)have : -errno;
    have += n;
    if (err || have == max) return (int)have;
    at = next;
  }
}

static pid_t process_here(const struct m6_counters_inside *in, uint32_t global)
{
  for (int i = 0; i < M6_COUNTERS_TARGETS; i++)
    if (in->target_global[i] == global) return (pid_t)in->target_here[i];
  return 0;
}

static void convert(const struct m6_counters_inside *in, const struct m6_counters_thread *e, uint64_t now,
                    struct m6_thread_counters *t)
{
  uint32_t cause = e->cause < M6_OFF_CAUSES ? e->cause : M6_OFF_OTHER, state = e->state;
  *t = (struct m6_thread_counters){.tid = (pid_t)e->here,
                                   .own_tid = (pid_t)e->own,
                                   .tgid = process_here(in, e->tgid),
                                   .state = state,
                                   .lives = e->lives,
                                   .on_ns = e->on_ns + e->ran_ns,
                                   .wait_ns = e->wait_ns + e->later_wait_ns,
                                   .calls = e->calls,
                                   .call_on_ns = e->call_on_ns,
                                   .waits = e->waits,
                                   .call = e->call & M6_COUNTERS_32BIT ? -1 : (int32_t)e->call - 1};
  for (int i = 0; i < M6_READINGS; i++) t->counted[i] = e->last[i] - e->base[i];
  memcpy(t->latency, e->latency, sizeof t->latency);
  memcpy(t->off_by, e->off_ns, sizeof t->off_by);
  t->off_by[cause] += e->later_off_ns;
  uint64_t more = now > e->since_ns ? now - e->since_ns : 0;
  /* No event yet: it has been all the time what it is now. */
  if (state == M6_COUNTERS_SEEDED)
    state = m6_proc_thread_state(t->tgid, t->tid) == 'R' ? M6_COUNTERS_ON : M6_COUNTERS_OFF;
  if (state == M6_COUNTERS_ON) t->on_ns += more;
  if (state == M6_COUNTERS_WAITING) t->wait_ns += more;
  if (state == M6_COUNTERS_OFF) { /* now there is time for what a wait was longer than there was */
    uint64_t owed = e->read_delay_ns - e->last_delay_ns;
    if (owed > more) owed = more;
    t->wait_ns += owed;
    t->off_by[cause] += more - owed;
  }
  for (int i = 0; i < M6_OFF_CAUSES; i++) t->off_ns += t->off_by[i];
  t->elapsed_ns = t->on_ns + t->off_ns + t->wait_ns;
  if (e->call && now > e->call_ns) t->call_ns = now - e->call_ns;
}

static void add(struct m6_thread_counters *sum, const struct m6_thread_counters *t)
{
  sum->lives += t->lives;
  sum->elapsed_ns += t->elapsed_ns;
  sum->on_ns += t->on_ns;
  sum->off_ns += t->off_ns;
  sum->wait_ns += t->wait_ns;
  for (int i = 0; i < M6_OFF_CAUSES; i++) sum->off_by[i] += t->off_by[i];
  sum->calls += t->calls;
  sum->call_on_ns += t->call_on_ns;
  sum->waits += t->waits;
  for (int i = 0; i < M6_READINGS; i++) sum->counted[i] += t->counted[i];
  for (int i = 0; i < M6_COUNTERS_BUCKETS; i++) sum->latency[i] += t->latency[i];
}

static void add_call(struct m6_call_counters *sum, const struct m6_counters_call *c, uint32_t number)
{
  sum->number = number & ~M6_COUNTERS_32BIT;
  sum->is_32bit = !!(number & M6_COUNTERS_32BIT);
  sum->count += c->count;
  sum->ns += c->ns;
  if (c->max_ns > sum->max_ns) sum->max_ns = c->max_ns;
}

/* Ended threads give their room back when little is left; their totals go on in one row. A new thread that takes such a
 * tid in the moment between the read and this begins anew at its next event: what it did until then is lost. */
static int fold(struct m6_counters_inside *in, struct m6_counters_thread *e, const struct m6_thread_counters *t)
{
  if (t->state != M6_COUNTERS_ENDED) return 0;
  m6_table_give_back(in, e);
  add(&in->past, t);
  in->past.tgid = t->tgid;
  in->past.state = M6_COUNTERS_ENDED;
  return 1;
}

/* Events that the kernel did not give to a program, because the same one was running on that CPU. */
static uint64_t missed(const struct m6_counters_inside *in)
{
  uint64_t sum = 0;
  struct bpf_program *p;
  for (p = bpf_object__next_program(in->object, NULL); p; p = bpf_object__next_program(in->object, p)) {
    struct bpf_prog_info info = {0};
    uint32_t size = sizeof info;
    if (bpf_program__fd(p) >= 0 && bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size) == 0)
      sum += info.recursion_misses;
  }
  return sum;
}

static void read_calls(struct m6_counters *c, int calls, int tight)
{
  struct m6_counters_inside *in = c->inside;
  int elsewhere = m6_tasks_namespace() != 0;
  for (int i = 0; i < calls; i++) {
    struct m6_counters_call_key *k = &in->call_keys[i];
    uint32_t number = k->number & ~M6_COUNTERS_32BIT;
    const struct m6_counters_thread *e = tight || elsewhere ? m6_table_find(in, k->tid) : NULL;
    int found = e || !(tight || elsewhere);
    if (tight && !found && number < M6_COUNTERS_NUMBERS && bpf_map_delete_elem(in->calls_fd, k) == 0) {
      if (number != k->number) number += M6_COUNTERS_NUMBERS;
      add_call(&in->past_calls[number], &in->call_entries[i], k->number);
      continue;
    }
    struct m6_call_counters *out = &c->calls[c->call_count++];
    *out = (struct m6_call_counters){.tid = e ? (pid_t)e->here : found ? (pid_t)k->tid : 0};
    add_call(out, &in->call_entries[i], k->number);
  }
  for (int i = 0; i < 2 * M6_COUNTERS_NUMBERS; i++)
    if (in->past_calls[i].count) c->calls[c->call_count++] = in->past_calls[i];
}

int m6_counters_read(struct m6_counters *c, int last, struct m6_fault *fault)
{
  struct m6_counters_inside *in = c->inside;
  uint64_t now = m6_monotonic_ns();
  if (!last && c->read_ns && now - c->read_ns < M6_COUNTERS_READ_MS * 1000000ull) return EAGAIN;
  int n = 0;
  for (size_t w = 0; w < M6_COUNTERS_THREADS / 64; w++) n += __builtin_popcountll(in->taken->bits[w]);
  int calls = 0, tight = n > M6_COUNTERS_THREADS / 4 * 3;
  if (in->syscalls) {
    calls = read_table(in->calls_fd, in->call_keys, sizeof *in->call_keys, in->call_entries, sizeof *in->call_entries,
                       M6_COUNTERS_CALLS);
    if (calls < 0) return m6_fault_set(fault, calls, M6_AREA_BPF, "read", "the syscalls' counters");
  }
  tight |= calls > M6_COUNTERS_CALLS / 4 * 3;
  c->read_ns = now = in->paused_ns ? in->paused_ns : m6_monotonic_ns();
  c->unseen_slices = in->unseen_slices;
  c->thread_count = c->call_count = 0;
  for (uint32_t w = 0; w < M6_COUNTERS_THREADS / 64; w++)
    for (uint64_t bits = __atomic_load_n(&in->taken->bits[w], __ATOMIC_ACQUIRE); bits; bits &= bits - 1) {
      struct m6_counters_thread *place = &in->table[w * 64 + (uint32_t)__builtin_ctzll(bits)], e;
      struct m6_thread_counters *t = &c->threads[c->thread_count];
      if (!m6_table_copy(place, &e) || m6_table_is_second(in, place, e.tid, now)) continue;
      convert(in, &e, now, t);
      if (!tight || !fold(in, place, t)) c->thread_count++;
    }
  if (in->past.lives) c->threads[c->thread_count++] = in->past;
  read_calls(c, calls, tight);
  uint64_t by_cpu[in->cpus];
  for (uint32_t i = 0; i < M6_COUNTERS_LOSSES; i++) {
    c->lost[i] = 0;
    if (bpf_map_lookup_elem(in->losses_fd, &i, by_cpu) != 0) continue;
    for (int k = 0; k < in->cpus; k++) c->lost[i] += by_cpu[k];
  }
  c->lost[M6_LOST_EVENTS] += missed(in);
  return 0;
}

struct m6_thread_counters m6_counters_total(const struct m6_counters *c, pid_t tgid)
{
  struct m6_thread_counters sum = {.tgid = tgid, .call = -1};
  for (unsigned i = 0; i < c->thread_count; i++)
    if (!tgid || c->threads[i].tgid == tgid) add(&sum, &c->threads[i]);
  return sum;
}
