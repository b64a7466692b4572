/* sample.c - sampled allocations: which, with what stack, and when they end. Everything here is out of line.
 *
 * The hooks of alloc.c and new.c count a thread's distance to its next sample down (m6_site_due) and come here when it
 * is used up; free asks a small filter (m6_site_maybe) and comes here when the block may be a sampled one. What is
 * written is in shm/sites.h, the mathematics in poisson.h.
 *
 * Promise: no lock, no wait; no system call but at a thread's first samples (its slot and ring; how far its stack
 * reaches) and where memory of the segment is touched first. Works in signal handlers, also one that comes in here a
 * second time: all shared words are changed by one instruction each. What does not fit is counted, and the block is
 * simply no sample.
 * A block goes into the table before its allocation returns, and out of it before it is given back (sample.pml: the
 * model). May call: slot.c, segment.c. errno is kept.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"
#include "poisson.h"

#define IDLE_BYTES (256 << 10) /* without sites, a thread looks at the control line once in so many bytes */
#define RING_KEPT_FREE 4u      /* one part of the ring in so many is kept for marks and frames */
#define TRIES 4                /* at a word that others change */
#define STACK_PROBES 4096u     /* pages between a stack pointer and what is known of the stack */
#define STACK_STRIKES 8u       /* then this thread's other stacks are not probed any more */
#define STACK_LEAST 512u

uint8_t m6_site_filter[M6_SITE_FILTER];

/* ---- the filter: how many live samples have this hash. 255 stays 255: it only means "look"
 * --------------------------------- */

static void filter_change(uint64_t address, int by)
{
  uint8_t *at = &m6_site_filter[m6_site_hash(address)], n = m6_peek(at);
  while (n != 255 && !(n == 0 && by < 0) && !m6_claim(at, &n, (uint8_t)(n + by))) {}
}

/* ---- the table of live samples
 * ----------------------------------------------------------------------------------------------- */

static uint64_t *bucket_of(uint64_t address)
{
  uint32_t at = m6_site_bucket(address);
  if (m6_ensure(M6_OFF_SITE_TABLE + at * 8, M6_SITE_BUCKET * 8)) return NULL;
  return m6_site_table(m6_seg) + at;
}

/* The word that is `from` becomes `to`, if it is still there. */
static int turn(uint64_t from, uint64_t to)
{
  uint64_t address = m6_site_address(from), *bucket = bucket_of(address);
  for (uint32_t i = 0; bucket && i < M6_SITE_BUCKET; i++) {
    uint64_t seen = from;
    if (m6_peek(&bucket[i]) != from || !m6_claim(&bucket[i], &seen, to)) continue;
    if (!to) filter_change(address, -1);
    return 1;
  }
  return 0;
}

/* The filter counts before the word is there and after it went: it never says less than what is in the table. Whose
 * session ended meanwhile takes its word back, as m6_site_forget may have been there already. */
static int insert(uint64_t key)
{
  uint64_t address = m6_site_address(key), *bucket = bucket_of(address);
  if (!bucket) return 0;
  filter_change(address, 1);
  for (uint32_t i = 0; i < M6_SITE_BUCKET; i++) {
    uint64_t free_word = m6_peek(&bucket[i]);
    if (free_word || !m6_claim(&bucket[i], &free_word, key)) continue;
    m6_poke(&m6_gate.sites, 1);
    if (m6_likely(m6_peek(&m6_gate.collecting) == m6_self.session)) return 1;
    turn(key, 0);
    return 0;
  }
  filter_change(address, -1);
  return 0;
}

/* The sample at this address, whose word becomes `mark` more: 0 takes it out, M6_SITE_HELD holds it. Gives its key, 0
 * for none. */
static uint64_t take(uint64_t address, uint64_t mark)
{
  if (!m6_site_can_key(address) || !m6_peek(&m6_gate.alive)) return 0;
  uint64_t *bucket = bucket_of(address);
  for (uint32_t i = 0; bucket && i < M6_SITE_BUCKET; i++) {
    uint64_t key = m6_peek(&bucket[i]);
    if (!key || key & M6_SITE_HELD || m6_site_address(key) != address) continue;
    if (!m6_claim(&bucket[i], &key, mark ? key | mark : 0)) continue;
    if (!mark) filter_change(address, -1);
    return key;
  }
  return 0;
}

