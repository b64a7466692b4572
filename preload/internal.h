/* internal.h - the shim's inside. This code runs in somebody else's process; its rules:
 *
 *   1. Behaviour is unchanged: results, errno, alignment, ordering. A free is counted before the real free, a malloc
 *      after the real malloc, a failed realloc is undone.
 *   2. The hot path makes no syscall, takes no lock, allocates nothing, calls nothing but the real function. No stdio.
 *   3. It never waits for anyone.
 *   4. A few words of initial-exec TLS. It works before its constructor, after its destructor, in TLS destructors and
 *      in signal handlers.
 *   5. It follows whoever is next (RTLD_NEXT), never libc by name.
 *   6. A forked child is inert: the gate lies in a page that the kernel wipes on fork.
 *   7. Shared memory is populated before it is touched.
 *   8. Inert means: one predictable branch, then the real function.
 *   9. One reason, once, on stderr, and only with MACH6_VERBOSE=1 or when what the user asked for cannot be done.
 *
 * Who calls whom: the hook files (alloc.c, new.c, map.c, scope.c, hook.c, vulkan.c, route.c, exec.c) call slot.c,
 * sample.c and present.c; those call segment.c; boot.c starts everything, by its constructor or by the first call that
 * finds a boot stub in m6_real.
 */
#ifndef M6_INTERNAL_H
#define M6_INTERNAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../shm/clock.h"
#include "../shm/label.h"
#include "../shm/layout.h"
#include "../shm/order.h"
#include "../shm/present.h"
#include "../shm/ring.h"
#include "../shm/sites.h"

#define M6_EXPORT __attribute__((visibility("default")))
#define M6_COLD __attribute__((cold, noinline))

/* Names that must not be called from here: they allocate, lock, or write where the game writes. */
#ifndef M6_ALLOW_LIBC
#pragma GCC poison printf fprintf puts fputs fwrite fflush snprintf sprintf perror setenv putenv dladdr
#pragma GCC poison pthread_mutex_lock pthread_getattr_np dl_iterate_phdr system popen strdup
#endif

/* ---- the gate: a private page, wiped in a forked child ---------------------------------------------------------- */
struct m6_gate {
  uint32_t
    collecting;      /* what every hook reads: 0 = straight to the real function, else which session of this process */
  uint32_t alive;    /* 1 in the process that loaded the shim, 0 in its forked children */
  uint32_t counting; /* the allocation and mapping hooks' own: as collecting, but 0 where another malloc comes first */
  uint32_t sites;    /* 1 once a block was sampled: free looks at the filter */
  uint8_t page_free[4080];
};
extern struct m6_gate m6_gate __attribute__((visibility("hidden"), aligned(4096)));
static inline int m6_gate_open(const uint32_t *word)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  int open; /* compare with memory: one instruction less than a load, which the compiler will not fold */
  __asm__ volatile("cmpl $0, %1" : "=@ccne"(open) : "m"(*word));
  return open;
#else
  return m6_peek(word) != 0;
#endif
}
#define m6_collecting() m6_unlikely(m6_gate_open(&m6_gate.collecting))
#define m6_counting() m6_unlikely(m6_gate_open(&m6_gate.counting))

/* ---- the segment ------------------------------------------------------------------------------------------------ */
extern struct m6_header *m6_seg __attribute__((visibility("hidden"))); /* NULL: none; nothing is ever collected */
extern uint32_t m6_clock_kind __attribute__((visibility("hidden")));
/* Stands for this segment in what the places of marks cache (struct mach6_site): its load time's low bits, never 0. */
extern uint32_t m6_mark_key __attribute__((visibility("hidden")));
static inline uint64_t m6_now(void) { return m6_clock_read(m6_clock_kind); }
static inline struct m6_slot *m6_slots(void) { return (struct m6_slot *)((char *)m6_seg + M6_OFF_SLOTS); }

