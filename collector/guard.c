/* guard.c - the SIGBUS handler behind m6_guarded. See guard.h. */
#include "guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

static sigjmp_buf back;
static volatile uintptr_t guarded_from, guarded_bytes;

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
  (void)context;
  if (guarded_bytes != 0 && (uintptr_t)info->si_addr - guarded_from < guarded_bytes) siglongjmp(back, 1);
  signal(sig, SIG_DFL);
  raise(sig);
}

int m6_guarded(void (*fn)(void *), void *arg, const void *memory, size_t bytes)
{
  static int installed;
  if (!installed) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = on_sigbus;
    a.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGBUS, &a, NULL);
    installed = 1;
  }
  if (sigsetjmp(back, 0) != 0) { /* no mask to restore: SA_NODEFER leaves SIGBUS open */
    guarded_bytes = 0;
    return -1;
  }
  guarded_from = (uintptr_t)memory;
  guarded_bytes = bytes;
  fn(arg);
  guarded_bytes = 0;
  return 0;
}
