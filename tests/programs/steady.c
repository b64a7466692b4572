/* steady - a target that knows what it does: FRAMES frames of USEC microseconds, each a scope "work" with ALLOCS malloc+free pairs of
 * 100 bytes, then mach6_frame(). SIGTERM ends it early, at a frame's end.
 *
 *   steady FRAMES USEC ALLOCS [THREADS]     THREADS more threads do "job" scopes without pause, so that their rings are full
 * Prints `frames N`, `longest_us N` (the longest time between two frames) and `pid N` at once at the start.
 */
/* flags: -O1 -fno-builtin */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void (*mark)(const char *), (*done)(void), (*frame)(void);
static volatile sig_atomic_t over;

static void on_term(int sig)
{
  (void)sig;
  over = 1;
}
static long now_us(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
static void *worker(void *arg)
{
  while (!over) {
    for (int i = 0; i < 1000; i++) {
      if (mark) mark("job");
      if (done) done();
    }
    usleep(1000);
  }
  return arg;
}

int main(int argc, char **argv)
{
  long frames = argc > 1 ? atol(argv[1]) : 100, usec = argc > 2 ? atol(argv[2]) : 1000, allocs = argc > 3 ? atol(argv[3]) : 10;
  int threads = argc > 4 ? atoi(argv[4]) : 0;
  pthread_t thread[16];
  *(void **)&mark = dlsym(RTLD_DEFAULT, "mach6_mark");
  *(void **)&done = dlsym(RTLD_DEFAULT, "mach6_done");
  *(void **)&frame = dlsym(RTLD_DEFAULT, "mach6_frame");
  signal(SIGTERM, on_term);
  printf("pid %d\n", (int)getpid());
  fflush(stdout);
  for (int i = 0; i < threads && i < 16; i++) pthread_create(&thread[i], NULL, worker, NULL);
  long longest = 0, last = now_us(), n = 0;
  while (n < frames && !over) {
    if (mark) mark("work");
    for (long i = 0; i < allocs; i++) free(malloc(100));
    usleep((useconds_t)usec);
    if (done) done();
    if (frame) frame();
    n++;
    long t = now_us();
    if (t - last > longest) longest = t - last;
    last = t;
  }
  over = 1;
  for (int i = 0; i < threads && i < 16; i++) pthread_join(thread[i], NULL);
  printf("frames %ld\nlongest_us %ld\n", n, longest);
  return 0;
}
