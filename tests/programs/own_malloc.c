/* own_malloc - a program with an allocator linked in: its malloc comes before every library's. */
/* flags: -fno-builtin */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "preload/mach6.h"

static char heap[64 << 20] __attribute__((aligned(16)));
static size_t at;
static long mallocs, frees;
void *malloc(size_t n)
{
  size_t *p = (size_t *)(heap + __atomic_fetch_add(&at, ((n + 15) & ~(size_t)15) + 16, __ATOMIC_RELAXED));
  mallocs++;
  *p = n;
  return p + 2;
}
void free(void *p) { frees += p != NULL; }
void *calloc(size_t m, size_t n) { return malloc(m * n); }
void *realloc(void *p, size_t n)
{
  void *q = malloc(n);
  if (p) memcpy(q, p, ((size_t *)p)[-2] < n ? ((size_t *)p)[-2] : n);
  return q;
}
extern void *reallocarray(void *, size_t, size_t);

int main(void)
{
  mach6_mark("scope");
  for (int i = 0; i < 1000; i++) free(malloc(100));
  void *p = reallocarray(malloc(10), 4, 10); /* libc's, or the shim's: on a block of ours */
  free(p);
  char *line = NULL;
  size_t n = 0;
  FILE *f = fopen("/proc/self/comm", "r");
  if (f) fclose(f);
  mach6_done();
  printf("worked %d\n", mallocs >= 1001 && frees >= 1001 && !line && !n);
  return 0;
}
