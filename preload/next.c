/* next.c - the next functions in line: whose they are, and how to find them.
 *
 * Promise: a lookup of a name that exists neither allocates nor waits, but for the dynamic linker's own lock, so a
 * mapping call may make one from inside an allocator. Mapping calls are plain system calls until the next ones are
 * known. Nothing is cached here but dlsym itself. May call: libc's dlsym family. errno is kept.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* both by the linker: our own bounds */
extern const char _etext[] __attribute__((visibility("hidden")));

void *(*m6_libc_dlsym)(void *, const char *);
void *(*m6_real_dlsym)(void *, const char *);

int m6_is_ours(const void *address) { return (const char *)address >= __ehdr_start && (const char *)address < _etext; }

struct link_map *m6_module_of(const void *address)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE /* since glibc 2.35, without a lock */
  extern int _dl_find_object(void *, struct dl_find_object *) __attribute__((weak));
  struct dl_find_object found;
  if (_dl_find_object) return _dl_find_object((void *)(uintptr_t)address, &found) == 0 ? found.dlfo_link_map : NULL;
#endif
  Dl_info info;
  struct link_map *map = NULL;
  return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* A definition with one of libc's versions, which an interposer's has not. The first version is the architecture's own,
 * so that no lookup fails. Not to be inlined into who ends with it: RTLD_NEXT is told by the return address. */
static __attribute__((noinline)) void *versioned(void *handle, const char *symbol)
{
  static const char *const versions[] = {
#if defined(__x86_64__)
    "GLIBC_2.2.5",
#elif defined(__i386__) || defined(__arm__)
    "GLIBC_2.0",
    "GLIBC_2.4",
#else
    "GLIBC_2.17",
#endif
    "GLIBC_2.34",
    "GLIBC_2.27"
  };
  void *found = NULL;
  for (unsigned i = 0; i < sizeof versions / sizeof *versions && !found && m6_libc_dlvsym; i++)
    found = m6_libc_dlvsym(handle, symbol, versions[i]);
  return found;
}

/* libc's own dlsym, and the next one in line, which is another when a preload exports its own. libc's is found where
 * the dlvsym that has a version is. */
static void find_dlsym(void)
{
  if (!m6_libc_dlvsym) m6_find_dlvsym();
  void *found = versioned(RTLD_NEXT, "dlsym");
  if (!found) return;
  void *own = found;
  m6_poke((void **)&m6_libc_dlsym, found); /* for our own dlopen, below */
  m6_poke((void **)&m6_real_dlsym, found);
  struct link_map *libc = m6_module_of((const void *)m6_libc_dlvsym);
  if (libc && m6_module_of(found) != libc) {
    void *handle = dlopen(libc->l_name, RTLD_NOLOAD | RTLD_LAZY);
    void *in_libc = handle ? versioned(handle, "dlsym") : NULL;
    if (in_libc) own = in_libc;
  }
  m6_poke((void **)&m6_libc_dlsym, own);
  /* Asked by version, a preload's plain dlsym is passed over; asked by name, it is found when it comes after us. */
  found = m6_libc_dlsym(RTLD_NEXT, "dlsym");
  m6_publish((void **)&m6_real_dlsym, found && !m6_is_ours(found) ? found : own);
}

static void *next_symbol(const char *symbol)
{
  if (!m6_libc_dlsym) return NULL;
  void *p = m6_libc_dlsym(RTLD_NEXT, symbol);
  __asm__ volatile("" : "+r"(p)); /* no tail call: the return address must lie in this library */
  return p;
}

void *m6_next(const char *symbol)
{
  int e = errno;
  if (!m6_observe((void **)&m6_real_dlsym)) find_dlsym();
  void *p = next_symbol(symbol);
  errno = e;
  return p;
}

void *m6_next_versioned(const char *symbol) { return versioned(RTLD_NEXT, symbol); }

/* ---- mapping calls: system calls until the next ones in line are known ------------------------------------------- */

void *m6_sys_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
#ifdef SYS_mmap2
  return (void *)syscall(SYS_mmap2, at, n, prot, flags, fd, offset / 4096);
#else
  return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
#endif
}
static void *sys_mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
  return m6_sys_mmap(at, n, prot, flags, fd, (off_t)offset);
}
static int sys_munmap(void *at, size_t n) { return (int)syscall(SYS_munmap, at, n); }
static void *sys_mremap(void *at, size_t old, size_t n, int flags, ...)
{
  void *to = NULL;
  if (flags & (MREMAP_FIXED | 4 /* MREMAP_DONTUNMAP */)) {
    va_list list;
    va_start(list, flags);
    to = va_arg(list, void *);
    va_end(list);
  }
  return (void *)syscall(SYS_mremap, at, old, n, flags, to);
}
static int early_brk(void *to)
{
  int (*f)(void *) = (int (*)(void *))m6_next("brk");
  return f ? f(to) : -1;
}
static void *early_sbrk(intptr_t by)
{
  void *(*f)(intptr_t) = (void *(*)(intptr_t))m6_next("sbrk");
  return f ? f(by) : (void *)-1;
}
struct m6_real_map m6_real_map = {m6_sys_mmap, sys_mmap64, sys_munmap, sys_mremap, early_brk, early_sbrk};

void m6_next_maps(void)
{
#define FIND_MAP(field)                                                                                                \
  p = m6_next(#field);                                                                                                 \
  if (p) m6_poke((void **)&m6_real_map.field, p);
  void *p;
  FIND_MAP(mmap)
  FIND_MAP(mmap64)
  FIND_MAP(munmap)
  FIND_MAP(mremap)
  FIND_MAP(brk)
  FIND_MAP(sbrk)
}
