/* libclient - a plugin that names its own scopes, and is unloaded while its thread lives. */
#include "preload/mach6.h"
unsigned client_work(int n)
{
  MACH6_SCOPE("client");
  for (int i = 0; i < n; i++) {
    mach6_mark("client inner");
    mach6_done();
  }
  return mach6_mark("client end"), mach6_done(), 0;
}
