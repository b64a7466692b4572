/* modules.c - see modules.h. */
#include "modules.h"

#include <string.h>

#include "kernel_side.h"
#include "session.h"
#include "site_side.h"

static void add(void *arg, const struct m6_sym_module *m)
{
  struct m6_modules *to = arg;
  for (uint32_t i = 0; i < to->count; i++)
    if (!strcmp(to->list[i].path, m->path) && !strcmp(to->list[i].build_id, m->build_id)) return;
  if (to->count == M6_MODULES_SHOWN) to->more++;
  else to->list[to->count++] = (struct m6_module){m->path, m->build_id, m->start, m->end, m->offset};
}

void m6_modules_of_image(void *image, struct m6_modules *to)
{
  struct m6_image *i = image;
  to->count = to->more = 0;
  m6_site_side_modules(i->sites, add, to);
  m6_kernel_modules(i->kernel, add, to);
}
