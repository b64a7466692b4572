/* site_rare - some 300,000 pairs of malloc and free a second, fifteen a frame, and among them:
 *
 *   leaks_now_and_then   a block of 16 KiB that nobody frees, each EVERY frames: 30,000 by default, eight minutes of a game
 *   fills_and_stops      a cache that gets such a block four times as often until half of the frames are over, and none afterwards
 *   churns               most of the pairs: blocks of 16 to 112 bytes, given back in their frame
 *   churns_and_leaks     one pair a frame, of which one block each EVERY frames is forgotten, of 16 KiB as well
 *
 *     site_rare FRAMES [EVERY]
 *
 * As many frames as are asked for, 20 a millisecond at most; a slow machine takes longer. Prints "truth NAME COUNT BYTES" as site_leaks.c
 * does, and how many pairs a second there were. */
/* flags: -fomit-frame-pointer -fno-builtin */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "preload/mach6.h"
#include "site_leaks.h"

static struct truth leak, cached, churned, mixed;
static void *volatile kept;

static APART void leaks_now_and_then(void) { kept = got(&leak, malloc(16384)); }
static APART void fills_and_stops(void) { kept = got(&cached, malloc(16384)); }
static APART void churns(unsigned frame)
{
  for (unsigned i = 0; i < 14; i++) free(got(&churned, malloc(16 + (frame + i) % 7 * 16)));
}
static APART void churns_and_leaks(unsigned frame, unsigned every)
{
  int forgets = frame % every == every / 3;
  void *p = got(&mixed, malloc(forgets ? 16384 : 48));
  if (forgets) kept = p;
  else free(p);
}

static uint64_t ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static void say(const char *name, const struct truth *t)
{
  printf("truth %s %" PRIu64 " %" PRIu64 "\n", name, t->count, t->bytes);
}

int main(int argc, char **argv)
{
  if (argc < 2) return 2;
  unsigned frames = (unsigned)strtoul(argv[1], NULL, 10),
           every = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 30000;
  uint64_t start = ns(), turn = start;
  mach6_frame();
  for (unsigned f = 0; f < frames; f++) {
    churns(f);
    churns_and_leaks(f, every);
    if (f % every == every / 2) leaks_now_and_then();
    if (f % (every / 4) == 7 && f < frames / 2) fills_and_stops();
    mach6_frame();
    if (f % 20 != 19) continue;
    turn += 1000000;
    uint64_t now = ns();
    if (now < turn) nanosleep(&(struct timespec){0, (long)(turn - now)}, NULL);
    else turn = now; /* what is lost is not caught up with */
  }
  double s = (double)(ns() - start) / 1e9;
  printf("frames %u in %.1f s, %.0f pairs a second\n", frames, s, 15.0 * frames / s);
  say("leaks_now_and_then", &leak);
  say("fills_and_stops", &cached);
  say("churns", &churned);
  say("churns_and_leaks", &mixed);
  return 0;
}
