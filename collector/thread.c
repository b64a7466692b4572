/* thread.c - a target's threads: their names, and where in the settled tree their scopes go.
 *
 * A thread's private tree settles
 *   into startup   at its first present of the main stream, when that is the session's first boundary
 *   into frame     at each further present
 *   into shutdown  at the end, when it made the last present
 *   into its own thread node otherwise. While nobody has presented, that node is the thread's alone, so that it can
 *   still
 *                  become startup; afterwards threads of one name share one.
 * Callers: drain.c, capture.c, publish.c.
 */
#include <string.h>

#include "capture.h"
#include "stats_proc.h"

#define RENAME_NS 1000000000ull /* a living thread's name is looked up again so often */
#define TAILS_MAX 8u
static const char unnamed[] = "(unnamed)", others[] = "(others)";

const char *m6_capture_name(const struct m6_capture *c, uint32_t label)
{
  uint32_t i = label - M6_LABEL_THREAD;
  return i < c->name_count ? c->names[i] : unnamed;
}

static uint32_t intern(struct m6_capture *c, const char *name)
{
  uint32_t i = 0;
  while (i < c->name_count && strncmp(c->names[i], name, M6_THREAD_NAME_BYTES - 1) != 0) i++;
  if (i == c->name_count) {
    if (i == M6_THREAD_NAMES - 1) name = others; /* the last one takes the rest */
    if (i == M6_THREAD_NAMES) i--;
    else {
      strncpy(c->names[i], name, M6_THREAD_NAME_BYTES - 1);
      c->name_count++;
    }
  }
  return M6_LABEL_THREAD + i;
}

static void look_up_name(struct m6_capture *c, struct m6_thread *t, uint64_t now_ns)
{
  char name[64];
  t->named_ns = now_ns;
  if (c->pid != 0 && t->tid != 0 && m6_proc_thread_name(c->pid, (pid_t)t->tid, name, sizeof name) >= 0)
    t->name = intern(c, name);
}

static int tid_known(const struct m6_capture *c, uint32_t tid, uint32_t but)
{
  for (uint32_t i = 0; i < M6_SLOTS; i++)
    if (c->slot_tid[i] == tid) return 1;
  for (uint32_t i = 0; i < M6_RINGS; i++)
    if (i != but && c->rings[i].thread && c->rings[i].thread->tid == tid) return 1;
  return 0;
}

struct m6_thread *m6_capture_thread(struct m6_capture *c, uint32_t ring, uint32_t tid)
{
  struct m6_ring *r = &c->rings[ring];
  if (r->thread) return r->thread;
  if (tid == 0) { /* its START is not here (an earlier collector took it): the slot says whose ring it is */
    uint32_t used = m6_peek(&m6_segment_header(c->segment)->slots_used);
    const struct m6_slot *slots = m6_segment_slots(c->segment);
    for (uint32_t i = 0; i < used && i < M6_SLOTS && tid == 0; i++)
      if (m6_peek(&slots[i].ring) == ring + 1) tid = m6_peek(&slots[i].tid);
  }
  if (tid != 0 && !tid_known(c, tid, ring)) c->threads_seen++;
  r->thread = m6_thread_new(&c->tree, tid);
  if (r->thread == NULL) return NULL;
  r->thread->name = intern(c, unnamed);
  look_up_name(c, r->thread, m6_monotonic_ns());
  return r->thread;
}

/* A thread's life since it was last settled, into its node: lifetime, its own heap reading, its allocations. */
static void account_life(struct m6_capture *c, struct m6_thread *t, uint32_t node)
{
  struct m6_node *n = &c->tree.nodes[node];
  uint64_t time = m6_ticks_since(t->last_clock, t->first_clock);
  int64_t d;
  if (__builtin_sub_overflow((int64_t)t->last_live, (int64_t)t->first_live, &d)) {
    d = (int64_t)t->last_live < 0 ? INT64_MIN : INT64_MAX;
    c->tree.saturated = 1;
  }
  if (!t->counted) n->count++;
  t->counted = 1;
  n->time_sum += time;
  n->allocs += (t->last_allocs - t->first_allocs) & M6_COUNT_MASK;
  n->d_sum = m6_sum_saturated(n->d_sum, d, &c->tree.saturated);
}
static void restart_life(struct m6_thread *t)
{
  t->first_clock = t->last_clock;
  t->first_live = t->last_live;
  t->first_allocs = t->last_allocs;
}

