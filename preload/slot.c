/* slot.c - this thread's slot and ring: taking them, giving them back, the slow halves of the hooks.
 *
 * Promise: a slot has one writer from the moment it is taken until it is given back. A thread without a slot of its own
 * (too many threads, no memory, before its first or after its last moment) uses slot 0 by locked adds, so no event is
 * lost. Counters are never reset; a ring stays with its slot and the next owner says START in it. A thread gives its
 * slot back in the last round of its key destructors, so that what other destructors free still counts as its own. One
 * that first shows up in those rounds never gets there: its slot is found by its dead tid when slots run out. Signals
 * are off while a slot or ring is taken: neither a handler nor a cancellation finds it half done.
 * Where a program forbids itself system calls, threads may begin as long as libc's own may: for a new one no calls are
 * made here but of those that pthread_create and a thread's end make, too (rt_sigprocmask, madvise). Where slots or
 * rings run out: getpid, tgkill. May call: segment.c, next.c (at the start), pthread_setspecific, libc's own mutexes,
 * system calls. errno is kept.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

__thread struct m6_thread m6_self __attribute__((aligned(64)));

static uint64_t taken[M6_SLOTS / 64]; /* bit i: slot i has an owner; private, so that nobody else can confuse it */
static uint64_t stacks[M6_SLOTS][M6_SCOPE_STACK_WORDS];
static pthread_key_t key;
static uint32_t refusals; /* of slots and rings, since dead owners were last looked for */

void m6_signals_off(uint64_t old[2])
{
  uint64_t all[2] = {~0ull, ~0ull};
  syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, all, old, (size_t)_NSIG / 8);
}
void m6_signals_back(const uint64_t old[2]) { syscall(SYS_rt_sigprocmask, 2, old, NULL, (size_t)_NSIG / 8); }

/* ---- a thread's number ------------------------------------------------------------------------------------------ */

/* The kernel would tell, but a program may have forbidden itself to ask, on pain of death. libc knows it, and writes it
 * down as the owner of a mutex that checks for its owner. That mutex is nobody else's, so nobody waits for it, and
 * nothing of a mutex that a signal handler has cut in two is touched. Where threads share their thread-local storage
 * (vfork, clone with CLONE_VM alone) this is the number of the one that it was made for, as the slot is. */
static int (*own_lock)(pthread_mutex_t *), (*own_unlock)(pthread_mutex_t *);

static uint32_t told_tid(void)
{
#ifdef __GLIBC__
  pthread_mutex_t m = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  if (!own_unlock || own_lock(&m)) return 0; /* a thread that libc did not make: it has no number there */
  uint32_t tid = (uint32_t)m.__data.__owner;
  own_unlock(&m);
  return tid;
#else
  return 0;
#endif
}

uint32_t m6_tid(void)
{
  uint32_t tid = told_tid();
  if (tid) return tid;
  long asked = syscall(SYS_gettid); /* a filter may refuse it, too */
  return asked > 0 ? (uint32_t)asked : 0;
}

/* By name these may be another preload's, or a sanitizer's, who would see a lock that the program does not take. What
 * libc tells is compared once with what the kernel does: nearly always this is the first thread, whose number is that
 * of the process. */
static void find_tid(void)
{
  own_lock = (int (*)(pthread_mutex_t *))m6_next_versioned("pthread_mutex_lock");
  own_unlock = own_lock ? (int (*)(pthread_mutex_t *))m6_next_versioned("pthread_mutex_unlock") : NULL;
  uint32_t told = told_tid();
  if (told != (uint32_t)syscall(SYS_getpid) && told != (uint32_t)syscall(SYS_gettid)) own_unlock = NULL;
}

/* ---- slots ------------------------------------------------------------------------------------------------------ */

static uint32_t take_free_slot(void)
{
  for (uint32_t w = 0; w < M6_SLOTS / 64; w++) {
    for (uint64_t free_bits; (free_bits = ~m6_peek(&taken[w])) != 0;) {
      uint64_t bit = free_bits & -free_bits;
      if (!(m6_shared_or(&taken[w], bit) & bit)) return w * 64 + (uint32_t)__builtin_ctzll(bit);
    }
  }
  return 0;
}

static void free_slot(uint32_t i) { m6_shared_and(&taken[i / 64], ~(1ull << i % 64)); }

/* Slots whose owner died without telling: their tid names no thread of this process any more. A slot that is just
 * being taken has tid 0, and a tid that was given to a new thread only keeps its slot for longer. */
static void reap(void)
{
  int pid = (int)syscall(SYS_getpid);
  if ((uint32_t)pid != m6_seg->pid) return; /* a CLONE_VM child: other threads' tids mean nothing to it */
  for (uint32_t i = 1; i < M6_SLOTS; i++) {
    struct m6_slot *s = &m6_slots()[i];
    if (!(m6_peek(&taken[i / 64]) & 1ull << i % 64)) continue;
    /* Whoever just takes it may not have its page yet, and may not get it: /dev/shm may be full. */
    if (!m6_there(M6_OFF_SLOTS + i * (uint32_t)sizeof *s)) continue;
    uint32_t tid = m6_peek(&s->tid);
    if (tid == 0 || syscall(SYS_tgkill, pid, (int)tid, 0) == 0 || errno != ESRCH) continue;
    if (m6_claim(&s->tid, &tid, 0)) free_slot(i);
  }
}

