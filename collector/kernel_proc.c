/* kernel_proc.c - see kernel_proc.h. */
#include "kernel_proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../shm/clock.h"
#include "kernel_frames.h"

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

char m6_proc_thread_state(pid_t tgid, pid_t tid)
{
  char text[512], *at;
  return slurp(text, sizeof text, tgid, tid, "stat") && (at = strrchr(text, ')')) ? at[2] : 'X';
}

uint32_t m6_proc_thread_cause(pid_t tgid, pid_t tid)
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

int m6_proc_thread_read(pid_t tgid, pid_t tid, struct m6_proc_thread *r)
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
  r->timed = slurp(text, sizeof text, tgid, tid, "schedstat") &&
             sscanf(text, "%llu %llu %llu", (unsigned long long *)&r->run_ns, (unsigned long long *)&r->delay_ns,
                    (unsigned long long *)&r->counted[M6_SLICES]) == 3;
  return 1;
}
