/* contract - the malloc family at its edges, one line a call: result, errno, what stays of the arguments. */
/* flags: -fno-builtin -O0 -Wno-alloc-size-larger-than -Wno-use-after-free -Wno-deprecated-declarations -Wno-unused-result */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kind(void *p) { return p ? "block" : "NULL"; }
#define TRY(text, call)                                                                                                \
  do {                                                                                                                 \
    errno = 777;                                                                                                       \
    void *p = (call);                                                                                                  \
    int e = errno;                                                                                                     \
    printf("%s: %s errno %d aligned %d\n", text, kind(p), e, p && (uintptr_t)p % 16 == 0);                             \
    free(p);                                                                                                           \
  } while (0)
#define ALIGN(text, align, call)                                                                                       \
  do {                                                                                                                 \
    errno = 777;                                                                                                       \
    void *p = (call);                                                                                                  \
    int e = errno;                                                                                                     \
    printf("%s: %s errno %d aligned %d\n", text, kind(p), e, p && (uintptr_t)p % (align) == 0);                        \
    free(p);                                                                                                           \
  } while (0)

int main(int argc, char **argv)
{
  int foreign = argc > 1; /* "foreign": another allocator, which knows no pvalloc */
  (void)argv;
  volatile size_t big = PTRDIFF_MAX, all = SIZE_MAX, half = (size_t)1 << 33;
  char old[64];
  memset(old, 'x', sizeof old);
  TRY("malloc(0)", malloc(0));
  TRY("realloc(NULL, 0)", realloc(NULL, 0));
  TRY("realloc(p, 0)", realloc(malloc(40), 0));
  TRY("calloc(2^33, 2^33)", calloc(half, half));
  TRY("calloc(0, 5)", calloc(0, 5));
  TRY("reallocarray overflow", reallocarray(NULL, half, half));
  TRY("reallocarray(NULL, 3, 5)", reallocarray(NULL, 3, 5));
  TRY("reallocarray(p, 0, 5)", reallocarray(malloc(40), 0, 5));
  TRY("malloc(PTRDIFF_MAX + 1)", malloc(big + 1));
  TRY("malloc(2^48)", malloc((size_t)1 << 48));
  TRY("malloc(SIZE_MAX)", malloc(all));
  TRY("calloc(1, SIZE_MAX)", calloc(1, all));
  for (int i = 0; i < 3; i++) { /* a failed realloc leaves the block as it was */
    char *p = malloc(sizeof old);
    memcpy(p, old, sizeof old);
    errno = 777;
    void *q = i == 0 ? realloc(p, all) : i == 1 ? realloc(p, big + 1) : reallocarray(p, half, half);
    printf("failing realloc %d: %s errno %d kept %d\n", i, kind(q), errno, !memcmp(p, old, sizeof old));
    free(p);
  }
  static const size_t aligns[] = {0, 1, 3, 4, 8, 24, 64, 4096, (size_t)1 << 63};
  for (unsigned i = 0; i < sizeof aligns / sizeof *aligns; i++) {
    void *p = old;
    errno = 777;
    int r = posix_memalign(&p, aligns[i], 100);
    printf("posix_memalign(%zu): %d errno %d pointer %s\n", aligns[i], r, errno, p == old ? "kept" : "set");
    if (!r) free(p);
  }
  void *kept = old;
  errno = 777;
  int r = posix_memalign(&kept, 64, all - 100);
  printf("posix_memalign huge: %d errno %d pointer %s\n", r, errno, kept == old ? "kept" : "set");
  ALIGN("aligned_alloc(24)", 8, aligned_alloc(24, 100));
  ALIGN("aligned_alloc(64)", 64, aligned_alloc(64, 64));
  ALIGN("aligned_alloc(64, SIZE_MAX)", 64, aligned_alloc(64, all));
  ALIGN("memalign(256)", 256, memalign(256, 10));
  ALIGN("memalign(3)", 1, memalign(3, 10));
  ALIGN("memalign(2^63)", 1, memalign((size_t)1 << 63, 10));
  ALIGN("valloc", 4096, valloc(10));
  if (!foreign) {
    ALIGN("pvalloc", 4096, pvalloc(10));
    ALIGN("pvalloc(SIZE_MAX)", 4096, pvalloc(all));
  }
  errno = 777;
  printf("usable(NULL) %zu errno %d\n", malloc_usable_size(NULL), errno);
  errno = 777;
  free(NULL);
  printf("free(NULL) errno %d\n", errno);
  for (size_t n = 0; n < 300; n += 7) {
    void *p = malloc(n);
    printf("usable(%zu) %zu\n", n, malloc_usable_size(p));
    free(p);
  }
  return 0;
}
