/* churn - 10,000 threads one after the other, then 2,000 detached ones at once, each with some allocations and scopes; says
 * how many maps and descriptors the process has before and after (on stderr: they are not the same from run to run). */
/* flags: -fno-builtin */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "preload/mach6.h"

static int running;
static void *work(void *arg)
{
  mach6_mark("work");
  for (int i = 0; i < 10; i++) free(malloc((size_t)(i * 10 + 1)));
  mach6_done();
  if (arg) __atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
  return NULL;
}
static int descriptors(void)
{
  int n = 0;
  DIR *d = opendir("/proc/self/fd");
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}
static int maps(void)
{
  int n = 0, c;
  FILE *f = fopen("/proc/self/maps", "r");
  while (f && (c = getc(f)) != EOF) n += c == '\n';
  if (f) fclose(f);
  return n;
}

int main(int argc, char **argv)
{
  int one_by_one = argc > 1 ? atoi(argv[1]) : 10000, at_once = argc > 2 ? atoi(argv[2]) : 2000;
  pthread_t t;
  pthread_attr_t detached;
  work(NULL);
  for (int i = 0; i < 10; i++) {
    pthread_create(&t, NULL, work, NULL);
    pthread_join(t, NULL);
  }
  int fds = descriptors(), before = maps();
  for (int i = 0; i < one_by_one; i++) {
    if (pthread_create(&t, NULL, work, NULL)) return 1;
    pthread_join(t, NULL);
  }
  int between = maps();
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&detached, 64 << 10);
  for (int i = 0; i < at_once; i++) {
    __atomic_fetch_add(&running, 1, __ATOMIC_RELAXED);
    while (pthread_create(&t, &detached, work, &running)) usleep(100);
  }
  while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) usleep(1000);
  usleep(200000);
  printf("descriptors %s\nmaps %s\n", descriptors() == fds ? "same" : "more", between - before <= 4 ? "same" : "more");
  fprintf(stderr, "maps %d, %d, %d\n", before, between, maps());
  return 0;
}
