/* kernel_faults.c - opens, sums and closes the page-fault events of a process's threads. */
#include "kernel_faults.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(uint64_t what, pid_t tid, int user_only)
{
  struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                 .size = sizeof attr,
                                 .config = what,
                                 .inherit = 1,
                                 .exclude_kernel = (uint64_t)user_only,
                                 .exclude_hv = 1};
  return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Both events of one thread: 0, or an errno. The kernel's own faults are asked for until they are refused. */
static int add_thread(struct m6_faults *f, pid_t tid)
{
  static const uint64_t kinds[2] = {PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_COUNT_SW_PAGE_FAULTS_MAJ};
  for (int i = 0; i < 2; i++) {
    int fd = open_event(kinds[i], tid, f->user_only);
    if (fd < 0 && errno == EACCES && !f->user_only && f->count == 0) {
      f->user_only = 1;
      fd = open_event(kinds[i], tid, 1);
    }
    if (fd < 0) {
      int err = errno;
      if (i) close(f->fds[--f->count]);
      return err;
    }
    f->fds[f->count++] = fd;
  }
  return 0;
}

int m6_faults_open(struct m6_faults *f, pid_t pid, struct m6_fault *fault)
{
  char path[64];
  *f = (struct m6_faults){.fds = calloc(2 * M6_FAULTS_THREADS, sizeof(int))};
  if (!f->fds) return m6_fault_set(fault, ENOMEM, M6_AREA_NONE, "allocate", "the fault counters");
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *d = opendir(path);
  if (!d) {
    m6_faults_close(f);
    return m6_fault_set(fault, errno == ENOENT ? ESRCH : errno, M6_AREA_PROC, "list the threads of process", "%d",
                        (int)pid);
  }
  int err = 0;
  for (struct dirent *e; !err && (e = readdir(d));) {
    pid_t tid = atoi(e->d_name);
    if (!tid) continue;
    err = f->count == 2 * M6_FAULTS_THREADS ? E2BIG : add_thread(f, tid);
    if (err == ESRCH) err = 0; /* it has just ended */
    if (err)
      m6_fault_set(fault, err, M6_AREA_PERF_SELF, "count the page faults of", "thread %d of process %d", (int)tid,
                   (int)pid);
  }
  closedir(d);
  if (!err && !f->count) err = m6_fault_set(fault, ESRCH, M6_AREA_PROC, "find a thread of process", "%d", (int)pid);
  if (err) m6_faults_close(f);
  return err;
}

int m6_faults_read(const struct m6_faults *f, uint64_t *minor, uint64_t *major)
{
  uint64_t sum[2] = {0, 0}, value;
  for (unsigned i = 0; i < f->count; i++) {
    if (read(f->fds[i], &value, sizeof value) != sizeof value) return errno ? errno : EIO;
    sum[i & 1] += value;
  }
  *minor = sum[0];
  *major = sum[1];
  return 0;
}

void m6_faults_close(struct m6_faults *f)
{
  for (unsigned i = 0; i < f->count; i++) close(f->fds[i]);
  free(f->fds);
  *f = (struct m6_faults){0};
}
