// site_solver - C++ as games have it: templates, inlining, containers that grow. site_solver FRAMES
// In scope "physics", Solver<float>::step lets a std::vector grow from nothing in each frame; World<Body>::remember leaks a node of a list
// that is never read, through two functions that are inlined.
/* flags: -fomit-frame-pointer */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "preload/mach6.h"

template <typename T> struct Solver {
  std::vector<T> found;
  __attribute__((noinline)) T step(int contacts)
  {
    std::vector<T> impulses;
    for (int i = 0; i < contacts; i++) impulses.push_back(T(i) / 2);
    T sum = 0;
    for (T x : impulses) sum += x;
    return sum;
  }
};

struct Body {
  std::string name;
  float at[3];
};
template <typename T> struct World {
  std::list<std::unique_ptr<T>> seen;
  inline __attribute__((always_inline)) void keep(std::unique_ptr<T> b) { seen.push_back(std::move(b)); }
  __attribute__((noinline)) void remember() { keep(std::make_unique<T>()); }
};

int main(int argc, char **argv)
{
  int frames = argc > 1 ? atoi(argv[1]) : 1000;
  Solver<float> solver;
  auto *world = new World<Body>;
  float sum = 0;
  mach6_frame();
  for (int i = 0; i < frames; i++) {
    {
      MACH6_SCOPE("physics");
      sum += solver.step(300);
    }
    world->remember();
    mach6_frame();
    timespec t = {0, 500000};
    nanosleep(&t, nullptr);
  }
  printf("%g\n", double(sum));
}
