// site_rare_cxx - site_rare.c in C++ as games ship it, in a fifth of the time: allocations in templates and inlined.
//
//   World<Chunk>::grow      a block of 16 KiB that nobody frees, each EVERY frames: 6,000 by default
//   Cache<Chunk>::load      gets such a block four times as often until half of the frames are over, and none afterwards
//   Solver<float>::step     most of the pairs: blocks of 16 to 112 bytes, given back in their frame
//   Log<Chunk>::line        one pair a frame, of which one block each EVERY frames is forgotten
//
//     site_rare_cxx FRAMES [EVERY]
//
// Twenty frames a millisecond at most. Prints "truth NAME COUNT BYTES" as site_world.cc does.
/* flags: -fomit-frame-pointer */
#include <cinttypes>
#include <cstdio>
#include <ctime>

#include "preload/mach6.h"
#include "site_world.h"

struct Chunk {
  char pixels[16384];
};
static void *volatile kept;

template <typename T> struct World {
  truth is{};
  APART void grow() { kept = made<T>(is); }
};
template <typename T> struct Cache {
  truth is{};
  APART void load() { kept = made<T>(is); }
};
template <typename T> struct Solver {
  truth is{};
  APART T step(unsigned frame)
  {
    T sum = 0;
    for (unsigned i = 0; i < 14; i++) {
      void *volatile impulse = got(&is, ::operator new(16 + (frame + i) % 7 * 16));
      sum += *static_cast<T *>(impulse) = T(i);
      ::operator delete(impulse);
    }
    return sum;
  }
};
template <typename T> struct Log {
  truth is{};
  APART void line(bool forgets)
  {
    void *volatile p = got(&is, ::operator new(forgets ? sizeof(T) : 48)); // by one call, so that it is one site
    if (forgets) kept = p;
    else ::operator delete(p);
  }
};

static uint64_t ns()
{
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}
static void say(const char *name, const truth &t)
{
  printf("truth %s %" PRIu64 " %" PRIu64 "\n", name, t.count, t.bytes);
}

int main(int argc, char **argv)
{
  if (argc < 2) return 2;
  unsigned frames = unsigned(strtoul(argv[1], nullptr, 10)),
           every = argc > 2 ? unsigned(strtoul(argv[2], nullptr, 10)) : 6000;
  uint64_t turn = ns();
  float sum = 0;
  World<Chunk> world;
  Cache<Chunk> cache;
  Solver<float> solver;
  Log<Chunk> log;
  mach6_frame();
  for (unsigned f = 0; f < frames; f++) {
    sum += solver.step(f);
    log.line(f % every == every / 3);
    if (f % every == every / 2) world.grow();
    if (f % (every / 4) == 7 && f < frames / 2) cache.load();
    mach6_frame();
    if (f % 20 != 19) continue;
    turn += 1000000;
    uint64_t now = ns();
    timespec nap = {0, long(turn - now)};
    if (now < turn) nanosleep(&nap, nullptr);
    else turn = now; // what is lost is not caught up with
  }
  printf("frames %u %g\n", frames, double(sum));
  say("World<Chunk>::grow", world.is);
  say("Cache<Chunk>::load", cache.is);
  say("Solver<float>::step", solver.is);
  say("Log<Chunk>::line", log.is);
}
