/* site_stacks.h - different stacks, each once, with what was allocated by each: for names and for flame graphs.
 *
 * Stacks are places in files, innermost first, without the shim's own. Number 0 is "none kept". At most
 * M6_SITE_STACKS_MAX; later ones are number 0 too. One thread. Caller: site_side.c.
 */
#ifndef M6_SITE_STACKS_H
#define M6_SITE_STACKS_H

#include "symbols.h"

#define M6_SITE_STACKS_MAX 8192u

struct m6_site_stacked {
  uint32_t count, whole; /* whole: it goes to the thread's first function */
  uint64_t samples;
  double bytes, blocks; /* estimates of what was allocated with it */
  struct m6_sym_place place[];
};
struct m6_stack_entry;
struct m6_site_stacks {
  struct m6_stack_entry *hash;
  struct m6_site_stacked **list; /* M6_SITE_STACKS_MAX */
  uint32_t count;
};

int m6_site_stacks_init(struct m6_site_stacks *s); /* 0 or ENOMEM */
void m6_site_stacks_free(struct m6_site_stacks *s);
/* Its number; *new tells that it was not there yet. */
uint32_t m6_site_stacks_keep(struct m6_site_stacks *s, const struct m6_sym_place *place, uint32_t n, int *new_);

#endif
