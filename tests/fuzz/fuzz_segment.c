/* links: collector/stats_check_kernel.c collector/stats_kernel.c */
/* links: collector/capture.c collector/drain.c collector/thread.c collector/scope.c collector/tree.c collector/reservoir.c */
/* links: collector/histogram.c collector/frame.c collector/retained.c collector/books.c collector/verdict.c collector/clock.c collector/utf8.c */
/* links: collector/publish.c collector/publish_tree.c collector/stats_proc.c collector/stats_check.c -lm */
/* fuzz_segment - any bytes in a target's segment, before and between the collector's polls: the collector ends, within its memory, and
 * what it publishes is a snapshot that stats_check.c accepts.
 * Sampled allocations are fuzz_sites.c's.
 */
#include "fuzz_script.h"

static void commit(struct script *s)
{
  uint32_t ring = (uint32_t)take(s, 1) & 3, times = 1 + ((uint32_t)take(s, 1) & 15);
  unsigned type = (unsigned)take(s, 1) % 9, flags = (unsigned)take(s, 1), label = (unsigned)take(s, 2),
           depth = (unsigned)take(s, 2);
  uint64_t clock = take(s, 4), live = take(s, 3) << (label & 31), count = take(s, 2);
  struct m6_producer p = producer(ring);
  for (uint32_t i = 0; i < times && m6_ring_room(&p, M6_FRAME_UNITS); i++) {
    if (type == 8) frame(&p, clock, live, count, label & 1); /* for the most part */
    else m6_ring_commit(&p, m6_ring_claim(&p, 1), clock, live, count, type, flags, label, depth);
    clock += count;
    depth += flags & 1;
  }
}

static void write_any(struct script *s)
{
  static const struct region regions[] = {{0, M6_OFF_SLOTS},
                                          {M6_OFF_SLOTS, 16 * sizeof(struct m6_slot)},
                                          {M6_OFF_RING_HEADS, 4 * sizeof(struct m6_ring_head)},
                                          {M6_OFF_LABELS, 64},
                                          {M6_OFF_LABEL_TABLE, 65536},
                                          {M6_OFF_LABEL_TEXT, 4096},
                                          {M6_OFF_RINGS, 4 * 65536}};
  scribble(s, regions, sizeof regions / sizeof *regions);
}

static void label(struct script *s)
{
  char text[64];
  unsigned n = (unsigned)take(s, 1) & 63;
  int refused = 0;
  for (unsigned i = 0; i < n; i++) text[i] = (char)take(s, 1);
  m6_label_intern(m6_labels_at(segment), text, n, &refused);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const struct m6_site_view none;
  static struct m6_capture c;
  struct script s = {data, size};
  begin(M6_OFF_RINGS + 4 * 65536u);   /* what a script can reach, and label texts */
  if (take(&s, 1) & 1) write_any(&s); /* before it is opened */
  if (m6_capture_open(&c, segment, 0, NULL, NULL) != 0) return 0;
  for (int polls = 0; s.n && polls < 64; polls++) {
    switch (take(&s, 1) % 6) {
    case 0: write_any(&s); break;
    case 1:
    case 2: commit(&s); break;
    case 3: label(&s); break;
    case 4: m6_capture_drain(&c, 0); break;
    case 5: publish(&c, polls % 4 ? M6_SNAPSHOT_LIVE : M6_SNAPSHOT_WHOLE, none); break;
    }
  }
  m6_capture_drain(&c, 1);
  publish(&c, M6_SNAPSHOT_FINAL, none);
  m6_capture_close(&c);
  return 0;
}
