/* cancel - threads in a loop of hooks are cancelled: deferred, where they may only leave at their own cancellation point, and
 * asynchronously, anywhere in mark and done. */
/* flags: -fno-builtin */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "preload/mach6.h"

static int sent, at_own_point;
static void *deferred(void *arg)
{
  int after = 0;
  while (after < 200) {
    mach6_mark("deferred");
    free(malloc(10));
    munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
    mach6_done();
    mach6_frame();
    after += __atomic_load_n(&sent, __ATOMIC_ACQUIRE);
  }
  __atomic_fetch_add(&at_own_point, 1, __ATOMIC_RELAXED);
  pthread_testcancel();
  return arg;
}
static void *asynchronous(void *ready)
{
  mach6_mark("async");
  mach6_done();
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  __atomic_store_n((int *)ready, 1, __ATOMIC_RELEASE);
  for (;;) {
    mach6_mark("async");
    mach6_done();
  }
  return NULL;
}

int main(void)
{
  pthread_t t[20];
  void *r;
  int cancelled = 0;
  for (int round = 0; round < 10; round++) {
    __atomic_store_n(&sent, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < 20; i++) pthread_create(&t[i], NULL, deferred, NULL);
    for (int i = 0; i < 20; i++) pthread_cancel(t[i]);
    __atomic_store_n(&sent, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 20; i++) pthread_join(t[i], &r), cancelled += r == PTHREAD_CANCELED;
  }
  printf("deferred %d at their own point %d\n", cancelled, at_own_point);
  cancelled = 0;
  for (int i = 0; i < 800; i++) {
    int ready = 0;
    pthread_create(&t[0], NULL, asynchronous, &ready);
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) sched_yield();
    if (i % 4 == 0) usleep(100);
    pthread_cancel(t[0]);
    pthread_join(t[0], &r);
    cancelled += r == PTHREAD_CANCELED;
  }
  printf("asynchronous %d\n", cancelled);
  return 0;
}
