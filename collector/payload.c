/* payload.c - a node, converted: {label, stats, children}, with the keys of the table below.
 *
 * The keys are flat and dotted ("time.avg"), the way tables print them, so that one path names one number. The first
 * part of the table is fixed for good; the rest is added to it. Units: s, KiB (1024 bytes); keys ending in `bytes` are
 * exact integers.
 */
#include <math.h>
#include <string.h>

#include "stats_kernel.h"
#include "stats_words.h"

/* X(key, value): `s` is struct mach6_node_stats, `r` the raw node. */
#define NODE_KEYS(X)                                                                                                   \
  X("kind", json_string(m6_node_kind_name(r->kind)))                                                                   \
  X("count", m6_json_u64(s.count))                                                                                     \
  X("time.avg", m6_json_real(s.time_avg))                                                                              \
  X("time.p10", m6_json_real(s.time_p10))                                                                              \
  X("time.p50", m6_json_real(s.time_p50))                                                                              \
  X("time.p90", m6_json_real(s.time_p90))                                                                              \
  X("time.max", m6_json_real(s.time_max))                                                                              \
  X("mem_delta.avg", m6_json_real(s.mem_delta_avg))                                                                    \
  X("mem_delta.total", m6_json_real(s.mem_delta_total))                                                                \
  X("inverse_mem.total", m6_json_real(s.inverse_mem_total))                                                            \
  X("mem.net", m6_json_real(s.mem_net))                                                                                \
  X("time.total", m6_json_seconds(r->time_sum))                                                                        \
  X("mem_delta.bytes", json_integer(r->d_sum))                                                                         \
  X("mem_delta.max", m6_json_kib(r->d_max))                                                                            \
  X("inverse_mem.bytes", json_integer(r->i_sum))                                                                       \
  X("inverse_mem.is_measure", json_boolean(s.inverse_is_measure))                                                      \
  X("mem.net_bytes", json_integer(net_bytes(r)))                                                                       \
  X("allocs.count", m6_json_u64(s.allocs))                                                                             \
  X("abandoned", m6_json_u64(s.abandoned))                                                                             \
  X("lost", m6_json_u64(s.lost))

/* A frame's D splits exactly in three. */
#define FRAME_KEYS(X)                                                                                                  \
  X("split.scopes", m6_json_kib(r->d_scopes))                                                                          \
  X("split.thread_rest", m6_json_kib(r->d_thread_rest))                                                                \
  X("split.others", m6_json_kib(r->d_others))                                                                          \
  X("split.scopes_bytes", json_integer(r->d_scopes))                                                                   \
  X("split.thread_rest_bytes", json_integer(r->d_thread_rest))                                                         \
  X("split.others_bytes", json_integer(r->d_others))

static int64_t net_bytes(const struct m6_snap_node *r)
{
  int64_t net;
  if (__builtin_add_overflow(r->d_sum, r->i_sum, &net)) net = r->d_sum < 0 ? INT64_MIN : INT64_MAX;
  return net;
}

static uint64_t count_below(const mach6_node *n)
{
  uint64_t below = 0;
  const mach6_node *at = mach6_node_first_child(n);
  while (at) { /* in preorder, without recursion: the checked parent links lead back up */
    below++;
    const mach6_node *next = mach6_node_first_child(at);
    while (!next && at != n) {
      next = mach6_node_next_sibling(at);
      if (!next) at = &at->of->nodes[at->raw->parent];
    }
    at = next;
  }
  return below;
}

static json_t *node_stats(const mach6_node *n, int last)
{
  struct mach6_node_stats s = mach6_node_stats(n);
  const struct m6_snap_node *r = n->raw;
  json_t *o = json_object();
  int error = !o;
#define SET(key, value) error |= json_object_set_new(o, key, value);
  NODE_KEYS(SET)
  if (r->kind == M6_NODE_FRAME) { FRAME_KEYS(SET) }
  if (n->of->samples) { /* of the CPU: in the node itself, and with all below it */
    uint32_t index = (uint32_t)(n - n->of->nodes);
    SET("samples.self", m6_json_u64(m6_snap_cpu_samples(n->of->snap)[index]))
    SET("samples.total", m6_json_u64(n->of->samples[index]))
  }
  if (r->label_flags & 1) SET("label.cut", json_true())
  if (r->label_flags & 2) SET("label.repaired", json_true())
  if (last && r->first_child) SET("nodes_below", m6_json_u64(count_below(n)))
#undef SET
  if (!error) return o;
  json_decref(o);
  return NULL;
}

static json_t *node_to_json(const mach6_node *n, unsigned depth)
{
  int last = depth >= M6_PAYLOAD_DEPTH_MAX;
  json_t *children = json_array();
  if (children && !last)
    for (const mach6_node *c = mach6_node_first_child(n); c; c = mach6_node_next_sibling(c))
      if (json_array_append_new(children, node_to_json(c, depth + 1))) { /* also when the child is NULL */
        json_decref(children);
        return NULL;
      }
  /* "o": takes each reference over, frees them all when one is NULL. The label was checked to be UTF-8. */
  return json_pack("{s:o, s:o, s:o}", "label", json_string_nocheck(n->label), "stats", node_stats(n, last), "children",
                   children);
}

json_t *m6_payload_node(const mach6_node *n) { return node_to_json(n, 0); }
json_t *m6_payload_node_alone(const mach6_node *n) { return node_to_json(n, M6_PAYLOAD_DEPTH_MAX); }

int mach6_convert(const mach6_node *n, enum mach6_format format, char **out, size_t *bytes)
{
  return m6_payload_encode(m6_payload_node(n), format, out, bytes);
}
