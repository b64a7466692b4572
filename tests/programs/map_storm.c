/* map_storm.c - four threads map and give back memory at random, by every call there is, and say what is left of it by function:
 * map_storm SEED OPS [GO END]
 * Regions are in anybody's hands, one thread's at a time. Of each of their pages it is kept which of four functions has mapped it; holes are
 * not touched again, as they may be another's. The threads have no scopes and hardly allocate. What should be left is checked with the kernel.
 * GO and END are files: it begins when the one is there, gives back all but the break, and ends when the other is there. Before, it maps a page now and then, so that a session
 * can begin.
 * Prints "truth map_N BYTES" of each function, "truth all BYTES", and "calls N" that were made.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define PAGE 4096ul
#define THREADS 4
#define REGIONS 48
#define PAGES 64
#define SITES 4
#define NOBODY 255

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* What maps: functions that make all kinds of calls, each called through so many others that its sites are few. */
enum call { MAP, RESIZE, MOVE, COPY, BREAK };
struct want {
  enum call how;
  void *at;
  unsigned long old, n;
  void *to;
};
#define SITE(name)                                                                                                     \
  static APART void *name(const struct want *w)                                                                        \
  {                                                                                                                    \
    static const int how[] = {0, MREMAP_MAYMOVE, MREMAP_MAYMOVE | MREMAP_FIXED, MREMAP_MAYMOVE | MREMAP_DONTUNMAP};    \
    void *p;                                                                                                           \
    if (w->how == MAP)                                                                                                 \
      p = mmap(w->at, w->n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (w->at ? MAP_FIXED : 0), -1, 0);     \
    else if (w->how == BREAK) p = sbrk((intptr_t)w->n);                                                                \
    else p = mremap(w->at, w->old, w->n, how[w->how], w->to);                                                          \
    __asm__ volatile("" : "+r"(p)); /* no tail call */                                                                 \
    return p;                                                                                                          \
  }
SITE(map_0)
SITE(map_1)
SITE(map_2)
SITE(map_3)
static void *(*const site[SITES])(const struct want *) = {map_0, map_1, map_2, map_3};

static APART void *from_afar(int depth, unsigned by, const struct want *w)
{
  void *p = depth ? from_afar(depth - 1, by, w) : site[by](w);
  __asm__ volatile("" : "+r"(p));
  return p;
}
#define CALL(by, ...) from_afar(8, by, &(struct want){__VA_ARGS__})

static struct region {
  pthread_mutex_t lock;
  char *at;
  unsigned pages, one; /* 0: there is none; one: as one call has left it, so that mremap takes it */
  unsigned char owner[PAGES];
} region[REGIONS];
static pthread_mutex_t break_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  uintptr_t start, end; /* its first and last whole page's end; the break itself */
  unsigned char owner[4096];
} brk_;
static unsigned calls;
static unsigned long ops;

static unsigned draw(uint64_t *random, unsigned n)
{
  *random = *random * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(*random >> 33) % n;
}
static void die(const char *what)
{
  perror(what);
  exit(1);
}
/* A run of pages that are there: its first, and how many. */
static unsigned run_of(const struct region *r, uint64_t *random, unsigned *n)
{
  unsigned from = draw(random, r->pages), most = 0;
  while (from + most < r->pages && r->owner[from + most] != NOBODY) most++;
  *n = most ? 1 + draw(random, most) : 0;
  return from;
}

static void give_back(struct region *r, unsigned from, unsigned n)
{
  if (munmap(r->at + from * PAGE, n * PAGE - draw(&(uint64_t){from}, PAGE)))
    die("munmap"); /* a part of a page is all of it */
  memset(r->owner + from, NOBODY, n);
  r->one = 0;
  while (r->pages && r->owner[r->pages - 1] == NOBODY) r->pages--;
}
static void give_back_all(struct region *r)
{
  for (unsigned from = 0, n; from < r->pages; from += n) {
    for (n = 1; from + n < r->pages && (r->owner[from + n] == NOBODY) == (r->owner[from] == NOBODY);) n++;
    if (r->owner[from] != NOBODY) give_back(r, from, n);
  }
}
static void take(struct region *r, void *p, unsigned pages, unsigned by)
{
  if (p == MAP_FAILED) die("mmap or mremap");
  r->at = p;
  r->pages = pages;
  r->one = 1;
  memset(r->owner, (int)by, pages);
}

