/* causes.c - planted causes of late frames, each in every Nth frame: what only the kernel can tell apart.
 *
 *   lock       a thread holds a lock and sleeps; the main thread wants it                  off CPU, in futex
 *   neighbour  another process computes on the main thread's CPU while it computes too     could run, has no CPU
 *   cold       a file is mapped and touched whose pages are not in memory                  off CPU, in page faults
 *   calls      many small system calls                                                     on CPU, in the kernel
 *
 * Promise: nothing of it touches the world. The neighbour is started before there is any thread, and ends with the
 * game.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/mach6.h"
#include "sample.h"

#define NEIGHBOURS 3 /* with so many on one CPU, the main thread waits for three quarters of the time */
#define PAGE 4096u
#define STRIDE (1u << 20) /* the kernel reads ahead in steps: so the disk takes the time, and not the faults */

static struct {
  pthread_t holder;
  int has_holder;
  unsigned hold_ms;
  sem_t go, held;
  pthread_mutex_t lock;
  pid_t neighbour;
  int order; /* the pipe to it */
  int cold;  /* the file */
  size_t cold_bytes;
} c = {.lock = PTHREAD_MUTEX_INITIALIZER, .order = -1, .cold = -1};

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static void spin(double seconds)
{
  for (double until = now() + seconds; now() < until;)
    for (volatile unsigned i = 0; i < 20000; i++) {}
}

/* ---- the lock ---------------------------------------------------------------------------------------------------- */

static void *holder(void *unused)
{
  (void)unused;
  pthread_setname_np(pthread_self(), "holder");
  for (;;) {
    while (sem_wait(&c.go)) {}
    if (c.hold_ms == 0) return NULL;
    pthread_mutex_lock(&c.lock);
    sem_post(&c.held);
    struct timespec t = {c.hold_ms / 1000, (long)(c.hold_ms % 1000) * 1000000};
    nanosleep(&t, NULL);
    pthread_mutex_unlock(&c.lock);
  }
}

static void want_lock(unsigned ms)
{
  mach6_mark("lock");
  c.hold_ms = ms;
  sem_post(&c.go);
  while (sem_wait(&c.held)) {}
  pthread_mutex_lock(&c.lock);
  pthread_mutex_unlock(&c.lock);
  mach6_done();
}

/* ---- the neighbour ----------------------------------------------------------------------------------------------- */

struct order {
  int cpu;
  double seconds;
};
static void *compute(void *arg)
{
  const struct order *o = arg;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((unsigned)o->cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
  spin(o->seconds);
  return NULL;
}

static void be_neighbour(int from)
{
  struct order o;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "neighbour");
  while (read(from, &o, sizeof o) == (ssize_t)sizeof o) {
    pthread_t t[NEIGHBOURS];
    int n = 0;
    while (n < NEIGHBOURS && pthread_create(&t[n], NULL, compute, &o) == 0) n++;
    while (n-- > 0) pthread_join(t[n], NULL);
  }
  _exit(0);
}

