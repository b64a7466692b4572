/* boot.c - from the first call that reaches this library to the moment when it knows its place.
 *
 * Promise: every function of m6_real works at any time. Each starts as a stub that resolves the next functions in line;
 * the first call after the environment became readable also decides (disabled, a segment, a session) and puts the next
 * functions themselves into m6_real, so that from then on the inert path is one indirect jump.
 *   - What allocates while malloc itself is being looked up is served by a bounded arena of static memory; giving such
 *     a block back does nothing. If the arena was never used, nobody pays for the question.
 *   - Threads that race here never wait: each resolves for itself, the result is the same.
 *   - What is allocated before the decision is counted in the pre-boot account, which then goes to slot 0.
 * May call: libc's dlsym family and getauxval, segment.c, slot.c. errno is kept.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

extern char **environ;

struct m6_gate m6_gate;
struct m6_options m6_options;

static struct m6_real next; /* the next functions in line; all known once `resolved` is 1 */
static uint32_t resolved, decided, arena_used;
enum { UNDECIDED, DECIDING, DECIDED };
static __thread uint32_t booting __attribute__((tls_model("initial-exec")));

/* ---- the pre-boot account, and the arena ------------------------------------------------------------------------ */

static struct m6_slot before; /* many writers: locked adds */

static uint64_t measured(void *p) { return next.measure ? next.measure(p) : 0; }
static void *served(void *p, uint32_t kind)
{
  if (!p) return NULL;
  uint64_t bytes = measured(p);
  m6_shared_add(&before.live, bytes);
  m6_shared_add(&before.allocs, 1);
  m6_shared_add(&before.bytes, bytes);
  if (kind) {
    struct m6_kind *k = (struct m6_kind *)((char *)&before + kind);
    m6_shared_add(&k->count, 1);
    m6_shared_add(&k->bytes, bytes);
  }
  return p;
}

/* A block is a size in 16 bytes, then the payload. Zeroed, because it is never used twice. In the books it is an
 * allocation of no bytes. */
#define ARENA_BYTES 32768u
static char arena[ARENA_BYTES] __attribute__((aligned(16)));
static uint32_t arena_at;

static int in_arena(const void *p) { return (const char *)p >= arena && (const char *)p < arena + ARENA_BYTES; }
static size_t arena_size(const void *p) { return *(const size_t *)((const char *)p - 16); }

static void *arena_take(size_t n, size_t align)
{
  m6_poke(&arena_used, 1);
  if (align < 16) align = 16;
  if (n > ARENA_BYTES || align > ARENA_BYTES / 4) goto full;
  size_t room = ((n + 15) & ~(size_t)15) + 16 + (align > 16 ? align : 0);
  if (room > ARENA_BYTES) goto full;
  uint32_t at = m6_shared_add(&arena_at, (uint32_t)room);
  if (at > ARENA_BYTES - room) {
    m6_poke(&arena_at, ARENA_BYTES);
    goto full;
  }
  char *p = (char *)(((uintptr_t)arena + at + 16 + align - 1) & ~(uintptr_t)(align - 1));
  *(size_t *)(p - 16) = n;
  m6_shared_add(&before.allocs, 1);
  return p;
full:
  errno = ENOMEM;
  return NULL;
}

/* What m6_real holds instead of the next functions when the arena was used. */
static void checked_free(void *p)
{
  if (!in_arena(p)) next.free(p);
}
#ifdef M6_FREE_SIZED
static void checked_free_sized(void *p, size_t n)
{
  if (!in_arena(p)) next.free_sized(p, n);
}
static void checked_free_aligned_sized(void *p, size_t a, size_t n)
{
  if (!in_arena(p)) next.free_aligned_sized(p, a, n);
}
#endif
static size_t checked_measure(void *p) { return in_arena(p) ? 0 : next.measure(p); }
static size_t checked_usable(void *p) { return in_arena(p) ? arena_size(p) : next.usable(p); }
static void *checked_realloc(void *p, size_t n)
{
  if (!in_arena(p)) return next.realloc(p, n);
  if (n == 0) return NULL;
  void *q = next.malloc ? next.malloc(n) : arena_take(n, 16);
  if (q) memcpy(q, p, arena_size(p) < n ? arena_size(p) : n);
  return q;
}
static void *checked_reallocarray(void *p, size_t m, size_t n)
{
  size_t bytes;
  if (!in_arena(p)) return next.reallocarray(p, m, n);
  if (!__builtin_mul_overflow(m, n, &bytes)) return checked_realloc(p, bytes);
  errno = ENOMEM;
  return NULL;
}

