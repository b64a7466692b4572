/* kernel_seed.c - see kernel_seed.h. */
#include "kernel_seed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../shm/clock.h"
#include "kernel_table.h"
#include "kernel_tasks.h"

/* ---- /proc ------------------------------------------------------------------------------------------------------ */

/* A small file of a thread as text; 0 when it is not there. */
static int slurp(char *out, size_t size, pid_t tgid, pid_t tid, const char *file)
{
  char path[80];
  snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)tgid, (int)tid, file);
  FILE *f = fopen(path, "re");
  if (!f) return 0;
  size_t n = fread(out, 1, size - 1, f);
  out[n] = 0;
  fclose(f);
  return n > 0;
}

char m6_seed_state(pid_t tgid, pid_t tid)
{
  char text[512], *at;
  return slurp(text, sizeof text, tgid, tid, "stat") && (at = strrchr(text, ')')) ? at[2] : 'X';
}

uint32_t m6_seed_cause(pid_t tgid, pid_t tid)
{
  char text[256];
  if (!slurp(text, sizeof text, tgid, tid, "syscall") || !(text[0] == '-' || (text[0] >= '0' && text[0] <= '9')))
    return M6_OFF_OTHER;
  return m6_off_cause_of(strtol(text, NULL, 10));
}

static uint64_t boottime_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int m6_seed_read(pid_t tgid, pid_t tid, struct m6_seed_reading *r)
{
  char text[4096], *at;
  unsigned long long ticks;
  memset(r, 0, sizeof *r);
  if (!slurp(text, sizeof text, tgid, tid, "stat") || !(at = strrchr(text, ')'))) return 0;
  if (sscanf(at + 2, "%c %*d %*d %*d %*d %*d %*u %llu %*u %llu %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &r->state,
             (unsigned long long *)&r->counted[M6_MINOR], (unsigned long long *)&r->counted[M6_MAJOR], &ticks) != 4)
    return 0;
  uint64_t boot = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
  uint64_t running = m6_monotonic_ns(), slept = boottime_ns() - running; /* the machine, since it was started */
  r->began_ns = boot > slept ? boot - slept : 0;
  if (!slurp(text, sizeof text, tgid, tid, "status") || !(at = strstr(text, "\nvoluntary_ctxt_switches:"))) return 0;
  if (sscanf(at, " voluntary_ctxt_switches: %llu nonvoluntary_ctxt_switches: %llu",
             (unsigned long long *)&r->counted[M6_VOLUNTARY], (unsigned long long *)&r->counted[M6_INVOLUNTARY]) != 2)
    return 0;
  /* Not there without CONFIG_SCHED_INFO; then the kernel side reads none of it either. */
  if (slurp(text, sizeof text, tgid, tid, "schedstat"))
    sscanf(text, "%llu %llu %llu", (unsigned long long *)&r->run_ns, (unsigned long long *)&r->delay_ns,
           (unsigned long long *)&r->counted[M6_SLICES]);
  return 1;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

/* It began while nobody was told: what it has, it has since its beginning. */
static void born(struct m6_counters_thread *t, const struct m6_seed_reading *r)
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
    struct m6_seed_reading r;
    struct m6_counters_thread t = {
      .state = M6_COUNTERS_SEEDED, .tgid = tasks[i].tgid, .here = tasks[i].here, .own = tasks[i].own, .lives = 1};
    if (m6_table_find(in, tasks[i].tid)) continue;
    t.first_ns = t.out_ns = t.since_ns = m6_monotonic_ns();
    if (!m6_seed_read(tgid, (pid_t)t.here, &r)) continue;
    memcpy(t.last, r.counted, sizeof t.last);
    memcpy(t.base, r.counted, sizeof t.base);
    t.last_run_ns = r.run_ns;
    t.last_delay_ns = t.read_delay_ns = r.delay_ns;
    t.arrived = (uint32_t)r.counted[M6_SLICES];
    t.cause = m6_seed_cause(tgid, (pid_t)t.here);
    if (r.began_ns >= since_ns) {
      born(&t, &r);
      in->unseen_slices += r.counted[M6_SLICES];
    }
    m6_table_put(in, tasks[i].tid, &t);
  }
  free(tasks);
  return n < 0 ? -n : 0;
}