/* Should a refused thread go and look? Of every 64 the first eight: several may be refused at one time, and the first
 * of them has found nothing yet. */
static int reap_due(void) { return m6_shared_add(&refusals, 1) % 64 < 8; }

static uint32_t take_slot(void)
{
  uint32_t i = take_free_slot();
  if (!i && reap_due()) {
    reap();
    i = take_free_slot();
  }
  if (!i) return 0;
  /* And all below it: the collector reads up to slots_used, and reading a page that is not there would reserve it, or
   * be a SIGBUS. */
  if (m6_ensure(M6_OFF_SLOTS, (i + 1) * (uint32_t)sizeof(struct m6_slot))) {
    free_slot(i);
    return 0;
  }
  return i;
}

void m6_thread_enter(void)
{
  struct m6_thread *t = &m6_self;
  if (t->state != M6_THREAD_NEW || !m6_seg || !m6_peek(&m6_gate.alive)) return;
  uint64_t signals[2];
  int e = errno;
  m6_signals_off(signals);
  t->state = M6_THREAD_BUSY; /* pthread_setspecific may allocate: that goes to slot 0 */
  uint32_t tid = m6_tid(), i = tid ? take_slot() : 0;
  if (i && pthread_setspecific(key, (void *)1) != 0) {
    free_slot(i);
    i = 0;
  }
  if (i) {
    struct m6_slot *s = &m6_slots()[i];
    m6_publish(&s->tid, tid);
    for (uint32_t used = m6_peek(&m6_seg->slots_used); used <= i;)
      if (m6_claim(&m6_seg->slots_used, &used, i + 1)) break;
    t->stack = stacks[i];
    t->slot = s;
    t->state = M6_THREAD_LIVE;
  } else {
    m6_shared_add(&m6_seg->slots_refused, 1);
    t->state = M6_THREAD_SHARED;
  }
  m6_signals_back(signals);
  errno = e;
}

static void give_back(struct m6_thread *t)
{
  struct m6_slot *s = t->slot;
  uint64_t signals[2];
  m6_signals_off(signals);
  if (t->producer.records && m6_ring_room(&t->producer, 1))
    m6_ring_commit(&t->producer, m6_ring_claim(&t->producer, 1), m6_now(), m6_peek(&s->live),
                   m6_peek(&s->allocs) & M6_COUNT_MASK, M6_REC_END, 0, 0, 0);
  t->slot = NULL;
  t->stack = NULL;
  t->producer = (struct m6_producer){0};
  t->state = M6_THREAD_GONE;
  m6_publish(&s->tid, 0);
  free_slot((uint32_t)(s - m6_slots()));
  m6_signals_back(signals);
}

/* The key's destructor: the value counts the rounds. */
static void thread_ends(void *round)
{
  uintptr_t n = (uintptr_t)round;
  int e = errno;
  if (!m6_peek(&m6_gate.alive) || !m6_self.slot) return;
  if (n >= PTHREAD_DESTRUCTOR_ITERATIONS || pthread_setspecific(key, (void *)(n + 1)) != 0) give_back(&m6_self);
  errno = e;
}

int m6_slots_init(void)
{
  taken[0] = 1; /* slot 0 is everybody's */
  find_tid();
  return pthread_key_create(&key, thread_ends);
}

/* ---- counting, the slow half ------------------------------------------------------------------------------------ */

void m6_count_slow(const struct m6_event *e)
{
  m6_thread_enter();
  struct m6_slot *s = m6_self.slot;
  if (s) {
    m6_own_add(&s->live, e->live);
    m6_own_add(&s->allocs, e->allocs);
    m6_own_add(&s->bytes, e->bytes);
    m6_own_add(&s->frees, e->frees);
    if (!e->kind) return;
    struct m6_kind *k = (struct m6_kind *)((char *)s + e->kind);
    m6_own_add(&k->count, e->allocs);
    m6_own_add(&k->bytes, e->bytes);
    return;
  }
  s = m6_slots();
  m6_shared_add(&s->live, e->live);
  m6_shared_add(&s->allocs, e->allocs);
  m6_shared_add(&s->bytes, e->bytes);
  m6_shared_add(&s->frees, e->frees);
  m6_self.shared_allocs += e->allocs;
  m6_self.shared_frees += e->frees;
  if (!e->kind) return;
  struct m6_kind *k = (struct m6_kind *)((char *)s + e->kind);
  m6_shared_add(&k->count, e->allocs);
  m6_shared_add(&k->bytes, e->bytes);
}

