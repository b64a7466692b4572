/* kernel_tasks.c - the threads of a process, with their numbers in the pid namespaces that matter. */
#include "kernel_tasks.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernel_object.h"

M6_BLOB(tasks);

uint32_t m6_tasks_namespace(void)
{
  struct stat ns;
  if (m6_pids_are_global() || stat("/proc/self/ns/pid", &ns) != 0) return 0;
  return (uint32_t)ns.st_ino;
}

/* ---- by /proc --------------------------------------------------------------------------------------------------- */

/* The last number of its NSpid line; its number here when there is none (a kernel without pid namespaces). */
static uint32_t own_number(pid_t pid, uint32_t tid)
{
  char path[64], line[512], *at;
  uint32_t own = tid;
  snprintf(path, sizeof path, "/proc/%d/task/%u/status", (int)pid, tid);
  FILE *f = fopen(path, "re");
  while (f && fgets(line, sizeof line, f)) {
    if (strncmp(line, "NSpid:", 6) != 0) continue;
    at = strrchr(line, '\t');
    if (at) own = (uint32_t)strtoul(at, NULL, 10);
    break;
  }
  if (f) fclose(f);
  return own;
}

static int by_proc(pid_t pid, struct m6_task *out, unsigned max, struct m6_fault *fault)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *d = opendir(path);
  int err = errno;
  unsigned n = 0;
  for (struct dirent *e; d && n < max && (e = readdir(d));) {
    uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);
    if (tid) out[n++] = (struct m6_task){tid, (uint32_t)pid, tid, own_number(pid, tid)};
  }
  if (d) closedir(d);
  if (n) return (int)n;
  return -m6_fault_set(fault, d || err == ENOENT ? ESRCH : err, M6_AREA_PROC, "list the threads of process", "%d",
                       (int)pid);
}

/* ---- by the iterator -------------------------------------------------------------------------------------------- */

static int by_iterator(pid_t pid, struct m6_task *out, unsigned max, struct m6_fault *fault)
{
  M6_AUTO_OBJECT object = NULL;
  M6_AUTO_FD link = -1;
  M6_AUTO_FD walk = -1;
  struct m6_tasks_config config = {m6_tasks_namespace(), (uint32_t)pid};
  int err = m6_open_blob(tasks, &object, fault);
  if (!err) err = m6_object_configure(object, &config, sizeof config);
  if (!err) err = m6_object_load("tasks", object, fault);
  if (err) return -(fault->err ? fault->err : m6_fault_set(fault, err, M6_AREA_NAMESPACE, "walk the", "tasks"));
  struct bpf_program *program = bpf_object__find_program_by_name(object, "m6_tasks");
  if (program) link = bpf_link_create(bpf_program__fd(program), 0, BPF_TRACE_ITER, NULL);
  if (link >= 0) walk = bpf_iter_create(link);
  if (walk < 0) return -m6_fault_set(fault, errno, M6_AREA_NAMESPACE, "walk the tasks to find process", "%d", (int)pid);
  size_t bytes = max * sizeof *out, have = 0;
  for (ssize_t got; have < bytes && (got = read(walk, (char *)out + have, bytes - have)) != 0;) {
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) return -m6_fault_set(fault, errno, M6_AREA_NAMESPACE, "read the", "tasks");
    have += (size_t)got;
  }
  if (have < sizeof *out)
    return -m6_fault_set(fault, ESRCH, M6_AREA_PROC, "find process", "%d in this pid namespace", (int)pid);
  return (int)(have / sizeof *out);
}

int m6_tasks_find(pid_t pid, struct m6_task *out, unsigned max, struct m6_fault *fault)
{
  *fault = (struct m6_fault){0};
  return m6_tasks_namespace() ? by_iterator(pid, out, max, fault) : by_proc(pid, out, max, fault);
}
