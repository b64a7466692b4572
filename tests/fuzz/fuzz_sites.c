/* links: collector/stats_check_kernel.c collector/stats_kernel.c */
/* links: collector/capture.c collector/drain.c collector/thread.c collector/scope.c collector/tree.c collector/reservoir.c */
/* links: collector/histogram.c collector/frame.c collector/retained.c collector/books.c collector/verdict.c collector/clock.c collector/utf8.c */
/* links: collector/publish.c collector/publish_tree.c collector/stats_proc.c collector/stats_check.c */
/* links: collector/sites.c collector/site_growth.c collector/trend.c collector/site_side.c collector/map_ranges.c collector/map_check.c collector/site_queue.c collector/site_stacks.c collector/site_names.c */
/* links: collector/site_publish.c collector/symbols.c collector/symbols_eh.c collector/symbols_elf.c collector/symbols_index.c collector/symbols_debug.c collector/symbols_debuginfod.c */
/* links: collector/symbols_maps.c collector/symbols_tables.c collector/symbols_unwind.c */
/* links: -Wl,--wrap=clock_gettime,--wrap=malloc,--wrap=calloc,--wrap=free -ldw -lelf -liberty -lm */
/* fuzz_sites - any bytes as a target's sampled allocations: their records, their stacks, what is taken of the pool, the table of who lives,
 * the counts. The collector ends, within its memory, and what it publishes is a snapshot that stats_check.c accepts.
 *
 * One script in some has a process behind it, which is this one: its stacks are then unwound by the rules of the code that is mapped here,
 * from registers and words that the script chose. Time is the script's to pass, or growth would have no readings.
 */
#include <malloc.h>
#include <sanitizer/asan_interface.h>
#include <time.h>
#include <unistd.h>

#include "collector/site_publish.h"
#include "fuzz_script.h"
#include "shm/sites.h"

#define RINGS 4u
#define GRANULES 8u /* of the first ones, for whole stacks: so few that they meet */
#define WORDS 40u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t passed_ns; /* in this script */
int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
  int e = __real_clock_gettime(id, t);
  if (e || id != CLOCK_MONOTONIC) return e;
  uint64_t ns = passed_ns + (uint64_t)t->tv_nsec;
  t->tv_sec += (time_t)(ns / 1000000000u);
  t->tv_nsec = (long)(ns % 1000000000u);
  return 0;
}

/* A side's tables are large and hardly touched: to map and unmap them takes five times as long as a script. Such blocks are kept, out of
 * bounds for everybody, until one of the same size is wanted. */
#define LARGE (256u << 10)
static struct {
  void *block;
  size_t bytes;
} kept[16];
#define KEPT (sizeof kept / sizeof *kept)
void *__real_malloc(size_t n);
void *__real_calloc(size_t m, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t m, size_t n);
void __wrap_free(void *p);

static void *again(size_t n)
{
  for (unsigned i = 0; n >= LARGE && i < KEPT; i++) {
    void *p = kept[i].block;
    if (!p || kept[i].bytes != n) continue;
    kept[i].block = NULL;
    ASAN_UNPOISON_MEMORY_REGION(p, n);
    return p;
  }
  return NULL;
}
void *__wrap_malloc(size_t n)
{
  void *p = again(n);
  return p ? p : __real_malloc(n);
}
void *__wrap_calloc(size_t m, size_t n)
{
  char *p = again(m * n), *page = (char *)(((uintptr_t)p + 4095) & ~(uintptr_t)4095);
  if (!p) return __real_calloc(m, n);
  size_t before = (size_t)(page - p), pages = (m * n - before) & ~(size_t)4095;
  memset(p, 0, before);
  madvise(page, pages, MADV_DONTNEED);
  memset(page + pages, 0, m * n - before - pages);
  return p;
}
void __wrap_free(void *p)
{
  size_t n = p ? malloc_usable_size(p) : 0;
  for (unsigned i = 0; n >= LARGE && i < KEPT; i++) {
    if (kept[i].block) continue;
    kept[i].block = p;
    kept[i].bytes = n;
    ASAN_POISON_MEMORY_REGION(p, n);
    return;
  }
  __real_free(p);
}