static void work_on(struct region *r, uint64_t *random)
{
  unsigned by = draw(random, SITES), n, from, to = 1 + draw(random, PAGES);
  if (r->pages == 0) {
    take(r, CALL(by, MAP, NULL, 0, to * PAGE, NULL), to, by);
    return;
  }
  switch (draw(random, 8)) {
  case 0: /* some of it, anywhere */
  case 1:
    if ((from = run_of(r, random, &n), n)) give_back(r, from, n);
    return;
  case 2: /* something else in the place of some of it */
  case 3:
    if ((from = run_of(r, random, &n), !n)) return;
    if (CALL(by, MAP, r->at + from * PAGE, 0, n * PAGE - 1, NULL) == MAP_FAILED) die("MAP_FIXED");
    memset(r->owner + from, (int)by, n);
    r->one = 0;
    return;
  case 4: /* larger, smaller, elsewhere */
    if (r->one) take(r, CALL(by, RESIZE, r->at, r->pages * PAGE, to * PAGE, NULL), to, by);
    return;
  case 5: /* onto what another one has mapped */
    if (!r->one) {
      give_back_all(r);
      return;
    }
    char *place = CALL((by + 1) % SITES, MAP, NULL, 0, r->pages * PAGE, NULL);
    if (place == MAP_FAILED) die("mmap");
    take(r, CALL(by, MOVE, r->at, r->pages * PAGE, r->pages * PAGE, place), r->pages, by);
    return;
  case 6: /* leaves the old place mapped */
    if (!r->one) return;
    char *copy = CALL(by, COPY, r->at, r->pages * PAGE, r->pages * PAGE, NULL);
    if (copy == MAP_FAILED) return; /* an older kernel */
    if (munmap(r->at, r->pages * PAGE)) die("munmap");
    take(r, copy, r->pages, by);
    return;
  default: /* calls that fail */
    if (munmap(r->at + 1, PAGE) == 0) die("munmap of no page");
    if (CALL(by, RESIZE, r->at + 1, PAGE, 2 * PAGE, NULL) != MAP_FAILED) die("mremap of no page");
    if (mmap(r->at + 1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) die("mmap");
  }
}

#define UP(n) (((n) + PAGE - 1) & ~(PAGE - 1))
static void work_on_break(uint64_t *random)
{
  unsigned by = draw(random, SITES), n = 1 + draw(random, 5 * PAGE);
  uintptr_t was = brk_.end;
  if ((uintptr_t)sbrk(0) != was) return; /* somebody else's begins there: ours stays as it is */
  if (draw(random, 2) && was - brk_.start > n) {
    if (draw(random, 2) ? sbrk(-(intptr_t)n) == (void *)-1 : brk((void *)(was - n)) != 0) die("break");
    brk_.end -= n;
    return;
  }
  if (UP(was + n) - UP(brk_.start) > sizeof brk_.owner * PAGE) return;
  if (CALL(by, BREAK, NULL, 0, n, NULL) != (void *)was) die("sbrk");
  brk_.end += n;
  for (uintptr_t p = UP(was); p < UP(brk_.end); p += PAGE) brk_.owner[(p - UP(brk_.start)) / PAGE] = (unsigned char)by;
}

static void *storm(void *arg)
{
  uint64_t random = (uintptr_t)arg * 0x9e3779b97f4a7c15ull;
  for (unsigned long i = 0; i < ops; i++) {
    int b = draw(&random, 8) == 0;
    struct region *r = &region[draw(&random, REGIONS)];
    pthread_mutex_lock(b ? &break_lock : &r->lock);
    if (b) work_on_break(&random);
    else work_on(r, &random);
    pthread_mutex_unlock(b ? &break_lock : &r->lock);
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    if (i % 8 == 7) usleep(300); /* somebody has to read along */
  }
  return NULL;
}

int main(int argc, char **argv)
{
  static char line[4096];
  pthread_t thread[THREADS];
  uintptr_t seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
  unsigned long left[SITES] = {0}, all = 0;
  ops = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
  setvbuf(stdout, line, _IOFBF, sizeof line);
  for (int i = 0; i < REGIONS; i++) pthread_mutex_init(&region[i].lock, NULL);
  brk_.start = brk_.end = (uintptr_t)sbrk(0);
  while (argc > 3 && access(argv[3], F_OK)) {
    munmap(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE);
    usleep(1000);
  }
  for (uintptr_t i = 0; i < THREADS; i++)
    if (pthread_create(&thread[i], NULL, storm, (void *)(seed * THREADS + i + 1))) die("pthread_create");
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  for (int i = 0; argc > 4 && i < REGIONS; i++) give_back_all(&region[i]);
  for (int i = 0; i < REGIONS; i++)
    for (unsigned k = 0; k < region[i].pages; k++) {
      if (region[i].owner[k] == NOBODY) continue;
      if (msync(region[i].at + k * PAGE, PAGE, MS_ASYNC)) die("a page that should be there");
      left[region[i].owner[k]] += PAGE;
    }
  for (uintptr_t p = UP(brk_.start); p < UP(brk_.end); p += PAGE) left[brk_.owner[(p - UP(brk_.start)) / PAGE]] += PAGE;
  for (int i = 0; i < SITES; i++) printf("truth map_%d %lu\n", i, left[i]), all += left[i];
  printf("truth all %lu\ncalls %u\n", all, calls);
  fflush(stdout);
  while (argc > 4 && access(argv[4], F_OK)) usleep(1000);
}
