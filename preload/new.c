/* new.c - C++'s operator new and delete, where an allocator brings its own.
 *
 * Promise: the next definition does the work, exceptions pass through, and every block is counted once. Most
 * definitions (libstdc++'s) call malloc and free: those calls are counted in alloc.c, and from here the call is one
 * jump. Only operators that live in the same library as malloc_usable_size, and do not call malloc (tcmalloc's), are
 * counted here; what each does is learned from its first counted call. Operators of any other origin are a pool whose
 * blocks nobody can measure: not counted, and header.unseen says so. A program's own operators come before ours and are
 * never seen here.
 *
 * A library that was loaded by dlopen may need an operator that is not in the global scope (libLLVM's libstdc++ under a
 * game in C). RTLD_NEXT does not see that one; then the caller's own scope is asked.
 * May call: the next functions, dlopen with RTLD_NOLOAD once a process, slot.c's slow half, sample.c. errno is
 * kept.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "internal.h"

typedef const void *nothrow; /* std::nothrow_t by reference; not used by us */
#if __SIZEOF_SIZE_T__ == 8
#define SZ "m"
#else
#define SZ "j"
#endif

/* X(name, symbol, parameters, arguments): every operator of the Itanium C++ ABI that allocates, then those that
 * free. */
#define NEWS(X)                                                                                                        \
  X(n, "_Znw" SZ, (size_t n), (n))                                                                                     \
  X(na, "_Zna" SZ, (size_t n), (n))                                                                                    \
  X(nt, "_Znw" SZ "RKSt9nothrow_t", (size_t n, nothrow t), (n, t))                                                     \
  X(nat, "_Zna" SZ "RKSt9nothrow_t", (size_t n, nothrow t), (n, t))                                                    \
  X(nl, "_Znw" SZ "St11align_val_t", (size_t n, size_t l), (n, l))                                                     \
  X(nal, "_Zna" SZ "St11align_val_t", (size_t n, size_t l), (n, l))                                                    \
  X(nlt, "_Znw" SZ "St11align_val_tRKSt9nothrow_t", (size_t n, size_t l, nothrow t), (n, l, t))                        \
  X(nalt, "_Zna" SZ "St11align_val_tRKSt9nothrow_t", (size_t n, size_t l, nothrow t), (n, l, t))
#define DELETES(X)                                                                                                     \
  X(d, "_ZdlPv", (void *p), (p))                                                                                       \
  X(da, "_ZdaPv", (void *p), (p))                                                                                      \
  X(ds, "_ZdlPv" SZ, (void *p, size_t n), (p, n))                                                                      \
  X(das, "_ZdaPv" SZ, (void *p, size_t n), (p, n))                                                                     \
  X(dt, "_ZdlPvRKSt9nothrow_t", (void *p, nothrow t), (p, t))                                                          \
  X(dat, "_ZdaPvRKSt9nothrow_t", (void *p, nothrow t), (p, t))                                                         \
  X(dl, "_ZdlPvSt11align_val_t", (void *p, size_t l), (p, l))                                                          \
  X(dal, "_ZdaPvSt11align_val_t", (void *p, size_t l), (p, l))                                                         \
  X(dsl, "_ZdlPv" SZ "St11align_val_t", (void *p, size_t n, size_t l), (p, n, l))                                      \
  X(dasl, "_ZdaPv" SZ "St11align_val_t", (void *p, size_t n, size_t l), (p, n, l))                                     \
  X(dlt, "_ZdlPvSt11align_val_tRKSt9nothrow_t", (void *p, size_t l, nothrow t), (p, l, t))                             \
  X(dalt, "_ZdaPvSt11align_val_tRKSt9nothrow_t", (void *p, size_t l, nothrow t), (p, l, t))

#define ENUM(name, ...) OP_##name,
enum operators { NEWS(ENUM) DELETES(ENUM) OP_COUNT };
enum { UNKNOWN, PASSES, COUNTED_HERE }; /* what is known of an operator: does it come through alloc.c's hooks? */
static uint8_t learned[OP_COUNT];
static uint32_t resolved;

