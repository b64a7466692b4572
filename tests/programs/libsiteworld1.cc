// libsiteworld1 - a plugin in C++ that leaks, for site_world.
/* flags: -fomit-frame-pointer */
#include "site_world.h"

struct Spark {
  float at[14];
};
template <typename T> struct Emitter {
  APART T *emit(truth &t) { return made<T>(t); }
};
extern "C" APART void plugin(truth *t)
{
  Emitter<Spark> emitter;
  Spark *p = emitter.emit(*t);
  p->at[0] = 1;
  __asm__ volatile("" ::: "memory"); /* no tail call */
}
