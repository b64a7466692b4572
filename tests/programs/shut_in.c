/* shut_in - a target that shuts itself in while it is captured: frames of a millisecond; after WARM of them it makes itself non-dumpable, allows
 * itself no system call but a few that any frame needs, and goes on for FRAMES more. A call that is not allowed is death by SIGSYS.
 *
 *   shut_in WARM FRAMES [THREADS [refused]]
 * With THREADS it allows itself also what libc needs for a thread, starts so many once it is shut in, says `threads` when each has come to
 * its first scopes, allocations and frame, and goes on. They end when it does, after they have ended their last scope. `refused`: gettid, and
 * what else tells who somebody is, is no death, but EPERM.
 * Prints `frames N` at the end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define IF(nr, action) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, (action))
#define ALLOW(nr) IF(nr, SECCOMP_RET_ALLOW)
#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define FOR_FRAMES                                                                                                     \
  ALLOW(SYS_clock_nanosleep), ALLOW(SYS_write), ALLOW(SYS_newfstatat), ALLOW(SYS_exit_group), ALLOW(SYS_brk)
/* What a program that starts threads and ends them calls by libc alone: pthread_create, pthread_join, and malloc's arenas. */
#define FOR_THREADS                                                                                                    \
  ALLOW(SYS_clone3), ALLOW(SYS_clone), ALLOW(SYS_set_robust_list), ALLOW(SYS_rseq), ALLOW(SYS_rt_sigprocmask),         \
    ALLOW(SYS_rt_sigaction), ALLOW(SYS_futex), ALLOW(SYS_mmap), ALLOW(SYS_mprotect), ALLOW(SYS_munmap),                \
    ALLOW(SYS_madvise), ALLOW(SYS_exit)

static void (*mark)(const char *), (*done)(void), (*frame)(void);
static int begun, over;

static void shut(struct sock_filter *filter, size_t bytes)
{
  struct sock_fprog program = {(unsigned short)(bytes / sizeof *filter), filter};
  if (prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
    return;
  perror("prctl");
  exit(1);
}

static void shut_in(int threads, int refused)
{
  struct sock_filter alone[] = {NUMBER, FOR_FRAMES, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  unsigned who = refused ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS;
  struct sock_filter crowd[] = {NUMBER,
                                FOR_FRAMES,
                                FOR_THREADS,
                                IF(SYS_gettid, who),
                                IF(SYS_getpid, who),
                                IF(SYS_tgkill, who),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  if (threads) shut(crowd, sizeof crowd);
  else shut(alone, sizeof alone);
}

static void work(void)
{
  if (mark) mark("work");
  void *volatile p = malloc(200);
  free(p);
  usleep(1000);
  if (done) done();
}

static void *thread(void *arg)
{
  for (int i = 0; i < 20; i++) work();
  if (frame) frame();
  __atomic_fetch_add(&begun, 1, __ATOMIC_SEQ_CST);
  while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) work();
  return arg;
}

static void say(const char *line)
{
  if (write(1, line, strlen(line)) != (ssize_t)strlen(line)) _exit(1);
}

int main(int argc, char **argv)
{
  long warm = argc > 1 ? atol(argv[1]) : 500, more = argc > 2 ? atol(argv[2]) : 1000;
  int threads = argc > 3 ? atoi(argv[3]) : 0, said = 0;
  pthread_t id[64];
  if (threads > 64) return 2;
  *(void **)&mark = dlsym(RTLD_DEFAULT, "mach6_mark");
  *(void **)&done = dlsym(RTLD_DEFAULT, "mach6_done");
  *(void **)&frame = dlsym(RTLD_DEFAULT, "mach6_frame");
  mallopt(M_ARENA_MAX, 8); /* else malloc reads a file to know how many would be good */
  for (long n = 0; n < warm + more; n++) {
    if (n == warm) {
      shut_in(threads, argc > 4 && !strcmp(argv[4], "refused"));
      for (int i = 0; i < threads; i++)
        if (pthread_create(&id[i], NULL, thread, NULL)) _exit(1);
    }
    if (threads && !said && __atomic_load_n(&begun, __ATOMIC_SEQ_CST) == threads) said = 1, say("threads\n");
    work();
    if (frame) frame();
  }
  __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < threads; i++) pthread_join(id[i], NULL);
  char line[64];
  snprintf(line, sizeof line, "frames %ld\n", warm + more);
  say(line);
  _exit(0);
}
