/* libsiteplugin1 - a plugin that leaks, for site_leaks. */
/* flags: -fomit-frame-pointer -fno-builtin */
#include "site_leaks.h"

APART void *plugin_leaks(struct truth *t) { return got(t, malloc(56)); }
APART void *plugin(struct truth *t)
{
  void *p = plugin_leaks(t);
  __asm__ volatile("" : "+r"(p)); /* no tail call */
  return p;
}
