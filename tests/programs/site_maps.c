/* site_maps.c - maps memory at known places, and says how much: site_maps FRAMES
 *   map_scratch   one of 256 KiB a frame, given back in it           map_kept   64 KiB every eighth frame, never given back
 *   map_grown     one that grows by 4 KiB a frame, by mremap          break_up   the break, by 8 KiB every sixteenth frame
 *   map_failing   calls that fail: no bytes
 * and with a second argument
 *   trim          map_trimmed, 128 KiB a frame of which the last 64 KiB are given back at once
 *   a file        it has 512 KiB mapped before there is a session, and makes frames until the file is there; then the first 256 KiB go, and
 *                 map_over puts something else in the place of the next 128 KiB
 * Prints "truth NAME CALLS BYTES LIVE" of each: bytes that it mapped, and that are left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/mach6.h"

#define APART __attribute__((noinline, noclone))
#define PAGE 4096ul
static void *volatile block; /* an allocation that the compiler may not leave out */
static unsigned long calls[6], bytes[6], live[6];

#define MAP(n) mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)

static void count(int what, unsigned long n, long left)
{
  calls[what]++, bytes[what] += n;
  live[what] += (unsigned long)left;
}
static APART void map_scratch(void)
{
  void *p = MAP(256 << 10);
  if (p == MAP_FAILED || munmap(p, 256 << 10)) exit(1);
  count(0, 256 << 10, 0);
}
static APART void map_kept(void)
{
  volatile char *p = MAP(64 << 10);
  if (p == MAP_FAILED) exit(1);
  *p = 1;
  count(1, 64 << 10, 64 << 10);
}
static APART void *map_grown(void *p, unsigned long old)
{
  p = p ? mremap(p, old, old + PAGE, MREMAP_MAYMOVE) : MAP(old + PAGE);
  if (p == MAP_FAILED) exit(1);
  count(2, old + PAGE, PAGE);
  return p;
}
static APART void break_up(void)
{
  if (sbrk(8 << 10) == (void *)-1) exit(1);
  count(3, 8 << 10, 8 << 10);
}
static APART void map_failing(void)
{
  if (mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED || munmap((void *)1, PAGE) == 0)
    exit(1);
}

static APART void map_trimmed(void)
{
  char *p = MAP(128 << 10);
  if (p == MAP_FAILED || munmap(p + (64 << 10), 64 << 10)) exit(1);
  count(4, 128 << 10, 64 << 10);
}

static APART void map_over(char *place)
{
  if (mmap(place, 128 << 10, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != place) exit(1);
  count(5, 128 << 10, 128 << 10);
}
static void from_before(const char *file)
{
  char *place = MAP(512 << 10);
  while (access(file, F_OK)) {
    mach6_frame();
    usleep(1000);
  }
  if (munmap(place, 256 << 10)) exit(1);
  map_over(place + (256 << 10));
}

int main(int argc, char **argv)
{
  static const char *const names[] = {"map_scratch", "map_kept", "map_grown", "break_up", "map_trimmed", "map_over"};
  int frames = argc > 1 ? atoi(argv[1]) : 1000;
  void *grown = NULL;
  int trim = argc > 2 && !strcmp(argv[2], "trim");
  if (argc > 2 && !trim) from_before(argv[2]);
  mach6_frame();
  for (int i = 0; i < frames; i++) {
    map_scratch();
    if (i % 8 == 0) map_kept();
    grown = map_grown(grown, (unsigned long)i * PAGE);
    if (i % 16 == 0) break_up();
    map_failing();
    if (trim) map_trimmed();
    block = malloc(100000);
    free(block);
    usleep(500);
    mach6_frame();
  }
  for (int i = 0; i < 6; i++) printf("truth %s %lu %lu %lu\n", names[i], calls[i], bytes[i], live[i]);
}
