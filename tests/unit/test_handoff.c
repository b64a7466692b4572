/* test_handoff - blocks whose address is used again at once by another thread, every one of them sampled: eight threads hand blocks on,
 * resize them, and fail to. Each block that is given back is told as itself, whichever ring is read first, and in the end those live that
 * nobody gave back.
 *
 * sample.c itself, over a segment in plain memory, driven as alloc.c's hooks drive it. Addresses come from a list that gives the last one
 * back first, so that most are in other hands within a microsecond. What the shim may never do, these threads do for it: they wait for room
 * in their rings, so that not one record is lost. A reader in the place of the collector takes the rings in turn. What each record must
 * mean is told beside the ring, in the place of the same number.
 * Ten million hand-offs take some seconds; under ThreadSanitizer 200,000 are made, unless MACH6_HANDOFFS asks for more.
 */
/* links: preload/sample.c collector/sites.c collector/verdict.c -lm */
/* sanitizers: thread */
#define M6_ALLOW_LIBC 1
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "collector/sites.h"
#include "preload/internal.h"

#if defined(__SANITIZE_THREAD__)
#define HANDOFFS 200000u
#else
#define HANDOFFS 10000000u
#endif
#define THREADS 8u
#define ADDRESSES 96u /* so few that at times there is none */
#define KEEP_EACH 512u

/* ---- a core ----------------------------------------------------------------------------------------------------- */

struct m6_gate m6_gate;
struct m6_header *m6_seg;
uint32_t m6_clock_kind = M6_CLOCK_MONOTONIC;
__thread struct m6_thread m6_self;

int m6_ensure(uint32_t offset, uint32_t bytes) { return (void)offset, (void)bytes, 0; }
int m6_there(uint32_t offset) { return (void)offset, 1; }
void m6_thread_session(void) { m6_self.session = m6_peek(&m6_gate.collecting); }
int m6_thread_ring(void) { return m6_self.producer.records != NULL; }

static struct m6_ring_head *ring_head(uint32_t i)
{
  return (struct m6_ring_head *)((char *)m6_seg + M6_OFF_RING_HEADS) + i;
}
static struct m6_record *ring_records(uint32_t i) { return (struct m6_record *)((char *)m6_seg + m6_ring_offset(i)); }

static void enter(uint32_t i)
{
  memset(&m6_self, 0, sizeof m6_self);
  m6_self.slot = m6_slots() + 1 + i;
  m6_self.session = 1;
  m6_producer_init(&m6_self.producer, ring_head(i), ring_records(i), m6_ring_capacity(i));
}

/* ---- an allocator: the last address that was given back is the next one ------------------------------------------- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t list[ADDRESSES];
static uint32_t list_count;

static uint64_t get_address(void)
{
  pthread_mutex_lock(&list_lock);
  uint64_t a = list_count ? list[--list_count] : 0;
  pthread_mutex_unlock(&list_lock);
  return a;
}
static void give_address(uint64_t a)
{
  pthread_mutex_lock(&list_lock);
  list[list_count++] = a;
  pthread_mutex_unlock(&list_lock);
}

/* ---- the hooks, and what is true ------------------------------------------------------------------------------------ */

struct block {
  uint64_t address, name; /* name: which block it is of all that there ever were; told as its bytes */
};
static uint64_t (*meant)[M6_RING_LARGE_RECORDS]; /* by ring and place: the name of the block whose end stands there */
static uint32_t over;
static uint64_t births[THREADS], deaths[THREADS], kept[THREADS], failed[THREADS];
static __thread uint32_t me;
static __thread uint64_t names;

/* Room for a sample and an end, the shim's own share included. */
static void wait_for_room(void)
{
  while (!m6_ring_room(&m6_self.producer, 8 + (m6_self.producer.mask + 1) / 4)) sched_yield();
}
static void mean(uint64_t name) { meant[me][m6_peek(&m6_self.producer.head->claimed) & m6_self.producer.mask] = name; }

