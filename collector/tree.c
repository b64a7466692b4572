/* tree.c - the arena, finding and making children, settling. See tree.h. */
#include "tree.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Settled nodes, private ones, and a top with its "(other)" for each thread that can have a ring. */
#define CAPACITY (2 * M6_NODES_MAX + 4 * M6_RINGS + 64)
#define SEED 0x6d616368365eedull

static uint32_t take(struct m6_tree *t, int settled)
{
  uint32_t at = t->free_list;
  if (at != 0) t->free_list = t->nodes[at].next_sibling;
  else if (t->bump < t->capacity) at = t->bump++;
  else return 0;
  struct m6_node *n = &t->nodes[at];
  memset(n, 0, offsetof(struct m6_node, times));
  n->times.seen = 0;
  memset(&n->hh, 0, sizeof n->hh);
  if (settled) t->settled++;
  else t->privates++;
  return at;
}

static void link_child(struct m6_tree *t, uint32_t parent, uint32_t child, uint32_t label, int hashed)
{
  struct m6_node *p = &t->nodes[parent], *c = &t->nodes[child];
  c->key = (struct m6_node_key){parent, label};
  if (p->last_child) t->nodes[p->last_child].next_sibling = child;
  else p->first_child = child;
  p->last_child = child;
  c->unhashed = !hashed;
  if (hashed) HASH_ADD(hh, t->hash, key, sizeof c->key, c);
}

static uint32_t find(struct m6_tree *t, uint32_t parent, uint32_t label)
{
  struct m6_node_key key = {parent, label};
  struct m6_node *found = NULL;
  HASH_FIND(hh, t->hash, &key, sizeof key, found);
  return found ? (uint32_t)(found - t->nodes) : 0;
}

static uint32_t add(struct m6_tree *t, uint32_t parent, uint32_t label, enum m6_node_kind kind)
{
  uint32_t n = take(t, 1);
  t->nodes[n].kind = kind;
  link_child(t, parent, n, label, 1);
  return n;
}

