/* kernel_frames_kept.h - for tests of frame boundaries: the records that came, whether their books close, and what a thread itself says
 * beside a boundary. With kernel_phases.h.
 */
#ifndef KERNEL_FRAMES_KEPT_H
#define KERNEL_FRAMES_KEPT_H

#include <sys/resource.h>

#include "collector/kernel_frames.h"
#include "kernel_phases.h"

/* A boundary of --frame-symbol's kind. */
__attribute__((noinline, used)) void frame_tick(void);
void frame_tick(void) { __asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0, 0" ::: "memory"); }

/* The thread's own word beside a boundary. */
struct word {
  uint64_t begun_ns, mono_ns, cpu_ns, delay_ns; /* begun: before the first of them was read */
  long minor, major, voluntary, involuntary;
};
struct note {
  struct word before, after; /* the boundary */
};
static inline struct word word(int schedstat)
{
  struct word w;
  struct rusage r;
  char text[96] = "";
  unsigned long long run = 0, delay = 0;
  uint64_t begun = clock_ns(CLOCK_MONOTONIC);
  if (pread(schedstat, text, sizeof text - 1, 0) > 0) sscanf(text, "%llu %llu", &run, &delay);
  getrusage(RUSAGE_THREAD, &r);
  w = (struct word){.begun_ns = begun,
                    .delay_ns = delay,
                    .minor = r.ru_minflt,
                    .major = r.ru_majflt,
                    .voluntary = r.ru_nvcsw,
                    .involuntary = r.ru_nivcsw};
  w.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  w.mono_ns = clock_ns(CLOCK_MONOTONIC);
  return w;
}

/* ---- what came -------------------------------------------------------------------------------------------------- */
static struct m6_kernel_frame *frames;
static unsigned frame_count, frames_most;
static inline void keep_most(unsigned most)
{
  frames = calloc(most, sizeof *frames);
  frames_most = frames ? most : 0;
}
static inline void keep(const struct m6_kernel_frame *f, void *arg)
{
  (void)arg;
  if (frame_count < frames_most) frames[frame_count++] = *f;
}
static inline uint64_t off_sum(const struct m6_kernel_reading *r)
{
  uint64_t sum = 0;
  for (int i = 0; i < M6_OFF_CAUSES; i++) sum += r->off_ns[i];
  return sum;
}
static inline int fell(const struct m6_kernel_reading *a, const struct m6_kernel_reading *b)
{
  const uint64_t *x = (const uint64_t *)a, *y = (const uint64_t *)b;
  int n = 0;
  for (size_t i = 0; i < sizeof *a / 8; i++) n += y[i] < x[i];
  return n;
}
/* Frames whose times do not add up, and readings that went back. */
static inline void check_books(const char *mode, const char *what, unsigned from, unsigned to)
{
  int open = 0, back = 0;
  for (unsigned i = from; i < to; i++) {
    const struct m6_kernel_reading *e = &frames[i].entry, *before = i > from ? &frames[i - 1].entry : e;
    uint64_t took = e->time_ns - before->time_ns;
    open += e->on_ns - before->on_ns + e->wait_ns - before->wait_ns + off_sum(e) - off_sum(before) != took;
    back += fell(before, e);
  }
  check(to > from && open == 0, "%s: %s: on, waiting and off add up to the time in each of %u intervals", mode, what,
        to - from);
  check(back == 0, "%s: %s: no reading goes back", mode, what);
}

/* Until the child is so far: 0 when it ended before, or never came there. */
static inline int arrive(pid_t child, const int *arrived, int at_least)
{
  for (int i = 0; i < 6000 && __atomic_load_n(arrived, __ATOMIC_ACQUIRE) < at_least; i++, usleep(10000))
    if (waitpid(child, NULL, WNOHANG) != 0) return 0;
  return __atomic_load_n(arrived, __ATOMIC_ACQUIRE) >= at_least;
}

#endif