static void born(struct block *b)
{
  b->name = (uint64_t)(me + 1) << 32 | ++names;
  wait_for_room();
  if (m6_site_due(b->name)) m6_site_sample((void *)(uintptr_t)b->address, b->name);
  births[me]++;
}
static struct block make(void)
{
  struct block b = {get_address(), 0};
  if (b.address) born(&b);
  return b;
}
static void destroy(struct block b)
{
  wait_for_room();
  mean(b.name);
  deaths[me]++;
  if (m6_site_maybe((void *)(uintptr_t)b.address)) m6_site_free((void *)(uintptr_t)b.address);
  give_address(b.address);
}
/* To another address, as realloc does: the old one is in other hands before the new block is told. */
static struct block resize(struct block b)
{
  struct block to = {get_address(), 0};
  uint64_t key = m6_site_maybe((void *)(uintptr_t)b.address) ? m6_site_hold((void *)(uintptr_t)b.address) : 0;
  if (!to.address) { /* no memory: the block lives on */
    if (key) m6_site_settle(key, 0);
    failed[me]++;
    return b;
  }
  give_address(b.address);
  wait_for_room();
  mean(b.name);
  deaths[me]++;
  if (key) m6_site_settle(key, 1);
  born(&to);
  return to;
}
static void fail_to_resize(struct block b)
{
  uint64_t key = m6_site_maybe((void *)(uintptr_t)b.address) ? m6_site_hold((void *)(uintptr_t)b.address) : 0;
  if (key) m6_site_settle(key, 0);
  failed[me]++;
}

/* ---- eight threads in a ring ------------------------------------------------------------------------------------------ */

static struct box { /* one block on its way; locked, so that what is written before is seen by whoever takes it */
  pthread_mutex_t lock;
  struct block is;
} box[THREADS];

static struct block swap(uint32_t at, struct block in)
{
  pthread_mutex_lock(&box[at].lock);
  struct block was = box[at].is;
  box[at].is = in;
  pthread_mutex_unlock(&box[at].lock);
  return was;
}

static uint64_t handoffs = HANDOFFS;
static void *hand_on(void *arg)
{
  me = (uint32_t)(uintptr_t)arg;
  enter(me);
  for (uint64_t i = 0; i < handoffs / THREADS; i++) {
    struct block mine = swap(me, (struct block){0, 0});
    if (mine.address && i % 3 == 0) mine = resize(mine);
    if (mine.address && i % 5 == 0) fail_to_resize(mine);
    if (mine.address) destroy(mine);
    struct block next = make();
    if (!next.address) continue; /* all are in other hands */
    if (i % (handoffs / THREADS / 8 + 1) == 7) {
      kept[me]++;
      continue; /* it stays for good */
    }
    next = swap((me + 1) % THREADS, next); /* that one was not fetched: it goes back from here */
    if (next.address) destroy(next);
  }
  return NULL;
}

/* ---- the collector's part ------------------------------------------------------------------------------------------------ */

static struct m6_sites sites;
static uint64_t at[THREADS], told_births, told_deaths, wrong, lone;

/* Keys that are on their way: with the block's name once its birth was read, and with what its end should be once that was. */
#define OPEN (1u << 18)
static struct open {
  uint64_t key, name, end;
} * open_keys;
static struct open *open_of(uint64_t key)
{
  uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 46);
  while (open_keys[i].key && open_keys[i].key != key) i = (i + 1) % OPEN;
  open_keys[i].key = key;
  return &open_keys[i];
}
static void close_of(struct open *o)
{
  uint32_t hole = (uint32_t)(o - open_keys), i = hole;
  open_keys[hole].key = 0;
  for (;;) { /* Knuth, TAOCP 6.4, algorithm R */
    i = (i + 1) % OPEN;
    if (!open_keys[i].key) break;
    uint32_t home = (uint32_t)(open_keys[i].key * 0x9e3779b97f4a7c15ull >> 46);
    if (((i - home) % OPEN) < ((i - hole) % OPEN)) continue;
    open_keys[hole] = open_keys[i];
    open_keys[i].key = 0;
    hole = i;
  }
  memset(&open_keys[hole], 0, sizeof open_keys[hole]);
}
static void settle(struct open *o)
{
  if (!o->name || !o->end) return;
  if (o->name != o->end) wrong++;
  close_of(o);
}

