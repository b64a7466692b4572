/* hops - hard-cases.md F05: each of FRAMES frames of 500 us at least runs on another CPU than the last, and the wall clock, as far as this
 * process sees it, is an hour ahead in every other frame. Prints `frames N`, `cpus N`, `us N` (from the first mach6_frame() to the last)
 * and `wall N`: how often the wall clock was asked for.
 */
/* flags: -rdynamic */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long asked, frames_made;

static long now_us(void)
{
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* In front of libc's: whoever in this process asks for the wall clock gets this one. */
int clock_gettime(clockid_t id, struct timespec *t)
{
  int r = (int)syscall(SYS_clock_gettime, id, t);
  if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) return r;
  asked++;
  t->tv_sec += frames_made & 1 ? 3600 : -3600;
  return r;
}
int gettimeofday(struct timeval *t, void *zone)
{
  struct timespec s;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &s);
  *t = (struct timeval){s.tv_sec, s.tv_nsec / 1000};
  return 0;
}
time_t time(time_t *t)
{
  struct timespec s;
  clock_gettime(CLOCK_REALTIME, &s);
  if (t) *t = s.tv_sec;
  return s.tv_sec;
}

int main(int argc, char **argv)
{
  long frames = argc > 1 ? atol(argv[1]) : 100, first = 0, last = 0;
  void (*frame)(void);
  *(void **)&frame = dlsym(RTLD_DEFAULT, "mach6_frame");
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  int cpu = 0;
  while (frames_made < frames) {
    do cpu = (cpu + 1) % CPU_SETSIZE;
    while (!CPU_ISSET(cpu, &all));
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    for (long from = now_us(); now_us() - from < 500;) free(malloc(100));
    if (frame) frame();
    last = now_us();
    if (!first) first = last;
    frames_made++;
  }
  printf("frames %ld\ncpus %d\nus %ld\nwall %ld\n", frames_made, CPU_COUNT(&all), last - first, asked);
  return 0;
}