/* ---- stubs: serve one call while nothing is decided ------------------------------------------------------------- */

/* After m6_boot: is m6_real now the real thing? */
static int settled(void)
{
  m6_boot();
  return m6_observe(&decided) == DECIDED;
}

/* Once settled, the call starts over in its hook and is counted as any other. A hook reaches its stub only through
 * its inert half, so this recurses once. */
static void *boot_malloc(size_t n)
{
  if (settled()) return m6_hook_malloc(n);
  return next.malloc ? served(next.malloc(n), 0) : arena_take(n, 16);
}
static void *boot_calloc(size_t m, size_t n)
{
  size_t bytes;
  if (settled()) return m6_hook_calloc(m, n);
  if (next.calloc) return served(next.calloc(m, n), offsetof(struct m6_slot, calloc_));
  if (__builtin_mul_overflow(m, n, &bytes)) bytes = SIZE_MAX;
  return arena_take(bytes, 16);
}
static void boot_free(void *p)
{
  int done = settled();
  if (!p) return;
  if (done) {
    m6_hook_free(p);
    return;
  }
  m6_shared_add(&before.frees, 1);
  if (in_arena(p) || !next.free) return; /* or: nobody known to take it, keep it */
  m6_shared_add(&before.live, -measured(p));
  next.free(p);
}
static void *boot_realloc(void *p, size_t n)
{
  if (settled()) return m6_hook_realloc(p, n);
  if (in_arena(p)) return checked_realloc(p, n);
  if (!next.realloc) return p ? NULL : arena_take(n, 16);
  uint64_t old = p ? measured(p) : 0;
  void *q = next.realloc(p, n);
  if (q || (p && n == 0)) m6_shared_add(&before.live, -old);
  if (!q && p && n == 0) m6_shared_add(&before.frees, 1);
  return served(q, offsetof(struct m6_slot, realloc_));
}
static void *boot_reallocarray(void *p, size_t m, size_t n)
{
  size_t bytes;
  if (settled()) return m6_hook_reallocarray(p, m, n);
  if (!__builtin_mul_overflow(m, n, &bytes)) return boot_realloc(p, bytes);
  errno = ENOMEM;
  return NULL;
}
#define ALIGNED offsetof(struct m6_slot, aligned)
static void *boot_memalign(size_t a, size_t n)
{
  if (settled()) return m6_hook_memalign(a, n);
  return next.memalign ? served(next.memalign(a, n), ALIGNED) : arena_take(n, a);
}
static void *boot_aligned_alloc(size_t a, size_t n)
{
  if (settled()) return m6_hook_aligned_alloc(a, n);
  return next.aligned_alloc ? served(next.aligned_alloc(a, n), ALIGNED) : arena_take(n, a);
}
static int boot_posix_memalign(void **out, size_t a, size_t n)
{
  if (settled()) return m6_hook_posix_memalign(out, a, n);
  if (next.posix_memalign) {
    int e = next.posix_memalign(out, a, n);
    if (!e) served(*out, ALIGNED);
    return e;
  }
  if (a % sizeof(void *) || !a || a & (a - 1)) return EINVAL;
  void *p = arena_take(n, a);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}
static void *boot_valloc(size_t n)
{
  if (settled()) return m6_hook_valloc(n);
  return next.valloc ? served(next.valloc(n), ALIGNED) : arena_take(n, M6_PAGE);
}
static void *boot_pvalloc(size_t n)
{
  if (settled()) return m6_hook_pvalloc(n);
  return next.pvalloc ? served(next.pvalloc(n), ALIGNED) : arena_take(n, M6_PAGE);
}
static size_t boot_usable(void *p)
{
  int done = settled();
  if (!p) return 0;
  if (in_arena(p)) return arena_size(p);
  return done ? m6_real.usable(p) : next.usable ? next.usable(p) : 0;
}
#ifdef M6_FREE_SIZED
static void boot_free_sized(void *p, size_t n)
{
  (void)n;
  boot_free(p);
}
static void boot_free_aligned_sized(void *p, size_t a, size_t n)
{
  (void)a, (void)n;
  boot_free(p);
}
#endif

