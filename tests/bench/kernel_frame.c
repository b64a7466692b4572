/* kernel_frame SHIM GRAPHICS - what the kernel side adds to a frame boundary: mach6_frame() and a present, in a child with the
 * shim, while nobody counts, and while the counters record frames; in turns. The counters' own switches cost nothing here: the
 * child does not sleep in its bursts.
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "collector/kernel_frames.h"
#include "preload/mach6.h"

enum { FRAMES = 500, ROUNDS = 15 };

/* The mean of a burst of boundaries, for each byte that is read. */
static int child_main(int in, int out)
{
  char what;
  unsigned (*swap)(void *, void *) = (unsigned (*)(void *, void *))dlsym(RTLD_DEFAULT, "eglSwapBuffers");
  bench_start();
  while (read(in, &what, 1) == 1) {
    uint64_t start = bench_ns();
    if (what == 'f')
      for (int i = 0; i < FRAMES; i++) mach6_frame();
    else
      for (int i = 0; swap && i < FRAMES; i++) swap((void *)1, (void *)2);
    double each = (double)(bench_ns() - start) / FRAMES;
    if (write(out, &each, sizeof each) != sizeof each) return 1;
  }
  return 0;
}

static double burst(const int to[2], const int from[2], char what)
{
  double each;
  bench_pause_ms(20);
  if (write(to[1], &what, 1) != 1 || read(from[0], &each, sizeof each) != sizeof each) exit(1);
  return each;
}

static void show(const char *name, const double *with, const double *without, double goal)
{
  double added[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) added[i] = with[i] - without[i];
  struct bench_spread s = bench_spread_of(added, ROUNDS), plain = bench_spread_of(without, ROUNDS);
  bench_line(name, s, "ns", "the same boundary while nobody counts", plain.median,
             (s.median + plain.median) / plain.median, BENCH_AT_MOST, goal);
}

int main(int argc, char **argv)
{
  int to[2], from[2];
  char preload[9000], pattern[64], text[900];
  double with[2][ROUNDS], without[2][ROUNDS];
  if (argc == 4 && strcmp(argv[1], "child") == 0) return child_main(atoi(argv[2]), atoi(argv[3]));
  if (argc != 3 || pipe(to) != 0 || pipe(from) != 0) return 2;
  snprintf(preload, sizeof preload, "%s:%s", argv[1], argv[2]);
  pid_t child = fork();
  if (child == 0) {
    char in[16], out[16];
    snprintf(in, sizeof in, "%d", to[0]);
    snprintf(out, sizeof out, "%d", from[1]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("LD_PRELOAD", preload, 1);
    setenv("MACH6_RUN", "be9c4", 1);
    execl("/proc/self/exe", "kernel_frame", "child", in, out, (char *)NULL);
    _exit(127);
  }
  burst(to, from, 'f');
  burst(to, from, 'p');
  struct m6_fault fault = {0};
  int err = 0;
  for (int r = 0; r < ROUNDS && !err; r++) {
    struct m6_counters *c;
    struct m6_counters_options o = {.tgids = &child, .count = 1, .frames = M6_FRAMES_SHIM};
    without[0][r] = burst(to, from, 'f');
    without[1][r] = burst(to, from, 'p');
    err = m6_counters_open(&c, &o, &fault);
    if (err) break;
    with[0][r] = burst(to, from, 'f');
    with[1][r] = burst(to, from, 'p');
    m6_counters_stop(c);
    if (m6_counters_frames(c, NULL, NULL) != 2 * FRAMES) err = fault.err = EPROTO;
    m6_counters_close(c);
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  glob_t g;
  snprintf(pattern, sizeof pattern, "/dev/shm/mach6.%d.*", (int)child);
  if (glob(pattern, 0, NULL, &g) == 0) {
    for (size_t i = 0; i < g.gl_pathc; i++) unlink(g.gl_pathv[i]);
    globfree(&g);
  }
  if (err) {
    fprintf(stderr, "bench: kernel_frame is left out: %s\n", m6_fault_text(&fault, text, sizeof text));
    return 0;
  }
  show("frame-kernel-explicit", with[0], without[0], 5000);
  show("frame-kernel-present", with[1], without[1], 5000);
  return 0;
}
