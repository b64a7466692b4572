/* heap.c - see heap.h. */
#include "heap.h"
#include "heap_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../shm/budget.h"
#include "../shm/clock.h"
#include "../shm/order.h"
#include "stats_proc.h"

int m6_heap_parse(const char *text, struct m6_heap_measured *out)
{
  static const struct {
    const char *key;
    size_t offset;
  } rows[] = {{"\nRss:", offsetof(struct m6_heap_measured, rss)},
              {"\nPss:", offsetof(struct m6_heap_measured, pss)},
              {"\nAnonymous:", offsetof(struct m6_heap_measured, anonymous)},
              {"\nSwap:", offsetof(struct m6_heap_measured, swap)}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *at = strstr(text, rows[i].key);
    char *end;
    if (at == NULL) return -1;
    unsigned long long kib = strtoull(at + strlen(rows[i].key), &end, 10);
    if (strncmp(end, " kB", 3) != 0 || kib > UINT64_MAX / 1024) return -1;
    *(uint64_t *)((char *)out + rows[i].offset) = kib * 1024;
  }
  return 0;
}

/* Mapping by mapping. What was mapped or touched between two readings would be in the one and not in the other, so all
 * but the proportional size, which smaps rounds down for each mapping, is from this one pass. Where it cannot be had,
 * the sums stand alone. */
static void by_mapping(pid_t pid, struct m6_heap_measured *out)
{
  char path[64], line[512];
  struct m6_heap_maps maps = {0};
  snprintf(path, sizeof path, "/proc/%d/smaps", (int)pid);
  FILE *f = fopen(path, "re");
  if (f == NULL) return;
  while (fgets(line, sizeof line, f)) m6_heap_maps_line(&maps, line);
  fclose(f);
  if (maps.rss == 0) return; /* it has just ended */
  out->held = maps.held;
  out->rss = maps.rss;
  out->anonymous = maps.anonymous;
  out->swap = maps.swap;
}

static void from_proc(pid_t pid, struct m6_heap_measured *out)
{
  char path[64], text[4096];
  uint64_t from = m6_monotonic_ns();
  pid = m6_proc_speaker(pid);
  snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  out->error = n < 0 ? errno : 0;
  if (fd >= 0) close(fd);
  if (n >= 0) {
    text[n] = 0;
    if (m6_heap_parse(text, out) != 0) out->error = ENODATA;
    else by_mapping(pid, out);
  }
  out->took_ns = m6_monotonic_ns() - from;
}

static void *run(void *arg)
{
  struct m6_heap *h = arg;
  h->measure(h->pid, &h->got);
  m6_publish(&h->ready, 1);
  return NULL;
}

void m6_heap_begin(struct m6_heap *h, uint64_t interval_ns, uint64_t now_ns)
{
  uint64_t first_ns = now_ns + M6_HEAP_FIRST_S * 1000000000ull, asked_ns = h->asked_ns;
  memset(h, 0, sizeof *h);
  h->interval_ns = interval_ns;
  h->asked_ns = asked_ns;
  h->due_ns = asked_ns && asked_ns + interval_ns > first_ns ? asked_ns + interval_ns : first_ns;
  h->measure = from_proc;
}

static void take(struct m6_heap *h, uint64_t session_start_ns)
{
  struct m6_snap_heap *l = &h->last;
  h->pending = 0;
  l->error = h->got.error;
  if (h->got.error) return;
  l->count++;
  l->at_ns = h->asked_ns > session_start_ns ? h->asked_ns - session_start_ns : 0;
  l->took_ns = h->got.took_ns;
  l->rss = h->got.rss;
  l->pss = h->got.pss;
  l->anonymous = h->got.anonymous;
  l->swap = h->got.swap;
  l->held = h->got.held;
  l->live = h->live;
  l->mapped = h->mapped_then;
}

int m6_heap_poll(struct m6_heap *h, pid_t pid, int64_t live, uint64_t now_ns, uint64_t session_start_ns)
{
  int new = 0;
  if (h->pending && m6_observe(&h->ready)) {
    pthread_join(h->thread, NULL);
    take(h, session_start_ns);
    new = 1;
  }
  if (now_ns < h->due_ns) return new;
  h->due_ns = now_ns + h->interval_ns;
  if (h->pending) { /* one at a time */
    h->last.missed++;
    return new;
  }
  h->pid = pid;
  h->live = live;
  h->mapped_then = h->mapped;
  memset(&h->got, 0, sizeof h->got);
  m6_poke(&h->ready, 0);
  sigset_t all, old; /* signals are the loop's */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int e = pthread_create(&h->thread, NULL, run, h);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (e) h->last.error = e;
  else h->pending = 1, h->asked_ns = now_ns;
  return new;
}

int m6_heap_end(struct m6_heap *h, uint64_t session_start_ns)
{
  if (!h->pending) return 0;
  pthread_join(h->thread, NULL);
  take(h, session_start_ns);
  return 1;
}

int m6_heap_last(struct m6_heap *h, pid_t pid, int64_t live, uint64_t now_ns, uint64_t session_start_ns)
{
  int new = m6_heap_end(h, session_start_ns), error = h->last.error;
  if (h->asked_ns && now_ns < h->asked_ns + h->interval_ns) return new;
  h->live = live;
  h->mapped_then = h->mapped;
  h->asked_ns = now_ns;
  h->due_ns = now_ns + h->interval_ns;
  memset(&h->got, 0, sizeof h->got);
  h->measure(pid, &h->got);
  take(h, session_start_ns);
  if (h->got.error && h->last.count) h->last.error = error; /* it has just ended: what was measured before stands */
  return 1;
}