uint64_t m6_site_hold(const void *p) { return take((uintptr_t)p, M6_SITE_HELD); }

/* What a former session left behind: blocks that were given back while nobody looked. A thread may still be in the
 * middle of a call that began then, so nothing is wiped: each word is taken out as a free does it, and the filter keeps
 * its count. */
void m6_site_forget(void)
{
  if (!m6_peek(&m6_gate.sites)) return;
  m6_poke(&m6_gate.sites, 0);
  m6_fence_full(); /* who sets it again, after the words below were read, has put its word there after that too */
  uint64_t *table = m6_site_table(m6_seg);
  for (uint32_t i = 0; i < M6_SITE_TABLE; i++) {
    if (i % (M6_PAGE / 8) == 0 && !m6_there(M6_OFF_SITE_TABLE + i * 8)) {
      i += M6_PAGE / 8 - 1;
      continue;
    }
    uint64_t key = m6_peek(&table[i]);
    while (key && !m6_claim(&table[i], &key, 0)) {} /* others only hold, let go, and take out */
    if (key) filter_change(m6_site_address(key), -1);
  }
}

/* ---- records
 * ----------------------------------------------------------------------------------------------------------------- */

/* Room in this thread's ring, with a part of it left for marks; a loss that was not said yet goes first, and not by us.
 * */
static int room(struct m6_thread *t)
{
  if (m6_unlikely(t->session != m6_peek(&m6_gate.collecting))) m6_thread_session();
  if (!t->producer.records && !m6_thread_ring()) return 0;
  return !t->pending_lost && m6_ring_room(&t->producer, 1 + (t->producer.mask + 1) / RING_KEPT_FREE);
}

static uint32_t frame_now(void)
{
  uint32_t stream = m6_peek(&m6_seg->main_stream);
  return (uint32_t)m6_peek(&m6_seg->streams[stream < M6_STREAMS ? stream : 0].presents);
}

static struct m6_site_head *head(void)
{
  if (m6_ensure(M6_OFF_SITE_HEAD, M6_PAGE)) return NULL;
  if (m6_unlikely(!m6_peek(&m6_seg->sites_used))) m6_publish(&m6_seg->sites_used, 1);
  return m6_site_head(m6_seg);
}

static void died(uint64_t key)
{
  struct m6_thread *t = &m6_self;
  struct m6_site_head *h = head();
  uint32_t now = m6_peek(&m6_gate.collecting);
  if (!now || !h) return;
  if (!room(t)) {
    m6_shared_add(&h->deaths_lost, 1);
    return;
  }
  m6_ring_commit(&t->producer, m6_ring_claim(&t->producer, 1), m6_now(), key, frame_now(), M6_REC_FREE, 0, 0, 0);
}

/* The word is where it was, unless a new session has begun meanwhile: then this is no sample any more. */
void m6_site_settle(uint64_t key, int gone)
{
  int e = errno;
  if (turn(key | M6_SITE_HELD, gone ? 0 : key) && gone) died(key);
  errno = e;
}

void m6_site_free(const void *p)
{
  int e = errno;
  uint64_t key = take((uintptr_t)p, 0);
  if (key) died(key);
  errno = e;
}

/* ---- stacks
 * --------------------------------------------------------------------------------------------------------------------
 * */

/* Can this page be read? The kernel copies the mask before it looks at what is to be done with it, and that is nothing.
 * */
static int readable(uintptr_t page)
{
  return syscall(SYS_rt_sigprocmask, ~0, page, NULL, (size_t)_NSIG / 8) == 0 || errno != EFAULT;
}

/* Where this thread's stack begins. A thread of libc's has its thread-local storage right above it, in the same
 * mapping; the process's first one has its own strings there. Of a thread without a slot, which maps, it is not known
 * whether it is that one: by distance. */
static uintptr_t stack_top(const struct m6_thread *t, uintptr_t sp)
{
  uintptr_t first = (uintptr_t)getauxval(AT_RANDOM) & ~(uintptr_t)15;
  if (t->slot ? m6_peek(&t->slot->tid) == m6_seg->pid : first - sp < STACK_PROBES * M6_PAGE) return first;
  return (uintptr_t)t & ~(uintptr_t)15;
}

