/* kernel_work.c - does a known amount of what the kernel counts, between two lines that say what the kernel itself counted.
 *
 *   kernel_work CALLS PAGES NAPS MS [GO]
 * CALLS getppid calls, PAGES pages touched for the first time, NAPS naps of 1 ms, MS of computing, a frame (mach6_frame) each 1 ms of
 * that. With GO (a fifo), waits for a line from it first, and for another before it ends. Prints "began" and "ended" lines:
 * on-CPU ns and run-queue ns (schedstat), voluntary, involuntary switches, minor, major faults (getrusage of the thread). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/mach6.h"

static void print(const char *what)
{
  unsigned long long on = 0, wait = 0;
  FILE *f = fopen("/proc/thread-self/schedstat", "r");
  if (f && fscanf(f, "%llu %llu", &on, &wait) != 2) on = 0;
  if (f) fclose(f);
  struct rusage r;
  getrusage(RUSAGE_THREAD, &r);
  printf("%s %llu %llu %ld %ld %ld %ld\n", what, on, wait, r.ru_nvcsw, r.ru_nivcsw, r.ru_minflt, r.ru_majflt);
  fflush(stdout);
}

static unsigned long long cpu_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

__attribute__((noinline)) void work_hard(int ms)
{
  volatile unsigned x = 1;
  for (int i = 0; i < ms; i++) {
    mach6_mark("work");
    for (unsigned long long until = cpu_ns() + 1000000u; cpu_ns() < until;)
      for (int k = 0; k < 2000; k++) x = x * 3 + 1;
    mach6_done();
    mach6_frame();
  }
}

int main(int argc, char **argv)
{
  char line[64];
  if (argc < 5) return 2;
  int go = argc > 5 ? open(argv[5], O_RDWR) : -1;
  mach6_frame();
  print("began");
  if (go >= 0 && read(go, line, 1) != 1) return 1;
  for (int i = atoi(argv[1]); i > 0; i--) syscall(SYS_getppid);
  size_t pages = (size_t)atoi(argv[2]);
  volatile char *p = mmap(NULL, pages * 4096 + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise((void *)p, pages * 4096 + 4096, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < pages; i++) p[i * 4096] = 1;
  for (int i = atoi(argv[3]); i > 0; i--) nanosleep(&(struct timespec){0, 1000000}, NULL);
  work_hard(atoi(argv[4]));
  print("ended");
  if (go >= 0 && read(go, line, 1) != 1) return 1;
  return 0;
}
