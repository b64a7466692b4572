/* kernel_probe.c - loads, attaches, reads and removes the probe. */
#include "kernel_probe.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../bpf/probe.h"
#include "kernel_tasks.h"

M6_BLOB(probe);

int m6_probe_one_thread = -1;

/* One try: loaded for this kind of attachment, because the kernel ties the two. Declared in the order in which things
 * are made, so that the attributes take them down from the last: link, event, memory, programs and maps. */
static int try_kind(struct m6_probe *p, enum m6_uprobe_kind kind, const char *path, uint64_t offset, pid_t pid,
                    struct m6_fault *fault)
{
  M6_AUTO_OBJECT object = NULL;
  M6_AUTO_MAPPING lines = {NULL, 0};
  M6_AUTO_FD event = -1;
  M6_AUTO_FD link = -1;

  int err = m6_open_blob(probe, &object, fault);
  if (err) return err;
  struct bpf_program *program = bpf_object__find_program_by_name(object, "m6_probe_hit");
  struct bpf_map *map = bpf_object__find_map_by_name(object, "m6_probe_hits");
  int cpus = m6_possible_cpus();
  if (!program || !map || cpus <= 0) return m6_fault_set(fault, EINVAL, M6_AREA_BPF, "prepare", "the probe");
  if (kind == M6_UPROBE_MULTI)
    bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)M6_BPF_TRACE_UPROBE_MULTI);
  struct m6_probe_config config = {0};
  if (kind == M6_UPROBE_MULTI && pid && m6_probe_one_thread == 1) {
    struct m6_task task;
    int found = m6_tasks_find(pid, &task, 1, fault);
    if (found < 0) return -found;
    config.tgid = task.tgid;
    pid = 0;
  }
  err = m6_object_configure(object, &config, sizeof config);
  if (err) return m6_fault_set(fault, err, M6_AREA_BPF, "set the constants of", "the probe");
  err = bpf_map__set_max_entries(map, (uint32_t)cpus);
  if (err) return m6_fault_set(fault, err, M6_AREA_BPF, "size", "the probe's counters");
  err = m6_object_load("probe", object, fault);
  if (err) return err;

  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  lines.bytes = ((size_t)cpus * sizeof(struct m6_probe_line) + page - 1) / page * page;
  lines.at = mmap(NULL, lines.bytes, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
  if (lines.at == MAP_FAILED) {
    lines.at = NULL;
    return m6_fault_set(fault, errno, M6_AREA_BPF, "map", "the probe's counters");
  }
  if (kind == M6_UPROBE_MULTI) err = m6_uprobe_multi(bpf_program__fd(program), path, offset, pid, &link, fault);
  else err = m6_uprobe_pmu(bpf_program__fd(program), path, offset, pid, &link, &event, fault);
  if (err) return err;

  p->object = object;
  p->program = bpf_program__fd(program);
  p->lines = lines;
  p->event = m6_keep_fd(&event);
  p->link = m6_keep_fd(&link);
  p->cpus = (unsigned)cpus;
  p->kind = kind;
  object = NULL;
  lines.at = NULL;
  return 0;
}

/* ---- does a link with a pid reach all threads? ------------------------------------------------------------------ */

static void *witness(void *argument)
{
  __asm__ volatile("" : "+r"(argument));
  return argument;
}

/* Where the function lies: the file that it was mapped from, and the offset there. */
static int place_of(const void *function, char path[PATH_MAX], uint64_t *offset)
{
  uintptr_t at = (uintptr_t)function, from, to;
  unsigned long long start;
  char line[PATH_MAX + 128];
  FILE *f = fopen("/proc/self/maps", "re");
  int found = 0;
  while (f && !found && fgets(line, sizeof line, f)) {
    int name = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %llx %*s %*u %n", &from, &to, &start, &name) < 3 || !name) continue;
    if (at < from || at >= to || line[name] != '/') continue;
    snprintf(path, PATH_MAX, "%s", line + name);
    *offset = at - from + start;
    found = 1;
  }
  if (f) fclose(f);
  return found;
}

static void find_out(void)
{
  char path[PATH_MAX];
  uint64_t offset;
  struct m6_probe p = M6_PROBE_NONE;
  struct m6_fault fault;
  pthread_t thread;
  if (!place_of((const void *)(uintptr_t)witness, path, &offset)) return;
  if (try_kind(&p, M6_UPROBE_MULTI, path, offset, getpid(), &fault) != 0) return;
  if (pthread_create(&thread, NULL, witness, NULL) == 0) {
    pthread_join(thread, NULL);
    m6_probe_one_thread = m6_probe_read(&p, NULL) == 0;
  }
  m6_probe_close(&p);
}

int m6_probe_is_one_thread(void)
{
  if (m6_probe_one_thread < 0) find_out();
  return m6_probe_one_thread == 1;
}

int m6_probe_open_as(struct m6_probe *p, enum m6_uprobe_kind kind, const char *path, uint64_t offset, pid_t pid,
                     struct m6_fault *fault)
{
  *p = (struct m6_probe)M6_PROBE_NONE;
  if (kind == M6_UPROBE_MULTI && pid) m6_probe_is_one_thread();
  return try_kind(p, kind, path, offset, pid, fault);
}

int m6_probe_open(struct m6_probe *p, const char *path, uint64_t offset, pid_t pid, struct m6_fault *fault)
{
  struct m6_fault first = {0}, second = {0};
  int err = m6_probe_open_as(p, M6_UPROBE_MULTI, path, offset, pid, &first);
  if (!err) return 0;
  /* The file or the process is what is wrong: the other way would say the same. */
  if (err == ENOENT || err == ESRCH || err == ENOMEM) {
    *fault = first;
    return err;
  }
  int again = m6_probe_open_as(p, M6_UPROBE_PMU, path, offset, pid, &second);
  if (!again) return 0;
  *fault = err == EINVAL ? second : first;
  return fault->err;
}

uint64_t m6_probe_read(const struct m6_probe *p, uint64_t *by_cpu)
{
  const struct m6_probe_line *line = p->lines.at;
  uint64_t sum = 0;
  for (unsigned i = 0; line && i < p->cpus; i++) {
    uint64_t hits = __atomic_load_n(&line[i].hits, __ATOMIC_RELAXED);
    if (by_cpu) by_cpu[i] = hits;
    sum += hits;
  }
  return sum;
}

uint64_t m6_probe_missed(const struct m6_probe *p)
{
  struct bpf_prog_info info = {0};
  uint32_t size = sizeof info;
  if (p->program < 0 || bpf_obj_get_info_by_fd(p->program, &info, &size) != 0) return 0;
  return info.recursion_misses;
}

void m6_probe_detach(struct m6_probe *p)
{
  m6_close_fd(&p->link);
  m6_close_fd(&p->event);
}

void m6_probe_close(struct m6_probe *p)
{
  m6_probe_detach(p);
  m6_unmap(&p->lines);
  m6_close_object(&p->object);
  p->program = -1;
}
