/* kernel_seed.c - see kernel_seed.h. */
#include "kernel_seed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../shm/clock.h"
#include "kernel_proc.h"
#include "kernel_table.h"
#include "kernel_tasks.h"

/* It began while nobody was told: what it has, it has since its beginning. */
static void born(struct m6_counters_thread *t, const struct m6_proc_thread *r)
{
  memset(t->base, 0, sizeof t->base);
  t->resumed = 1;
  uint64_t now = t->out_ns, life = now - r->began_ns;
  if (life < r->run_ns + r->delay_ns) life = r->run_ns + r->delay_ns;
  t->first_ns = now - life;
  t->on_ns = r->run_ns;
  t->wait_ns = r->delay_ns;
  t->off_ns[M6_OFF_OTHER] = life - r->run_ns - r->delay_ns;
}

int m6_seed(struct m6_counters_inside *in, pid_t tgid, uint64_t since_ns, struct m6_fault *fault)
{
  struct m6_task *tasks = calloc(M6_COUNTERS_THREADS, sizeof *tasks);
  if (!tasks) return m6_fault_set(fault, ENOMEM, M6_AREA_NONE, "allocate", "the threads");
  int n = m6_tasks_find(tgid, tasks, M6_COUNTERS_THREADS, fault);
  for (int i = 0; i < n; i++) {
    struct m6_proc_thread r;
    struct m6_counters_thread t = {
      .state = M6_COUNTERS_SEEDED, .tgid = tasks[i].tgid, .here = tasks[i].here, .own = tasks[i].own, .lives = 1};
    if (m6_table_find(in, tasks[i].tid)) continue;
    t.first_ns = t.out_ns = t.since_ns = m6_monotonic_ns();
    if (!m6_proc_thread_read(tgid, (pid_t)t.here, &r)) continue;
    memcpy(t.last, r.counted, sizeof t.last);
    memcpy(t.base, r.counted, sizeof t.base);
    t.last_run_ns = r.run_ns;
    t.last_delay_ns = t.read_delay_ns = r.delay_ns;
    t.arrived = (uint32_t)r.counted[M6_SLICES];
    t.cause = m6_proc_thread_cause(tgid, (pid_t)t.here);
    if (r.began_ns >= since_ns) {
      born(&t, &r);
      in->unseen_slices += r.counted[M6_SLICES];
    }
    m6_table_put(in, tasks[i].tid, &t);
  }
  free(tasks);
  return n < 0 ? -n : 0;
}
