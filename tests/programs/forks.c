/* forks - 8 threads allocate while the main one forks 1,000 times; the children allocate, mark, and leave by exit or _exit.
 * Also one child by a raw clone, and one by vfork. */
/* flags: -fno-builtin */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "preload/mach6.h"

static int stop;
static void *allocate(void *arg)
{
  for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); usleep(2000))
    for (int i = 0; i < 50; i++) {
      mach6_mark("parent");
      free(malloc(100));
      mach6_done();
    }
  return arg;
}
static void child(int how)
{
  mach6_mark("child");
  for (int i = 0; i < 100; i++) free(malloc(1000));
  void *leak = malloc(12345);
  mach6_frame();
  if (how) exit(leak == NULL);
  _exit(leak == NULL);
}

int main(void)
{
  pthread_t t[8];
  volatile int good = 0;
  int status;
  fflush(stdout);
  for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, allocate, NULL);
  for (int i = 0; i < 1000; i++) {
    pid_t p = fork();
    if (p == 0) child(i & 1);
    waitpid(p, &status, 0);
    good += status == 0;
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
  long p = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (p == 0) child(0);
  waitpid((pid_t)p, &status, 0);
  good += status == 0;
  p = vfork();
  if (p == 0) _exit(0);
  waitpid((pid_t)p, &status, 0);
  good += status == 0;
  printf("good %d\n", good);
  return 0;
}