static void settle_own(struct m6_capture *c, struct m6_thread *t, int for_good)
{
  struct m6_tree *tree = &c->tree;
  uint32_t node;
  if (for_good || c->boundaries != 0) {
    node = m6_tree_thread(tree, t->name, 1);
    if (t->node != 0) m6_tree_move(tree, t->node, node);
    t->node = 0;
  } else {
    if (t->node == 0) {
      node = m6_tree_thread(tree, t->name, 0);
      if (node != tree->other) t->node = node;
    } else {
      node = t->node;
      tree->nodes[node].key.label = t->name;
    }
  }
  m6_tree_settle(tree, t->top, node);
  account_life(c, t, node);
  restart_life(t);
}

static void settle_tails(struct m6_capture *c, uint32_t top)
{
  while (c->tails) {
    struct m6_thread *t = c->tails;
    c->tails = t->next;
    m6_tree_settle(&c->tree, t->top, top);
    if (c->presenter == t) c->presenter = NULL;
    m6_thread_free(t);
  }
}

void m6_capture_thread_ended(struct m6_capture *c, uint32_t ring)
{
  struct m6_thread *t = c->rings[ring].thread;
  if (t == NULL) return;
  c->rings[ring].thread = NULL;
  m6_scope_end(t);
  if (t->presenting) {
    uint32_t n = 0;
    for (struct m6_thread *x = c->tails; x; x = x->next) n++;
    if (n >= TAILS_MAX) settle_tails(c, c->tree.frame);
    t->next = c->tails;
    c->tails = t;
    return;
  }
  settle_own(c, t, 1);
  m6_thread_free(t);
}

void m6_capture_present(struct m6_capture *c, struct m6_thread *t)
{
  struct m6_tree *tree = &c->tree;
  if (c->presenter != t && c->presenter != NULL && c->presenter->presenting) {
    struct m6_thread *old = c->presenter; /* another thread presents now; this one's scopes were inside frames */
    m6_tree_settle(tree, old->top, tree->frame);
    old->presenting = 0;
    restart_life(old);
    for (struct m6_thread **x = &c->tails; *x; x = &(*x)->next)
      if (*x == old) {
        *x = old->next;
        m6_thread_free(old);
        break;
      }
  }
  settle_tails(c, tree->frame);
  if (t->presenting) {
    m6_tree_settle(tree, t->top, tree->frame);
  } else if (c->boundaries == 0) {
    if (t->node != 0) m6_tree_move(tree, t->node, tree->startup);
    t->node = 0;
    m6_tree_settle(tree, t->top, tree->startup);
  } else {
    settle_own(c, t, 0);
  }
  if (t->first_top == 0) t->first_top = c->boundaries == 0 ? tree->startup : tree->frame;
  t->presenting = 1;
  c->presenter = t;
}

void m6_capture_settle(struct m6_capture *c, uint64_t now_ns)
{
  for (uint32_t i = 0; i < M6_RINGS; i++) {
    struct m6_thread *t = c->rings[i].thread;
    if (t == NULL || t->presenting) continue;
    if (now_ns - t->named_ns >= RENAME_NS) look_up_name(c, t, now_ns);
    settle_own(c, t, 0);
  }
}

void m6_capture_settle_last(struct m6_capture *c)
{
  for (uint32_t i = 0; i < M6_RINGS; i++) {
    struct m6_thread *t = c->rings[i].thread;
    if (t == NULL) continue;
    m6_scope_end(t);
    if (t->presenting) m6_tree_settle(&c->tree, t->top, c->tree.shutdown);
    else settle_own(c, t, 1);
    c->rings[i].thread = NULL;
    m6_thread_free(t);
  }
  settle_tails(c, c->tree.shutdown);
  c->presenter = NULL;
}
