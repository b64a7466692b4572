/* modules.h - the files whose code an image's stacks led through: of its sites and of its CPU samples, each once.
 *
 *   out.modules = (struct m6_module_view){image, m6_modules_of_image};      publish.c asks when a snapshot is to have them
 *
 * Only files that were opened for a stack are listed, so nothing is opened for the list. One thread. Caller: outlets.c,
 * by publish.c.
 */
#ifndef M6_MODULES_H
#define M6_MODULES_H

#include <stdint.h>

#include "../shm/snapshot_modules.h"

struct m6_module {
  const char *path, *build_id; /* the symbols' own: they hold as long as the image does */
  uint64_t start, end, offset;
};
struct m6_modules {
  uint32_t count, more;
  struct m6_module list[M6_MODULES_SHOWN];
};
struct m6_module_view {
  void *arg;
  void (*fill)(void *arg, struct m6_modules *to);
};

void m6_modules_of_image(void *image, struct m6_modules *to);

#endif
