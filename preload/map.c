/* map.c - mmap, munmap, mremap, brk, sbrk as the program itself calls them: the "mapped" account, apart from the heap.
 *
 * Promise: the real call's result and errno. While counting, whole pages that succeeded are added to or taken from this
 * thread's `mapped`. A mapping with MAP_FIXED counts as a call of no bytes: it replaces what its place held, nearly
 * always a reservation that was counted. What libc maps for itself (malloc's arenas, thread stacks) does not come
 * through here.
 * With sites each of them leaves a record with its stack, and so does its end, which is said before the place can be another's. What
 * is given back in parts lives until its first page goes; what MAP_FIXED put there, and a break, have no end of their own.
 * May call: the next functions (m6_real_map), slot.c, sample.c, segment.c's m6_poll_control (a mapping call is never hot).
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static uint64_t pages(size_t n) { return ((uint64_t)n + M6_PAGE - 1) & ~(uint64_t)(M6_PAGE - 1); }

/* After a call that succeeded. */
static void count(uint64_t bytes)
{
  int e = errno;
  m6_poll_control(0);
  if (m6_counting()) m6_count_mapping(bytes);
  errno = e;
}
static void born(const void *p, uint64_t bytes)
{
  count(bytes);
  if (m6_counting()) m6_site_mapping(p, bytes, 1);
}
static uint64_t mapped(size_t n, int flags) { return flags & MAP_FIXED ? 0 : pages(n); }

/* A process without the segment, and a forked child, only pass through. */
static int watching(void) { return m6_seg && m6_peek(&m6_gate.alive); }

#undef mmap
#undef mmap64
M6_EXPORT void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
  void *p = m6_real_map.mmap(at, n, prot, flags, fd, offset);
  if (watching() && p != MAP_FAILED) born(p, mapped(n, flags));
  return p;
}

M6_EXPORT void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
  void *p = m6_real_map.mmap64(at, n, prot, flags, fd, offset);
  if (watching() && p != MAP_FAILED) born(p, mapped(n, flags));
  return p;
}

M6_EXPORT int munmap(void *at, size_t n)
{
  uint64_t sample = watching() ? m6_site_unmapping(at) : 0;
  int result = m6_real_map.munmap(at, n);
  if (sample) m6_site_settle(sample, result == 0);
  if (watching() && result == 0) count(-pages(n));
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
  uint64_t sample = watching() && !(flags & MREMAP_DONTUNMAP) ? m6_site_unmapping(at) : 0;
  void *p = m6_real_map.mremap(at, old, n, flags, to);
  if (sample) m6_site_settle(sample, p != MAP_FAILED);
  if (watching() && p != MAP_FAILED) {
    count(pages(n) - (flags & MREMAP_DONTUNMAP ? 0 : pages(old)));
    if (m6_counting()) m6_site_mapping(p, pages(n), 1);
  }
  return p;
}

static void look_at_break(void *now)
{
  if (watching() && m6_counting()) m6_poke(&m6_seg->brk_now, (uintptr_t)now);
}

M6_EXPORT int brk(void *to)
{
  uint64_t before = watching() ? m6_peek(&m6_seg->brk_now) : 0;
  int result = m6_real_map.brk(to);
  if (result == 0) look_at_break(to);
  if (result == 0 && before && (uintptr_t)to > before && m6_counting())
    m6_site_mapping((void *)(uintptr_t)before, (uintptr_t)to - before, 0);
  return result;
}

M6_EXPORT void *sbrk(intptr_t by)
{
  void *old = m6_real_map.sbrk(by);
  if (old != (void *)-1) look_at_break((char *)old + by);
  if (old != (void *)-1 && by > 0 && watching() && m6_counting()) m6_site_mapping(old, (uint64_t)by, 0);
  return old;
}
