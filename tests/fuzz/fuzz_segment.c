/* links: collector/stats_check_kernel.c collector/stats_kernel.c */
/* links: collector/capture.c collector/drain.c collector/thread.c collector/scope.c collector/tree.c collector/reservoir.c */
/* links: collector/histogram.c collector/frame.c collector/retained.c collector/books.c collector/verdict.c collector/clock.c collector/utf8.c */
/* links: collector/publish.c collector/publish_tree.c collector/stats_proc.c collector/stats_check.c -lm */
/* fuzz_segment - any bytes in a target's segment, before and between the collector's polls: the collector ends, within its memory, and
 * what it publishes is a snapshot that stats_check.c accepts.
 *
 * The input is a script: an operation's byte, then what it wants. Writes go to a place in the segment by region, so that a few bytes
 * reach what matters; records may be committed with the right stamp, as a hostile shim would.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/publish.h"
#include "collector/stats_internal.h"

struct script {
  const uint8_t *p;
  size_t n;
};
static uint64_t take(struct script *s, unsigned bytes)
{
  uint64_t v = 0;
  for (unsigned i = 0; i < bytes && s->n; i++, s->p++, s->n--) v |= (uint64_t)*s->p << 8 * i;
  return v;
}

static void *segment;
static void *block;

static void begin(void)
{
  static const size_t used = M6_OFF_RINGS + 4 * 65536u; /* what a script can reach, and label texts */
  if (!segment) {
    segment = mmap(NULL, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    block = aligned_alloc(64, M6_SNAPSHOT_BYTES_MAX);
    if (segment == MAP_FAILED || !block) abort();
  }
  madvise(segment, used, MADV_DONTNEED);
  struct m6_header *h = segment;
  h->magic = M6_SEGMENT_MAGIC;
  h->version = M6_LAYOUT_VERSION;
  h->size = M6_SEGMENT_BYTES;
  h->state = M6_COLLECTING;
  h->start_clock = 1000;
  h->start_mono_ns = 1000;
  h->slots_used = 6;
  h->rings_used = 4;
  h->streams[0].kind = 1;
}

static void commit(struct script *s)
{
  uint32_t ring = (uint32_t)take(s, 1) & 3, times = 1 + ((uint32_t)take(s, 1) & 15);
  unsigned type = (unsigned)take(s, 1) % 9, flags = (unsigned)take(s, 1), label = (unsigned)take(s, 2),
           depth = (unsigned)take(s, 2);
  uint64_t clock = take(s, 4), live = take(s, 3) << (label & 31), count = take(s, 2);
  struct m6_producer p;
  m6_producer_init(&p, m6_segment_ring(segment, ring), m6_segment_records(segment, ring), m6_ring_capacity(ring));
  struct m6_header *h = segment;
  for (uint32_t i = 0; i < times && m6_ring_room(&p, M6_FRAME_UNITS); i++) {
    if (type == 8) { /* a frame as it should be, for the most part */
      uint64_t at = m6_ring_claim(&p, M6_FRAME_UNITS);
      h->streams[0].presents++;
      for (unsigned u = M6_FRAME_UNITS; u-- > 0;)
        m6_ring_commit(&p, at + u, u == 2 ? h->streams[0].presents : clock + u, live, count,
                       u ? M6_REC_CONTINUED : M6_REC_FRAME, 0, label & 1, u ? u : M6_FRAME_UNITS);
    } else {
      m6_ring_commit(&p, m6_ring_claim(&p, 1), clock, live, count, type, flags, label, depth);
    }
    clock += count;
    depth += flags & 1;
  }
}

static void scribble(struct script *s)
{
  static const struct {
    size_t at, bytes;
  } regions[] = {{0, M6_OFF_SLOTS},
                 {M6_OFF_SLOTS, 16 * sizeof(struct m6_slot)},
                 {M6_OFF_RING_HEADS, 4 * sizeof(struct m6_ring_head)},
                 {M6_OFF_LABELS, 64},
                 {M6_OFF_LABEL_TABLE, 65536},
                 {M6_OFF_LABEL_TEXT, 4096},
                 {M6_OFF_RINGS, 4 * 65536}};
  unsigned k = (unsigned)take(s, 1) % (sizeof regions / sizeof *regions), n = 1 + ((unsigned)take(s, 1) & 63);
  size_t at = take(s, 3) % (regions[k].bytes - 64 + 1);
  for (unsigned i = 0; i < n && s->n; i++) ((uint8_t *)segment)[regions[k].at + at + i] = (uint8_t)take(s, 1);
}

static void label(struct script *s)
{
  char text[64];
  unsigned n = (unsigned)take(s, 1) & 63;
  int refused = 0;
  for (unsigned i = 0; i < n; i++) text[i] = (char)take(s, 1);
  m6_label_intern(m6_labels_at(segment), text, n, &refused);
}

static void publish(struct m6_capture *c, int kind)
{
  struct m6_outside o = {.state = kind == M6_SNAPSHOT_FINAL ? M6_ENDED : M6_COLLECTING};
  m6_capture_sample(c, kind == M6_SNAPSHOT_FINAL);
  size_t n = m6_snapshot_build(c, &o, kind, block);
  int e = m6_snapshot_check(block, n);
  if (e) fprintf(stderr, "fuzz_segment: what was published is no snapshot (%d)\n", e), abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static struct m6_capture c;
  struct script s = {data, size};
  begin();
  if (take(&s, 1) & 1) scribble(&s); /* before it is opened */
  if (m6_capture_open(&c, segment, 0, NULL, NULL) != 0) return 0;
  for (int polls = 0; s.n && polls < 64; polls++) {
    switch (take(&s, 1) % 6) {
    case 0: scribble(&s); break;
    case 1:
    case 2: commit(&s); break;
    case 3: label(&s); break;
    case 4: m6_capture_drain(&c, 0); break;
    case 5: publish(&c, polls % 4 ? M6_SNAPSHOT_LIVE : M6_SNAPSHOT_WHOLE); break;
    }
  }
  m6_capture_drain(&c, 1);
  publish(&c, M6_SNAPSHOT_FINAL);
  m6_capture_close(&c);
  return 0;
}
