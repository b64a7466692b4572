/* kernel_side_proc.c - what each thread did, from /proc alone: for machines and users whom the kernel counts nothing.
 *
 * A thread that is first seen while we look counts from then on, one that began meanwhile from its beginning; what it
 * does between the last look and its end is missing. What was counted stays, also when its number goes to another
 * thread. On-CPU and run-queue time are schedstat's, switches status's, faults stat's. Memory is O(threads that were
 * ever seen), at most M6_COUNTERS_THREADS of them. Calls kernel_proc.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../shm/clock.h"
#include "kernel_proc.h"
#include "kernel_side.h"

struct base { /* beside its row: the readings when it was first seen, less what earlier threads of its number did */
  uint64_t first_ns, on, wait, counted[M6_READINGS];
  uint64_t last_on; /* of the last look: less, and it is another thread */
};
struct m6_proc_threads {
  struct m6_thread_counters *rows;
  struct base *base;
  uint32_t count, looks;
};

struct m6_proc_threads *m6_proc_threads_open(void)
{
  struct m6_proc_threads *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->rows = calloc(M6_COUNTERS_THREADS, sizeof *p->rows);
  p->base = calloc(M6_COUNTERS_THREADS, sizeof *p->base);
  if (p->rows && p->base) return p;
  m6_proc_threads_close(p);
  return NULL;
}

void m6_proc_threads_close(struct m6_proc_threads *p)
{
  if (p == NULL) return;
  free(p->rows);
  free(p->base);
  free(p);
}

const struct m6_thread_counters *m6_proc_threads_rows(const struct m6_proc_threads *p, uint32_t *count)
{
  *count = p->count;
  return p->rows;
}

static int take(pid_t pid, pid_t tid, struct base *b)
{
  struct m6_proc_thread r;
  memset(b, 0, sizeof *b);
  if (!m6_proc_thread_read(pid, tid, &r) || !r.timed) return 0;
  b->on = r.run_ns;
  b->wait = r.delay_ns;
  memcpy(b->counted, r.counted, sizeof b->counted);
  b->first_ns = m6_monotonic_ns();
  return 1;
}

static uint32_t row_of(struct m6_proc_threads *p, pid_t tid)
{
  for (uint32_t i = 0; i < p->count; i++)
    if (p->rows[i].tid == tid) return i;
  return p->count;
}

void m6_proc_threads_read(struct m6_proc_threads *p, pid_t pid)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *d = opendir(path);
  if (d == NULL) return;
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    pid_t tid = atoi(e->d_name);
    struct base now;
    if (tid == 0 || !take(pid, tid, &now)) continue;
    uint32_t i = row_of(p, tid);
    if (i == M6_COUNTERS_THREADS) continue;
    struct m6_thread_counters *t = &p->rows[i];
    struct base *b = &p->base[i];
    if (i == p->count || now.on < b->last_on) { /* new, or another thread with that number */
      struct m6_thread_counters before = *t;
      if (i == p->count) p->count++;
      *t = (struct m6_thread_counters){.tid = tid, .own_tid = tid, .tgid = pid, .lives = before.lives + 1, .call = -1};
      *b = now;
      if (p->looks) { /* it began since the last look */
        memset(b, 0, sizeof *b);
        b->first_ns = now.first_ns - now.on - now.wait;
      }
      b->first_ns -= before.elapsed_ns;
      b->on -= before.on_ns;
      b->wait -= before.wait_ns;
      for (int r = 0; r < M6_READINGS; r++) b->counted[r] -= before.counted[r];
    }
    b->last_on = now.on;
    t->elapsed_ns = now.first_ns - b->first_ns;
    t->on_ns = now.on - b->on;
    t->wait_ns = now.wait - b->wait;
    if (t->on_ns + t->wait_ns > t->elapsed_ns) t->elapsed_ns = t->on_ns + t->wait_ns;
    t->off_ns = t->elapsed_ns - t->on_ns - t->wait_ns;
    for (int r = 0; r < M6_READINGS; r++) t->counted[r] = now.counted[r] - b->counted[r];
  }
  closedir(d);
  p->looks++;
}