/* The end of what may be read from sp on. On the thread's own stack that is its top; on another one (a handler's, a
 * fiber's), of which nothing is known, the page that sp is in. A stack is the own one when all pages up to what is
 * known of it are there. */
static uintptr_t stack_end(struct m6_thread *t, uintptr_t sp)
{
  uintptr_t page = sp & ~(uintptr_t)(M6_PAGE - 1);
  if (m6_unlikely(!t->stack_top)) {
    uintptr_t top = stack_top(t, sp);
    m6_poke(&t->stack_low, top);
    m6_signal_fence(); /* a handler that comes in between finds no top, and looks itself */
    m6_poke(&t->stack_top, top);
  }
  if (m6_likely(sp >= t->stack_low) && sp < t->stack_top) return t->stack_top;
  if (sp < t->stack_low && t->stack_strikes < STACK_STRIKES && t->stack_low - page < STACK_PROBES * M6_PAGE) {
    uintptr_t at = page + M6_PAGE;
    while (at < t->stack_low && readable(at)) at += M6_PAGE;
    if (at >= t->stack_low) {
      t->stack_low = page;
      return t->stack_top;
    }
    t->stack_strikes++;
  }
  return page + M6_PAGE;
}

/* A run of free granules: 1 + the first one's number, 0 when there is none. Each thread begins at a word of its own. */
static uint32_t take_granules(struct m6_site_head *h, uint32_t n)
{
  uint32_t words = M6_STACK_GRANULES / 64, start = m6_self.slot ? (uint32_t)(m6_self.slot - m6_slots()) : 0;
  for (uint32_t i = 0; i < words; i++) {
    uint32_t w = (start + i) % words;
    uint64_t seen = m6_peek(&h->taken[w]), run;
    for (int k = 0; k < TRIES && (run = m6_site_run(seen, n)) != 0; k++)
      if (m6_claim(&h->taken[w], &seen, seen | run)) return 1 + w * 64 + (uint32_t)__builtin_ctzll(run);
  }
  return 0;
}

static void give_granules(struct m6_site_head *h, uint32_t first, uint32_t n)
{
  uint64_t run = n == 64 ? ~0ull : (1ull << n) - 1;
  if (n) m6_shared_and(&h->taken[(first - 1) / 64], ~(run << (first - 1) % 64));
}

/* Words of the stack from s->sp to `end` that may be addresses, as shm/sites.h has it; until the room for them is used
 * up. */
static void copy_words(struct m6_site_stack *s, uintptr_t end, uint32_t most, uint32_t room)
{
  const uint64_t *from = (const uint64_t *)(uintptr_t)s->sp;
  uint64_t *to = (uint64_t *)(s + 1), *limit = to + room, *at = to;
  uint32_t words = (uint32_t)((end - s->sp < most ? end - s->sp : most) / 8), i = 0;
  while (i < words && limit - at > 64) { /* a whole block fits */
    uint64_t *bits = at++, seen = 0;
    uint32_t n = words - i < 64 ? words - i : 64;
    for (uint32_t k = 0; k < n; k++) {
      uint64_t word = from[i + k];
      *at = word;
      if (m6_site_may_be_address(word)) seen |= 1ull << k, at++;
    }
    *bits = seen;
    i += n;
  }
  s->bytes = i * 8;
  s->words = (uint32_t)(at - to);
}