void m6_count_mapping(uint64_t bytes)
{
  /* Nobody enters here: an allocator may map with its lock held, and entering may allocate. */
  struct m6_slot *s = m6_self.slot;
  if (s) {
    m6_own_add(&s->mapped, bytes);
    m6_own_add(&s->maps, 1);
  } else {
    s = m6_slots();
    m6_shared_add(&s->mapped, bytes);
    m6_shared_add(&s->maps, 1);
  }
}

/* ---- rings ------------------------------------------------------------------------------------------------------ */

static struct m6_ring_head *ring_head(uint32_t i)
{
  return (struct m6_ring_head *)((char *)m6_seg + M6_OFF_RING_HEADS) + i;
}

/* Claims the next ring, from `from` up. All heads up to it are reserved by then: the collector reads them up to
 * rings_used. */
static uint32_t next_ring(uint32_t from)
{
  uint32_t used = m6_peek(&m6_seg->rings_used), i;
  do {
    i = used < from ? from : used;
    if (i >= M6_RINGS || m6_ensure(M6_OFF_RING_HEADS, (i + 1) * (uint32_t)sizeof(struct m6_ring_head))) return M6_RINGS;
  } while (!m6_claim(&m6_seg->rings_used, &used, i + 1));
  return i;
}

static int reserve_ring(uint32_t i)
{
  return !m6_ensure(m6_ring_offset(i), m6_ring_capacity(i) * (uint32_t)sizeof(struct m6_record));
}

/* 1 + the index of a new ring whose memory is reserved, or 0. Where there is no memory for a large one, a small one. */
static uint32_t take_ring(void)
{
  uint32_t i = next_ring(0);
  if (i < M6_RINGS && reserve_ring(i)) return i + 1;
  if (i >= M6_RINGS_LARGE) return 0;
  i = next_ring(M6_RINGS_LARGE);
  return i < M6_RINGS && reserve_ring(i) ? i + 1 : 0;
}

void m6_thread_session(void)
{
  struct m6_thread *t = &m6_self;
  t->depth = 0;
  t->pending_lost = 0;
  t->no_ring = 0;
  t->producer.records = NULL;
  t->session = m6_peek(&m6_gate.collecting);
}

/* With its slot's ring in hand: START must come before anything else of this thread, so without room for it there is no
 * ring yet. */
static int begin_ring(struct m6_thread *t, uint32_t ring)
{
  struct m6_producer p;
  m6_producer_init(&p, ring_head(ring - 1), (struct m6_record *)((char *)m6_seg + m6_ring_offset(ring - 1)),
                   m6_ring_capacity(ring - 1));
  if (!m6_ring_room(&p, 1)) return 0;
  m6_ring_commit(&p, m6_ring_claim(&p, 1), m6_now(), m6_peek(&t->slot->live), m6_peek(&t->slot->tid), M6_REC_START, 0,
                 0, 0);
  t->producer = p;
  return 1;
}

int m6_thread_ring(void)
{
  struct m6_thread *t = &m6_self;
  if (t->producer.records) return 1;
  if (t->no_ring) return 0;
  if (!t->slot) m6_thread_enter();
  if (!t->slot) {
    if (t->state != M6_THREAD_BUSY) t->no_ring = 1;
    return 0;
  }
  uint32_t ring = m6_peek(&t->slot->ring);
  if (ring) return ring <= M6_RINGS && begin_ring(t, ring);
  int e = errno;
  uint64_t signals[2];
  m6_signals_off(signals);
  ring = m6_peek(&t->slot->ring); /* a handler may have been faster */
  if (!ring) {
    ring = take_ring();
    if (!ring && reap_due()) reap();
    m6_poke(&t->slot->ring, ring);
  }
  if (!ring) {
    m6_shared_add(&m6_seg->rings_refused, 1);
    t->no_ring = 1;
  }
  m6_signals_back(signals);
  errno = e;
  m6_poll_control(0);
  return ring != 0 && (t->producer.records || begin_ring(t, ring));
}

int m6_ring_ready(unsigned n)
{
  struct m6_thread *t = &m6_self;
  if (m6_unlikely(t->session != m6_peek(&m6_gate.collecting))) m6_thread_session();
  if (m6_likely(t->producer.records) || m6_thread_ring()) {
    uint32_t lost = t->pending_lost;
    if (m6_ring_room(&t->producer, n + (lost != 0))) {
      if (m6_unlikely(lost)) {
        const struct m6_slot *s = t->slot;
        m6_shared_add(&t->pending_lost, -lost); /* a handler may lose more in between */
        m6_ring_commit(&t->producer, m6_ring_claim(&t->producer, 1), m6_now(), m6_peek(&s->live), lost, M6_REC_LOSS, 0,
                       0, 0);
      }
      return 1;
    }
  }
  m6_shared_add(&t->pending_lost, 1);
  t->producer.limit = 0; /* so that the hooks' short way comes here next time, and the loss is said first */
  if (t->slot) m6_own_add(&t->slot->lost, 1);
  else m6_shared_add(&m6_slots()->lost, 1);
  if (t->pending_lost % 64 == 1) m6_poll_control(m6_monotonic_ns()); /* is there still anybody who reads? */
  return 0;
}