/* Says in header.unseen what the books will not show; a forked child says nothing: the segment is its parent's. */
static inline void m6_note_unseen(uint32_t bit)
{
  if (m6_seg && m6_peek(&m6_gate.alive) && !(m6_peek(&m6_seg->unseen) & bit)) m6_shared_or(&m6_seg->unseen, bit);
}

/* Looks at the control line and starts or stops collecting accordingly. Cheap when nothing changed. Called at frame
 * boundaries, at marks while inert, when a thread takes its ring, at mapping calls, dlopen, and full rings. */
void m6_poll_control(uint64_t now_ns_or_0) __attribute__((visibility("hidden")));
/* Populates [offset, offset + bytes) of the segment; 0 or an errno. Slow: a syscall. Keeps the caller's errno. */
int m6_populate(uint32_t offset, uint32_t bytes) __attribute__((visibility("hidden")));
/* The same, but at no cost when it was done before. */
int m6_ensure(uint32_t offset, uint32_t bytes) __attribute__((visibility("hidden")));
/* Was the page at this offset populated? */
int m6_there(uint32_t offset) __attribute__((visibility("hidden")));
/* The one reason on stderr (write(2), no stdio); a second call does nothing. */
void m6_reason(int asked_for, const char *what, int err) __attribute__((visibility("hidden")));
/* The program break as libc has it; 0 where that cannot be told. */
uint64_t m6_break_now(void) __attribute__((visibility("hidden")));
/* Is there something new on the control line? For inert marks; cheaper than asking m6_poll_control. */
extern uint32_t m6_session_seen __attribute__((visibility("hidden")));
static inline int m6_start_pending(void)
{
  return m6_seg && m6_peek(&m6_seg->want) == M6_WANT_ON && m6_peek(&m6_seg->session) != m6_peek(&m6_session_seen);
}

/* ---- this thread ------------------------------------------------------------------------------------------------ */
enum m6_thread_state { M6_THREAD_NEW = 0, M6_THREAD_BUSY, M6_THREAD_LIVE, M6_THREAD_SHARED, M6_THREAD_GONE };
struct m6_thread {
  struct m6_slot *slot;        /* NULL: none of its own (see state) */
  int64_t site_left;           /* bytes to the next sampled one; below 0: passed */
  struct m6_producer producer; /* .records NULL: no ring (yet, or at all) */
  uint32_t depth;              /* open scopes */
  uint32_t state;              /* enum m6_thread_state */
  uint32_t present_depth;      /* presents nested on this thread's stack */
  uint32_t present_failed;     /* a nested present said that it failed */
  uint32_t present_stream;     /* of this thread's last present */
  uint32_t pending_lost;       /* records lost since the last one that fitted */
  uint32_t no_ring;            /* 1: asked and refused, or not allowed; do not ask again this session */
  uint32_t session;            /* gate.collecting when the words above were last known to be of this session */
  uint64_t *stack; /* where the innermost open scopes were marked, a ring of M6_SCOPE_STACK; NULL without a slot */
  uint64_t shared_allocs; /* events of this thread that went to slot 0: to tell whether a nested call was counted */
  uint64_t shared_frees;
  uint64_t site_random;           /* state of its random numbers; 0 = not seeded */
  uint32_t site_interval;         /* that site_left was drawn with; 0 = none */
  uint32_t stack_strikes;         /* times that a stack was not its own */
  uintptr_t stack_low, stack_top; /* of its own stack, as far as known */
};
#define M6_SCOPE_STACK 64u
#define M6_SCOPE_STACK_WORDS (M6_SCOPE_STACK + M6_SCOPE_STACK / 4) /* then as many labels, 16 bits each */
static inline uint16_t *m6_scope_labels(const struct m6_thread *t) { return (uint16_t *)(t->stack + M6_SCOPE_STACK); }
extern __thread struct m6_thread m6_self __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Gives this thread a slot when it may have one. After it m6_self.slot may still be NULL: then use the shared slot 0
 * (m6_shared_add on its words). Keeps errno. */