static void share_the_cpu(unsigned ms)
{
  cpu_set_t before, one;
  struct order o = {sched_getcpu(), ms * 1e-3};
  mach6_mark("neighbour");
  sched_getaffinity(0, sizeof before, &before);
  CPU_ZERO(&one);
  CPU_SET((unsigned)o.cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
  if (write(c.order, &o, sizeof o) == (ssize_t)sizeof o) spin(o.seconds);
  sched_setaffinity(0, sizeof before, &before);
  mach6_done();
}

/* ---- the cold file ----------------------------------------------------------------------------------------------- */

/* 0 when none of its pages is in memory any more. */
static int make_cold(void)
{
  fsync(c.cold);
  posix_fadvise(c.cold, 0, 0, POSIX_FADV_DONTNEED);
  void *p = mmap(NULL, c.cold_bytes, PROT_READ, MAP_SHARED, c.cold, 0);
  if (p == MAP_FAILED) return -1;
  size_t pages = c.cold_bytes / PAGE, there = 0;
  unsigned char *in = malloc(pages);
  if (in && mincore(p, c.cold_bytes, in) == 0)
    for (size_t i = 0; i < pages; i++) there += in[i] & 1;
  else there = pages;
  free(in);
  munmap(p, c.cold_bytes);
  return there * 10 > pages ? -1 : 0;
}

static int open_cold(size_t bytes)
{
  const char *folder = getenv("TMPDIR");
  char path[4096], block[PAGE];
  snprintf(path, sizeof path, "%s/mach6-sample.XXXXXX", folder && *folder ? folder : "/tmp");
  c.cold = mkostemp(path, O_CLOEXEC);
  if (c.cold < 0) return fprintf(stderr, "mach6-sample: %s: %s\n", path, strerror(errno)), -1;
  unlink(path);
  c.cold_bytes = bytes;
  for (size_t at = 0; at < bytes; at += PAGE) {
    memset(block, (int)(at / PAGE), PAGE);
    if (write(c.cold, block, PAGE) != (ssize_t)PAGE)
      return fprintf(stderr, "mach6-sample: %s: %s\n", path, strerror(errno)), -1;
  }
  if (make_cold() == 0) return 0;
  fprintf(stderr,
          "mach6-sample: --cold: %s cannot be made cold: its file system keeps it in memory (TMPDIR says where)\n",
          path);
  return -1;
}

static void touch_cold(void)
{
  mach6_mark("cold");
  unsigned char *p = mmap(NULL, c.cold_bytes, PROT_READ, MAP_SHARED, c.cold, 0);
  if (p != MAP_FAILED) {
    volatile unsigned sum = 0;
    for (size_t at = 0; at < c.cold_bytes; at += STRIDE) sum += p[at];
    munmap(p, c.cold_bytes);
  }
  mach6_done();
}

/* ---- system calls ------------------------------------------------------------------------------------------------ */

static void make_calls(unsigned n)
{
  char text[4096];
  mach6_mark("calls");
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  for (unsigned i = 0; i < n; i++)
    if (pread(fd, text, sizeof text, 0) < 0) break;
  if (fd >= 0) close(fd);
  mach6_done();
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int due(const struct planted *p, uint64_t frame) { return p->amount && (frame + 1) % p->every == 0; }

int causes_fork(const struct options *o)
{
  int ends[2];
  if (!o->neighbour.amount) return 0;
  if (pipe2(ends, O_CLOEXEC)) return -1;
  c.neighbour = fork();
  if (c.neighbour == 0) {
    close(ends[1]);
    be_neighbour(ends[0]);
  }
  close(ends[0]);
  c.order = ends[1];
  return c.neighbour < 0 ? -1 : 0;
}

int causes_start(const struct options *o)
{
  if (o->lock.amount) {
    if (sem_init(&c.go, 0, 0) || sem_init(&c.held, 0, 0) || pthread_create(&c.holder, NULL, holder, NULL)) return -1;
    c.has_holder = 1;
  }
  return o->cold.amount ? open_cold((size_t)o->cold.amount << 20) : 0;
}

void causes_frame(const struct options *o, uint64_t frame)
{
  if (due(&o->lock, frame)) want_lock(o->lock.amount);
  if (due(&o->neighbour, frame)) share_the_cpu(o->neighbour.amount);
  if (due(&o->calls, frame)) make_calls(o->calls.amount);
  if (due(&o->cold, frame)) touch_cold();
}

void causes_after(const struct options *o, uint64_t frame)
{
  if (due(&o->cold, frame)) make_cold();
}

void causes_stop(void)
{
  if (c.has_holder) {
    c.hold_ms = 0;
    sem_post(&c.go);
    pthread_join(c.holder, NULL);
  }
  if (c.neighbour > 0) {
    close(c.order);
    kill(c.neighbour, SIGKILL);
    waitpid(c.neighbour, NULL, 0);
  }
  if (c.cold >= 0) close(c.cold);
}
