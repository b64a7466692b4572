/* map.c - mmap, munmap, mremap, brk, sbrk as the program itself calls them: the "mapped" account, apart from the heap.
 *
 * Promise: the real call's result and errno. While counting, whole pages that succeeded are added to or taken from this
 * thread's `mapped`. A mapping with MAP_FIXED, and what mremap puts at an address of the caller's, counts as no bytes:
 * it replaces what its place held, nearly always a reservation that was counted. The break counts from page to page.
 * What libc maps for itself (malloc's arenas and its part of the break, thread stacks) does not come through here.
 * With sites each range that was mapped or went leaves a record (shm/sites.h). An end is said when the call has
 * succeeded, with the clock of before: nothing is to be taken back, and what another thread maps there meanwhile is the
 * later one. A call with MAP_FIXED that fails is taken to have changed nothing.
 * May call: the next functions (m6_real_map), slot.c, sample.c, segment.c's m6_poll_control (a mapping call is never
 * hot).
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif
#define HUGE_DEFAULT 21 /* log2 of what MAP_HUGETLB alone means */

static uint64_t pages(uint64_t n) { return (n + M6_PAGE - 1) & ~(uint64_t)(M6_PAGE - 1); }

/* What mmap takes a length for. */
static uint64_t length(size_t n, int flags)
{
  unsigned shift = (unsigned)flags >> MAP_HUGE_SHIFT & 63;
  if (!(flags & MAP_HUGETLB)) return pages(n);
  uint64_t page = 1ull << (shift ? shift : HUGE_DEFAULT);
  return (n + page - 1) & ~(page - 1);
}

/* A process without the segment, and a forked child, only pass through. */
static int watching(void) { return m6_seg && m6_peek(&m6_gate.alive); }

/* The clock before a call that may end something; 0: nobody asks. */
static uint64_t before(void) { return watching() && m6_counting() ? m6_now() : 0; }

/* After a call that succeeded. */
static void count(uint64_t bytes)
{
  int e = errno;
  m6_poll_control(0);
  if (m6_counting()) m6_count_mapping(bytes);
  errno = e;
}
static void born(const void *p, uint64_t bytes, int placed)
{
  if (m6_counting()) m6_site_mapped(p, bytes, placed);
}
static void gone(uint64_t clock, const void *p, uint64_t bytes)
{
  if (clock && m6_counting()) m6_site_unmapped(clock, p, bytes);
}

static void mapped(const void *p, size_t n, int flags)
{
  int placed = (flags & MAP_FIXED) != 0;
  if (!watching() || p == MAP_FAILED) return;
  count(placed ? 0 : length(n, flags));
  born(p, length(n, flags), placed);
}

#undef mmap
#undef mmap64
M6_EXPORT void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
  void *p = m6_real_map.mmap(at, n, prot, flags, fd, offset);
  mapped(p, n, flags);
  return p;
}

M6_EXPORT void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
  void *p = m6_real_map.mmap64(at, n, prot, flags, fd, offset);
  mapped(p, n, flags);
  return p;
}

M6_EXPORT int munmap(void *at, size_t n)
{
  uint64_t clock = before();
  int result = m6_real_map.munmap(at, n);
  if (watching() && result == 0) {
    count(-pages(n));
    gone(clock, at, pages(n));
  }
  return result;
}

M6_EXPORT void *mremap(void *at, size_t old, size_t n, int flags, ...)
{
  void *to = NULL;
  if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
    va_list list;
    va_start(list, flags);
    to = va_arg(list, void *);
    va_end(list);
  }
  uint64_t clock = before(), was = flags & MREMAP_DONTUNMAP ? 0 : pages(old);
  void *p = m6_real_map.mremap(at, old, n, flags, to);
  if (watching() && p != MAP_FAILED) {
    int placed = (flags & MREMAP_FIXED) != 0;
    count((placed ? 0 : pages(n)) - was);
    gone(clock, at, was);
    born(p, pages(n), placed);
  }
  return p;
}

/* The break moved from here to there; the page that it is in is mapped. */
static void moved(uint64_t clock, uint64_t from, uint64_t to)
{
  if (!watching() || !m6_counting()) return;
  m6_poke(&m6_seg->brk_now, to);
  uint64_t was = pages(from), is = pages(to);
  if (!from || was == is) return;
  count(is - was);
  if (is > was) born((void *)(uintptr_t)was, is - was, 0);
  else gone(clock, (void *)(uintptr_t)is, was - is);
}

M6_EXPORT int brk(void *to)
{
  uint64_t clock = before(), from = clock ? m6_break_now() : 0;
  int result = m6_real_map.brk(to);
  if (result == 0) moved(clock, from, (uintptr_t)to);
  return result;
}

M6_EXPORT void *sbrk(intptr_t by)
{
  uint64_t clock = before();
  void *old = m6_real_map.sbrk(by);
  if (old != (void *)-1) moved(clock, (uintptr_t)old, (uintptr_t)old + (uintptr_t)by);
  return old;
}