static uint32_t read_ring(uint32_t i)
{
  uint32_t n = 0, capacity = m6_ring_capacity(i);
  struct m6_record r;
  while (m6_ring_read(ring_head(i), ring_records(i), capacity, at[i], &r) == M6_RING_RECORD) {
    if (m6_word_type(r.word) == M6_REC_SITE) {
      uint64_t name = r.live & ((1ull << 48) - 1);
      uint32_t first = m6_word_depth(r.word), granules = (uint32_t)(r.live >> 48);
      if (first && granules)
        m6_shared_and(&m6_site_head(m6_seg)->taken[(first - 1) / 64], ~(((1ull << granules) - 1) << (first - 1) % 64));
      struct m6_site_sample s = {
        .key = r.clock, .bytes = 64, .code = name >> 32, .interval = 1, .frame = 1, .scope = M6_SITE_NO_SCOPE};
      m6_sites_made(&sites, &s);
      struct open *o = open_of(r.clock);
      if (o->name) lone++; /* a key twice: its first block's end never came */
      o->name = name;
      settle(o);
      told_births++;
    } else if (m6_word_type(r.word) == M6_REC_FREE) {
      m6_sites_died(&sites, r.live, 1);
      struct open *o = open_of(r.live);
      if (o->end) lone++;
      o->end = meant[i][at[i] & (capacity - 1)];
      settle(o);
      told_deaths++;
    } else wrong++;
    at[i]++;
    if (++n == 256) break; /* then the next ring: they lag behind each other */
  }
  m6_ring_release(ring_head(i), at[i]);
  return n;
}
static void *collect(void *arg)
{
  uint64_t random = 1;
  for (int last = 0; !last;) {
    last = (int)m6_observe(&over);
    uint32_t n = 0;
    do {
      n = 0;
      random = random * 6364136223846793005u + 1442695040888963407u;
      for (uint32_t i = 0; i < THREADS; i++) n += read_ring((i + (uint32_t)(random >> 60)) % THREADS);
    } while (n && last);
    if (!n) sched_yield();
  }
  return arg;
}

static void each_end_is_its_own_blocks(void **state)
{
  (void)state;
  pthread_t thread[THREADS], collector;
  m6_seg = aligned_alloc(M6_PAGE, M6_SEGMENT_BYTES);
  meant = calloc(THREADS, sizeof *meant);
  open_keys = calloc(OPEN, sizeof *open_keys);
  assert_true(m6_seg && meant && open_keys && m6_sites_init(&sites) == 0);
  memset(m6_seg, 0, M6_SEGMENT_BYTES);
  m6_seg->pid = 1;           /* no thread of these is the first one */
  m6_seg->site_interval = 1; /* every one */
  m6_seg->site_stack = M6_SITE_STACK_BYTES_EVERY;
  m6_gate.alive = m6_gate.collecting = 1;
  for (uint32_t i = 0; i < ADDRESSES; i++) list[list_count++] = 0x7f0000001000ull + i * 16;
  for (uint32_t i = 0; i < THREADS; i++) pthread_mutex_init(&box[i].lock, NULL);
  assert_int_equal(pthread_create(&collector, NULL, collect, NULL), 0);
  for (uint32_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, hand_on, (void *)(uintptr_t)i), 0);
  for (uint32_t i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  m6_publish(&over, 1);
  pthread_join(collector, NULL);

  uint64_t made = 0, gone = 0, stay = 0, failures = 0, live = 0;
  for (uint32_t i = 0; i < THREADS; i++) {
    made += births[i], gone += deaths[i], stay += kept[i], failures += failed[i];
    stay += box[i].is.address != 0;
  }
  for (uint32_t i = 0; i < OPEN; i++)
    if (open_keys[i].key) {
      live++;
      if (!open_keys[i].name || open_keys[i].end) lone++;
    }
  const struct m6_site_head *h = m6_site_head(m6_seg);
  print_message("# %lu hand-offs: %lu blocks, %lu given back, %lu resizes failed; %lu stay; without a stack %lu\n",
                handoffs, made, gone, failures, stay, h->stackless);
  assert_int_equal(h->samples, made);                              /* every one was sampled, */
  assert_int_equal(h->dropped + h->untracked + h->deaths_lost, 0); /* none was lost, */
  assert_true(told_births == made && told_deaths == gone);
  assert_int_equal(wrong, 0); /* each end was told of the block that ended, */
  assert_int_equal(lone, 0);
  assert_int_equal(live, stay); /* and those live that nobody gave back; so say the sites, */
  assert_int_equal(sites.live.samples, stay);
  uint64_t words = 0;
  for (uint32_t i = 0; i < M6_SITE_TABLE; i++) words += m6_site_table(m6_seg)[i] != 0;
  assert_int_equal(words, stay); /* and the table */
  assert_true(made > handoffs / 2 && failures > 0 && stay >= THREADS);
  for (uint32_t w = 0; w < M6_STACK_GRANULES / 64; w++) assert_int_equal(h->taken[w], 0);
  m6_sites_close(&sites);
  free(m6_seg);
  free(meant);
  free(open_keys);
}

int main(void)
{
  static char name[100];
  const char *asked = getenv("MACH6_HANDOFFS");
  if (asked) handoffs = strtoull(asked, NULL, 10);
  snprintf(name, sizeof name, "each_end_is_its_own_blocks_of_%lu_handed_on", handoffs);
  const struct CMUnitTest tests[] = {{name, each_end_is_its_own_blocks, NULL, NULL, NULL}};
  return cmocka_run_group_tests_name("handoff", tests, NULL, NULL);
}