void m6_thread_enter(void) __attribute__((visibility("hidden"), cold));
/* Adds one event to this thread's slot, or to slot 0 when it has none: the slow half of the counting hooks. Keeps
 * errno. */
struct m6_event {
  uint64_t live, bytes, allocs, frees; /* two's complement, all of them */
  uint32_t kind;                       /* offset of a struct m6_kind in struct m6_slot; 0 = plain malloc */
};
void m6_count_slow(const struct m6_event *e) __attribute__((visibility("hidden"), cold));
/* Adds to a slot's `mapped` and `maps`. */
void m6_count_mapping(uint64_t bytes) __attribute__((visibility("hidden")));
/* This thread's number, as the kernel has it; 0 when it can't be known. No system call where libc tells. */
uint32_t m6_tid(void) __attribute__((visibility("hidden"), cold));
/* A session began since this thread last looked: forget the last one's scopes and ring. */
void m6_thread_session(void) __attribute__((visibility("hidden"), cold));
/* Gives this thread a ring (and a slot) when it may have one: 1 = m6_self.producer is usable. Emits START. Keeps
 * errno. */
int m6_thread_ring(void) __attribute__((visibility("hidden"), cold));

/* The process's heap reading and allocation count: sums over all slots. Exact when the process is at rest, absolute
 * always. */
struct m6_reading {
  uint64_t live, allocs;
};
static inline struct m6_reading m6_process_reading(void)
{
  struct m6_reading r = {0, 0};
  const struct m6_slot *s = m6_slots();
  for (uint32_t n = m6_peek(&m6_seg->slots_used), i = 0; i < n; i++) {
    r.live += m6_peek(&s[i].live);
    r.allocs += m6_peek(&s[i].allocs);
  }
  return r;
}
/* This thread's own: slot 0's when it has none. */
static inline struct m6_reading m6_thread_reading(void)
{
  const struct m6_slot *s = m6_self.slot ? m6_self.slot : m6_slots();
  struct m6_reading r = {m6_peek(&s->live), m6_peek(&s->allocs)};
  return r;
}

/* Room for n records (n <= M6_FRAME_UNITS) in this thread's ring? Gets the ring first when needed; says a pending loss
 * in-band; counts one loss when the answer is no, a frame's four records being one. */
int m6_ring_ready(unsigned n) __attribute__((visibility("hidden")));

/* ---- sampled allocations (sample.c) ------------------------------------------------------------------------------ */
/* A block of so many bytes: is a sample due? One subtraction and its sign. */
static inline int m6_site_due(uint64_t bytes)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  int due;
  __asm__ volatile("subq %2, %1" : "=@ccs"(due), "+m"(m6_self.site_left) : "er"(bytes) : "cc");
  return m6_unlikely(due);
#else
  return m6_unlikely((m6_self.site_left -= (int64_t)bytes) < 0);
#endif
}
void m6_site_sample(const void *p, uint64_t bytes) __attribute__((visibility("hidden")));
/* May this block be a sampled one? Neighbours in memory share a line of the filter. */
#define M6_SITE_FILTER 16384u
extern uint8_t m6_site_filter[M6_SITE_FILTER] __attribute__((visibility("hidden")));
static inline uint32_t m6_site_hash(uint64_t address) { return (uint32_t)(address >> 4) % M6_SITE_FILTER; }
static inline int m6_site_maybe(const void *p)
{
  if (m6_likely(!m6_gate_open(&m6_gate.sites))) return 0;
  const uint8_t *n = &m6_site_filter[m6_site_hash((uintptr_t)p)];
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  int some; /* as m6_gate_open */
  __asm__ volatile("cmpb $0, %1" : "=@ccne"(some) : "m"(*n));
  return m6_unlikely(some);
#else
  return m6_unlikely(m6_peek(n));
#endif
}
/* Before the block is given back: says that it is, when it is a sample. */
void m6_site_free(const void *p) __attribute__((visibility("hidden")));
/* The same where that may fail (realloc): hold gives its key, 0 for no sample; then settle says how it went. */
uint64_t m6_site_hold(const void *p) __attribute__((visibility("hidden")));
/* So many bytes that the program has mapped here (placed: at an address that it chose); and that went, at some time
 * after `clock`. Without bytes nothing. */
