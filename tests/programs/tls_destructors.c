/* tls_destructors - threads that free and allocate in their key destructors, in all four rounds; threads whose only event is
 * the last free of all. */
/* flags: -fno-builtin */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_key_t first, last;
static long rounds;

struct state {
  int round;
  void *block;
};
static void again(void *v)
{
  struct state *s = v;
  __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
  free(s->block);
  s->block = NULL;
  if (++s->round < 4) {
    s->block = malloc((size_t)(100 * s->round));
    pthread_setspecific(first, s);
  } else {
    free(s);
  }
}
static void only_free(void *v) { free(v); }

static void *busy(void *arg)
{
  struct state *s = calloc(1, sizeof *s);
  s->block = malloc(50);
  pthread_setspecific(first, s);
  free(malloc(20));
  return arg;
}
static void *idle(void *block)
{
  pthread_setspecific(last, block);
  return NULL;
}

int main(void)
{
  pthread_t t[8];
  pthread_key_create(&first, again);
  pthread_key_create(&last, only_free);
  for (int i = 0; i < 300; i++) {
    for (int k = 0; k < 8; k++) pthread_create(&t[k], NULL, k < 4 ? busy : idle, k < 4 ? NULL : malloc(64));
    for (int k = 0; k < 8; k++) pthread_join(t[k], NULL);
  }
  printf("rounds %ld\n", rounds);
  return 0;
}
