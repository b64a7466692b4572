/* tls_load - dlopens every library named on the command line and touches their thread-local storage from 8 threads while
 * they allocate; a last argument of the form late:FILE is dlopened at the end, and may be refused. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int (*touch[64])(int);
static int touches;
static pthread_barrier_t ready, loaded;

static void *worker(void *arg)
{
  long bad = 0;
  pthread_barrier_wait(&ready);
  pthread_barrier_wait(&loaded);
  for (int round = 0; round < 20; round++)
    for (int i = 0; i < touches; i++) {
      void *p = malloc((size_t)(100 + i));
      bad += touch[i](i & 63) != (i & 63);
      free(p);
    }
  (void)arg;
  return (void *)bad;
}

int main(int argc, char **argv)
{
  pthread_t t[8];
  long bad = 0;
  pthread_barrier_init(&ready, NULL, 9);
  pthread_barrier_init(&loaded, NULL, 9);
  for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, worker, NULL);
  pthread_barrier_wait(&ready);
  for (int i = 1; i < argc && strncmp(argv[i], "late:", 5); i++) {
    void *h = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (!h) return printf("%s\n", dlerror()), 1;
    touch[touches++] = (int (*)(int))dlsym(h, "tls_touch");
  }
  pthread_barrier_wait(&loaded);
  for (int i = 0; i < 8; i++) {
    void *r;
    pthread_join(t[i], &r);
    bad += (long)r;
  }
  printf("libraries %d\nbad %ld\n", touches, bad);
  if (argc > 1 && !strncmp(argv[argc - 1], "late:", 5)) {
    void *h = dlopen(argv[argc - 1] + 5, RTLD_NOW);
    fprintf(stderr, "late %s\n", h ? "loaded" : dlerror());
    if (h) {
      void *(*m)(size_t) = (void *(*)(size_t))dlsym(h, "malloc");
      void *p = m ? m(100) : NULL;
      free(p);
    }
  }
  return bad != 0;
}
