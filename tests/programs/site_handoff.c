/* site_handoff - threads in a ring that hand blocks on: each frees or resizes what it got, and allocates at once what it hands on, so that
 * addresses come back at once in other threads' hands. site_handoff THREADS HANDOFFS [PAUSE [FILE]]
 *
 * Prints "truth giver_N COUNT BYTES" for each thread's own site, "truth resize COUNT BYTES" for all reallocs, and "truth keep COUNT
 * BYTES" for blocks of the same sizes that stay, one in 512. At the end nothing is left of the others. Some reallocs must fail, and their
 * block goes on. PAUSE: microseconds of sleep after every fourth hand-off of a thread. FILE: it waits until that is there, and maps a page
 * now and then, so that a session can begin. */
/* flags: -fno-builtin -fno-omit-frame-pointer */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "site_leaks.h"

#define THREADS 8
static void *_Atomic mailbox[THREADS];
static struct truth given[THREADS], resized[THREADS], kept[THREADS];
static uint32_t over[THREADS];
static unsigned threads = THREADS;
static uint64_t handoffs = 100000;
static useconds_t nap;

/* One function for each thread, so that each is a site of its own. */
#define GIVER(n)                                                                                                       \
  static APART void *giver_##n(size_t bytes) { return got(&given[n], malloc(bytes)); }
GIVER(0)
GIVER(1)
GIVER(2)
GIVER(3)
GIVER(4)
GIVER(5)
GIVER(6)
GIVER(7)
static void *(*const give[THREADS])(size_t) = {giver_0, giver_1, giver_2, giver_3, giver_4, giver_5, giver_6, giver_7};

static APART void *resize(unsigned me, void *p, size_t bytes) { return got(&resized[me], realloc(p, bytes)); }

static APART void *keep(unsigned me, size_t bytes) { return got(&kept[me], malloc(bytes)); }

/* What lies in the own mailbox, if anything: resized at times, and in vain at other times, then freed. */
static void take(unsigned me, uint64_t i)
{
  volatile size_t far = SIZE_MAX / 2;
  void *mine = __atomic_exchange_n(&mailbox[me], NULL, __ATOMIC_ACQ_REL);
  if (!mine) return;
  if (i % 3 == 0) mine = resize(me, mine, 100 + i % 200);
  if (i % 5 == 0 && realloc(mine, far)) abort();
  free(mine);
}

static void *run(void *arg)
{
  unsigned me = (unsigned)(uintptr_t)arg;
  for (uint64_t i = 0; i < handoffs / threads; i++) {
    void *p = give[me](48 + (i * 7 + me) % 5 * 16), *none = NULL;
    while (
      !__atomic_compare_exchange_n(&mailbox[(me + 1) % threads], &none, p, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      none = NULL;
      if (__atomic_load_n(&over[(me + 1) % threads], __ATOMIC_ACQUIRE)) { /* nobody will take it */
        free(p);
        break;
      }
      sched_yield();
      take(me, i);
    }
    take(me, i);
    if (i % 512 == 7) *(void *volatile *)keep(me, 48 + i % 5 * 16) = NULL;
    if (nap && i % 4 == 0) usleep(nap);
  }
  __atomic_store_n(&over[me], 1, __ATOMIC_RELEASE);
  return NULL;
}

int main(int argc, char **argv)
{
  pthread_t thread[THREADS];
  if (argc > 1) threads = (unsigned)atoi(argv[1]);
  if (argc > 2) handoffs = strtoull(argv[2], NULL, 10);
  if (argc > 3) nap = (useconds_t)atoi(argv[3]);
  if (threads < 1 || threads > THREADS) return 2;
  while (argc > 4 && access(argv[4], F_OK)) {
    munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
    usleep(1000);
  }
  for (unsigned i = 0; i < threads; i++)
    if (pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)i)) return 1;
  for (unsigned i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  for (unsigned i = 0; i < threads; i++) free(__atomic_exchange_n(&mailbox[i], NULL, __ATOMIC_ACQ_REL));
  struct truth all = {0, 0}, stays = {0, 0};
  for (unsigned i = 0; i < threads; i++) {
    printf("truth giver_%u %" PRIu64 " %" PRIu64 "\n", i, given[i].count, given[i].bytes);
    all.count += resized[i].count, all.bytes += resized[i].bytes;
    stays.count += kept[i].count, stays.bytes += kept[i].bytes;
  }
  printf("truth keep %" PRIu64 " %" PRIu64 "\n", stays.count, stays.bytes);
  printf("truth resize %" PRIu64 " %" PRIu64 "\n", all.count, all.bytes);
  return 0;
}
