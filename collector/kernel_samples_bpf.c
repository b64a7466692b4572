/* kernel_samples_bpf.c - the tier in which the kernel aggregates: loads bpf/samples.bpf.c, reads its maps.
 *
 * Promise: a poll makes no syscall (the ring of samples and its counters are mapped); an entry is copied whole or not
 * at all. Nothing is pinned: when this process ends, however it does, the kernel drops events, program and maps.
 */
#include "kernel_samples_parts.h"
#include "kernel_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

M6_BLOB(samples);

static size_t whole_pages(size_t bytes)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

static int map_fd(struct m6_samples *s, const char *name) { return bpf_object__find_map_fd_by_name(s->object, name); }

static void *map_memory(struct m6_samples *s, const char *name, size_t bytes, int protection)
{
  void *p = mmap(NULL, bytes, protection, MAP_SHARED, map_fd(s, name), 0);
  return p == MAP_FAILED ? NULL : p;
}

static int load(struct m6_samples *s)
{
  struct m6_fault fault = {0};
  int e = m6_open_blob(samples, &s->object, &fault);
  static const char *const tables[] = {"samples", "counts", "stacks"};
  for (size_t i = 0; !e && i < sizeof tables / sizeof *tables; i++)
    e = -bpf_map__set_max_entries(bpf_object__find_map_by_name(s->object, tables[i]), s->o.retained);
  if (!e) e = m6_object_load("samples", s->object, &fault);
  if (e) m6_samples_refuse(s, "load the sampling program", fault.area, e, 0);
  return e;
}

static int open_one(struct m6_samples *s, pid_t tid)
{
  struct perf_event_attr attr;
  m6_samples_attr(s, &attr);
  attr.exclude_kernel = !s->st.kernel_mode;
  attr.exclude_hv = attr.exclude_kernel;
  int fd = m6_perf_event_open(&attr, tid, -1, -1);
  if (fd < 0) return errno;
  /* At once: a thread that is created between the two calls would inherit an event without a program. It would show as
   * a new one in the second listing, and all would be done again. */
  if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, s->program)) {
    int e = errno;
    close(fd);
    m6_samples_refuse(s, "attach the sampling program", M6_AREA_BPF, e, (uint32_t)tid);
    return e;
  }
  return m6_samples_add_event(s, fd);
}

int m6_samples_bpf_open(struct m6_samples *s)
{
  int e = load(s);
  if (e) return e;
  s->program = bpf_program__fd(bpf_object__find_program_by_name(s->object, "m6_cpu_sample"));
  s->counts_fd = map_fd(s, "counts");
  s->stacks_fd = map_fd(s, "stacks");
  s->threads_fd = map_fd(s, "threads");
  s->state_bytes = whole_pages(sizeof *s->state);
  s->ring_bytes = whole_pages(sizeof *s->ring * s->o.retained);
  s->state = map_memory(s, "state", s->state_bytes, PROT_READ | PROT_WRITE);
  s->ring = map_memory(s, "samples", s->ring_bytes, PROT_READ);
  if (!s->state || !s->ring) {
    e = errno;
    m6_samples_refuse(s, "map the samples", M6_AREA_BPF, e, 0);
    return e;
  }
  uint64_t dev, ino;
  m6_samples_pidns(s->o.pid, &dev, &ino);
  s->state->retained = s->o.retained;
  s->state->weight = 1;
  s->state->ns_dev = dev, s->state->ns_ino = ino;
  s->st.kernel_mode = !(s->o.flags & M6_SAMPLES_WITHOUT_KERNEL);
  e = m6_samples_attach(s, open_one);
  if (!e) s->st.tier = M6_SAMPLES_BPF;
  return e;
}

static int copy_entry(struct m6_samples *s, uint64_t number, struct m6_sample *out, uint64_t *seq)
{
  volatile struct m6_bpf_sample *e = &s->ring[number % s->o.retained];
  *seq = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE);
  if (*seq != number + 1) return 0;
  *out = (struct m6_sample){
    .time_ns = e->time_ns, .user = e->user, .kernel = e->kernel, .tid = e->tid, .weight = e->weight};
  __atomic_thread_fence(__ATOMIC_ACQUIRE); /* the copy is made before seq is read again */
  *seq = __atomic_load_n(&e->seq, __ATOMIC_RELAXED);
  return *seq == number + 1;
}

uint32_t m6_samples_bpf_poll(struct m6_samples *s, void (*each)(void *, const struct m6_sample *), void *arg)
{
  uint64_t taken = __atomic_load_n(&s->state->samples, __ATOMIC_ACQUIRE), seq;
  uint32_t n = 0;
  struct m6_sample sample;
  while (s->read < taken) {
    if (taken - s->read > s->o.retained) {
      s->st.lost_retained += taken - s->read - s->o.retained;
      s->read = taken - s->o.retained;
    }
    if (copy_entry(s, s->read, &sample, &seq)) {
      if (each) each(arg, &sample);
      n++;
    } else if (seq > s->read + 1) {
      s->st.lost_retained++; /* overwritten while we were here */
    } else {
      break; /* being written: the next poll has it */
    }
    s->read++;
  }
  return n;
}

int m6_samples_bpf_totals(struct m6_samples *s, void (*each)(void *, const struct m6_sample_total *), void *arg)
{
  struct m6_bpf_count_key key, next;
  void *at = NULL;
  while (!bpf_map_get_next_key(s->counts_fd, at, &next)) {
    uint64_t count;
    key = next, at = &key;
    if (bpf_map_lookup_elem(s->counts_fd, &key, &count)) continue;
    struct m6_sample_total t = {.count = count, .user = key.user, .kernel = key.kernel, .tid = key.tid};
    if (count) each(arg, &t);
  }
  return errno == ENOENT ? 0 : errno;
}

struct m6_known_stack *m6_samples_bpf_stack(struct m6_samples *s, uint64_t id)
{
  struct m6_bpf_stack k;
  if (bpf_map_lookup_elem(s->stacks_fd, &id, &k) || k.n > M6_SAMPLES_STACK_MAX) return NULL;
  return m6_samples_keep(s, id, (const uint64_t *)k.ip, k.n);
}

int m6_samples_bpf_thread(struct m6_samples *s, uint32_t tid, char name[16])
{
  struct m6_bpf_thread t;
  if (bpf_map_lookup_elem(s->threads_fd, &tid, &t)) return errno;
  memcpy(name, t.name, sizeof t.name);
  return 0;
}

void m6_samples_bpf_status(const struct m6_samples *s, struct m6_samples_status *out)
{
  out->samples = s->state->samples;
  out->periods = s->state->periods;
  out->lost = s->state->lost_counts;
  out->lost_stacks = s->state->lost_stacks;
}

void m6_samples_bpf_close(struct m6_samples *s)
{
  m6_samples_detach(s);
  if (s->state) munmap((void *)s->state, s->state_bytes);
  if (s->ring) munmap((void *)s->ring, s->ring_bytes);
  if (s->object) bpf_object__close(s->object);
  s->state = NULL, s->ring = NULL, s->object = NULL, s->program = -1;
}