void m6_site_mapped(const void *at, uint64_t bytes, int placed) __attribute__((visibility("hidden"), cold));
void m6_site_unmapped(uint64_t clock, const void *at, uint64_t bytes) __attribute__((visibility("hidden"), cold));
/* Between two sessions. */
void m6_site_forget(void) __attribute__((visibility("hidden"), cold));
void m6_site_settle(uint64_t key, int gone) __attribute__((visibility("hidden"), cold));

/* ---- the next functions in line --------------------------------------------------------------------------------- */
/* Each starts as a boot stub that resolves all of them, so that the inert path is one indirect jump. */
struct m6_real {
  void *(*malloc)(size_t);
  void (*free)(void *);
  void *(*calloc)(size_t, size_t);
  void *(*realloc)(void *, size_t);
  void *(*reallocarray)(void *, size_t, size_t);
  void *(*memalign)(size_t, size_t);
  void *(*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void **, size_t, size_t);
  void *(*valloc)(size_t);
  void *(*pvalloc)(size_t);
  size_t (*usable)(void *);
  void (*free_sized)(void *, size_t);
  void (*free_aligned_sized)(void *, size_t, size_t);
  size_t (*measure)(void *); /* usable size as the books take it: 0 where it can't be known. Set when the gate opens */
};
extern struct m6_real m6_real __attribute__((visibility("hidden")));
/* alloc.c's hooks, by names that are always ours: where a boot stub starts a call over once all is decided. */
void *m6_hook_malloc(size_t) __attribute__((visibility("hidden")));
void *m6_hook_calloc(size_t, size_t) __attribute__((visibility("hidden")));
void *m6_hook_realloc(void *, size_t) __attribute__((visibility("hidden")));
void *m6_hook_reallocarray(void *, size_t, size_t) __attribute__((visibility("hidden")));
void *m6_hook_memalign(size_t, size_t) __attribute__((visibility("hidden")));
void *m6_hook_aligned_alloc(size_t, size_t) __attribute__((visibility("hidden")));
int m6_hook_posix_memalign(void **, size_t, size_t) __attribute__((visibility("hidden")));
void *m6_hook_valloc(size_t) __attribute__((visibility("hidden")));
void *m6_hook_pvalloc(size_t) __attribute__((visibility("hidden")));
void m6_hook_free(void *) __attribute__((visibility("hidden")));
/* The mapping calls. These start as plain system calls. */
struct m6_real_map {
  void *(*mmap)(void *, size_t, int, int, int, off_t);
  void *(*mmap64)(void *, size_t, int, int, int, off64_t);
  int (*munmap)(void *, size_t);
  void *(*mremap)(void *, size_t, size_t, int, ...);
  int (*brk)(void *);
  void *(*sbrk)(intptr_t);
};
extern struct m6_real_map m6_real_map __attribute__((visibility("hidden")));
void *m6_sys_mmap(void *, size_t, int, int, int, off_t)
  __attribute__((visibility("hidden")));                              /* the system call itself */
void m6_next_maps(void) __attribute__((visibility("hidden"), cold));  /* fills it */
void m6_next_execs(void) __attribute__((visibility("hidden"), cold)); /* the same for exec.c */

