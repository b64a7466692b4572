/* leaderless - a game whose main thread leaves by pthread_exit: the process goes on, but /proc shows its leader as a zombie. Another thread
 * makes FRAMES frames of USEC microseconds, with one malloc and free each.
 *
 *   leaderless FRAMES USEC
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../preload/mach6.h"

static long frames, usec;

static void *play(void *arg)
{
  for (long n = 0; n < frames; n++) {
    mach6_mark("play");
    free(malloc(100));
    usleep((useconds_t)usec);
    mach6_done();
    mach6_frame();
  }
  printf("frames %ld\n", frames);
  fflush(stdout);
  return arg;
}

int main(int argc, char **argv)
{
  pthread_t thread;
  frames = argc > 1 ? atol(argv[1]) : 100;
  usec = argc > 2 ? atol(argv[2]) : 1000;
  if (pthread_create(&thread, NULL, play, NULL) != 0) return 1;
  pthread_exit(NULL);
}
