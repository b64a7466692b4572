/* calibrate.c - see calibrate.h. */
#include "calibrate.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shm/sites.h"
#include "calibrate_kernel.h"
#include "stats_targets.h"

#define KERNEL_TOO "MACH6_CALIBRATE_KERNEL" /* the kernel side's events, too */

/* ---- this side --------------------------------------------------------------------------------------------------- */

static int open_shim(void)
{
  static const char *const places[] = {"libmach6.so", "../lib/libmach6.so", "../lib/mach6/libmach6.so"};
  const char *named = getenv("MACH6_SHIM");
  if (named && named[0]) return open(named, O_PATH);
  char path[4096 + 64];
  ssize_t n = readlink("/proc/self/exe", path, 4096);
  while (n > 0 && path[n - 1] != '/') n--;
  if (n <= 0) return -1;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    strcpy(path + n, places[i]);
    int fd = open(path, O_PATH);
    if (fd >= 0) return fd;
  }
  return -1;
}

#define CALIBRATE_FDS 64 /* it is started before much is open */

void m6_calibrate_start(struct m6_calibration *c, int kernel)
{
  memset(c, 0, sizeof *c);
  c->price = (struct m6_price){NAN, NAN, NAN, NAN};
  c->kernel = (struct m6_kernel_measured){NAN, NAN, NAN, NAN};
  c->pipe = -1;
  int shim = open_shim(), ends[2];
  if (shim < 0) return;
  if (pipe2(ends, O_CLOEXEC) != 0) {
    close(shim);
    return;
  }
  c->child = fork();
  if (c->child == 0) {
    /* By descriptor: a space or a colon in the path would end it there. */
    char preload[48];
    snprintf(preload, sizeof preload, "LD_PRELOAD=/proc/self/fd/%d", shim);
    char *const argv[] = {(char *)"mach6-collector", (char *)M6_CALIBRATE_OPTION, NULL};
    char *const envp[] = {preload, kernel ? (char *)KERNEL_TOO "=1" : NULL, NULL};
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, 0);
    dup2(nothing, 2);
    dup2(ends[1], 1);
    /* Nothing of ours stays open in it: whoever kills the collector may find this child before its exec, where it would
     * hold on to locks, pipes and the control socket as if the collector still lived. */
    for (int fd = 3; fd < CALIBRATE_FDS; fd++)
      if (fd != shim) close(fd);
    /* Never in the game's way: it has the moments that nobody else wants. */
    sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve("/proc/self/exe", argv, envp);
    _exit(127);
  }
  close(shim);
  close(ends[1]);
  if (c->child < 0) {
    c->child = 0;
    close(ends[0]);
    return;
  }
  c->pipe = ends[0];
}

void m6_calibrate_poll(struct m6_calibration *c, int ms)
{
  if (ms > 0 && c->child != 0) /* now somebody waits for it */
    sched_setscheduler(c->child, SCHED_OTHER, &(struct sched_param){0});
  while (c->child != 0) {
    struct pollfd p = {c->pipe, POLLIN, 0};
    if (poll(&p, 1, ms) <= 0) return;
    ssize_t n = read(c->pipe, c->text + c->got, sizeof c->text - 1 - c->got);
    if (n > 0) {
      c->got += (size_t)n;
      continue;
    }
    c->text[c->got] = 0;
    struct m6_price price = {NAN, NAN, NAN, NAN};
    struct m6_kernel_measured k = {NAN, NAN, NAN, NAN};
    const char *kernel = strstr(c->text, "kernel");
    if (kernel && sscanf(kernel, "kernel %lf %lf %lf %lf", &k.record, &k.sample, &k.stack, &k.probe) == 4)
      c->kernel = k;
    if (sscanf(c->text, "%lf %lf %lf %lf", &price.pair, &price.scope, &price.frame, &price.sample) >= 3 &&
        price.pair > 0 && price.scope > 0 && price.frame > 0)
      c->price = price;
    m6_calibrate_stop(c);
  }
}

void m6_calibrate_stop(struct m6_calibration *c)
{
  if (c->child == 0) return;
  kill(c->child, SIGKILL); /* done, or too slow */
  waitpid(c->child, NULL, 0);
  if (isnan(c->price.pair)) m6_reap(); /* then its segment is still there */
  close(c->pipe);
  c->child = 0;
  c->pipe = -1;
}

/* ---- the other side ---------------------------------------------------------------------------------------------- */