/* ---- between boot.c, segment.c, slot.c -------------------------------------------------------------------------- */
/* What the environment says; read once. */
struct m6_options {
  uint64_t run_token;
  uint32_t sessions;
  uint32_t sites; /* mean bytes between sampled ones, from the start on; 0 = none */
  uint8_t verbose, disable, run;
};
extern struct m6_options m6_options __attribute__((visibility("hidden")));
int m6_segment_create(void) __attribute__((visibility("hidden"), cold)); /* 0, or it has given its reason */
void m6_segment_start(void) __attribute__((visibility("hidden"), cold)); /* MACH6_RUN: collect from here on */
void m6_segment_exit(void) __attribute__((visibility("hidden"), cold));
int m6_slots_init(void) __attribute__((visibility("hidden"), cold));
/* All signals off and back: for the slow paths that a handler, or a cancellation, must not cut in two. */
void m6_signals_off(uint64_t old[2]) __attribute__((visibility("hidden"), cold));
void m6_signals_back(const uint64_t old[2]) __attribute__((visibility("hidden"), cold));

/* The next definition of a symbol after this library (RTLD_NEXT), through the next dlsym in line; NULL when there is
 * none.
 * May allocate. */
void *m6_next(const char *symbol) __attribute__((visibility("hidden"), cold));
/* The same of what has one of libc's versions: libc's own, whoever else interposes it. Not before m6_next was called.
 * */
void *m6_next_versioned(const char *symbol) __attribute__((visibility("hidden"), cold));
/* Resolves and decides whatever is not resolved and decided yet; harmless at any time, from any thread. Keeps errno. */
void m6_boot(void) __attribute__((visibility("hidden"), cold));
/* The module that an address belongs to; NULL when it can't be told. No lock, but on a glibc before 2.35. */
struct link_map;
struct link_map *m6_module_of(const void *address) __attribute__((visibility("hidden"), cold));
/* libc's own dlsym, for RTLD_NEXT: it takes its caller from the return address, so no C wrapper may come between.
 * NULL before boot. */
extern void *(*m6_libc_dlsym)(void *, const char *)__attribute__((visibility("hidden")));
/* dlsym of the next library in line that exports one (libc's, or another preload's). Never ours. */
extern void *(*m6_real_dlsym)(void *, const char *)__attribute__((visibility("hidden")));
/* libc's own dlvsym, which only the list of what is loaded leads to (versioned.c); NULL before m6_find_dlvsym. */
extern void *(*m6_libc_dlvsym)(void *, const char *, const char *)__attribute__((visibility("hidden")));
void m6_find_dlvsym(void) __attribute__((visibility("hidden"), cold));
/* Is this address inside this library's own text? */
int m6_is_ours(const void *address) __attribute__((visibility("hidden")));

/* ---- presents (present.c) --------------------------------------------------------------------------------------- */
struct m6_present {
  struct m6_reading process, thread;
  uint64_t clock, display, drawable;
  uint64_t inner_display, inner_drawable; /* of the first present nested in it; 0 = none */
  const void *caller;
  uint32_t symbol, route;
  uint32_t outermost; /* 0: nested or inert; leave does nothing but count depth down */
  uint32_t entered;   /* the session it began in; 0: inert */
  uint32_t stream;    /* what it was told to be when it began */
  uint64_t number;
};
/* On entry to a present and on its return; p lies in the caller's stack frame. `ok`: it succeeded, as its result
 * says, or where it returns nothing, as the presents nested in it said. */
void m6_present_enter(struct m6_present *p, uint32_t symbol, uint32_t route, uint64_t display, uint64_t drawable,
                      const void *caller) __attribute__((visibility("hidden")));
void m6_present_leave(struct m6_present *p, int ok) __attribute__((visibility("hidden")));
/* mach6_frame(): a boundary without a present around it. */
void m6_present_explicit(const void *caller) __attribute__((visibility("hidden")));
/* Places that do nothing, where the kernel can be told of a boundary (frame_probe.S); reached only while collecting. */
void m6_frame_entered(uint64_t stream, uint64_t number, uint64_t whole) __attribute__((visibility("hidden")));
void m6_frame_corrected(uint64_t stream, uint64_t number) __attribute__((visibility("hidden")));
/* A drawable is destroyed: the next present on that handle is a new stream. */
void m6_present_destroyed(uint64_t drawable) __attribute__((visibility("hidden")));

#endif