/* Copies registers and stack of here: the collector unwinds through us. 1 + first granule, and how many. */
static __attribute__((noinline)) uint32_t copy_stack(struct m6_site_head *h, uint32_t *granules)
{
#if defined(__x86_64__)
  struct m6_thread *t = &m6_self;
  uintptr_t sp = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)15; /* near enough for the bounds */
  uint32_t most = m6_peek(&m6_seg->site_stack), first = 0;
  uint32_t n = t->site_interval == 1 ? M6_SITE_GRANULES_MAX_EVERY : M6_SITE_GRANULES_MAX;
  if (most > M6_SITE_STACK_BYTES || most < STACK_LEAST) most = M6_SITE_STACK_BYTES;
  uintptr_t end = stack_end(t, sp) & ~(uintptr_t)7;
  uint64_t bytes = end - sp + STACK_LEAST; /* one bit more a word, and a block to spare */
  bytes += bytes / 64 + 65 * 8 + sizeof(struct m6_site_stack);
  if (bytes < n * M6_STACK_GRANULE) n = (uint32_t)(bytes + M6_STACK_GRANULE - 1) / M6_STACK_GRANULE;
  while (n && !(first = take_granules(h, n))) n /= 2;
  if (!first) return 0;
  if (m6_ensure(M6_OFF_STACKS + (first - 1) * M6_STACK_GRANULE, n * M6_STACK_GRANULE)) {
    give_granules(h, first, n);
    return 0;
  }
  struct m6_site_stack *s = m6_site_stack(m6_seg, first - 1);
  __asm__ volatile("leaq 0(%%rip), %%rax\n\t"
                   "movq %%rax, 0(%0)\n\t"
                   "movq %%rsp, 8(%0)\n\t"
                   "movq %%rbp, 16(%0)\n\t"
                   "movq %%rbx, 24(%0)\n\t"
                   "movq %%r12, 32(%0)\n\t"
                   "movq %%r13, 40(%0)\n\t"
                   "movq %%r14, 48(%0)\n\t"
                   "movq %%r15, 56(%0)"
                   :
                   : "r"(s)
                   : "rax", "memory");
  copy_words(s, end, most, (n * M6_STACK_GRANULE - (uint32_t)sizeof *s) / 8);
  /* What was not needed goes back at once. */
  uint32_t used = (uint32_t)(sizeof *s + s->words * 8 + M6_STACK_GRANULE - 1) / M6_STACK_GRANULE;
  give_granules(h, first + used, n - used);
  *granules = used;
  return first;
#else
  (void)h, (void)granules, (void)take_granules, (void)stack_end, (void)copy_words, (void)give_granules;
  return 0;
#endif
}

/* ---- a sample
 * --------------------------------------------------------------------------------------------------------------------
 * */

/* Where a thread is (NULL: nobody knows): its innermost open scope, and how much was loaded by now. Gives the flags. */
static unsigned whereabouts(const struct m6_thread *t, unsigned *label)
{
  unsigned flags = ((unsigned)m6_peek(&m6_seg->loads) & M6_SITE_LOADS_MASK) << M6_SITE_LOADS_SHIFT;
  *label = 0;
  if (!t || !t->depth || !t->stack) return flags;
  *label = m6_peek(&m6_scope_labels(t)[(t->depth - 1) % M6_SCOPE_STACK]);
  return flags | M6_SITE_SCOPED;
}

static void put(struct m6_thread *t, struct m6_site_head *h, uint64_t key, uint64_t bytes, uint32_t interval)
{
  uint32_t granules = 0, first = copy_stack(h, &granules);
  unsigned label, flags = whereabouts(t, &label);
  if (!first) m6_shared_add(&h->stackless, 1);
  if (!insert(key)) {
    flags |= M6_SITE_UNTRACKED;
    m6_shared_add(&h->untracked, 1);
  }
  if (bytes >> 48) bytes = (1ull << 48) - 1;
  m6_ring_commit(&t->producer, m6_ring_claim(&t->producer, 1), key, bytes | (uint64_t)granules << 48,
                 (uint64_t)frame_now() << 32 | interval, M6_REC_SITE, flags, label, first);
}

static void record(struct m6_thread *t, struct m6_site_head *h, const void *p, uint64_t bytes, uint32_t interval)
{
  uint64_t number = m6_shared_add(&h->samples, 1), address = (uintptr_t)p;
  if (!room(t) || !m6_site_can_key(address)) {
    m6_shared_add(&h->dropped, 1);
    m6_shared_add(&h->dropped_bytes, m6_site_stands_for(bytes, interval));
  } else put(t, h, m6_site_key_of(address, number), bytes, interval);
}

/* ---- mappings: an allocator may map with its lock held, so nobody enters here
 * ----------------------------------------------------- */

