/* links: collector/kernel_side_proc.c collector/kernel_proc.c collector/kernel_causes.c -lpthread */
/* test_proc_threads - threads from /proc: what was counted stays, and never goes back, also when a thread's number goes to another one. That
 * takes a pid namespace of one's own, in which the next number can be said. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collector/kernel_side.h"

#define MS 1000000u
enum outcome { FINE, NOT_ALLOWED, NO_THREAD, ANOTHER_NUMBER, NO_ROW, TOO_LITTLE, WENT_BACK, NOT_ITS_TIME };
static atomic_int stop, burnt;
static _Atomic pid_t tid, wanted; /* wanted: the thread's number, 0 = any */

static void *burn(void *arg)
{
  struct timespec t = {0, 0};
  tid = (pid_t)syscall(SYS_gettid);
  if (wanted && tid != wanted) return NULL;
  while (t.tv_nsec < *(const long *)arg * (long)MS) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  burnt = 1;
  while (!stop) usleep(1000);
  return NULL;
}

/* A number is free again some time after its thread has gone. */
static enum outcome start(pthread_t *thread, long *ms)
{
  for (int tries = 0; tries < 200; tries++) {
    tid = 0;
    FILE *last = wanted ? fopen("/proc/sys/kernel/ns_last_pid", "we") : NULL;
    if (wanted && (last == NULL || fprintf(last, "%d", (int)wanted - 1) < 0 || fclose(last) != 0)) return NOT_ALLOWED;
    if (pthread_create(thread, NULL, burn, ms)) return NO_THREAD;
    while (tid == 0) usleep(100);
    if (wanted == 0 || tid == wanted) return FINE;
    pthread_join(*thread, NULL);
    usleep(5000);
  }
  return ANOTHER_NUMBER;
}

/* A thread that burns so many ms of CPU time, is looked at, and ends. */
static enum outcome live(struct m6_proc_threads *p, long ms, struct m6_thread_counters *seen)
{
  pthread_t thread;
  stop = burnt = 0;
  enum outcome o = start(&thread, &ms);
  if (o != FINE) return o;
  while (!burnt) usleep(1000);
  usleep(20000);
  uint32_t n, i = 0;
  m6_proc_threads_read(p, getpid());
  const struct m6_thread_counters *rows = m6_proc_threads_rows(p, &n);
  while (i < n && rows[i].tid != tid) i++;
  if (i < n) *seen = rows[i];
  stop = 1;
  pthread_join(thread, NULL);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d", (int)tid);
  while (access(path, F_OK) == 0) usleep(100);
  wanted = tid;
  return i == n ? NO_ROW : FINE;
}

static enum outcome three_lives(void)
{
  static const long ms[] = {60, 30, 10};
  struct m6_proc_threads *p = m6_proc_threads_open();
  struct m6_thread_counters then = {0}, now = {0};
  uint64_t burnt_ns = 0;
  if (p == NULL || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("proc", "/proc", "proc", 0, NULL))
    return NOT_ALLOWED;
  m6_proc_threads_read(p, getpid()); /* what begins from now on counts from its beginning */
  for (int i = 0; i < 3; i++, then = now) {
    enum outcome o = live(p, ms[i], &now);
    if (o != FINE) return o;
    burnt_ns += (uint64_t)ms[i] * MS;
    if (now.on_ns < burnt_ns || now.lives != (uint32_t)i + 1) return TOO_LITTLE;
    if (now.wait_ns < then.wait_ns || now.off_ns < then.off_ns || now.elapsed_ns < then.elapsed_ns) return WENT_BACK;
    for (int r = 0; r < M6_READINGS; r++)
      if (now.counted[r] < then.counted[r]) return WENT_BACK;
    if (now.on_ns + now.wait_ns + now.off_ns != now.elapsed_ns) return NOT_ITS_TIME;
  }
  m6_proc_threads_close(p);
  return FINE;
}

static void what_a_number_did_stays_when_it_is_anothers(void **state)
{
  (void)state;
  int status = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (unshare(CLONE_NEWPID | CLONE_NEWNS)) _exit(NOT_ALLOWED);
    pid_t first = fork();
    if (first == 0) _exit(three_lives());
    if (first < 0 || waitpid(first, &status, 0) != first || !WIFEXITED(status)) _exit(NO_THREAD);
    _exit(WEXITSTATUS(status));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == NOT_ALLOWED) skip();
  assert_int_equal(WEXITSTATUS(status), FINE);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_a_number_did_stays_when_it_is_anothers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