/* First what resolution itself may need: a dlsym that fails allocates, and dlerror frees. */
#define FIRST_REALS(X)                                                                                                 \
  X(malloc, "malloc") X(free, "free") X(calloc, "calloc") X(realloc, "realloc") X(usable, "malloc_usable_size")
#define OTHER_REALS(X)                                                                                                 \
  X(memalign, "memalign")                                                                                              \
  X(aligned_alloc, "aligned_alloc")                                                                                    \
  X(posix_memalign, "posix_memalign")                                                                                  \
  X(valloc, "valloc") X(pvalloc, "pvalloc") X(reallocarray, "reallocarray") SIZED_REALS(X)
#ifdef M6_FREE_SIZED
#define SIZED_REALS(X) X(free_sized, "free_sized") X(free_aligned_sized, "free_aligned_sized")
#else /* not asked for: a lookup that fails leaves its mark on the heap */
#define SIZED_REALS(X)
#endif
#define REALS(X) FIRST_REALS(X) OTHER_REALS(X)
#define STUB(field, name) .field = boot_##field,
struct m6_real m6_real = {REALS(STUB)};

/* Stand-ins for what the next libraries do not have: then nothing that was linked can call it either. */
static void *no_alloc(size_t a, size_t n)
{
  (void)a, (void)n;
  errno = ENOMEM;
  return NULL;
}
static void *plain_reallocarray(void *p, size_t m, size_t n)
{
  size_t bytes;
  if (!__builtin_mul_overflow(m, n, &bytes)) return next.realloc(p, bytes);
  errno = ENOMEM;
  return NULL;
}
static size_t no_usable(void *p) /* nor any in the books */
{
  (void)p;
  return 0;
}

/* ---- resolving -------------------------------------------------------------------------------------------------- */

static void resolve(void)
{
  if (m6_likely(m6_observe(&resolved))) return;
#define FIND(field, name) m6_poke((void **)&next.field, m6_next(name));
#define OR(field, f)                                                                                                   \
  if (!next.field) next.field = f;
  FIRST_REALS(FIND)
  OR(usable, no_usable)
  /* Another malloc without a malloc_usable_size beside it: libc's must not measure its blocks. */
  struct link_map *a = m6_module_of((void *)next.malloc), *b = m6_module_of((void *)next.usable);
  m6_poke((void **)&next.measure, (void *)(a && b && a != b ? no_usable : next.usable));
  OTHER_REALS(FIND)
  OR(memalign, no_alloc)
  OR(aligned_alloc, no_alloc)
  OR(reallocarray, plain_reallocarray)
  m6_next_maps();
  m6_next_execs();
  m6_publish(&resolved, 1);
}

/* ---- deciding --------------------------------------------------------------------------------------------------- */

static const char *variable(const char *name, size_t n)
{
  for (char **e = environ; *e; e++)
    if (strncmp(*e, name, n) == 0 && (*e)[n] == '=') return *e + n + 1;
  return NULL;
}
#define VARIABLE(name) variable(name, sizeof name - 1)

static uint64_t number(const char *s, unsigned base)
{
  uint64_t v = 0;
  for (; *s; s++) {
    unsigned d = *s >= '0' && *s <= '9'                 ? (unsigned)(*s - '0')
                 : (*s | 32) >= 'a' && (*s | 32) <= 'f' ? (unsigned)((*s | 32) - 'a' + 10)
                                                        : 99;
    if (d >= base) break;
    v = v * base + d;
  }
  return v;
}

static void read_options(void)
{
  const char *v = VARIABLE("MACH6_RUN");
  m6_options.run_token = v ? number(v, 16) : 0;
  m6_options.run = m6_options.run_token != 0;
  v = VARIABLE("MACH6_SESSIONS");
  uint64_t n = v && *v ? number(v, 10) : 1;
  m6_options.sessions = n > 1000000 ? 1000000 : (uint32_t)n;
  v = VARIABLE("MACH6_SITES");
  n = v ? number(v, 10) : 0;
  m6_options.sites = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
  v = VARIABLE("MACH6_VERBOSE");
  m6_options.verbose = v && *v == '1';
  v = VARIABLE("MACH6_DISABLE");
  m6_options.disable = v && *v == '1';
}

