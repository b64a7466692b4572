/* fuzz_script.h - what the fuzzers of a segment share: an input as a script, the segment that it writes to, and the check of what comes out.
 *
 * A script is an operation's byte, then what it wants. Writes go to a place in the segment by region, so that a few bytes reach what
 * matters; records may be committed with the right stamp, as a hostile shim would.
 */
#ifndef FUZZ_SCRIPT_H
#define FUZZ_SCRIPT_H

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
static inline uint64_t take(struct script *s, unsigned bytes)
{
  uint64_t v = 0;
  for (unsigned i = 0; i < bytes && s->n; i++, s->p++, s->n--) v |= (uint64_t)*s->p << 8 * i;
  return v;
}

static void *segment, *block;
#define BEHIND (64u << 20) /* bytes that nobody may touch */

/* A segment of which a script can reach the first `used` bytes, with a session that runs. */
static inline struct m6_header *begin(size_t used)
{
  if (!segment) {
    segment = mmap(NULL, M6_SEGMENT_BYTES + BEHIND, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    block = aligned_alloc(64, M6_SNAPSHOT_BYTES_MAX);
    if (segment == MAP_FAILED || !block || mprotect(segment, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE)) abort();
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
  return h;
}

struct region {
  size_t at, bytes; /* 64 at least */
};
static inline void scribble(struct script *s, const struct region *regions, size_t count)
{
  const struct region *r = &regions[take(s, 1) % count];
  unsigned n = 1 + ((unsigned)take(s, 1) & 63);
  size_t at = take(s, 3) % (r->bytes - 64 + 1);
  for (unsigned i = 0; i < n && s->n; i++) ((uint8_t *)segment)[r->at + at + i] = (uint8_t)take(s, 1);
}

static inline struct m6_producer producer(uint32_t ring)
{
  struct m6_producer p;
  m6_producer_init(&p, m6_segment_ring(segment, ring), m6_segment_records(segment, ring), m6_ring_capacity(ring));
  return p;
}

/* A frame of the first stream as it should be. */
static inline void frame(struct m6_producer *p, uint64_t clock, uint64_t live, uint64_t count, unsigned stream)
{
  struct m6_header *h = segment;
  uint64_t at = m6_ring_claim(p, M6_FRAME_UNITS);
  h->streams[0].presents++;
  for (unsigned u = M6_FRAME_UNITS; u-- > 0;)
    m6_ring_commit(p, at + u, u == 2 ? h->streams[0].presents : clock + u, live, count,
                   u ? M6_REC_CONTINUED : M6_REC_FRAME, 0, stream, u ? u : M6_FRAME_UNITS);
}

/* What is published is a snapshot. */
static inline void publish(struct m6_capture *c, int kind, struct m6_site_view sites)
{
  struct m6_outside o = {.state = kind == M6_SNAPSHOT_FINAL ? M6_ENDED : M6_COLLECTING, .sites = sites};
  m6_capture_sample(c, kind == M6_SNAPSHOT_FINAL);
  size_t n = m6_snapshot_build(c, &o, kind, block);
  int e = m6_snapshot_check(block, n);
  if (e) fprintf(stderr, "what was published is no snapshot (%d)\n", e), abort();
}

#endif
