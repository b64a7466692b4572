// probe_target.cc - functions with the kinds of names that a probe must find. Calls each N times, on 3 threads, and ends; with
// "wait", it says "ready" and waits for a line on stdin first.
/* flags: -fcf-protection=full -rdynamic */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#define KEEP __attribute__((noinline, noipa))

namespace pond
{
struct Fish {
  float x;
  KEEP void swim(float by) { x += by; }
  KEEP void swim(int by) { x += float(by) * 2; }
  KEEP float depth() const { return x; }
  KEEP Fish operator+(const Fish &o) const { return Fish{x + o.x}; }
};
template <typename T> KEEP T sum(T a, T b) { return T(a + b); }
template int sum<int>(int, int);
} // namespace pond

extern "C" {
KEEP int plain_tick(int x)
{
  __asm__ volatile("" : "+r"(x));
  return x + 1;
}
}
static KEEP int hidden_tick(int x)
{
  __asm__ volatile("" : "+r"(x));
  return x + 2;
}

static void work(int n)
{
  pond::Fish f{0}, g{1};
  int k = 0;
  for (int i = 0; i < n; i++) {
    f.swim(1.0f);
    f.swim(2);
    g = f + g;
    k = plain_tick(hidden_tick(pond::sum<int>(k, int(f.depth()))));
  }
}

int main(int argc, char **argv)
{
  int n = argc > 1 ? atoi(argv[1]) : 1;
  if (argc > 2 && strcmp(argv[2], "wait") == 0) {
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF) return 0;
  }
  std::thread a(work, n), b(work, n);
  work(n);
  a.join();
  b.join();
  return 0;
}
