/* pairs - an allocation-heavy program: RATE malloc+free pairs a second, in bursts of a millisecond, and sixty frames a second, until SIGTERM.
 *
 *   pairs RATE [launcher|rally]
 * SIGUSR2: from now on it makes 150 system calls a millisecond, too; again: no longer. With rally these are another thread's turns on the
 * same CPU, two switches each, and four times a second a thread begins, which lives for a while.
 * Prints `pairs N` and `seconds S` at the end. As a launcher it makes no frames, and at SIGUSR1 becomes `pairs RATE` by exec.
 */
/* flags: -O1 -fno-builtin */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t over;
static void on_term(int sig)
{
  (void)sig;
  over = 1;
}
static volatile sig_atomic_t become;
static void on_usr1(int sig)
{
  (void)sig;
  become = 1;
}
static volatile sig_atomic_t calls;
static void on_usr2(int sig)
{
  (void)sig;
  calls = !calls;
}
static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One byte there and back: two switches. */
static int there[2], back[2];
static void *partner(void *arg)
{
  char byte;
  while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) continue;
  return arg;
}
static void *short_life(void *arg)
{
  usleep(200000);
  return arg;
}
static void begin_rally(void)
{
  pthread_t t;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  if (pipe(there) != 0 || pipe(back) != 0 || pthread_create(&t, NULL, partner, NULL) != 0) abort();
}
static void take_turns(void)
{
  char byte = 0;
  for (int i = 0; i < 150; i++)
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) abort();
}

int main(int argc, char **argv)
{
  int rally = argc > 2 && strcmp(argv[2], "rally") == 0;
  double rate = argc > 1 ? atof(argv[1]) : 300000, began = now(), frame_at = began, born_at = began;
  void (*frame)(void);
  *(void **)&frame = dlsym(RTLD_DEFAULT, "mach6_frame");
  signal(SIGTERM, on_term);
  signal(SIGUSR2, on_usr2);
  if (rally) begin_rally();
  else if (argc > 2) frame = NULL, signal(SIGUSR1, on_usr1);
  unsigned long long made = 0;
  while (!over) {
    if (become) execl("/proc/self/exe", argv[0], argv[1], (char *)NULL);
    unsigned long long due = (unsigned long long)((now() - began) * rate);
    for (; made < due; made++) {
      void *volatile p = malloc(16 + made % 200);
      free(p);
    }
    for (int i = 0; calls && !rally && i < 150; i++) syscall(SYS_getppid);
    if (calls && rally) take_turns();
    if (rally && now() >= born_at) {
      pthread_t t;
      if (pthread_create(&t, NULL, short_life, NULL) == 0) pthread_detach(t);
      born_at += 0.25;
    }
    if (frame && now() >= frame_at) {
      frame();
      frame_at += 1.0 / 60;
    }
    usleep(1000);
  }
  printf("pairs %llu\nseconds %.3f\n", made, now() - began);
  return 0;
}