static void write_any(struct script *s)
{
  static const struct region regions[] = {{0, M6_OFF_SLOTS},
                                          {M6_OFF_RING_HEADS, RINGS * sizeof(struct m6_ring_head)},
                                          {M6_OFF_RINGS, RINGS * 65536},
                                          {M6_OFF_SITE_HEAD, 384},
                                          {M6_OFF_MAPS, 64 * sizeof(struct m6_record)},
                                          {M6_OFF_SITE_TABLE, M6_SITE_TABLE * 8},
                                          {M6_OFF_STACKS, GRANULES * M6_STACK_GRANULE},
                                          {M6_OFF_STACKS, M6_STACK_GRANULES * M6_STACK_GRANULE}};
  scribble(s, regions, sizeof regions / sizeof *regions);
}

/* Few addresses and numbers, so that keys come again; some are anything. */
static uint64_t key_of(struct script *s)
{
  unsigned k = (unsigned)take(s, 1);
  if (k == 255) return take(s, 8);
  return m6_site_key_of((uint64_t)(1 + (k & 15)) << 20, k >> 4);
}

/* A word of a stack, or a register: in code that is there, in the stack itself, or anything. */
static uint64_t word_of(struct script *s, uint64_t sp)
{
  switch (take(s, 1) & 3) {
  case 0: return (uintptr_t)LLVMFuzzerTestOneInput + take(s, 3);
  case 1: return (uintptr_t)malloc_usable_size + take(s, 2);
  case 2: return sp + take(s, 1) * 8;
  default: return take(s, 8);
  }
}

/* What copy_stack of preload/sample.c leaves, but for what the script has of its own. */
static void put_stack(struct script *s, uint32_t granule)
{
  struct m6_site_stack *k = m6_site_stack(segment, granule);
  uint64_t *to = (uint64_t *)(k + 1), *bits = to, sp = 0x7f0000001000;
  uint32_t n = (uint32_t)take(s, 1) % WORDS, honest = (uint32_t)take(s, 1);
  if (honest & 1) sp = take(s, 8);
  *k = (struct m6_site_stack){.ip = word_of(s, sp), .sp = sp, .bp = word_of(s, sp), .bx = word_of(s, sp)};
  *bits = 0;
  for (uint32_t i = 0; i < n; i++) {
    *++to = word_of(s, sp);
    if (m6_site_may_be_address(*to)) *bits |= 1ull << i;
  }
  k->bytes = n * 8;
  k->words = n + 1;
  if (honest & 2) k->bytes = (uint32_t)take(s, 2) * 8 + (honest >> 6);
  if (honest & 4) k->words = (uint32_t)take(s, 1) << (honest & 32 ? 12 : 0); /* beyond the segment, too */
  if (honest & 8) *bits = take(s, 8);
}

static void commit(struct script *s)
{
  uint32_t ring = (uint32_t)take(s, 1) % RINGS, what = (uint32_t)take(s, 1), times = 1 + (what >> 4);
  uint64_t key = key_of(s), clock = take(s, 3), bytes = take(s, 2) << (what & 8 ? 32 : 0);
  uint32_t interval = (uint32_t)take(s, 2) << (what & 8 ? 16 : 0), flags = (uint32_t)take(s, 1),
           label = (uint32_t)take(s, 1), first = (uint32_t)take(s, 1), granules = (uint32_t)take(s, 1);
  struct m6_producer p = producer(ring);
  struct m6_header *h = segment;
  if (what & 4) first <<= 2; /* where the pool ends, and beyond */
  for (uint32_t i = 0; i < times && m6_ring_room(&p, M6_FRAME_UNITS); i++) {
    uint32_t now = (uint32_t)h->streams[0].presents;
    switch (what & 3) {
    case 0: frame(&p, clock, bytes, label, 0); break;
    case 1: m6_ring_commit(&p, m6_ring_claim(&p, 1), clock, key, now, M6_REC_FREE, 0, 0, 0); break;
    default: {
      uint64_t *bucket = m6_site_table(segment) + m6_site_bucket(m6_site_address(key));
      if (flags & 128) bucket[label % M6_SITE_BUCKET] = key | (flags & 64 ? M6_SITE_HELD : 0);
      m6_ring_commit(&p, m6_ring_claim(&p, 1), key, bytes | (uint64_t)granules << 48, (uint64_t)now << 32 | interval,
                     M6_REC_SITE, flags, label, first);
      key += 1 + (what & 1);
    }
    }
    clock += bytes & 1023;
  }
}

