/* liblocks - another preload: counts mutexes that check for their owner as they are locked and unlocked, and says how many at the end. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int seen;

static void look(const pthread_mutex_t *m)
{
  if ((m->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK_NP) __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
}
int pthread_mutex_lock(pthread_mutex_t *m)
{
  static int (*next)(pthread_mutex_t *);
  if (!next) next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
  look(m);
  return next(m);
}
int pthread_mutex_unlock(pthread_mutex_t *m)
{
  static int (*next)(pthread_mutex_t *);
  if (!next) next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
  look(m);
  return next(m);
}
__attribute__((destructor)) static void end(void) { fprintf(stderr, "another preload saw %d\n", seen); }
