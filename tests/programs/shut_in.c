/* shut_in - a target that shuts itself in while it is captured: frames of a millisecond; after WARM of them it makes itself non-dumpable, allows
 * itself no system call but a few that any frame needs, and goes on for FRAMES more. A call that is not allowed is death by SIGSYS.
 *
 *   shut_in WARM FRAMES
 * Prints `frames N` at the end.
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int argc, char **argv)
{
  long warm = argc > 1 ? atol(argv[1]) : 500, more = argc > 2 ? atol(argv[2]) : 1000;
  void (*mark)(const char *), (*done)(void), (*frame)(void);
  *(void **)&mark = dlsym(RTLD_DEFAULT, "mach6_mark");
  *(void **)&done = dlsym(RTLD_DEFAULT, "mach6_done");
  *(void **)&frame = dlsym(RTLD_DEFAULT, "mach6_frame");
  struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 ALLOW(SYS_clock_nanosleep),
                                 ALLOW(SYS_write),
                                 ALLOW(SYS_newfstatat),
                                 ALLOW(SYS_exit_group),
                                 ALLOW(SYS_brk),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  for (long n = 0; n < warm + more; n++) {
    if (n == warm && (prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
                      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)))
      return perror("prctl"), 1;
    if (mark) mark("work");
    free(malloc(200));
    usleep(1000);
    if (done) done();
    if (frame) frame();
  }
  char line[64];
  int bytes = snprintf(line, sizeof line, "frames %ld\n", warm + more);
  if (write(1, line, (size_t)bytes) != bytes) return 1;
  _exit(0);
}
