/* libcount - an independent count of what a program allocates: the next malloc in line behind the shim, in front of glibc's.
 *
 * COUNT_FILE names a file that becomes its counters (shared memory, so that the last free of all is in it too):
 * allocs, bytes, frees, calloc, realloc, aligned, live; `libcount`'s reader is tests/shim.sh (od). Forwards to glibc by its
 * __libc_ names, counts with locked adds, knows nothing of the shim. */
/* flags: -fno-builtin -O1 -Wno-missing-attributes */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t), *__libc_valloc(size_t), *__libc_pvalloc(size_t);
extern void __libc_free(void *);
extern char **environ;

enum { ALLOCS, BYTES, FREES, CALLOC, REALLOC, ALIGNED, LIVE, COUNTERS };
static uint64_t early[COUNTERS], *counters = early;

/* glibc's chunk: the word before a block holds its size and three flag bits; bit 1 says that it was mapped. */
static size_t size_of(void *p)
{
  size_t chunk = ((size_t *)p)[-1];
  return (chunk & ~(size_t)7) - (chunk & 2 ? 16 : 8);
}
size_t malloc_usable_size(void *p) { return p ? size_of(p) : 0; }

static void add(int what, uint64_t n) { __atomic_fetch_add(&counters[what], n, __ATOMIC_RELAXED); }

static void open_file(void)
{
  static int tried;
  if (!environ || __atomic_exchange_n(&tried, 1, __ATOMIC_SEQ_CST)) return;
  int e = errno;
  for (char **v = environ; *v; v++) {
    const char *want = "COUNT_FILE=", *s = *v;
    while (*want && *s == *want) s++, want++;
    if (*want) continue;
    int fd = (int)syscall(SYS_open, s, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 4096)) break;
    long at = syscall(SYS_mmap, 0L, 4096L, 3L, 1L, (long)fd, 0L);
    syscall(SYS_close, fd);
    if (at < 0 && at > -4096) break;
    uint64_t *shared = (uint64_t *)at;
    for (int i = 0; i < COUNTERS; i++) __atomic_fetch_add(&shared[i], early[i], __ATOMIC_RELAXED);
    counters = shared;
    break;
  }
  errno = e;
}

static void *made(void *p, int kind)
{
  open_file();
  if (!p) return p;
  add(ALLOCS, 1);
  add(BYTES, size_of(p));
  add(LIVE, size_of(p));
  if (kind) add(kind, 1);
  return p;
}

void *malloc(size_t n) { return made(__libc_malloc(n), 0); }
void *calloc(size_t m, size_t n) { return made(__libc_calloc(m, n), CALLOC); }
void *memalign(size_t a, size_t n) { return made(__libc_memalign(a, n), ALIGNED); }
void *aligned_alloc(size_t a, size_t n) { return made(__libc_memalign(a, n), ALIGNED); }
void *valloc(size_t n) { return made(__libc_valloc(n), ALIGNED); }
void *pvalloc(size_t n) { return made(__libc_pvalloc(n), ALIGNED); }
void free(void *p)
{
  open_file();
  if (p) {
    add(FREES, 1);
    add(LIVE, -(uint64_t)size_of(p));
  }
  __libc_free(p);
}
void *realloc(void *p, size_t n)
{
  size_t old = p ? size_of(p) : 0;
  void *q = __libc_realloc(p, n);
  if (p && (q || n == 0)) add(LIVE, -(uint64_t)old);
  if (p && !q && n == 0) add(FREES, 1);
  return made(q, REALLOC);
}
int posix_memalign(void **out, size_t a, size_t n)
{
  if (a % sizeof(void *) || !a || a & (a - 1)) return EINVAL;
  void *p = made(__libc_memalign(a, n), ALIGNED);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}