/* The gate's page becomes one that the kernel wipes in a forked child. */
static int make_gate(void)
{
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
  if (getauxval(AT_PAGESZ) != sizeof m6_gate) return EINVAL;
  if (m6_sys_mmap(&m6_gate, sizeof m6_gate, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED)
    return errno;
  if (syscall(SYS_madvise, &m6_gate, sizeof m6_gate, MADV_WIPEONFORK) != 0) return errno;
  m6_gate.alive = 1;
  return 0;
}

/* What this process does that the books will not show. */
static void look_around(void)
{
  void *first = m6_libc_dlsym(RTLD_DEFAULT, "malloc");
  if (first && !m6_is_ours(first)) m6_note_unseen(M6_UNSEEN_MALLOC_NOT_FIRST);
  first = m6_libc_dlsym(RTLD_DEFAULT, sizeof(size_t) == 8 ? "_Znwm" : "_Znwj");
  if (first && !m6_is_ours(first)) m6_note_unseen(M6_UNSEEN_OWN_NEW);
  static const char *const presents[] = {
    "glXSwapBuffers",
    "eglSwapBuffers",
    "vkQueuePresentKHR",
#if defined(__x86_64__)
    "dlsym"
#endif
  };
  for (unsigned i = 0; i < sizeof presents / sizeof *presents; i++) {
    first = m6_libc_dlsym(RTLD_DEFAULT, presents[i]);
    if (first && !m6_is_ours(first)) m6_note_unseen(M6_UNSEEN_PRESENT_NOT_FIRST);
  }
  if (next.measure == no_usable) m6_note_unseen(M6_UNSEEN_SIZES);
}

/* A foreign allocator may set itself up when it is first asked for a size (tcmalloc makes an object by operator
 * new): before anything is counted, or counting would ask again. */
static void warm_up(void)
{
  if (next.measure == no_usable || m6_module_of((void *)next.malloc) == m6_module_of((void *)m6_libc_dlvsym)) return;
  void *p = served(next.malloc(1), 0);
  m6_shared_add(&before.live, -measured(p));
  m6_shared_add(&before.frees, p != NULL);
  next.free(p);
}

static void fold_before(void)
{
  if (!m6_seg) return;
  struct m6_slot *zero = m6_slots();
  m6_shared_add(&m6_seg->preboot_allocs, m6_peek(&before.allocs));
  uint64_t *from = (uint64_t *)&before, *to = (uint64_t *)zero;
  for (size_t i = 0; i < sizeof before / 8; i++)
    if (i != offsetof(struct m6_slot, tid) / 8)
      m6_shared_add(&to[i], __atomic_exchange_n(&from[i], 0, __ATOMIC_RELAXED));
}

static void decide(void)
{
  uint32_t nothing = UNDECIDED;
  if (!m6_claim(&decided, &nothing, DECIDING)) return;
  uint64_t signals[2];
  m6_signals_off(signals);
  read_options();
  int on = 0;
  if (!m6_options.disable && !getauxval(AT_SECURE)) {
    int e = make_gate();
    if (e) m6_reason(m6_options.run, "cannot make a page that is wiped on fork; nothing is collected", e);
    else if ((e = m6_slots_init()) != 0) m6_reason(m6_options.run, "cannot make a thread key; nothing is collected", e);
    else on = m6_segment_create() == 0;
  }
  if (on) {
    look_around();
    warm_up();
    fold_before();
  }
  struct m6_real use = next;
  if (m6_peek(&arena_used)) {
    use.free = checked_free;
    use.realloc = checked_realloc;
    use.reallocarray = checked_reallocarray;
    use.usable = checked_usable;
    use.measure = checked_measure;
#ifdef M6_FREE_SIZED
    use.free_sized = checked_free_sized;
    use.free_aligned_sized = checked_free_aligned_sized;
#endif
  }
#define USE(field, name) m6_publish((void **)&m6_real.field, (void *)use.field);
  REALS(USE)
  m6_publish((void **)&m6_real.measure, (void *)use.measure);
  if (on && m6_options.run) m6_segment_start();
  m6_publish(&decided, DECIDED);
  if (on) fold_before();
  m6_signals_back(signals);
}

void m6_boot(void)
{
  if (booting || m6_observe(&decided) == DECIDED) return;
  int e = errno;
  booting = 1;
  resolve();
  if (environ && next.malloc && m6_observe(&decided) == UNDECIDED) decide();
  booting = 0;
  errno = e;
}

__attribute__((constructor)) static void constructed(void) { m6_boot(); }
__attribute__((destructor)) static void destructed(void)
{
  if (m6_gate.alive) m6_segment_exit();
}
