/* ns_target.c - a target that is told from another by how often it does what it does.
 *
 *   ns_target N [PID]   says "ready PID TID"; after a line on stdin it asks N times for its parent, calls ns_tick and mach6_frame as
 *                       often, on a second thread, TID; says "done", and ends after another line. With PID it is a child that is given
 *                       this number in its pid namespace. Status 3 when that cannot be.
 */
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/mach6.h"

static int times, go[2];

__attribute__((noinline, noipa, used)) void ns_tick(void);
void ns_tick(void) { __asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0, 0" ::: "memory"); }

static void *work(void *arg)
{
  char byte;
  printf("ready %d %d\n", (int)getpid(), (int)syscall(SYS_gettid));
  fflush(stdout);
  if (read(go[0], &byte, 1) != 1) return arg;
  for (int i = 0; i < times; i++) {
    syscall(SYS_getppid);
    ns_tick();
    mach6_frame();
  }
  puts("done");
  fflush(stdout);
  if (read(go[0], &byte, 1) < 0) return NULL;
  return arg;
}

static int target(void)
{
  pthread_t t;
  int ch, lines = 0;
  if (pipe(go) != 0 || pthread_create(&t, NULL, work, NULL) != 0) return 1;
  while (lines < 2 && (ch = getchar()) != EOF)
    if (ch == '\n' && lines++ == 0 && write(go[1], "x", 1) != 1) return 1;
  close(go[1]);
  pthread_join(t, NULL);
  return 0;
}

int main(int argc, char **argv)
{
  pid_t pid = argc > 2 ? atoi(argv[2]) : 0;
  int status;
  if (argc < 2) return 2;
  times = atoi(argv[1]);
  if (!pid) return target();
  struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
  long child = syscall(SYS_clone3, &args, sizeof args);
  if (child == 0) return target();
  if (child != pid || waitpid(pid, &status, 0) != pid) return perror("ns_target"), 3;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
