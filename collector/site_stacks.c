/* site_stacks.c - see site_stacks.h. */
#include "site_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "hash_free.h"

struct m6_stack_entry {
  uint32_t number;
  UT_hash_handle hh;
};

int m6_site_stacks_init(struct m6_site_stacks *s)
{
  memset(s, 0, sizeof *s);
  s->list = calloc(M6_SITE_STACKS_MAX, sizeof *s->list);
  if (s->list) s->list[0] = calloc(1, sizeof **s->list);
  s->count = 1;
  return s->list && s->list[0] ? 0 : ENOMEM;
}

void m6_site_stacks_free(struct m6_site_stacks *s)
{
  M6_HASH_FREE(s->hash, free);
  for (uint32_t i = 0; s->list && i < s->count; i++) free(s->list[i]);
  free(s->list);
  memset(s, 0, sizeof *s);
}

uint32_t m6_site_stacks_keep(struct m6_site_stacks *s, const struct m6_sym_place *place, uint32_t n, int *new_)
{
  struct m6_stack_entry *e;
  size_t bytes = n * sizeof *place;
  *new_ = 0;
  HASH_FIND(hh, s->hash, place, bytes, e);
  if (e) return e->number;
  if (s->count == M6_SITE_STACKS_MAX) return 0;
  struct m6_site_stacked *k = calloc(1, sizeof *k + bytes);
  e = calloc(1, sizeof *e);
  if (!k || !e) {
    free(k);
    free(e);
    return 0;
  }
  k->count = n;
  memcpy(k->place, place, bytes);
  e->number = s->count;
  s->list[s->count++] = k;
  HASH_ADD_KEYPTR(hh, s->hash, k->place, bytes, e);
  *new_ = 1;
  return e->number;
}
