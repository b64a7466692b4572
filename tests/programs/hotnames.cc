// hotnames.cc - C++ names: burns CPU in a template's member, in a function of an anonymous namespace, and in what is inlined.
// Seven tenths in World<int>::simulate, by chance for each slice. Ends on SIGTERM with "hot NS warm NS cpu NS threads 1".
/* flags: -fno-omit-frame-pointer */
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>

static volatile std::sig_atomic_t ended;
static void on_term(int) { ended = 1; }
static uint64_t cpu_ns()
{
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

namespace game
{
struct Body {
  volatile long x = 0;
  [[gnu::always_inline]] inline void integrate(long n)
  {
    for (long i = 0; i < n; i++) x = x + i; // inlined: the hot line
  }
};
template <class T> struct World {
  Body body;
  [[gnu::noinline]] void simulate(T n) { body.integrate(n); }
};
namespace
{
[[gnu::noinline]] long paint(const char *, int n)
{
  volatile long x = 0;
  for (long i = 0; i < n; i++) x = x ^ i;
  return x;
}
} // namespace
long step(World<int> &w, bool hot)
{
  if (hot) w.simulate(150000);
  else return paint("x", 150000);
  return w.body.x;
}
} // namespace game

int main()
{
  std::signal(SIGTERM, on_term);
  game::World<int> w;
  uint64_t seed = cpu_ns() | 1, now = cpu_ns(), sum[2] = {0, 0};
  std::puts("ready");
  std::fflush(stdout);
  while (!ended) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    bool hot = seed % 1000 < 700;
    game::step(w, hot);
    uint64_t after = cpu_ns();
    sum[hot] += after - now;
    now = after;
  }
  std::printf("hot %llu warm %llu cpu %llu threads 1\n", (unsigned long long)sum[1], (unsigned long long)sum[0],
              (unsigned long long)cpu_ns());
  return 0;
}
