/* noframes.c - burns CPU at the end of a chain of calls that keeps no frame pointer: noframes MS
 * Each function uses the frame pointer's register for something else, as optimised code does: who follows it finds no caller. One more
 * thread does the same. Both work for MS milliseconds of their own CPU time. */
/* flags: -O2 -fomit-frame-pointer */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))
#define TAKES_THE_REGISTER(x)                                                                                          \
  __asm__ volatile("movq %0, %%rbp" : : "r"((unsigned long)(x)*2654435761u | 1) : "rbp", "memory")

static long limit_ms;

static APART long burn(long n)
{
  volatile long x = 0;
  for (long i = 0; i < n; i++) x += i;
  TAKES_THE_REGISTER(x);
  for (long i = 0; i < n; i++) x += i;
  return x;
}
static APART long inner(long n)
{
  TAKES_THE_REGISTER(n);
  return burn(n) + burn(n / 2) + 1;
}
static APART long middle(long n)
{
  TAKES_THE_REGISTER(n);
  return inner(n) * 3 + 1;
}
static APART long outer(void)
{
  struct timespec t;
  long sum = 0;
  do {
    TAKES_THE_REGISTER(sum);
    sum += middle(20000);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  } while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < limit_ms);
  return sum;
}
static void *worker(void *arg) { return (void *)(outer() & 1); }

int main(int argc, char **argv)
{
  pthread_t t;
  if (argc != 2) return 2;
  limit_ms = atol(argv[1]);
  if (pthread_create(&t, NULL, worker, NULL)) return 1;
  long sum = outer();
  pthread_join(t, NULL);
  return sum == 1;
}
