/* stats_kernel.c - the kernel side's part of a checked snapshot, made easy to read: sections, words, samples of whole
 * subtrees, causes in order. What reports and JSON share. Calls nothing but libc.
 */
#include "stats_kernel.h"

#include <stdlib.h>
#include <string.h>

#define PICK(table, i) ((i) < sizeof(table) / sizeof *(table) ? (table)[i] : "?")

const char *m6_kernel_source_name(uint32_t source)
{
  static const char *const t[] = {"none", "bpf", "perf", "proc"};
  return PICK(t, source);
}
const char *m6_kernel_part_name(uint32_t part)
{
#define WORD(e, name, text) name,
  static const char *const t[] = {M6_KERNEL_PARTS(WORD)};
  return PICK(t, part);
#undef WORD
}
const char *m6_kernel_part_text(uint32_t part)
{
#define WORD(e, name, text) text,
  static const char *const t[] = {M6_KERNEL_PARTS(WORD)};
  return PICK(t, part);
}
const char *m6_why_text(uint32_t why)
{
  static const char *const t[] = {M6_WHYS(WORD)};
  return PICK(t, why);
#undef WORD
}
const char *m6_why_name(uint32_t why)
{
#define WORD(e, name, text) name,
  static const char *const t[] = {M6_WHYS(WORD)};
  return PICK(t, why);
#undef WORD
}

const char *m6_kernel_tier(const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  if (!m6_kernel_was_open(s)) return "none";
  if (k->counters == M6_KERNEL_BPF) return "bpf";
  if (k->samples == M6_KERNEL_BPF) return "bpf";
  if (k->samples == M6_KERNEL_PERF || k->faults == M6_KERNEL_PERF) return "perf";
  return k->counters == M6_KERNEL_PROC ? "proc" : "none";
}

uint64_t *m6_samples_below(const mach6_stats *h)
{
  const struct m6_snapshot *s = h->snap;
  if (s->kernel.sample_count == 0) return NULL;
  uint64_t *total = malloc(s->node_count * sizeof *total);
  if (total == NULL) return NULL;
  memcpy(total, m6_snap_cpu_samples(s), s->node_count * sizeof *total);
  /* Leaves first: preorder, walked backwards; a checked tree's parents come before their children on that walk. */
  uint32_t *order = malloc(s->node_count * sizeof *order), n = 0, at = 0;
  const struct m6_snap_node *nodes = m6_snap_nodes(s);
  if (order == NULL) {
    free(total);
    return NULL;
  }
  for (;;) {
    order[n++] = at;
    uint32_t next = nodes[at].first_child;
    while (!next && at) {
      next = nodes[at].next_sibling;
      at = nodes[at].parent;
    }
    if (!next) break;
    at = next;
  }
  while (n-- > 1) total[nodes[order[n]].parent] += total[order[n]];
  free(order);
  return total;
}

static int largest_first(const void *a, const void *b)
{
  const struct m6_part *x = a, *y = b;
  return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

unsigned m6_causes_sorted(const struct m6_snap_causes *c, struct m6_part parts[M6_PARTS_MAX])
{
  unsigned n = 0;
  uint64_t calls = c->call_ns < c->on ? c->call_ns : c->on;
  parts[n++] = (struct m6_part){"on_cpu", calls ? "computed" : "on CPU", c->on - calls};
  if (calls) parts[n++] = (struct m6_part){"syscalls", "in system calls on CPU", calls};
  parts[n++] = (struct m6_part){"run_queue", "could run, had no CPU", c->wait};
  for (uint32_t i = 0; i < M6_WHY_COUNT; i++) parts[n++] = (struct m6_part){m6_why_name(i), m6_why_text(i), c->off[i]};
  qsort(parts, n, sizeof *parts, largest_first);
  return n;
}
