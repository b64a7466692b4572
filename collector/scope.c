/* scope.c - marks and dones to a stack, and the stack to statistics. See scope.h. */
#include "scope.h"

#include <stdlib.h>
#include <string.h>

#include "../shm/record.h"

#define BACKWARDS_TICKS (1u << 22) /* about a millisecond: what no skew between CPUs explains */
#define DURATION_MAX (1ull << 62)

struct m6_thread *m6_thread_new(struct m6_tree *tree, uint32_t tid)
{
  struct m6_thread *s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  s->tree = tree;
  s->tid = tid;
  s->top = m6_tree_private(tree);
  s->name = M6_LABEL_THREAD;
  s->sample_at = UINT64_MAX;
  if (s->top == 0) {
    free(s);
    return NULL;
  }
  return s;
}

void m6_thread_free(struct m6_thread *s)
{
  if (s == NULL) return;
  m6_tree_remove(s->tree, s->top);
  free(s->stack);
  free(s);
}

static int grow(struct m6_thread *s)
{
  uint32_t room = s->room ? 2 * s->room : 32;
  if (room > M6_SCOPE_DEPTH_MAX) room = M6_SCOPE_DEPTH_MAX;
  if (room == s->room) return 0;
  struct m6_open *stack = realloc(s->stack, room * sizeof *stack);
  if (stack == NULL) return 0;
  s->stack = stack;
  s->room = room;
  return 1;
}

/* Where a scope's statistics go: its node in the private tree, to be settled with the frame. A scope that outlived
 * the frame it was marked in belongs to that one's part of the settled tree, whatever the current frame turns out to
 * be. */
static struct m6_node *node_of(struct m6_thread *s, const struct m6_open *e)
{
  struct m6_tree *t = s->tree;
  if (__builtin_expect(e->frame == s->frame, 1)) {
    m6_tree_touch(t, e->node);
    return &t->nodes[e->node];
  }
  return &t->nodes[m6_tree_home(t, e->node, e->frame == 0 ? s->first_top : t->frame)];
}

static void drop(struct m6_thread *s, uint32_t to, int abandoned)
{
  while (s->height > to) {
    const struct m6_open *e = &s->stack[--s->height];
    if (e->node == 0) continue;
    struct m6_node *n = node_of(s, e);
    if (abandoned && !e->uncertain) n->abandoned++;
    else n->lost++;
  }
}

void m6_scope_loss(struct m6_thread *s)
{
  for (uint32_t i = 0; i < s->height; i++) s->stack[i].uncertain = 1;
}

void m6_scope_sample(struct m6_thread *s, uint32_t weight)
{
  for (uint32_t i = s->height; i > 0; i--)
    if (s->stack[i - 1].node != 0) {
      node_of(s, &s->stack[i - 1])->samples += weight;
      return;
    }
  s->tree->nodes[s->top].samples += weight;
}

void m6_scope_end(struct m6_thread *s) { drop(s, 0, 1); }

void m6_scope_mark(struct m6_thread *s, uint32_t label, uint32_t depth, uint64_t clock, uint64_t live, uint64_t count)
{
  if (__builtin_expect(depth != s->height, 0)) {
    if (depth >= M6_SCOPE_DEPTH_MAX) return; /* not told apart at that depth; its done is ignored by the same rule */
    drop(s, depth, 0);
    while (s->height < depth) {
      if (s->height == s->room && !grow(s)) return;
      memset(&s->stack[s->height++], 0, sizeof *s->stack);
    }
  }
  if (__builtin_expect(s->height == s->room, 0) && !grow(s)) return;
  uint32_t i = s->height;
  uint32_t parent = s->top;
  while (i > 0) { /* the nearest open scope that is known, when it belongs to this frame */
    const struct m6_open *above = &s->stack[--i];
    if (above->node == 0) continue;
    if (above->frame == s->frame) parent = above->node;
    break;
  }
  struct m6_open *e = &s->stack[s->height++];
  e->clock = clock;
  e->live = live;
  e->allocs = count;
  e->child_time = e->child_allocs = 0;
  e->frame = s->frame;
  e->uncertain = 0;
  e->top_level = parent == s->top;
  e->node = m6_tree_child(s->tree, parent, label);
}

static void close_scope(struct m6_thread *s, const struct m6_open *e, uint64_t clock, uint64_t live, uint64_t count)
{
  struct m6_tree *t = s->tree;
  struct m6_node *n = node_of(s, e);
  if (__builtin_expect(e->uncertain, 0)) {
    n->lost++;
    return;
  }
  uint64_t time = 0;
  if (__builtin_expect(clock >= e->clock && clock - e->clock < DURATION_MAX, 1)) time = clock - e->clock;
  else if (e->clock - clock > BACKWARDS_TICKS) t->backwards++;
  uint64_t allocs = (count - e->allocs) & M6_COUNT_MASK;
  int64_t d;
  if (__builtin_expect(__builtin_sub_overflow((int64_t)live, (int64_t)e->live, &d), 0)) {
    d = (int64_t)live < 0 ? INT64_MIN : INT64_MAX;
    t->saturated = 1;
  }
  if (n->count == 0 || d > n->d_max) n->d_max = d;
  n->count++;
  n->time_sum += time;
  if (time > n->time_max) n->time_max = time;
  n->own_time += time > e->child_time ? time - e->child_time : 0;
  n->allocs += allocs;
  n->own_allocs += allocs > e->child_allocs ? allocs - e->child_allocs : 0;
  n->d_sum = m6_sum_saturated(n->d_sum, d, &t->saturated);
  m6_reservoir_add(&n->times, &t->rng, (float)time);
  if (e->top_level) {
    if (e->frame == s->frame) {
      s->d_scopes += (__int128)(int64_t)live - (int64_t)e->live;
      s->top_time += time;
    }
  } else if (s->height > 0) {
    struct m6_open *above = &s->stack[s->height - 1];
    above->child_time += time;
    above->child_allocs += allocs;
  }
}

void m6_scope_done(struct m6_thread *s, uint32_t depth, int abandoned, uint64_t clock, uint64_t live, uint64_t count)
{
  if (__builtin_expect(s->height != depth + 1, 0)) {
    if (s->height <= depth) return; /* its mark was lost, or lay too deep */
    drop(s, depth + 1, abandoned);
  }
  const struct m6_open *e = &s->stack[--s->height];
  if (e->node != 0) close_scope(s, e, clock, live, count);
}
