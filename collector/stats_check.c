/* stats_check.c - is this block a snapshot that a collector wrote? Foreign bytes in, a verdict out.
 *
 * Promise: reads only block[0..bytes), allocates one bit a node, ends in O(bytes). After MACH6_OK the rest of the
 * library trusts the block. Calls nothing but libc.
 */
#include <stdlib.h>
#include <string.h>

#include "stats_internal.h"

int m6_utf8_valid(const char *text, size_t n)
{
  const unsigned char *p = (const unsigned char *)text, *end = p + n;
  while (p < end) {
    unsigned c = *p++, more, low = 0x80, high = 0xbf;
    if (c == 0) return 0;
    if (c < 0x80) continue;
    if (c >= 0xc2 && c <= 0xdf) more = 1;
    else if (c >= 0xe0 && c <= 0xef) more = 2;
    else if (c >= 0xf0 && c <= 0xf4) more = 3;
    else return 0;
    /* The second byte's range excludes long forms, surrogates and what lies beyond U+10FFFF. */
    if (c == 0xe0) low = 0xa0;
    if (c == 0xed) high = 0x9f;
    if (c == 0xf0) low = 0x90;
    if (c == 0xf4) high = 0x8f;
    for (; more; more--, low = 0x80, high = 0xbf)
      if (p == end || *p < low || *p++ > high) return 0;
  }
  return 1;
}

/* Does a region of `count` things of `size` bytes lie behind the head and inside the block, aligned? */
static int region_ok(const struct m6_snapshot *s, uint64_t offset, uint64_t count, uint64_t size, uint64_t align)
{
  if (offset % align || offset < s->head_bytes || offset > s->bytes) return 0;
  return count <= (s->bytes - offset) / size;
}

static int text_ok(const struct m6_snapshot *s, uint32_t offset, uint32_t n, uint32_t most)
{
  if (n == 0) return 1;
  if (n > most || offset > s->text_bytes || n > s->text_bytes - offset) return 0;
  return m6_utf8_valid(m6_snap_text(s) + offset, n);
}

/* Every node is reached from the root exactly once, by links that agree with its parent. Walks without recursion:
 * down by first_child, sideways by next_sibling, up by parent, which has been checked on the way down. */
static int tree_ok(const struct m6_snapshot *s)
{
  const struct m6_snap_node *nodes = m6_snap_nodes(s);
  uint32_t count = s->node_count, reached = 1, at = 0;
  if (count == 0 || nodes[0].kind != M6_NODE_ROOT || nodes[0].parent || nodes[0].next_sibling) return 0;
  uint8_t *seen = calloc(count, 1);
  if (!seen) return -1;
  seen[0] = 1;
  for (;;) {
    uint32_t next = nodes[at].first_child, parent = at;
    while (!next && at) { /* nothing below: the next sibling, of this node or of one above */
      parent = nodes[at].parent;
      next = nodes[at].next_sibling;
      at = parent;
    }
    if (!next) break;
    if (next >= count || seen[next] || nodes[next].parent != parent) {
      free(seen);
      return 0;
    }
    seen[next] = 1;
    reached++;
    at = next;
  }
  free(seen);
  return reached == count;
}

static int nodes_ok(const struct m6_snapshot *s)
{
  const struct m6_snap_node *n = m6_snap_nodes(s);
  for (uint32_t i = 0; i < s->node_count; i++, n++)
    if (n->kind > M6_NODE_SCOPE || n->reservoir > M6_RESERVOIR ||
        !text_ok(s, n->label_offset, n->label_bytes, M6_SNAP_LABEL_MAX))
      return 0;
  return 1;
}

static int spikes_ok(const struct m6_snapshot *s)
{
  const struct m6_snap_spike *k = m6_snap_spikes(s);
  for (uint32_t i = 0; i < s->spike_count; i++, k++)
    for (int c = 0; c < M6_SPIKE_CAUSES; c++)
      if (k->cause[c].node >= s->node_count) return 0;
  return 1;
}

/* Reservoirs lie one after the other in the order of nodes; a dump that was cut may have lost the last of them. */
static int retained_ok(const struct m6_snapshot *s)
{
  const struct m6_snap_node *n = m6_snap_nodes(s);
  const struct m6_snap_stall *k = m6_snap_stalls(s);
  const float *v = m6_snap_samples(s);
  uint64_t most = 0;
  for (uint32_t i = 0; i < s->node_count; i++) most += n[i].reservoir;
  if (s->sample_count > most) return 0;
  for (uint32_t i = 0; i < s->sample_count; i++)
    if (!(v[i] >= 0 && v[i] <= 0x1p64f)) return 0;
  for (uint32_t i = 0; i < s->stall_count; i++)
    if (k[i].node >= s->node_count) return 0;
  return 1;
}

static int streams_ok(const struct m6_snapshot *s)
{
  if (s->stream_count > M6_STREAMS || (s->stream_count ? s->main_stream >= s->stream_count : s->main_stream != 0))
    return 0;
  for (uint32_t i = 0; i < s->stream_count; i++)
    if (!text_ok(s, s->streams[i].caller_offset, s->streams[i].caller_bytes, M6_TEXT_MAX)) return 0;
  return 1;
}

