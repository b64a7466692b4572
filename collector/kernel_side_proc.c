/* kernel_side_proc.c - what each thread did, from /proc alone: for machines and users whom the kernel counts nothing.
 *
 * A thread that is first seen while we look counts from then on, one that began meanwhile from its beginning; what it does
 * between the last look and its end is missing. What was counted stays, also when its number goes to another thread. On-CPU and run-queue time are schedstat's, switches status's, faults stat's.
 * Memory is O(threads that were ever seen), at most M6_COUNTERS_THREADS of them. Reads /proc; calls nothing else.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../shm/clock.h"
#include "kernel_side.h"

struct base { /* beside its row: the readings when it was first seen, less what earlier threads of its number did */
  uint64_t first_ns, on, wait, slices, counted[M6_READINGS];
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

static int slurp(char *out, size_t size, pid_t pid, pid_t tid, const char *file)
{
  char path[80];
  snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
  FILE *f = fopen(path, "re");
  if (f == NULL) return 0;
  size_t n = fread(out, 1, size - 1, f);
  out[n] = 0;
  fclose(f);
  return n > 0;
}

static int take(pid_t pid, pid_t tid, struct base *b)
{
  char text[4096], *at;
  unsigned long long v[3];
  memset(b, 0, sizeof *b);
  if (!slurp(text, sizeof text, pid, tid, "schedstat") || sscanf(text, "%llu %llu %llu", &v[0], &v[1], &v[2]) != 3)
    return 0;
  b->on = v[0], b->wait = v[1], b->slices = b->counted[M6_SLICES] = v[2];
  if (slurp(text, sizeof text, pid, tid, "stat") && (at = strrchr(text, ')')) != NULL &&
      sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &v[0], &v[1]) == 2)
    b->counted[M6_MINOR] = v[0], b->counted[M6_MAJOR] = v[1];
  if (slurp(text, sizeof text, pid, tid, "status") && (at = strstr(text, "\nvoluntary_ctxt_switches:")) != NULL &&
      sscanf(at, " voluntary_ctxt_switches: %llu nonvoluntary_ctxt_switches: %llu", &v[0], &v[1]) == 2)
    b->counted[M6_VOLUNTARY] = v[0], b->counted[M6_INVOLUNTARY] = v[1];
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
