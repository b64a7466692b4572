/* inherit.c - prints what a program gets from whoever starts it: signal mask and dispositions, descriptors, group, session,
 * limits, name space of the environment. Run it twice and compare.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
  sigset_t mask;
  struct sigaction a;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  for (int s = 1; s < 65; s++) {
    if (sigismember(&mask, s) == 1) printf("blocked %d\n", s);
    if (!sigaction(s, NULL, &a) && a.sa_handler == SIG_IGN) printf("ignored %d\n", s);
  }
  for (int fd = 0; fd < 1024; fd++) {
    struct stat st;
    if (!fstat(fd, &st)) printf("fd %d type %o flags %x\n", fd, st.st_mode & S_IFMT, fcntl(fd, F_GETFD));
  }
  for (int r = 0; r < RLIM_NLIMITS; r++) {
    struct rlimit l;
    if (!getrlimit((__rlimit_resource_t)r, &l))
      printf("limit %d %llx %llx\n", r, (unsigned long long)l.rlim_cur, (unsigned long long)l.rlim_max);
  }
  char cwd[4096];
  mode_t m = umask(0);
  printf("umask %o cwd %s group of the parent %d session of the parent %d nice %d\n", m, getcwd(cwd, sizeof cwd),
         getpgid(0) == getpgid(getppid()), getsid(0) == getsid(getppid()), getpriority(PRIO_PROCESS, 0));
  for (int i = 0; i < argc; i++) printf("arg %s\n", argv[i]);
  for (char **e = environ; *e; e++)
    if (strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "MACH6_RUN=", 10)) printf("env %s\n", *e);
  return 0;
}
