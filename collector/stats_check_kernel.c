/* stats_check_kernel.c - is the kernel side's part of a block what a collector writes? As stats_check.c, which calls
 * it.
 *
 * Promise: reads only the block. After 1 every section lies inside of it, every text is UTF-8, every enum is in range.
 */
#include <limits.h>

#include "stats_kernel.h"

static int section_ok(const struct m6_snapshot *s, uint64_t offset, uint64_t count, uint64_t size, uint32_t most)
{
  if (count == 0) return 1;
  if (count > most || offset % 8 || offset < s->head_bytes || offset > s->bytes) return 0;
  return count <= (s->bytes - offset) / size;
}

static int text_ok(const struct m6_snapshot *s, uint32_t offset, uint32_t n)
{
  if (n == 0) return 1;
  if (n > M6_TEXT_MAX || offset > s->text_bytes || n > s->text_bytes - offset) return 0;
  return m6_utf8_valid(m6_snap_text(s) + offset, n);
}

static int sections_ok(const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  if ((k->sample_count && k->sample_count != s->node_count) ||
      (k->spike_cause_count && k->spike_cause_count != s->spike_count) ||
      (k->frame_cause_count && k->frame_cause_count != s->frame_count))
    return 0;
  return section_ok(s, k->refusals_offset, k->refusal_count, sizeof(struct m6_snap_refusal), M6_KERNEL_REFUSALS_MAX) &&
         section_ok(s, k->threads_offset, k->thread_count, sizeof(struct m6_snap_thread), M6_KERNEL_THREADS_MAX) &&
         section_ok(s, k->calls_offset, k->call_count, sizeof(struct m6_snap_call), M6_KERNEL_CALLS_MAX) &&
         section_ok(s, k->functions_offset, k->function_count, sizeof(struct m6_snap_function),
                    M6_KERNEL_FUNCTIONS_MAX) &&
         section_ok(s, k->samples_offset, k->sample_count, sizeof(uint64_t), M6_NODES_MAX) &&
         section_ok(s, k->spike_causes_offset, k->spike_cause_count, sizeof(struct m6_snap_causes),
                    M6_SPIKES_RETAINED) &&
         section_ok(s, k->frame_causes_offset, k->frame_cause_count, sizeof(struct m6_snap_causes),
                    M6_FRAMES_RETAINED) &&
         section_ok(s, k->seconds_offset, k->second_count, sizeof(struct m6_snap_kernel_second), M6_BUCKETS_RETAINED) &&
         section_ok(s, k->folded_offset, k->folded_bytes, 1, M6_KERNEL_FOLDED_MAX);
}

int m6_snapshot_check_kernel(const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  if (!sections_ok(s) || k->counters > M6_KERNEL_PROC || k->samples > M6_KERNEL_PROC || k->faults > M6_KERNEL_PROC ||
      k->frames > M6_KERNEL_PROC)
    return 0;
  for (uint32_t i = 0; i < k->refusal_count; i++) {
    const struct m6_snap_refusal *r = &m6_snap_refusals(s)[i];
    if (r->part >= M6_KERNEL_PART_COUNT || r->error < 0 || !text_ok(s, r->what_offset, r->what_bytes) ||
        !text_ok(s, r->closed_offset, r->closed_bytes) || !text_ok(s, r->opened_offset, r->opened_bytes))
      return 0;
  }
  for (uint32_t i = 0; i < k->thread_count; i++)
    if (!text_ok(s, m6_snap_threads(s)[i].name_offset, m6_snap_threads(s)[i].name_bytes)) return 0;
  for (uint32_t i = 0; i < k->call_count; i++)
    if (!text_ok(s, m6_snap_calls(s)[i].name_offset, m6_snap_calls(s)[i].name_bytes)) return 0;
  for (uint32_t i = 0; i < k->function_count; i++) {
    const struct m6_snap_function *f = &m6_snap_functions(s)[i];
    if (!text_ok(s, f->function_offset, f->function_bytes) || !text_ok(s, f->module_offset, f->module_bytes) ||
        !text_ok(s, f->file_offset, f->file_bytes))
      return 0;
  }
  return k->folded_bytes == 0 || m6_utf8_valid(m6_snap_folded(s), k->folded_bytes);
}
