/* flags: -ftls-model=initial-exec -fno-builtin -fvisibility=hidden -Wno-missing-attributes */
/* libcountpreload.so - an independent count: what the shim's totals are compared with. Shares no code with mach6.
 *
 * Goes after the shim in LD_PRELOAD, so that both see the same calls of the same run. Forwards to glibc's own names, so
 * it needs no dlsym. The counters lie in a file that is mapped shared, $COUNT_DIR/PID, and outlive every kind of death; they are added to
 * with locked instructions. What comes before the file is there is counted aside and added to it. A forked child counts
 * nothing (its page is wiped); a program started by exec has a file of its own, or its pid's anew.
 *
 * The file: one line of text for each counter, made by count_show; see struct counts for the order of words.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *__libc_valloc(size_t);
void *__libc_pvalloc(size_t);
void __libc_free(void *);

struct counts { /* as count_show prints them */
  uint64_t malloc_count, malloc_bytes, calloc_count, calloc_bytes, realloc_count, realloc_bytes, aligned_count,
    aligned_bytes;
  uint64_t frees, freed_bytes, old_bytes; /* old_bytes: what realloc took in */
  uint64_t failed;
};

static struct counts early, *shared;
/* A page that a forked child finds empty: nothing is counted then. Zero at first, so that it is anonymous memory. */
static struct {
  uint32_t mine;
  char rest[4092];
} gate __attribute__((aligned(4096)));

static inline struct counts *counting(void)
{
  struct counts *s = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
  if (!s) return &early;
  return __atomic_load_n(&gate.mine, __ATOMIC_RELAXED) ? s : NULL;
}

/* Whoever replaces malloc brings this too, or the shim would not know whose blocks it asks about. From glibc's chunk: the word
 * before the block is the chunk's size with three flags, bit 1 for a block that was mapped by itself. */
VISIBLE size_t malloc_usable_size(void *p)
{
  if (!p) return 0;
  size_t chunk = ((size_t *)p)[-1];
  return (chunk & ~(size_t)7) - (chunk & 2 ? 2 : 1) * sizeof(size_t);
}

#define ADD(member, n) __atomic_fetch_add(&to->member, (n), __ATOMIC_RELAXED)
#define MADE(kind, p)                                                                                                  \
  do {                                                                                                                 \
    struct counts *to = counting();                                                                                    \
    if (!to) break;                                                                                                    \
    if (!(p)) {                                                                                                        \
      ADD(failed, 1);                                                                                                  \
      break;                                                                                                           \
    }                                                                                                                  \
    ADD(kind##_count, 1);                                                                                              \
    ADD(kind##_bytes, malloc_usable_size(p));                                                                          \
  } while (0)

VISIBLE void *malloc(size_t n)
{
  void *p = __libc_malloc(n);
  MADE(malloc, p);
  return p;
}
VISIBLE void *calloc(size_t a, size_t b)
{
  void *p = __libc_calloc(a, b);
  MADE(calloc, p);
  return p;
}
VISIBLE void *realloc(void *old, size_t n)
{
  struct counts *to = counting();
  size_t was = malloc_usable_size(old);
  void *p = __libc_realloc(old, n);
  if (!to) return p;
  if (p) {
    ADD(realloc_count, 1);
    ADD(realloc_bytes, malloc_usable_size(p));
    ADD(old_bytes, was);
  } else if (n == 0 && old) {
    ADD(frees, 1);
    ADD(freed_bytes, was);
  } else {
    ADD(failed, 1);
  }
  return p;
}
VISIBLE void *reallocarray(void *old, size_t a, size_t b)
{
  size_t n;
  if (__builtin_mul_overflow(a, b, &n)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(old, n);
}
VISIBLE void *memalign(size_t alignment, size_t n)
{
  void *p = __libc_memalign(alignment, n);
  MADE(aligned, p);
  return p;
}
VISIBLE void *aligned_alloc(size_t alignment, size_t n) { return memalign(alignment, n); }
VISIBLE int posix_memalign(void **out, size_t alignment, size_t n)
{
  if (alignment == 0 || alignment % sizeof(void *) || (alignment & (alignment - 1))) return EINVAL;
  void *p = memalign(alignment, n);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}
VISIBLE void *valloc(size_t n)
{
  void *p = __libc_valloc(n);
  MADE(aligned, p);
  return p;
}
VISIBLE void *pvalloc(size_t n)
{
  void *p = __libc_pvalloc(n);
  MADE(aligned, p);
  return p;
}
VISIBLE void free(void *p)
{
  struct counts *to = counting();
  if (p && to) {
    ADD(frees, 1);
    ADD(freed_bytes, malloc_usable_size(p));
  }
  __libc_free(p);
}

__attribute__((constructor)) static void begin(void)
{
  const char *dir = getenv("COUNT_DIR");
  char path[4096], digits[16];
  int n = 0, fd;
  struct counts *file;
  if (!dir || strlen(dir) > sizeof path - 32) _exit(121);
  strcpy(path, dir);
  strcat(path, "/");
  for (unsigned pid = (unsigned)getpid(); pid; pid /= 10) digits[n++] = (char)('0' + pid % 10);
  for (char *end = path + strlen(path); n >= 0; n--) *end++ = n ? digits[n - 1] : 0;
  fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) _exit(122);
  if (ftruncate(fd, sizeof *file)) _exit(123);
  file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (file == MAP_FAILED) _exit(124);
  *file = early; /* one thread yet, and nothing between this and the next line allocates */
  if (madvise(&gate, 4096, MADV_WIPEONFORK)) _exit(125);
  gate.mine = 1;
  __atomic_store_n(&shared, file, __ATOMIC_RELEASE);
}
