// free_errno - errno is the same before and after every way to give a block back, each as a thread's first event too.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include "preload/mach6.h"

static void *blocks[4];
static void release(int i)
{
  errno = EAGAIN;
  if (i < 2)
    free(blocks[i]);
  else if (i == 2)
    free(nullptr);
  else
    ::operator delete(blocks[3], std::size_t(64));
}
static void make()
{
  blocks[0] = malloc(24);
  blocks[1] = malloc(64 << 20);
  blocks[3] = ::operator new(64);
}
static void *first_event(void *arg)
{
  release(int(long(arg)));
  printf("thread %ld errno %s\n", long(arg), errno == EAGAIN ? "kept" : "changed");
  return nullptr;
}
static void *first_scope(void *)
{
  errno = EAGAIN;
  mach6_mark("first");
  mach6_done();
  printf("thread's first scope errno %s\n", errno == EAGAIN ? "kept" : "changed");
  return nullptr;
}

int main()
{
  make();
  for (int i = 0; i < 4; i++) {
    release(i);
    printf("main %d errno %s\n", i, errno == EAGAIN ? "kept" : "changed");
  }
  make();
  for (long i = 0; i < 5; i++) {
    pthread_t t;
    pthread_create(&t, nullptr, i < 4 ? first_event : first_scope, (void *)i);
    pthread_join(t, nullptr);
  }
  for (int i = 0; i < 10000; i++) { // the ring is full long before this ends, for nobody reads it
    mach6_mark("fill");
    mach6_done();
  }
  make();
  for (int i = 0; i < 4; i++) {
    release(i);
    printf("ring full %d errno %s\n", i, errno == EAGAIN ? "kept" : "changed");
  }
  return 0;
}
