// site_world - frames of a game in C++ with known sites of allocation, in templates and inlined: site_world MILLISECONDS.
//
// Prints, for each site, "truth NAME COUNT BYTES", usable sizes, as it counted them itself:
//   World<Body>::remember     a block a frame that nobody frees, by a function that is inlined
//   Cache<Texture>::load      fills until half of the time is over, then stays
//   Solver<float>::step       blocks that die in their frame
//   History<Body>::push       blocks that live for 20 frames
//   Emitter<Spark>::emit      leaks, in a library that is unloaded after every 100 ms, when another one takes its place:
//   Emitter<Smoke>::emit      does not leak
// Presents are mach6_frame's.
/* flags: -fomit-frame-pointer -Wl,-rpath,'$ORIGIN' -ldl */
/* needs: libsiteworld1.so libsiteworld2.so */
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <dlfcn.h>
#include <vector>

#include "preload/mach6.h"
#include "site_world.h"

struct Body {
  double at[7];
};
struct Texture {
  char pixels[120];
};

template <typename T> struct World {
  truth is{};
  APART void remember() { made<T>(is)->at[0] = 1; }
};
template <typename T> struct Cache {
  truth is{};
  std::vector<T *> held;
  APART void load() { held.push_back(made<T>(is)); }
};
template <typename T> struct Solver {
  truth is{};
  APART T step(int contacts)
  {
    T sum = 0;
    for (int i = 0; i < contacts; i++) {
      T(*volatile impulse)[50] = made<T[50]>(is);
      sum += (*impulse)[0] = T(i);
      ::operator delete(impulse);
    }
    return sum;
  }
};
template <typename T> struct History {
  truth is{};
  T *kept[20] = {};
  APART void push(unsigned frame)
  {
    ::operator delete(kept[frame % 20]);
    kept[frame % 20] = made<T>(is);
  }
};

static uint64_t ms()
{
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000 + uint64_t(t.tv_nsec) / 1000000;
}

static truth plugins[2];
static void plugin_turn(uint64_t now, uint64_t start)
{
  static void *handle;
  static void (*call)(truth *);
  static unsigned turn = ~0u;
  unsigned at = unsigned((now - start) / 100);
  if (at != turn) {
    if (handle) dlclose(handle);
    handle = dlopen(at % 2 ? "libsiteworld2.so" : "libsiteworld1.so", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      fprintf(stderr, "%s\n", dlerror());
      exit(1);
    }
    call = reinterpret_cast<void (*)(truth *)>(dlsym(handle, "plugin"));
    turn = at;
  }
  call(&plugins[turn % 2]);
}

static void say(const char *name, const truth &t)
{
  printf("truth %s %" PRIu64 " %" PRIu64 "\n", name, t.count, t.bytes);
}

int main(int argc, char **argv)
{
  uint64_t span = argc > 1 ? strtoull(argv[1], nullptr, 10) : 2000, start = ms(), now = start;
  unsigned frame = 0;
  float sum = 0;
  World<Body> world;
  Cache<Texture> cache;
  Solver<float> solver;
  History<Body> history;
  cache.held.reserve(1 << 20);
  mach6_frame();
  for (; now - start < span; now = ms()) {
    world.remember();
    if (now - start < span / 2 && cache.held.size() < 1 << 20) cache.load();
    {
      MACH6_SCOPE("physics");
      sum += solver.step(10);
    }
    history.push(frame++);
    plugin_turn(now, start);
    mach6_frame();
    timespec nap = {0, 500000};
    nanosleep(&nap, nullptr);
  }
  printf("frames %u %g\n", frame, double(sum));
  say("World<Body>::remember", world.is);
  say("Cache<Texture>::load", cache.is);
  say("Solver<float>::step", solver.is);
  say("History<Body>::push", history.is);
  say("Emitter<Spark>::emit", plugins[0]);
  say("Emitter<Smoke>::emit", plugins[1]);
}
