// own_pool - a program that replaces every operator by a pool of its own out of mmap.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <sys/mman.h>

static char *at, *end;
static long news, deletes;
static void *take(std::size_t n)
{
  n = (n + 63) & ~std::size_t(63);
  if (!at || at + n > end) {
    at = static_cast<char *>(mmap(nullptr, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    end = at + (16 << 20);
  }
  news++;
  void *p = at;
  at += n;
  return p;
}
void *operator new(std::size_t n) { return take(n); }
void *operator new[](std::size_t n) { return take(n); }
void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return take(n); }
void operator delete(void *) noexcept { deletes++; }
void operator delete[](void *) noexcept { deletes++; }
void operator delete(void *, std::size_t) noexcept { deletes++; }
void operator delete[](void *, std::size_t) noexcept { deletes++; }

int main()
{
  std::string *s = nullptr;
  for (int i = 0; i < 1000; i++) {
    delete s;
    s = new std::string(100, 'y');
  }
  std::string t = *s + *s;
  delete s;
  free(malloc(10));
  printf("news %ld\ndeletes %ld\n", news, deletes);
}