#define FIELD_NEW(name, symbol, params, args) void *(*name)params;
#define FIELD_DELETE(name, symbol, params, args) void(*name) params;
#define STUB_NEW(name, symbol, params, args) static void *stub_##name params;
#define STUB_DELETE(name, symbol, params, args) static void stub_##name params;
NEWS(STUB_NEW)
DELETES(STUB_DELETE)
#define INIT(name, ...) .name = stub_##name,
static struct {
  NEWS(FIELD_NEW) DELETES(FIELD_DELETE)
} next = {NEWS(INIT) DELETES(INIT)};

/* ---- finding the next ones -------------------------------------------------------------------------------------- */

/* The last resort where no C++ library is in sight at all: a block of malloc's, which free takes back. */
static void *last_new(size_t n, size_t l)
{
  if (n == 0) n = 1;
  return l > 16 ? m6_hook_memalign(l, n) : m6_hook_malloc(n);
}
static void last_delete(void *p) { m6_hook_free(p); }
static void *last_new_plain(size_t n) { return last_new(n, 0); }

static const char *base_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The operator in the scope that the global one does not show: of the caller's module, or a C++ library that is
 * loaded. */
static void *hidden_operator(const char *symbol, const void *caller)
{
  static const char *const libraries[] = {NULL, "libstdc++.so.6", "libc++.so.1"};
  struct link_map *module = m6_module_of(caller);
  for (unsigned i = 0; i < 3; i++) {
    const char *file = i ? libraries[i] : module && *module->l_name ? module->l_name : NULL;
    void *handle = file ? dlopen(file, RTLD_NOLOAD | RTLD_LAZY) : NULL;
    void *p = handle && m6_real_dlsym ? m6_real_dlsym(handle, symbol) : NULL;
    if (p && !m6_is_ours(p)) return p; /* the handle stays: so does the library */
    if (handle) dlclose(handle);
  }
  return NULL;
}

static void note_origin(void *p, uint8_t *what)
{
  struct link_map *module = m6_module_of(p);
  if (module && module == m6_module_of(m6_next("malloc_usable_size"))) return; /* UNKNOWN: to be learned */
  m6_poke(what, PASSES);
  const char *file = module ? base_name(module->l_name) : "";
  if (module && strncmp(file, "libstdc++", 9) && strncmp(file, "libc++", 6)) m6_note_unseen(M6_UNSEEN_OWN_NEW);
}

