/* int80.c - syscalls by the 32-bit table from a 64-bit program: int80 N; says "ready PID TID", and after a line on stdin it asks N times
 * for its pid, whose number there is that of writev in the 64-bit table; says "done", and ends after another line. Status 3 when the kernel has no
 * such table.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void refused(int signal)
{
  (void)signal;
  _exit(3);
}

static long call(long number)
{
  long result = number;
#ifdef __x86_64__
  __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
#else
  refused(0);
#endif
  return result;
}

int main(int argc, char **argv)
{
  char line[16];
  int n = argc > 1 ? atoi(argv[1]) : 1;
  signal(SIGSEGV, refused);
  signal(SIGILL, refused);
  if (call(20) != getpid()) return 3;
  printf("ready %d %d\n", (int)getpid(), (int)getpid());
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) return 1;
  for (int i = 0; i < n; i++) call(20);
  puts("done");
  fflush(stdout);
  return !fgets(line, sizeof line, stdin);
}