int m6_tree_init(struct m6_tree *t)
{
  memset(t, 0, sizeof *t);
  void *p = mmap(NULL, CAPACITY * sizeof(struct m6_node), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return errno;
  t->nodes = p;
  t->capacity = CAPACITY;
  t->limit = M6_NODES_MAX;
  t->bump = 1; /* node 0 is the root, and as an index means "none" */
  t->settled = 1;
  m6_rng_seed(&t->rng, SEED);
  t->nodes[0].kind = M6_NODE_ROOT;
  t->startup = add(t, 0, M6_LABEL_PART + M6_NODE_STARTUP, M6_NODE_STARTUP);
  t->frame = add(t, 0, M6_LABEL_PART + M6_NODE_FRAME, M6_NODE_FRAME);
  t->shutdown = add(t, 0, M6_LABEL_PART + M6_NODE_SHUTDOWN, M6_NODE_SHUTDOWN);
  t->other = add(t, 0, M6_LABEL_OTHER, M6_NODE_SCOPE);
  t->nodes[t->other].sink = 1;
  return 0;
}

void m6_tree_free(struct m6_tree *t)
{
  HASH_CLEAR(hh, t->hash);
  if (t->nodes) munmap(t->nodes, CAPACITY * sizeof(struct m6_node));
  t->nodes = NULL;
}

uint32_t m6_tree_private(struct m6_tree *t)
{
  uint32_t top = take(t, 0);
  if (top == 0) return 0;
  struct m6_node *n = &t->nodes[top];
  n->owner = top;
  n->kind = M6_NODE_ROOT;
  n->unhashed = 1;
  uint32_t other = take(t, 0); /* made now, so that it is there when nothing else can be made */
  if (other == 0) {
    t->nodes[top].sink = 1;
    return top;
  }
  t->nodes[other].owner = top;
  t->nodes[other].kind = M6_NODE_SCOPE;
  t->nodes[other].sink = 1;
  link_child(t, top, other, M6_LABEL_OTHER, 1);
  return top;
}

uint32_t m6_tree_child_slow(struct m6_tree *t, uint32_t parent, uint32_t label)
{
  struct m6_node *p = &t->nodes[parent];
  if (p->sink) return parent;
  int settled = p->owner == 0;
  uint32_t n = find(t, parent, label);
  if (n == 0) {
    if ((settled ? t->settled : t->privates) < t->limit) n = take(t, settled);
    if (n == 0) {
      t->refused++;
      if (settled) return t->other;
      n = t->nodes[p->owner].first_child; /* the "(other)" made with the top */
      return n ? n : p->owner;
    }
    t->nodes[n].owner = p->owner;
    t->nodes[n].kind = M6_NODE_SCOPE;
    link_child(t, parent, n, label, 1);
  }
  if (p->hit != 0) t->nodes[p->hit].successor = n;
  return p->hit = n;
}

uint32_t m6_tree_thread(struct m6_tree *t, uint32_t label, int shared)
{
  uint32_t n = shared ? find(t, 0, label) : 0;
  if (n != 0) return n;
  if (t->settled < t->limit) n = take(t, 1);
  if (n == 0) {
    t->refused++;
    return t->other;
  }
  t->nodes[n].kind = M6_NODE_THREAD;
  link_child(t, 0, n, label, shared);
  return n;
}

static void unlink_child(struct m6_tree *t, uint32_t node)
{
  struct m6_node *p = &t->nodes[t->nodes[node].key.parent];
  uint32_t before = 0;
  for (uint32_t c = p->first_child; c != node; c = t->nodes[c].next_sibling) before = c;
  uint32_t after = t->nodes[node].next_sibling;
  if (before) t->nodes[before].next_sibling = after;
  else p->first_child = after;
  if (p->last_child == node) p->last_child = before;
  for (uint32_t c = p->first_child; c != 0; c = t->nodes[c].next_sibling)
    if (t->nodes[c].successor == node) t->nodes[c].successor = 0;
  if (p->hit == node) p->hit = 0;
}

static void release(struct m6_tree *t, uint32_t node)
{
  /* Depth is bounded by the arena, not by a constant: walk without recursion, leaves first. */
  uint32_t n = node;
  for (;;) {
    while (t->nodes[n].first_child) n = t->nodes[n].first_child;
    struct m6_node *x = &t->nodes[n];
    uint32_t parent = x->key.parent, next = x->next_sibling;
    int last = n == node;
    if (!x->unhashed && t->hash != NULL) HASH_DELETE(hh, t->hash, x);
    if (x->owner) t->privates--;
    else t->settled--;
    x->next_sibling = t->free_list;
    t->free_list = n;
    if (last) return;
    t->nodes[parent].first_child = next;
    n = parent;
  }
}

void m6_tree_remove(struct m6_tree *t, uint32_t node)
{
  struct m6_node *n = &t->nodes[node];
  if (n->owner != node) unlink_child(t, node);
  if (n->owner == 0) t->epoch++;
  release(t, node);
}

uint32_t m6_tree_home(struct m6_tree *t, uint32_t node, uint32_t top)
{
  uint32_t path[M6_SCOPE_DEPTH_MAX + 2], depth = 0;
  uint32_t home = top, n = node;
  while (n != t->nodes[node].owner) { /* up to the first one whose home is known */
    struct m6_node *x = &t->nodes[n];
    if (x->home != 0 && x->home_top == top && x->home_epoch == t->epoch) {
      home = x->home;
      break;
    }
    if (depth == sizeof path / sizeof path[0]) return t->other;
    path[depth++] = n;
    n = x->key.parent;
  }
  while (depth > 0) {
    struct m6_node *x = &t->nodes[path[--depth]];
    home = m6_tree_child_slow(t, home, x->key.label);
    x->home = home;
    x->home_top = top;
    x->home_epoch = t->epoch;
    if (x->key.label == M6_LABEL_OTHER && x->sink) t->nodes[home].sink = 1;
  }
  return home;
}

static void fold(struct m6_tree *t, struct m6_node *to, const struct m6_node *from)
{
  if (from->count != 0 && (to->count == 0 || from->d_max > to->d_max)) to->d_max = from->d_max;
  if (from->time_max > to->time_max) to->time_max = from->time_max;
  to->count += from->count;
  to->abandoned += from->abandoned;
  to->lost += from->lost;
  to->allocs += from->allocs;
  to->time_sum += from->time_sum;
  to->own_time += from->own_time;
  to->own_allocs += from->own_allocs;
  to->samples += from->samples;
  to->d_sum = m6_sum_saturated(to->d_sum, from->d_sum, &t->saturated);
  m6_reservoir_merge(&to->times, &from->times, &t->rng);
}

void m6_tree_settle(struct m6_tree *t, uint32_t private_top, uint32_t top)
{
  uint32_t n = t->nodes[private_top].touched_next;
  t->nodes[private_top].touched_next = 0;
  t->nodes[top].samples += t->nodes[private_top].samples;
  t->nodes[private_top].samples = 0;
  while (n != 0) {
    struct m6_node *x = &t->nodes[n];
    fold(t, &t->nodes[m6_tree_home(t, n, top)], x);
    uint32_t next = x->touched_next;
    x->touched = 0;
    x->touched_next = 0;
    x->count = x->abandoned = x->lost = x->allocs = 0;
    x->time_sum = x->time_max = x->own_time = x->own_allocs = x->samples = 0;
    x->d_sum = x->d_max = 0;
    x->times.seen = 0;
    n = next;
  }
}

void m6_tree_move(struct m6_tree *t, uint32_t from, uint32_t to)
{
  /* Depth first; the node that `from`'s descendant goes to is kept in its home. */
  t->nodes[from].home = to;
  uint32_t n = t->nodes[from].first_child;
  while (n != 0) {
    struct m6_node *x = &t->nodes[n];
    x->home = m6_tree_child_slow(t, t->nodes[x->key.parent].home, x->key.label);
    fold(t, &t->nodes[x->home], x);
    if (x->first_child) {
      n = x->first_child;
      continue;
    }
    while (n != from && t->nodes[n].next_sibling == 0) n = t->nodes[n].key.parent;
    n = n == from ? 0 : t->nodes[n].next_sibling;
  }
  fold(t, &t->nodes[to], &t->nodes[from]);
  m6_tree_remove(t, from);
}