#define PAIRS 4096
#define SCOPES 256
#define FRAMES 64
#define SAMPLED 64
#define REPEATS 15 /* the fastest counts: everything else is somebody else's time */

static struct m6_header *own_segment(char path[128])
{
  DIR *d = opendir(M6_SEGMENT_DIR);
  struct dirent *e;
  struct m6_header *h = NULL;
  while (d && h == NULL && (e = readdir(d)) != NULL) {
    struct m6_target t;
    pid_t pid;
    uint64_t load;
    if (!m6_target_parse(e->d_name, &pid, &load) || pid != getpid()) continue;
    m6_target_look(e->d_name, 0, &t);
    if (t.problem != M6_TARGET_FINE) continue;
    snprintf(path, 128, M6_SEGMENT_DIR "/%s", t.file);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (p != MAP_FAILED) h = p;
  }
  if (d) closedir(d);
  return h;
}

static void consume(struct m6_header *h)
{
  for (uint32_t i = 0; i < M6_RINGS && i < m6_peek(&h->rings_used); i++) {
    struct m6_ring_head *r = m6_segment_ring(h, i);
    m6_ring_release(r, m6_observe(&r->claimed));
  }
}

static void consume_stacks(struct m6_header *h)
{
  struct m6_site_head *s = m6_site_head(h);
  for (uint32_t i = 0; m6_peek(&h->sites_used) && i < M6_STACK_GRANULES / 64; i++) m6_poke(&s->taken[i], 0);
}

static void (*mark)(const char *), (*done)(void), (*frame)(void);

static void pairs(void)
{
  for (int i = 0; i < PAIRS; i++) {
    void *p = malloc(64);
    __asm__ volatile("" : : "r"(p) : "memory");
    free(p);
  }
}
static void sampled(void)
{
  for (int i = 0; i < SAMPLED; i++) {
    void *p = malloc(64);
    __asm__ volatile("" : : "r"(p) : "memory");
    free(p);
  }
}
static void scopes(void)
{
  for (int i = 0; i < SCOPES; i++) {
    mark("calibrate");
    done();
  }
}
static void frames(void)
{
  for (int i = 0; i < FRAMES; i++) frame();
}

static double fastest(void (*work)(void), unsigned n, struct m6_header *h)
{
  double best = INFINITY;
  for (int i = 0; i < REPEATS; i++) {
    consume(h);
    consume_stacks(h);
    uint64_t from = m6_monotonic_ns();
    work();
    double ns = (double)(m6_monotonic_ns() - from) / n;
    if (ns < best) best = ns;
  }
  return best;
}

/* 0, and what the shim's operations cost on a line of its own. */
static int shim_prices(void)
{
  *(void **)&mark = dlsym(RTLD_DEFAULT, "mach6_mark");
  *(void **)&done = dlsym(RTLD_DEFAULT, "mach6_done");
  *(void **)&frame = dlsym(RTLD_DEFAULT, "mach6_frame");
  char path[128];
  struct m6_header *h = own_segment(path);
  if (h == NULL) return 1;
  int status = 1;
  if (mark && done && frame) {
    double inert = fastest(pairs, PAIRS, h);
    m6_poke(&h->heartbeat_ns, m6_monotonic_ns());
    m6_poke(&h->session, 1);
    m6_publish(&h->want, M6_WANT_ON);
    frame(); /* the shim looks at its control line here */
    if (m6_observe(&h->state) == M6_COLLECTING) {
      double pair = fastest(pairs, PAIRS, h) - inert;
      double scope = fastest(scopes, SCOPES, h), boundary = fastest(frames, FRAMES, h);
      if (pair > 0 && scope > 0 && boundary > 0) { /* else the machine was too busy to tell: not known, not nothing */
        m6_poke(&h->site_interval, 1);
        pairs();                                                     /* the shim looks at it after so many bytes */
        double sample = fastest(sampled, SAMPLED, h) - pair - inert; /* a short stack's, and its end */
        printf("%.3f %.3f %.3f %.3f\n", pair, scope, boundary, sample > 0 ? sample : NAN);
        status = 0;
      }
    }
  }
  unlink(path);
  return status;
}

int m6_calibrate_main(void)
{
  int status = shim_prices();
  if (getenv(KERNEL_TOO) == NULL) return status;
  struct m6_kernel_measured k;
  m6_calibrate_kernel(&k);
  printf("kernel %.0f %.0f %.0f %.0f\n", k.record, k.sample, k.stack, k.probe);
  return status;
}
