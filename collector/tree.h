/* tree.h - nodes: labels under parents, with their statistics, in one bounded arena.
 *
 * Two kinds of trees live in the arena, made of the same nodes:
 *   the settled tree   root -> startup, frame, shutdown, a node for each thread name -> scopes. It is what gets published.
 *   private trees      one for each live thread: what it has done since it was last settled. Its scopes' home is not known
 *                      yet: a thread shows only later that it presents, and a frame only later that it was the last.
 * Settling folds a private tree's touched nodes into the settled tree, O(touched nodes), and leaves them empty but in
 * place.
 *
 * Promise: O(nodes) memory, at most M6_NODES_MAX settled nodes and as many private ones; a label that finds no room
 * goes to an "(other)" node and is counted in `refused`. Times in ticks, memory in bytes. No malloc on the hot path
 * (m6_tree_child finds by a successor cache, then by uthash). One thread. Callers: scope.c, thread.c, capture.c,
 * publish_tree.c.
 */
#ifndef M6_TREE_H
#define M6_TREE_H

#include <stdint.h>

#define HASH_FUNCTION(key, bytes, out) out = m6_tree_hash(key)
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(node) ((node)->unhashed = 1)
#include <uthash.h>

#include "../shm/snapshot.h"
#include "reservoir.h"

#define M6_LABEL_OTHER 0u
#define M6_LABEL_THREAD 0x10000u /* thread names' labels start here; below are the segment's own */
#define M6_LABEL_PART 0x20000u   /* startup, frame, shutdown: + enum m6_node_kind */

struct m6_node_key {
  uint32_t parent, label;
};
static inline unsigned m6_tree_hash(const void *key)
{
  const struct m6_node_key *k = (const struct m6_node_key *)key;
  uint64_t x = ((uint64_t)k->parent << 32 | k->label) * 0x9e3779b97f4a7c15ull;
  return (unsigned)(x >> 32);
}

struct m6_node {
  struct m6_node_key key; /* key.parent is this node's parent */
  uint32_t first_child, last_child, next_sibling;
  uint32_t hit;       /* the child found last */
  uint32_t successor; /* the sibling that was found after this one, the last time */
  uint8_t kind;       /* enum m6_node_kind; a private tree's top is M6_NODE_ROOT */
  uint8_t sink;       /* an "(other)": its children are itself */
  uint8_t touched, unhashed;
  uint8_t visible;                     /* goes into the snapshot that is being written */
  uint32_t owner;                      /* private trees: its top; settled nodes: 0 */
  uint32_t touched_next;               /* private: next touched node of the same owner. A top: first one */
  uint32_t home, home_top, home_epoch; /* private: the settled node that this one goes to, as long as both still hold */
  uint32_t out;                        /* index in the snapshot that is being written */

  uint64_t count, abandoned, lost, allocs;
  uint64_t time_sum, time_max, own_time, own_allocs;
  uint64_t samples; /* of the CPU, that fell to itself; a private top's are its thread's, outside of all scopes */
  int64_t d_sum, d_max;
  struct m6_reservoir times;
  UT_hash_handle hh;
};

struct m6_tree {
  struct m6_node *nodes; /* [0] is the settled root */
  uint32_t capacity, bump, free_list;
  uint32_t settled, privates; /* nodes in use */
  uint32_t startup, frame, shutdown, other;
  uint32_t epoch;     /* counts removals of settled nodes */
  uint64_t refused;   /* nodes that were not made */
  uint32_t limit;     /* settled nodes, and private ones: M6_NODES_MAX, or what a budget made of it */
  uint32_t saturated; /* a sum of D left the range of int64 */
  uint64_t backwards; /* scopes whose done lies far before their mark */
  struct m6_node *hash;
  struct m6_rng rng;
};

int m6_tree_init(struct m6_tree *t); /* 0 or an errno */
void m6_tree_free(struct m6_tree *t);

/* A new private tree: gives its top. 0 when there is no room at all. */
uint32_t m6_tree_private(struct m6_tree *t);
/* Removes a node and all below it. */
void m6_tree_remove(struct m6_tree *t, uint32_t node);

uint32_t m6_tree_child_slow(struct m6_tree *t, uint32_t parent, uint32_t label);
/* The child of `parent` with that label, made when it is new. Scopes call each other in the same order most of the
 * time, so the child found last and its successor are asked first. */
static inline uint32_t m6_tree_child(struct m6_tree *t, uint32_t parent, uint32_t label)
{
  struct m6_node *nodes = t->nodes, *p = &nodes[parent];
  uint32_t hit = p->hit;
  if (hit != 0) {
    uint32_t next = nodes[hit].successor;
    if (next != 0 && nodes[next].key.label == label) return p->hit = next;
    if (nodes[hit].key.label == label) return hit;
  }
  return m6_tree_child_slow(t, parent, label);
}
/* A child of the settled root, of kind THREAD when label >= M6_LABEL_THREAD. `shared` 0: a new one that no other
 * caller finds. */
uint32_t m6_tree_thread(struct m6_tree *t, uint32_t label, int shared);

static inline void m6_tree_touch(struct m6_tree *t, uint32_t node)
{
  struct m6_node *n = &t->nodes[node];
  if (n->touched) return;
  n->touched = 1;
  n->touched_next = t->nodes[n->owner].touched_next;
  t->nodes[n->owner].touched_next = node;
}

/* Sum of two byte counts that stays in range and says so. */
static inline int64_t m6_sum_saturated(int64_t a, int64_t b, uint32_t *saturated)
{
  int64_t sum;
  if (__builtin_expect(!__builtin_add_overflow(a, b, &sum), 1)) return sum;
  *saturated = 1;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

/* Where a private node's statistics go when they are settled under `top` (a settled node): made when it is new. */
uint32_t m6_tree_home(struct m6_tree *t, uint32_t node, uint32_t top);
/* Folds every touched node of a private tree into the settled tree under `top`, and empties it. */
void m6_tree_settle(struct m6_tree *t, uint32_t private_top, uint32_t top);
/* Folds the settled nodes below `from` into those below `to`, and removes `from`. */
void m6_tree_move(struct m6_tree *t, uint32_t from, uint32_t to);

#endif
