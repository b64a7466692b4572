/* libsiteplugin2 - a plugin that does not leak, of the same shape, for site_leaks: it comes to lie where the other one was. */
/* flags: -fomit-frame-pointer -fno-builtin */
#include "site_leaks.h"

APART void *plugin_churns(struct truth *t) { return got(t, malloc(56)); }
APART void *plugin(struct truth *t)
{
  void *p = plugin_churns(t);
  __asm__ volatile("" : "+r"(p)); /* no tail call */
  free(p);
  return NULL;
}
