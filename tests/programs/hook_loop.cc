// hook_loop - N rounds of one thing, for counting instructions: hook_loop WHAT N.
/* flags: -fno-builtin */
#include <cstdlib>
#include <cstring>
#include "preload/mach6.h"

int main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";
  int n = argc > 2 ? atoi(argv[2]) : 1;
  void *p = malloc(64), *sampled = malloc(64 << 20); // with MACH6_SITES: so that frees have something to look for
  for (int i = 0; i < n + 3; i++) {                  // three to get slot, ring and label
    if (!strcmp(what, "pair")) free(malloc(64));
    if (!strcmp(what, "calloc")) free(calloc(1, 64));
    if (!strcmp(what, "realloc")) p = realloc(p, size_t(64 + i % 2));
    if (!strcmp(what, "new")) ::operator delete(::operator new(64));
    if (!strcmp(what, "scope")) {
      mach6_mark("scope");
      mach6_done();
    }
    if (!strcmp(what, "guard")) { MACH6_SCOPE("scope"); }
    if (!strcmp(what, "built")) { mach6::scope s("a label of average length"); }
  }
  free(p);
  free(sampled);
}
