/* fills_shm.c - a program that finds /dev/shm full in the middle of its life. `fills_shm [FILE-TO-FILL-WITH]`
 *
 * A first part with two threads; then it fills /dev/shm by writing FILE to the last byte, and goes on with 60 threads, each with allocations,
 * scopes of labels of its own and frames; then it removes FILE and does so again. Prints how many of its own mallocs it made. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/mach6.h"

static pthread_barrier_t barrier; /* all of a part live at the same time */
static int part;
static unsigned long made;

static void *work(void *arg)
{
  char label[64];
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 200; i++) {
    snprintf(label, sizeof label, "part %d thread %ld step %d", part, (long)arg, i % 20);
    mach6_mark(label);
    void *volatile p = malloc(100);
    free(p);
    mach6_done();
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
  }
  pthread_barrier_wait(&barrier);
  return NULL;
}

static void threads(long n)
{
  pthread_t t[64];
  part++;
  pthread_barrier_init(&barrier, NULL, (unsigned)n);
  for (long i = 0; i < n; i++)
    if (pthread_create(&t[i], NULL, work, (void *)i)) abort();
  for (long i = 0; i < n; i++) pthread_join(t[i], NULL);
  pthread_barrier_destroy(&barrier);
  mach6_frame();
  mach6_frame();
}

int main(int argc, char **argv)
{
  static char page[4096];
  threads(2);
  int fd = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
  size_t step = sizeof page;
  while (fd >= 0 && step) /* to the last byte */
    if (write(fd, page, step) <= 0) step /= 2;
  threads(60);
  if (fd >= 0) {
    close(fd);
    unlink(argv[1]);
  }
  threads(30);
  printf("made %lu in %d parts\n", made, part);
  return 5;
}
