// operators - operator new and delete in every form, and bad_alloc through a new_handler. Says how many blocks it made.
// With the argument "quiet", nothing but the counts.
/* flags: -fno-builtin -Wno-alloc-size-larger-than -faligned-new */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

struct alignas(64) Wide {
  char c[200];
};
static int handled;
static void handler()
{
  if (++handled == 3) std::set_new_handler(nullptr);
}

int main(int argc, char **)
{
  long made = 0, bad = 0;
  for (int i = 0; i < 1000; i++) {
    delete new int(i);
    delete[] new char[100 + i];
    delete new (std::nothrow) int(i);
    delete[] new (std::nothrow) char[100];
    Wide *w = new Wide;
    bad += uintptr_t(w) % 64 != 0;
    delete w;
    w = new Wide[3];
    bad += uintptr_t(w) % 64 != 0;
    delete[] w;
    ::operator delete(::operator new(48), std::size_t(48));
    ::operator delete[](::operator new[](48), std::size_t(48));
    ::operator delete(::operator new(48, std::align_val_t(128)), std::size_t(48), std::align_val_t(128));
    ::operator delete(::operator new(48, std::align_val_t(128), std::nothrow), std::align_val_t(128), std::nothrow);
    ::operator delete(::operator new(48, std::nothrow), std::nothrow);
    made += 11;
  }
  volatile std::size_t huge = SIZE_MAX / 4;
  int caught = 0;
  std::set_new_handler(handler);
  try {
    (void)::operator new(huge);
  } catch (const std::bad_alloc &) {
    caught++;
  }
  try {
    (void)::operator new[](huge, std::align_val_t(64));
  } catch (const std::bad_alloc &) {
    caught++;
  }
  void *none = ::operator new(huge, std::nothrow);
  std::vector<std::string> v;
  for (int i = 0; i < 100; i++) v.push_back(std::string(std::size_t(i) * 3, 'x'));
  printf("made %ld\n", made);
  if (argc == 1) printf("bad %ld\ncaught %d\nhandled %d\nnothrow %s\nstrings %zu\n", bad, caught, handled, none ? "block" : "NULL", v.size());
  return int(bad);
}