/* Ranges that meet; some are anything, and so is what is committed and what not. */
static void map(struct script *s)
{
  struct m6_site_head *h = m6_site_head(segment);
  struct m6_producer p = {&h->maps_ring, m6_site_maps(segment), 0, M6_MAPS_RECORDS - 1, 11};
  unsigned what = (unsigned)take(s, 1), type = what & 1 ? M6_REC_UNMAP : M6_REC_MAP;
  struct m6_map_range r = {take(s, 1) << 12, take(s, 1) << 12, (uint32_t)take(s, 1), (uint32_t)take(s, 1)};
  uint64_t clock = take(s, 1), index, word1 = m6_map_word1(&r), word2 = m6_map_word2(&r);
  if ((what & 14) == 14) word1 = take(s, 8), word2 = take(s, 8), type = (unsigned)take(s, 1);
  for (unsigned i = 0; i <= what >> 4; i++, word1 += 3 * M6_PAGE)
    if (m6_ring_claim_shared(p.head, M6_MAPS_RECORDS, &index) && (what & 14) != 12)
      m6_ring_commit(&p, index, clock + i, word1, word2, type, (unsigned)take(s, 1), 0, (unsigned)take(s, 1) & 15);
}

static void pass(struct script *s)
{
  uint64_t v = take(s, 1);
  passed_ns += v & 128 ? (v & 127) << 27 : v * 1000000u;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static struct m6_capture c;
  struct script s = {data, size};
  struct m6_header *h = begin(M6_SEGMENT_BYTES);
  passed_ns = 0;
  unsigned how = (unsigned)take(&s, 1);
  h->sites_used = 1;
  h->site_interval = 1u << (how >> 4);
  if (how & 1) write_any(&s); /* before it is opened */
  if (m6_capture_open(&c, segment, 0, NULL, NULL) != 0) return 0;
  struct m6_site_side *side = m6_site_side_open((how & 14) == 14 ? getpid() : 0, 512 << 10);
  if (!side) abort();
  c.sites = (struct m6_site_sink){side, m6_site_side_record};
  const struct m6_site_view view = {side, m6_site_publish, m6_site_publish_maps};
  for (int polls = 0; s.n && polls < 96; polls++) {
    switch (take(&s, 1) & 15) {
    case 0:
    case 8: write_any(&s); break;
    case 1:
    case 9: put_stack(&s, (uint32_t)take(&s, 1) % GRANULES); break;
    case 2:
    case 10:
    case 11: commit(&s); break;
    case 3:
    case 12: map(&s); break;
    case 4: pass(&s); break;
    case 5: publish(&c, polls % 4 ? M6_SNAPSHOT_LIVE : M6_SNAPSHOT_WHOLE, view); break;
    default: /* as control.c has it */
      m6_capture_drain(&c, 0);
      m6_site_side_look(side, &c, 0);
      m6_site_side_work(side, &c, 0, 0);
    }
  }
  m6_capture_drain(&c, 1);
  m6_site_side_look(side, &c, 1);
  m6_site_side_work(side, &c, 0, 0);
  m6_site_side_finish(side, &c);
  publish(&c, M6_SNAPSHOT_FINAL, view);
  m6_site_side_close(side);
  m6_capture_close(&c);
  return 0;
}
