/* map_ranges.c - see map_ranges.h. Nodes are numbers in one array; 0 is none. */
#include "map_ranges.h"

#include <stdlib.h>

#define NONE 0u

struct node {
  struct m6_map_event is;
  uint32_t left, right, rank;
};
struct m6_map_ranges {
  uint32_t root, free_list, fresh; /* fresh: the first that was never used */
  uint64_t random;
  struct node node[1 + M6_MAP_RANGES_MAX];
};

struct m6_map_ranges *m6_map_ranges_open(void)
{
  struct m6_map_ranges *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->fresh = 1;
  r->random = (uintptr_t)r | 1;
  return r;
}
void m6_map_ranges_close(struct m6_map_ranges *r) { free(r); }

/* ---- the treap
 * ----------------------------------------------------------------------------------------------------------------- */

static uint32_t make(struct m6_map_ranges *r, const struct m6_map_event *is)
{
  uint32_t n = r->free_list;
  if (n) r->free_list = r->node[n].left;
  else if (r->fresh <= M6_MAP_RANGES_MAX) n = r->fresh++;
  else return NONE;
  r->random ^= r->random << 13; /* xorshift (Marsaglia 2003) */
  r->random ^= r->random >> 7;
  r->random ^= r->random << 17;
  r->node[n] = (struct node){.is = *is, .rank = (uint32_t)(r->random >> 32)};
  return n;
}
static void drop(struct m6_map_ranges *r, uint32_t n)
{
  r->node[n].left = r->free_list;
  r->free_list = n;
}

/* Those that start before `at`, and the others. */
static void split(struct m6_map_ranges *r, uint32_t n, uint64_t at, uint32_t *before, uint32_t *rest)
{
  *before = *rest = NONE;
  while (n) {
    struct node *k = &r->node[n];
    if (k->is.start < at) {
      *before = n;
      before = &k->right;
      n = k->right;
    } else {
      *rest = n;
      rest = &k->left;
      n = k->left;
    }
  }
  *before = *rest = NONE;
}
static uint32_t merge(struct m6_map_ranges *r, uint32_t a, uint32_t b)
{
  uint32_t top, *to = &top;
  while (a && b) {
    if (r->node[a].rank > r->node[b].rank) {
      *to = a;
      to = &r->node[a].right;
      a = *to;
    } else {
      *to = b;
      to = &r->node[b].left;
      b = *to;
    }
  }
  *to = a ? a : b;
  return top;
}

/* ---- events
 * ----------------------------------------------------------------------------------------------------------------------
 * */

struct work {
  struct m6_map_ranges *r;
  m6_map_lost *lost;
  void *arg;
};

/* The last range of the tree, if it goes beyond `at`, ends there; what is cut off becomes a tree of its own. */
static uint32_t cut(const struct work *w, uint32_t n, uint64_t at)
{
  struct node *node = w->r->node;
  while (n && node[n].right) n = node[n].right;
  if (!n || node[n].is.end <= at) return NONE;
  struct m6_map_event rest = node[n].is;
  rest.start = at;
  node[n].is.end = at;
  uint32_t made = make(w->r, &rest);
  if (!made) w->lost(w->arg, rest.key, rest.end - rest.start, M6_MAP_NO_ROOM);
  return made;
}

static void put(const struct work *w, uint32_t *tree, struct m6_map_event is, uint64_t end)
{
  if (is.key == 0 || is.start >= end) return;
  is.end = end;
  uint32_t n = make(w->r, &is);
  if (n) *tree = merge(w->r, *tree, n);
  else w->lost(w->arg, is.key, is.end - is.start, M6_MAP_NO_ROOM);
}

void m6_map_ranges_apply(struct m6_map_ranges *r, const struct m6_map_event *e, m6_map_lost *lost, void *arg)
{
  const struct work w = {r, lost, arg};
  uint32_t before, in, after, done = NONE, first;
  struct m6_map_event rest = *e; /* what of it is not in place yet */
  if (e->start >= e->end) return;
  split(r, r->root, e->start, &before, &in);
  in = merge(r, cut(&w, before, e->start), in);
  split(r, in, e->end, &in, &after);
  after = merge(r, cut(&w, in, e->end), after);
  while (in) { /* the first of them, until none is left */
    for (first = in; r->node[first].left;) first = r->node[first].left;
    split(r, in, r->node[first].is.start + 1, &first, &in);
    struct m6_map_event *old = &r->node[first].is;
    if (old->clock <= e->clock) {
      lost(arg, old->key, old->end - old->start, e->key ? M6_MAP_REPLACED : M6_MAP_GONE);
      drop(r, first);
      continue;
    }
    uint64_t end = old->end;
    if (e->key) lost(arg, e->key, old->end - old->start, M6_MAP_REPLACED);
    put(&w, &done, rest, old->start);
    done = merge(r, done, first);
    rest.start = end;
  }
  put(&w, &done, rest, e->end);
  r->root = merge(r, merge(r, before, done), after);
}

void m6_map_ranges_each(const struct m6_map_ranges *r, void (*each)(void *, const struct m6_map_event *), void *arg)
{
  uint64_t from = 0;
  for (;;) { /* the first that starts at `from` or after it */
    uint32_t found = NONE;
    for (uint32_t n = r->root; n;) {
      if (r->node[n].is.start >= from) found = n, n = r->node[n].left;
      else n = r->node[n].right;
    }
    if (!found) return;
    each(arg, &r->node[found].is);
    from = r->node[found].is.start + 1;
  }
}