/* What bounds the session: counts within their arrays, words within their tables, names printable and ended. */
static int govern_ok(const struct m6_snap_govern *g)
{
  if (g->budget_count > M6_SNAP_BUDGETS || g->step_count > M6_SNAP_STEPS || g->link_count > M6_SNAP_LINKS ||
      g->level > M6_LEVEL_FULL || g->chain_verdict > M6_VERDICT_SHRINKS)
    return 0;
  for (uint32_t i = 0; i < g->budget_count; i++) {
    const struct m6_snap_budget *b = &g->budgets[i];
    size_t n = 0;
    while (n < sizeof b->name && b->name[n] > ' ' && b->name[n] < 0x7f) n++;
    if (n == 0 || n == sizeof b->name || b->name[n] || b->unit >= M6_UNITS) return 0;
  }
  for (uint32_t i = 0; i < g->step_count; i++)
    if (g->steps[i].from_level > M6_LEVEL_FULL || g->steps[i].to_level > M6_LEVEL_FULL) return 0;
  for (uint32_t i = 0; i < g->link_count; i++)
    if (g->links[i].end > M6_END_BUDGET) return 0;
  return 1;
}

static int site_rows_ok(const struct m6_snapshot *s, uint64_t offset, uint32_t count, uint32_t most)
{
  const struct m6_snap_site *x = (const struct m6_snap_site *)((const char *)s + offset);
  if (count == 0) return 1;
  if (count > most || !region_ok(s, offset, count, sizeof(struct m6_snap_site), 8)) return 0;
  for (uint32_t i = 0; i < count; i++, x++)
    if (!text_ok(s, x->scope_offset, x->scope_bytes, M6_TEXT_MAX) ||
        !text_ok(s, x->stack_offset, x->stack_bytes, M6_TEXT_MAX))
      return 0;
  return 1;
}

static int sites_ok(const struct m6_snapshot *s)
{
  const struct m6_snap_sites *x = &s->sites;
  if (x->second_count > M6_BUCKETS_RETAINED ||
      (x->second_count && !region_ok(s, x->seconds_offset, x->second_count, sizeof(struct m6_snap_site_second), 8)))
    return 0;
  return site_rows_ok(s, s->sites.rows_offset, s->sites.row_count, M6_SITES_SHOWN) &&
         site_rows_ok(s, s->sites.maps_offset, s->sites.map_count, M6_SITE_MAPS_SHOWN);
}

static int modules_ok(const struct m6_snapshot *s)
{
  const struct m6_snap_module *m = m6_snap_module_rows(s);
  if (s->modules.count == 0) return 1;
  if (s->modules.count > M6_MODULES_SHOWN || !region_ok(s, s->modules.offset, s->modules.count, sizeof *m, 8)) return 0;
  for (uint32_t i = 0; i < s->modules.count; i++, m++)
    if (!text_ok(s, m->path_offset, m->path_bytes, M6_TEXT_MAX) ||
        !text_ok(s, m->build_id_offset, m->build_id_bytes, M6_TEXT_MAX))
      return 0;
  return 1;
}

int m6_snapshot_check(const void *block, size_t bytes)
{
  const struct m6_snapshot *s = block;
  if (bytes < offsetof(struct m6_snapshot, bytes) || s->magic != M6_SNAPSHOT_MAGIC) return MACH6_EINVALID;
  if (s->version != M6_SNAPSHOT_VERSION || s->head_bytes != sizeof *s) return MACH6_EVERSION;
  if (bytes < sizeof *s || s->bytes != bytes || bytes > M6_SNAPSHOT_BYTES_MAX) return MACH6_EINVALID;
  if (s->node_count > M6_NODES_MAX || s->spike_count > M6_SPIKES_RETAINED || s->frame_count > M6_FRAMES_RETAINED ||
      s->series_count > M6_SERIES || s->bucket_count > M6_BUCKETS_RETAINED || s->growth_count > M6_GROWTH_RETAINED ||
      s->stall_count > M6_STALLS_RETAINED || s->sample_count > M6_NODES_MAX * M6_RESERVOIR)
    return MACH6_EINVALID;
  if (!region_ok(s, s->nodes_offset, s->node_count, sizeof(struct m6_snap_node), 8) ||
      !region_ok(s, s->spikes_offset, s->spike_count, sizeof(struct m6_snap_spike), 8) ||
      !region_ok(s, s->frames_offset, s->frame_count, sizeof(struct m6_snap_frame), 8) ||
      !region_ok(s, s->buckets_offset, s->bucket_count, sizeof(struct m6_snap_bucket), 8) ||
      !region_ok(s, s->growth_offset, s->growth_count, sizeof(struct m6_snap_growth), 8) ||
      !region_ok(s, s->stalls_offset, s->stall_count, sizeof(struct m6_snap_stall), 8) ||
      !region_ok(s, s->samples_offset, s->sample_count, sizeof(float), 8) ||
      !region_ok(s, s->text_offset, s->text_bytes, 1, 1))
    return MACH6_EINVALID;
  if (!text_ok(s, s->exe_offset, s->exe_bytes, M6_TEXT_MAX) ||
      !text_ok(s, s->name_offset, s->name_bytes, M6_TEXT_MAX) || !streams_ok(s) || !nodes_ok(s) || !spikes_ok(s) ||
      !govern_ok(&s->govern) || !retained_ok(s))
    return MACH6_EINVALID;
  if (s->lost >= M6_LOST_KINDS || !text_ok(s, s->lost_from_offset, s->lost_from_bytes, M6_TEXT_MAX) ||
      !text_ok(s, s->lost_to_offset, s->lost_to_bytes, M6_TEXT_MAX))
    return MACH6_EINVALID;
  if (s->state > M6_ENDED || s->end_reason > M6_END_BUDGET || s->level > M6_LEVEL_FULL ||
      s->verdict < M6_VERDICT_UNKNOWN || s->verdict > M6_VERDICT_SHRINKS)
    return MACH6_EINVALID;
  if (!sites_ok(s) || !modules_ok(s)) return MACH6_EINVALID;
  int tree = tree_ok(s);
  if (tree > 0 && !m6_snapshot_check_kernel(s)) return MACH6_EINVALID;
  return tree > 0 ? MACH6_OK : tree < 0 ? MACH6_ENOMEM : MACH6_EINVALID;
}
