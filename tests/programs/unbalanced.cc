// unbalanced - scopes that are left in every wrong way: longjmp and throw across five, done without a mark, a depth of
// 100,000, and an exit with three open.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include "preload/mach6.h"

static jmp_buf out;
__attribute__((noinline)) static void down(int n, bool thrown)
{
  volatile char space[64];
  space[0] = char(n);
  mach6_mark("inner");
  if (n > 1) down(n - 1, thrown);
  else if (thrown) throw std::runtime_error("up");
  else longjmp(out, 1);
  mach6_done();
  space[1] = space[0];
}
// Two balanced functions by the plain symbols, as another language calls them: the inner's done is in tail position.
extern "C" unsigned plain_mark(const char *) __asm__("mach6_mark") __attribute__((weak));
extern "C" void plain_done() __asm__("mach6_done") __attribute__((weak));
__attribute__((noinline)) static void plain_inner()
{
  plain_mark("plain inner");
  plain_done();
}
__attribute__((noinline)) static void plain_outer()
{
  plain_mark("plain outer");
  plain_inner();
  plain_inner();
  plain_done();
}
// Scopes through a wrapper whose two halves have frames of different size: of 64 sizes, so that in some an inner done has
// the stack pointer of an outer mark.
template <int N> __attribute__((noinline)) static void begin(const char *name)
{
  volatile char space[N * 16];
  space[0] = name[0];
  mach6_mark(name);
  space[1] = space[0];
}
__attribute__((noinline)) static void finish() { mach6_done(); }
template <int N> __attribute__((noinline)) static void wrapped(int n)
{
  volatile char space[40];
  space[0] = char(n);
  begin<N>("wrapped");
  if (n > 1) wrapped<N>(n - 1);
  finish();
  space[1] = space[0];
}
template <int N> static void all_wrapped()
{
  wrapped<N>(12);
  if constexpr (N > 1) all_wrapped<N - 1>();
}
__attribute__((noinline)) static void by_longjmp()
{
  mach6_mark("longjmp");
  if (!setjmp(out)) down(5, false);
  mach6_done();
}
__attribute__((noinline)) static void by_throw()
{
  mach6_mark("throw");
  try {
    down(5, true);
  } catch (const std::exception &) {
  }
  mach6_done();
}
__attribute__((noinline)) static void by_guard()
{
  try {
    mach6::scope s("guard");
    MACH6_SCOPE("macro");
    down(5, true);
  } catch (const std::exception &) {
  }
}
__attribute__((noinline)) static void recurse(int n)
{
  volatile char space[16];
  space[0] = 1;
  mach6_mark("deep");
  if (n > 1) recurse(n - 1);
  mach6_done();
  space[1] = space[0];
}

int main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "longjmp")) by_longjmp();
  if (!strcmp(what, "plain") && plain_mark) plain_outer();
  if (!strcmp(what, "wrapped")) all_wrapped<64>();
  if (!strcmp(what, "throw")) by_throw();
  if (!strcmp(what, "guard")) by_guard();
  if (!strcmp(what, "underflow")) {
    mach6_done();
    mach6_done();
    mach6_done_to(0);
    mach6_mark("after");
    mach6_done();
  }
  if (!strcmp(what, "deep")) recurse(100000);
  if (!strcmp(what, "open")) {
    mach6_mark("one");
    mach6_mark("two");
    mach6_mark("three");
    fprintf(stderr, "open %u\n", mach6_mark("four"));
    mach6_done();
    return 0;
  }
  // Whatever came before, the books of depth are even now.
  fprintf(stderr, "depth %u\n", mach6_mark("end"));
  mach6_done();
}
