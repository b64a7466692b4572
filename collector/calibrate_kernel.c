/* calibrate_kernel.c - see calibrate_kernel.h. */
#include "calibrate_kernel.h"

#include <link.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../shm/clock.h"
#include "kernel_probe.h"

#define REPEATS 4
#define PASSES 8 /* to the other thread and back, in one burst: short for the same reason */
#define BURSTS 10
#define HITS 60        /* of the probe */
#define SPIN_NS 200000 /* of work, in which samples are taken: short, so that one of the repeats is not disturbed */
#define EVERY_NS 50000u
#define RING_PAGES 64u /* more than that work brings */

/* A difference of two fastest times, of one of `n`; not above zero: the machine was too busy to tell. */
static double each(double with, double without, double n)
{
  double ns = (with - without) / n;
  return n > 0 && ns > 0 && ns < 1e6 ? ns : NAN;
}
static void take_less(double *best, uint64_t from)
{
  double ns = (double)(m6_monotonic_ns() - from);
  if (ns < *best) *best = ns;
}

/* ---- switches ------------------------------------------------------------------------------------------------------
 * */

static struct {
  int turn, over; /* whose turn it is: 0 this thread's, 1 the other's */
} ball;
static void give(int to)
{
  m6_publish(&ball.turn, to);
  syscall(SYS_futex, &ball.turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
static void await(int me)
{
  while (m6_observe(&ball.turn) != me) syscall(SYS_futex, &ball.turn, FUTEX_WAIT_PRIVATE, !me, NULL, NULL, 0);
}
static void *other(void *arg)
{
  (void)arg;
  for (;;) {
    await(1);
    if (m6_observe(&ball.over)) return NULL;
    give(0);
  }
}
static void passes(double *best)
{
  for (int b = 0; b < BURSTS; b++) {
    uint64_t from = m6_monotonic_ns();
    for (int i = 0; i < PASSES; i++) {
      give(1);
      await(0);
    }
    take_less(best, from);
  }
}

static double record(void)
{
  cpu_set_t all, one;
  pthread_t t;
  double with = INFINITY, without = INFINITY;
  if (sched_getaffinity(0, sizeof all, &all)) return NAN;
  CPU_ZERO(&one);
  CPU_SET((unsigned)sched_getcpu(), &one); /* both threads, so that each turn is a switch */
  if (sched_setaffinity(0, sizeof one, &one) || pthread_create(&t, NULL, other, NULL)) return NAN;
  struct m6_fault fault;
  struct m6_switches *s;
  passes(&without);
  if (m6_switches_open(getpid(), &s, &fault) == 0) {
    passes(&with);
    m6_switches_close(s);
    passes(&without);
  }
  m6_publish(&ball.over, 1);
  give(1);
  pthread_join(t, NULL);
  sched_setaffinity(0, sizeof all, &all);
  return isfinite(with) ? each(with, without, 2 * PASSES) : NAN;
}

/* ---- samples -------------------------------------------------------------------------------------------------------
 * */

static uint64_t rounds;
static void spin(void)
{
  volatile uint64_t x = 1;
  for (uint64_t i = 0; i < rounds; i++) x = x * 3 + 1;
}

/* How many records of samples a ring of this process holds; it is emptied. */
static unsigned samples_in(struct perf_event_mmap_page *page, size_t bytes)
{
  unsigned n = 0;
  const char *data = (const char *)page + sysconf(_SC_PAGESIZE);
  uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail;
  while (at < head) { /* records are 8-aligned, so a header is never split */
    const struct perf_event_header *h = (const void *)(data + (at & (bytes - 1)));
    if (h->size < sizeof *h) break;
    n += h->type == PERF_RECORD_SAMPLE;
    at += h->size;
  }
  __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
  return n;
}

static double sample(uint64_t every_ns, int stack)
{
  struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                 .size = sizeof attr,
                                 .config = PERF_COUNT_SW_CPU_CLOCK,
                                 .sample_period = every_ns,
                                 .disabled = 1,
                                 .exclude_kernel = 1,
                                 .exclude_hv = 1,
                                 .exclude_callchain_kernel = 1};
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
  if (stack) attr.sample_type |= PERF_SAMPLE_STACK_USER, attr.sample_stack_user = M6_SAMPLES_STACK_BYTES;
  attr.watermark = 1, attr.wakeup_watermark = ~0u;
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = RING_PAGES * page;
  int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  void *ring = fd < 0 ? MAP_FAILED : mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  double with = INFINITY, without = INFINITY, taken = 0;
  for (int i = 0; ring != MAP_FAILED && i < REPEATS; i++) {
    uint64_t from = m6_monotonic_ns();
    spin();
    take_less(&without, from);
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    from = m6_monotonic_ns();
    spin();
    double before = with;
    take_less(&with, from);
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    unsigned n = samples_in(ring, bytes);
    if (with < before) taken = n;
  }
  if (ring != MAP_FAILED) munmap(ring, bytes + page);
  if (fd >= 0) close(fd);
  return isfinite(with) ? each(with, without, taken) : NAN;
}

static void size_work(void)
{
  double ns = INFINITY;
  rounds = 20000;
  for (int i = 0; i < REPEATS; i++) {
    uint64_t from = m6_monotonic_ns();
    spin();
    take_less(&ns, from);
  }
  rounds = ns > 0 ? (uint64_t)((double)rounds * SPIN_NS / ns) : rounds;
}

/* ---- a probe
 * --------------------------------------------------------------------------------------------------------- */

void m6_calibrated(void);
__attribute__((noinline)) void m6_calibrated(void)
{
#if defined(__x86_64__)
  __asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0, 0" ::: "memory"); /* as the shim's places are (preload/frame_probe.S) */
#else
  __asm__ volatile("" ::: "memory");
#endif
}

/* Where in this program's file that is. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
  (void)size;
  uint64_t at = (uint64_t)(uintptr_t)m6_calibrated - info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type == PT_LOAD && at >= p->p_vaddr && at < p->p_vaddr + p->p_filesz)
      *(uint64_t *)arg = at - p->p_vaddr + p->p_offset;
  }
  return 1; /* the first one is the program */
}

static void hits(double *best)
{
  uint64_t from = m6_monotonic_ns();
  for (int i = 0; i < HITS; i++) m6_calibrated();
  take_less(best, from);
}

static double probe(void)
{
  struct m6_probe p;
  struct m6_fault fault;
  uint64_t offset = 0;
  double with = INFINITY, without = INFINITY;
  dl_iterate_phdr(find_offset, &offset);
  hits(&without);
  /* By the link alone: a perf event's takes tens of milliseconds to let go of. */
  if (!offset || m6_probe_open_as(&p, M6_UPROBE_MULTI, "/proc/self/exe", offset, getpid(), &fault)) return NAN;
  for (int i = 0; i < REPEATS; i++) hits(&with);
  uint64_t counted = m6_probe_read(&p, NULL);
  m6_probe_close(&p);
  return counted ? each(with, without, HITS) : NAN;
}

void m6_calibrate_kernel(struct m6_kernel_measured *m)
{
  size_work();
  m->record = record();
  m->sample = sample(EVERY_NS, 0);
  m->stack = sample(EVERY_NS, 1);
  m->probe = probe();
}