static int map_room(const struct m6_site_head *h)
{
  return !m6_ensure(M6_OFF_MAPS, M6_MAPS_RECORDS * (uint32_t)sizeof(struct m6_record)) &&
         (int64_t)(m6_peek(&h->maps_ring.claimed) - m6_observe(&h->maps_ring.consumed)) < M6_MAPS_RECORDS;
}

/* The head, where mappings are asked for. */
static struct m6_site_head *map_head(uint64_t bytes)
{
  return bytes && m6_peek(&m6_gate.collecting) && m6_peek(&m6_seg->site_interval) ? head() : NULL;
}

static int map_say(struct m6_site_head *h, uint64_t clock, unsigned type, const struct m6_map_range *r, unsigned flags,
                   unsigned label, unsigned first)
{
  struct m6_producer p = {.head = &h->maps_ring,
                          .records = m6_site_maps(m6_seg),
                          .mask = M6_MAPS_RECORDS - 1,
                          .shift = (uint32_t)__builtin_ctz(M6_MAPS_RECORDS)};
  uint64_t index;
  if (r->address >> 48 || !m6_ring_claim_shared(p.head, M6_MAPS_RECORDS, &index)) return 0;
  m6_ring_commit(&p, index, clock, m6_map_word1(r), m6_map_word2(r), type, flags, label, first);
  return 1;
}

void m6_site_mapped(const void *at, uint64_t bytes, int placed)
{
  struct m6_thread *t = &m6_self;
  int e = errno, said = 0;
  struct m6_site_head *h = map_head(bytes);
  if (h) {
    struct m6_map_range r = {.address = (uintptr_t)at, .bytes = bytes, .frame = frame_now()};
    m6_shared_add(&h->maps, 1);
    if (map_room(h)) {
      uint64_t clock = m6_now();
      uint32_t first = copy_stack(h, &r.granules);
      unsigned label, flags = whereabouts(t->session == m6_peek(&m6_gate.collecting) ? t : NULL, &label);
      if (placed) flags |= M6_SITE_PLACED;
      said = map_say(h, clock, M6_REC_MAP, &r, flags, label, first);
      if (!first && said) m6_shared_add(&h->stackless, 1);
      if (first && !said) give_granules(h, first, r.granules);
    }
    if (!said) {
      m6_shared_add(&h->maps_dropped, 1);
      m6_shared_add(&h->maps_dropped_bytes, bytes);
    }
  }
  errno = e;
}

void m6_site_unmapped(uint64_t clock, const void *at, uint64_t bytes)
{
  int e = errno;
  struct m6_site_head *h = map_head(bytes);
  if (h) {
    const struct m6_map_range r = {.address = (uintptr_t)at, .bytes = bytes, .frame = frame_now()};
    if (!map_room(h) || !map_say(h, clock, M6_REC_UNMAP, &r, 0, 0, 0)) {
      m6_shared_add(&h->unmaps_dropped, 1);
      m6_shared_add(&h->unmaps_dropped_bytes, bytes);
    }
  }
  errno = e;
}

/* ---- blocks
 * ---------------------------------------------------------------------------------------------------------------------------
 * */

void m6_site_sample(const void *p, uint64_t bytes)
{
  struct m6_thread *t = &m6_self;
  uint32_t interval = m6_peek(&m6_gate.collecting) ? m6_peek(&m6_seg->site_interval) : 0;
  if (m6_likely(!interval)) {
    t->site_left = IDLE_BYTES;
    t->site_interval = 0;
    return;
  }
  int e = errno;
  if (!t->site_random) { /* no two threads that live at one time have their words at one address */
    uint64_t seed = m6_now() ^ (uint64_t)(uintptr_t)t << 20 ^ (uint64_t)m6_seg->pid << 48;
    t->site_random = m6_poisson_random(&seed) | 1;
  }
  if (t->site_interval != interval) { /* sampling begins with this block: no bytes of it are passed yet */
    t->site_interval = interval;
    t->site_left = interval > 1 ? (int64_t)m6_poisson_gap(&t->site_random, interval) - (int64_t)bytes : -1;
  }
  if (t->site_left < 0) {
    t->site_left = interval > 1 ? (int64_t)m6_poisson_gap(&t->site_random, interval) : 0;
    struct m6_site_head *h = head();
    if (h) record(t, h, p, bytes, interval);
  }
  errno = e;
}