static M6_COLD void resolve(const void *caller)
{
  int e = errno;
  m6_boot();
  void *p;
#define FIND(name, symbol, last)                                                                                       \
  p = m6_next(symbol);                                                                                                 \
  if (!p) p = hidden_operator(symbol, caller);                                                                         \
  if (p) note_origin(p, &learned[OP_##name]);                                                                          \
  else m6_poke(&learned[OP_##name], PASSES);                                                                           \
  if (!p) p = (void *)last;                                                                                            \
  m6_publish((void **)&next.name, p);
#define FIND_NEW(name, symbol, params, args)                                                                           \
  FIND(name, symbol, (OP_##name < OP_nl ? (void *)last_new_plain : (void *)last_new))
#define FIND_DELETE(name, symbol, params, args) FIND(name, symbol, last_delete)
  if (!m6_observe(&resolved)) {
    NEWS(FIND_NEW)
    DELETES(FIND_DELETE)
    m6_publish(&resolved, 1);
  }
  errno = e;
}

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))
#define DEFINE_STUB_NEW(name, symbol, params, args)                                                                    \
  static M6_COLD void *stub_##name params                                                                              \
  {                                                                                                                    \
    resolve(CALLER);                                                                                                   \
    return next.name args;                                                                                             \
  }
#define DEFINE_STUB_DELETE(name, symbol, params, args)                                                                 \
  static M6_COLD void stub_##name params                                                                               \
  {                                                                                                                    \
    resolve(CALLER);                                                                                                   \
    next.name args;                                                                                                    \
  }
NEWS(DEFINE_STUB_NEW)
DELETES(DEFINE_STUB_DELETE)

/* ---- the hooks -------------------------------------------------------------------------------------------------- */

static uint64_t allocs_so_far(void)
{
  if (m6_unlikely(!m6_self.slot)) m6_thread_enter();
  return m6_self.slot ? m6_peek(&m6_self.slot->allocs) : m6_self.shared_allocs;
}
static uint64_t frees_so_far(void)
{
  if (m6_unlikely(!m6_self.slot)) m6_thread_enter();
  return m6_self.slot ? m6_peek(&m6_self.slot->frees) : m6_self.shared_frees;
}

static void count_new(void *p, uint8_t *what, uint64_t before)
{
  uint64_t seen = allocs_so_far() - before;
  if (!p || seen > 1) return;
  if (seen == 1) {
    m6_poke(what, PASSES);
    return;
  }
  m6_poke(what, COUNTED_HERE);
  uint64_t bytes = m6_real.measure(p);
  struct m6_event e = {bytes, bytes, 1, 0, offsetof(struct m6_slot, new_)};
  m6_count_slow(&e);
  if (m6_site_due(bytes)) m6_site_sample(p, bytes);
}
static void count_delete(uint64_t bytes)
{
  struct m6_event e = {-bytes, 0, 0, 1, 0};
  m6_count_slow(&e);
}

/* The second half of each is a function of its own, so that the first needs no stack. */
#define HOOK_NEW(name, symbol, params, args)                                                                           \
  static __attribute__((noinline)) void *counted_##name params                                                         \
  {                                                                                                                    \
    uint64_t before = allocs_so_far();                                                                                 \
    void *p = next.name args;                                                                                          \
    count_new(p, &learned[OP_##name], before);                                                                         \
    return p;                                                                                                          \
  }                                                                                                                    \
  M6_EXPORT void *m6_operator_##name params __asm__(symbol);                                                           \
  M6_EXPORT void *m6_operator_##name params                                                                            \
  {                                                                                                                    \
    if (!m6_counting() || m6_likely(m6_peek(&learned[OP_##name]) == PASSES)) return next.name args;                    \
    return counted_##name args;                                                                                        \
  }
#define HOOK_DELETE(name, symbol, params, args)                                                                        \
  static __attribute__((noinline)) void counted_##name params                                                          \
  {                                                                                                                    \
    if (!p || !m6_observe(&resolved)) {                                                                                \
      next.name args;                                                                                                  \
      return;                                                                                                          \
    }                                                                                                                  \
    uint64_t bytes = m6_real.measure(p);                                                                               \
    if (m6_site_maybe(p)) m6_site_free(p);                                                                             \
    if (m6_peek(&learned[OP_##name]) == COUNTED_HERE) {                                                                \
      count_delete(bytes);                                                                                             \
      next.name args;                                                                                                  \
      return;                                                                                                          \
    }                                                                                                                  \
    uint64_t before = frees_so_far();                                                                                  \
    next.name args;                                                                                                    \
    int passed = frees_so_far() != before;                                                                             \
    m6_poke(&learned[OP_##name], passed ? PASSES : COUNTED_HERE);                                                      \
    if (!passed) count_delete(bytes); /* this once after the block was given back: it was not known before */          \
  }                                                                                                                    \
  M6_EXPORT void m6_operator_##name params __asm__(symbol);                                                            \
  M6_EXPORT void m6_operator_##name params                                                                             \
  {                                                                                                                    \
    if (!m6_counting() || m6_likely(m6_peek(&learned[OP_##name]) == PASSES)) next.name args;                           \
    else counted_##name args;                                                                                          \
  }
NEWS(HOOK_NEW)
DELETES(HOOK_DELETE)
