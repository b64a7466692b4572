/* pairs - an allocation-heavy program: RATE malloc+free pairs a second, in bursts of a millisecond, and sixty frames a second, until SIGTERM.
 *
 *   pairs RATE [launcher]
 * SIGUSR2: from now on it makes 150 system calls a millisecond, too; again: no longer.
 * Prints `pairs N` and `seconds S` at the end. As a launcher it makes no frames, and at SIGUSR1 becomes `pairs RATE` by exec.
 */
/* flags: -O1 -fno-builtin */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

int main(int argc, char **argv)
{
  double rate = argc > 1 ? atof(argv[1]) : 300000, began = now(), frame_at = began;
  void (*frame)(void);
  *(void **)&frame = dlsym(RTLD_DEFAULT, "mach6_frame");
  signal(SIGTERM, on_term);
  signal(SIGUSR2, on_usr2);
  if (argc > 2) frame = NULL, signal(SIGUSR1, on_usr1);
  unsigned long long made = 0;
  while (!over) {
    if (become) execl("/proc/self/exe", argv[0], argv[1], (char *)NULL);
    unsigned long long due = (unsigned long long)((now() - began) * rate);
    for (; made < due; made++) {
      void *volatile p = malloc(16 + made % 200);
      free(p);
    }
    for (int i = 0; calls && i < 150; i++) syscall(SYS_getppid);
    if (frame && now() >= frame_at) {
      frame();
      frame_at += 1.0 / 60;
    }
    usleep(1000);
  }
  printf("pairs %llu\nseconds %.3f\n", made, now() - began);
  return 0;
}
