/* hot_presents - a target that keeps every buffer of a session busy: one thread that never waits, and one that makes a frame each USEC
 * microseconds.
 *
 *   hot_presents USEC
 * Until SIGTERM; then `frames N`.
 */
/* flags: -O1 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t over;
static volatile unsigned long long turns;

static void on_term(int sig)
{
  (void)sig;
  over = 1;
}
static void *burn(void *arg)
{
  while (!over) turns++;
  return arg;
}

int main(int argc, char **argv)
{
  long usec = argc > 1 ? atol(argv[1]) : 100, n = 0;
  void (*frame)(void);
  pthread_t thread;
  *(void **)&frame = dlsym(RTLD_DEFAULT, "mach6_frame");
  signal(SIGTERM, on_term);
  if (pthread_create(&thread, NULL, burn, NULL) != 0) return 1;
  for (; !over; n++) {
    if (frame) frame();
    usleep((useconds_t)usec);
  }
  pthread_join(thread, NULL);
  printf("frames %ld\n", n);
  return 0;
}
