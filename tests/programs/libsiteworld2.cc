// libsiteworld2 - a plugin in C++ that does not leak, of the same shape: it comes to lie where the other one was, for site_world.
/* flags: -fomit-frame-pointer */
#include "site_world.h"

struct Smoke {
  float at[14];
};
template <typename T> struct Emitter {
  APART T *emit(truth &t) { return made<T>(t); }
};
extern "C" APART void plugin(truth *t)
{
  Emitter<Smoke> emitter;
  Smoke *p = emitter.emit(*t);
  p->at[0] = 1;
  ::operator delete(p);
  __asm__ volatile("" ::: "memory"); /* no tail call */
}
