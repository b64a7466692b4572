/* signals - a 2 kHz timer whose handler marks, allocates and frees on a small alternate stack, while the main thread marks and
 * computes. A second thread reads the rings through its own mapping, as a collector would, and checks what it reads. */
/* flags: -fno-builtin */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "preload/mach6.h"
#include "shm/ring.h"

static volatile long handled, marks, stop;
static long read_marks, read_dones, torn, backwards, gaps, holes;

static void on_alarm(int n)
{
  (void)n;
  mach6_mark("handler");
  free(malloc(64));
  mach6_done();
  handled++;
}

static char *segment(void)
{
  char prefix[64], path[300];
  char *at = NULL;
  DIR *d = opendir("/dev/shm");
  snprintf(prefix, sizeof prefix, "mach6.%d.", getpid());
  for (struct dirent *e; d && (e = readdir(d));) {
    if (strncmp(e->d_name, prefix, strlen(prefix))) continue;
    snprintf(path, sizeof path, "/dev/shm/%s", e->d_name);
    int fd = open(path, O_RDWR);
    at = mmap(NULL, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
  }
  if (d) closedir(d);
  return at;
}

static void *consumer(void *arg)
{
  char *base = arg;
  struct m6_ring_head *head = (struct m6_ring_head *)(base + M6_OFF_RING_HEADS);
  struct m6_record *ring = (struct m6_record *)(base + m6_ring_offset(0)), r;
  uint64_t at = 0, clock = 0;
  unsigned depth = 0;
  for (int last = 0, patience = 0;;) {
    enum m6_ring_read got = m6_ring_read(head, ring, m6_ring_capacity(0), at, &r);
    if (got != M6_RING_RECORD) {
      if (got == M6_RING_HOLE && ++patience > 1000) {
        holes++;
        at++;
        patience = 0;
        continue;
      }
      m6_ring_release(head, at);
      if (got == M6_RING_EMPTY && last) return NULL;
      last = stop;
      usleep(100);
      continue;
    }
    patience = 0;
    at++;
    unsigned type = m6_word_type(r.word), d = m6_word_depth(r.word);
    backwards += r.clock < clock;
    clock = r.clock;
    if (type == M6_REC_MARK) {
      read_marks++;
      gaps += d > depth; /* a handler between a mark's count and its record: allowed, and rare */
      torn += d > 4 || m6_word_label(r.word) == 0;
      depth = d + 1;
    } else if (type == M6_REC_DONE) {
      read_dones++;
      torn += d > 4;
      depth = d;
    } else {
      torn += type != M6_REC_START && type != M6_REC_LOSS;
    }
  }
}

int main(void)
{
  static char small[4096 + 2048]; /* MINSIGSTKSZ is 2048; the processor's saved state comes on top */
  stack_t stack = {.ss_sp = small, .ss_size = sizeof small};
  size_t need = (size_t)sysconf(_SC_MINSIGSTKSZ) + 2048;
  if (need > sizeof small) stack.ss_sp = malloc(need), stack.ss_size = need;
  sigaltstack(&stack, NULL);
  struct sigaction a = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART};
  mach6_mark("before"); /* the main thread's slot and ring, the first of all */
  mach6_done();
  marks = 1;
  char *base = segment();
  pthread_t t;
  if (base) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_create(&t, NULL, consumer, base);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
  }
  sigaction(SIGALRM, &a, NULL);
  struct itimerval every = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &every, NULL);
  time_t end = time(NULL) + 3;
  double x = 1;
  while (time(NULL) < end)
    for (int i = 0; i < 20; i++) {
      mach6_mark("outer");
      mach6_mark("inner");
      for (int k = 0; k < 2000; k++) x = x * 1.0000001 + 1e-9;
      mach6_done();
      mach6_done();
      marks += 2;
    }
  every = (struct itimerval){0};
  setitimer(ITIMER_REAL, &every, NULL);
  stop = 1;
  if (base) pthread_join(t, NULL);
  printf("handled %s\n", handled > 1000 ? "many" : "few");
  fprintf(stderr, "x %f\nmade %ld\nread_marks %ld\nread_dones %ld\ntorn %ld\nbackwards %ld\ngaps %ld\nholes %ld\n", x,
          marks + handled, read_marks, read_dones, torn, backwards, gaps, holes);
  return 0;
}
