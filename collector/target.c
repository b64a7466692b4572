/* target.c - see target.h. */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"
#include "stats_proc.h"
#include "stats_refuse.h"

int m6_target_refuse(const struct m6_target *t, struct m6_error *e)
{
  return e->status = m6_refuse_target(t, e->text, sizeof e->text);
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

int m6_find_pid(pid_t pid, struct m6_target *out, struct m6_error *e)
{
  return e->status = m6_refuse_find(pid, out, e->text, sizeof e->text);
}

int m6_find_name(const char *glob, struct m6_target *out, struct m6_error *e)
{
  struct m6_target *list;
  size_t count, found = 0;
  int error = m6_targets_list(&list, &count);
  if (error) return m6_fail(e, M6_EXIT_OTHER, "cannot list " M6_SEGMENT_DIR ": %s", strerror(error));
  char pids[256] = "";
  for (size_t i = 0; i < count; i++) {
    if (list[i].problem != M6_TARGET_FINE || fnmatch(glob, list[i].name, 0) != 0) continue;
    *out = list[i];
    size_t at = strlen(pids);
    snprintf(pids + at, sizeof pids - at, "%s%d", found ? ", " : "", (int)list[i].pid);
    found++;
  }
  free(list);
  if (found == 1) return 0;
  if (found > 1)
    return m6_fail(e, M6_EXIT_USAGE, "%zu targets are named '%s' (pids %s): choose one with --pid", found, glob, pids);
  return m6_fail(e, M6_EXIT_NO_TARGET, "no target is named '%s': 'mach6 ps' lists those there are; " M6_HOW_TO_LOAD,
                 glob);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static void read_exec(void *arg)
{
  struct m6_image *i = arg;
  const struct m6_header *h = i->segment;
  i->exec = m6_peek(&h->exited_clock) ? 0 : m6_observe(&h->exec); /* 0 when its destructor ran */
  if (i->exec & M6_EXEC_UNDER_WAY) memcpy(i->became, h->exec_path, sizeof i->became);
}

int m6_image_exec(struct m6_image *i)
{
  if (i->segment == NULL || m6_image_guarded(i, read_exec, i) != 0 || !(i->exec & M6_EXEC_UNDER_WAY)) i->exec = 0;
  i->became[sizeof i->became - 1] = 0;
  return i->exec != 0;
}

/* Is the exec done that the shim noted? Then its process maps this segment no more. */
static int left(struct m6_image *i)
{
  struct stat st;
  if (i->dead || !m6_image_exec(i) || fstat(i->fd, &st) != 0 || m6_proc_maps(i->who.pid, st.st_ino) != 0) return 0;
  i->dead = 1;
  i->end_reason = M6_END_EXEC;
  return 1;
}

int m6_image_open(struct m6_image *i, const struct m6_target *who, uint64_t run_token, struct m6_error *e)
{
  memset(i, 0, sizeof *i);
  i->fd = i->pidfd = -1;
  i->who = *who;
  int in_run = run_token != 0 && i->who.run_token == run_token;
  if (i->who.problem != M6_TARGET_FINE && !(in_run && i->who.problem == M6_TARGET_STALE))
    return m6_target_refuse(&i->who, e);
  char path[M6_TARGET_PATH];
  m6_target_path(&i->who, path);
  i->fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  struct stat st;
  if (i->fd < 0 || fstat(i->fd, &st) != 0) {
    i->who.problem = M6_TARGET_UNREADABLE;
    i->who.error = errno;
    m6_image_release(i, 0);
    return m6_target_refuse(&i->who, e);
  }
  if (!S_ISREG(st.st_mode) || st.st_size != M6_SEGMENT_BYTES || st.st_uid != i->who.uid) {
    i->who.problem = M6_TARGET_INVALID;
    m6_image_release(i, 0);
    return m6_target_refuse(&i->who, e);
  }
  if (flock(i->fd, LOCK_EX | LOCK_NB) != 0 ||
      (i->who.collector_pid != 0 && i->who.collector_pid != (uint32_t)getpid())) {
    m6_image_release(i, 0);
    return m6_fail(e, M6_EXIT_CAPTURED,
                   "process %d is captured already, by collector %u: wait for it to end, or end it with SIGINT",
                   (int)i->who.pid, i->who.collector_pid);
  }
  i->segment = mmap(NULL, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, i->fd, 0);
  if (i->segment == MAP_FAILED) {
    int error = errno;
    i->segment = NULL;
    m6_image_release(i, 0);
    return m6_fail(e, M6_EXIT_OTHER, "cannot map %s: %s", path, strerror(error));
  }
  if (i->who.problem == M6_TARGET_STALE) i->dead = 1;
  else i->pidfd = (int)syscall(SYS_pidfd_open, i->who.pid, 0);
  struct m6_proc p;
  if (!i->dead && m6_proc_stat(i->who.pid, &p) == 0) i->cpu_start_ns = i->cpu_ns = p.cpu_ns, i->stack = p.stack;
  if (in_run) i->cpu_start_ns = 0; /* its session began with it */
  if (left(i)) return 0;
  i->exe_known = m6_proc_exe(i->who.pid, &i->exe_device, &i->exe_inode) == 0;
  if (m6_proc_exe_path(i->who.pid, i->exe, sizeof i->exe) < 0) i->exe[0] = 0;
  return 0;
}

void m6_image_unlink(struct m6_image *i)
{
  char path[M6_TARGET_PATH];
  m6_target_path(&i->who, path);
  if (i->fd < 0) return; /* it went before; the name may be another's by now */
  unlink(path);
  close(i->fd);
  i->fd = -1;
}

void m6_image_release(struct m6_image *i, int unlink_it)
{
  if (i->segment) munmap(i->segment, M6_SEGMENT_BYTES);
  if (i->capture) i->capture->segment = NULL;
  i->segment = NULL;
  if (unlink_it) m6_image_unlink(i);
  if (i->fd >= 0) close(i->fd);
  if (i->pidfd >= 0) close(i->pidfd);
  i->fd = i->pidfd = -1;
}

static int process_gone(const struct m6_image *i)
{
  if (i->pidfd >= 0) {
    struct pollfd p = {i->pidfd, POLLIN, 0};
    return poll(&p, 1, 0) > 0;
  }
  struct m6_proc p;
  int e = m6_proc_stat(i->who.pid, &p);
  return e == ESRCH || (e == 0 && (p.state == 'Z' || p.start_ns > i->who.load_ns + m6_proc_tick_ns()));
}

int m6_image_running(struct m6_image *i)
{
  if (i->dead) return 0;
  if (!process_gone(i)) return 1;
  i->dead = 1;
  i->end_reason = m6_image_exec(i) ? M6_END_EXEC : M6_END_EXIT;
  return 0;
}

/* What was cut off and is not read again would be missed in silence. */
static void whole(struct m6_image *i)
{
  struct stat s;
  if (i->failed || i->segment == NULL || i->fd < 0 || fstat(i->fd, &s) != 0) return;
  if ((uint64_t)s.st_size + 4095 >= M6_SEGMENT_BYTES) return; /* its last page is there */
  i->failed = 1;
  i->end_reason = M6_END_FAILURE;
}

int m6_image_alive(struct m6_image *i)
{
  uint64_t device, inode;
  struct m6_proc p;
  if (!m6_image_running(i)) return 0;
  whole(i);
  if (left(i)) return 0;
  int other = i->exe_known && m6_proc_exe(i->who.pid, &device, &inode) == 0 &&
              (device != i->exe_device || inode != i->exe_inode);
  /* The same file once more, without the shim: what tells it is that its stack begins somewhere else. */
  if (!other && i->stack && m6_proc_stat(i->who.pid, &p) == 0) other = p.stack && p.stack != i->stack;
  if (other) { /* by a system call of its own, past the shim */
    i->became[0] = 0;
    char exe[sizeof i->exe];
    size_t most = sizeof i->became;
    int n = m6_proc_exe_path(i->who.pid, exe, sizeof exe) + 1; /* with its NUL; the end of it says more */
    if (n > 0) memcpy(i->became, exe + ((size_t)n > most ? (size_t)n - most : 0), (size_t)n > most ? most : (size_t)n);
    i->dead = 1;
    i->end_reason = M6_END_EXEC;
  }
  return !i->dead;
}

void m6_image_look(struct m6_image *i)
{
  struct m6_proc p;
  if (m6_proc_stat(i->who.pid, &p) == 0 && p.start_ns <= i->who.load_ns + m6_proc_tick_ns()) i->cpu_ns = p.cpu_ns;
  if (i->dead || i->capture == NULL) return;
  for (uint32_t s = 0; s < M6_STREAMS; s++) {
    const struct m6_stream *stream = &i->capture->head.streams[s];
    if (stream->caller == 0 || i->caller[s][0] != 0) continue;
    if (m6_proc_module(i->who.pid, stream->caller, i->caller[s], sizeof i->caller[s]) < 0) strcpy(i->caller[s], "?");
  }
}

int m6_image_guarded(struct m6_image *i, void (*fn)(void *), void *arg)
{
  if (i->segment == NULL || i->failed) return -1;
  if (m6_guarded(fn, arg, i->segment, M6_SEGMENT_BYTES) == 0) return 0;
  i->failed = 1;
  i->end_reason = M6_END_FAILURE;
  return -1;
}
