/* filtered ERRNO COMMAND... - runs the command behind a seccomp filter, as containers do: bpf, perf_event_open and io_uring_setup give that
 * error (EPERM, ENOSYS); by "none" they are let through, and the filter is there all the same.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REFUSE(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, answer)

int main(int argc, char **argv)
{
  if (argc < 3) return 2;
  unsigned answer = SECCOMP_RET_ALLOW;
  if (strcmp(argv[1], "EPERM") == 0) answer = SECCOMP_RET_ERRNO | EPERM;
  if (strcmp(argv[1], "ENOSYS") == 0) answer = SECCOMP_RET_ERRNO | ENOSYS;
  struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), REFUSE(SYS_bpf),
                                 REFUSE(SYS_perf_event_open), REFUSE(SYS_io_uring_setup),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  /* Root needs no promise not to gain privileges, and a container's processes have not made one either. */
  if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return perror("no_new_privs"), 1;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return perror("seccomp"), 1;
  execvp(argv[2], argv + 2);
  return perror(argv[2]), 127;
}
