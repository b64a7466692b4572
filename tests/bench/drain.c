/* links: collector/capture.c collector/drain.c collector/thread.c collector/scope.c collector/tree.c */
/* links: collector/reservoir.c collector/histogram.c collector/frame.c collector/retained.c collector/books.c collector/verdict.c */
/* links: collector/clock.c collector/utf8.c collector/stats_proc.c -lm */
/* drain - records drained and aggregated a second on one core: the collector's own code on a segment made here.
 *
 * RINGS threads write what a game writes: frames of 20 scopes, nested three deep, on the first ring with a boundary
 * after each, on the others as jobs. The rings are filled, then drained; the draining alone is timed. Beside it, in
 * turns, a loop that only reads the same records with their stamps checked.
 */
#include <string.h>
#include <sys/mman.h>

#include "bench.h"
#include "collector/capture.h"

enum { RINGS = 8, FILL = 1900, SCOPES = 20 };

static struct m6_header *segment;
static struct m6_producer producer[RINGS];
static uint64_t now_ticks = 1000, live = 1 << 20, allocs, present;

static void put(unsigned r, unsigned type, unsigned label, unsigned depth)
{
  now_ticks += 50;
  live += 16;
  allocs++;
  m6_ring_commit(&producer[r], m6_ring_claim(&producer[r], 1), now_ticks, live, allocs, type, 0, label, depth);
}
static void put_boundary(unsigned r)
{
  uint64_t i = m6_ring_claim(&producer[r], M6_FRAME_UNITS);
  m6_poke(&segment->streams[0].presents, ++present);
  m6_ring_commit(&producer[r], i + 1, now_ticks + 60, live, allocs, M6_REC_CONTINUED, 0, 0, 0);
  m6_ring_commit(&producer[r], i + 2, present, live, allocs, M6_REC_CONTINUED, 0, 0, 0);
  m6_ring_commit(&producer[r], i + 3, 0, live, allocs, M6_REC_CONTINUED, 0, 0, 0);
  m6_ring_commit(&producer[r], i, now_ticks, live, allocs, M6_REC_FRAME, 0, 0, M6_FRAME_UNITS);
  now_ticks += 100;
}

/* One frame's scopes: an outer one, groups of three below it. Gives how many records it wrote. */
static unsigned put_frame(unsigned r)
{
  unsigned label = 1 + r * 32;
  put(r, M6_REC_MARK, label, 0);
  for (unsigned s = 1; s < SCOPES; s += 2) {
    put(r, M6_REC_MARK, label + s, 1);
    put(r, M6_REC_MARK, label + s + 1, 2);
    put(r, M6_REC_DONE, 0, 2);
    put(r, M6_REC_DONE, 0, 1);
  }
  put(r, M6_REC_DONE, 0, 0);
  if (r == 0) put_boundary(r);
  return 2 + 2 * SCOPES + (r == 0 ? M6_FRAME_UNITS : 0);
}
static void fill(void)
{
  for (unsigned r = 0; r < RINGS; r++)
    for (unsigned n = 0; n < FILL - 2 * SCOPES - 8;) n += put_frame(r);
}

/* The comparison: every record read and its stamp checked, nothing made of it. */
static uint64_t only_read(struct m6_capture *c, uint64_t *sum)
{
  uint64_t n = 0;
  for (unsigned r = 0; r < RINGS; r++) {
    struct m6_record rec;
    for (uint64_t at = c->rings[r].at; m6_ring_read(m6_segment_ring(segment, r), m6_segment_records(segment, r),
                                                    m6_ring_capacity(r), at, &rec) == M6_RING_RECORD;
         at++, n++)
      *sum += rec.clock ^ rec.live ^ rec.count;
  }
  return n;
}

int main(void)
{
  static struct m6_capture c;
  double drained[BENCH_ROUNDS], read_ns[BENCH_ROUNDS], rate[BENCH_ROUNDS];
  uint64_t sum = 0;
  segment = mmap(NULL, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (segment == MAP_FAILED) return 1;
  m6_clock_begin();
  segment->start_clock = now_ticks;
  segment->start_mono_ns = m6_monotonic_ns();
  segment->clock_kind = M6_CLOCK_TSC;
  segment->rings_used = RINGS;
  segment->streams[0].kind = 1;
  segment->streams[0].first_clock = 1;
  for (unsigned r = 0; r < RINGS; r++) {
    m6_producer_init(&producer[r], m6_segment_ring(segment, r), m6_segment_records(segment, r), m6_ring_capacity(r));
    m6_ring_commit(&producer[r], m6_ring_claim(&producer[r], 1), now_ticks, 0, 100 + r, M6_REC_START, 0, 0, 0);
  }
  if (m6_capture_open(&c, segment, 0, NULL, NULL)) return 1;
  for (unsigned round = 0; round < BENCH_ROUNDS + 5; round++) {
    fill();
    uint64_t t0 = bench_ns(), n = only_read(&c, &sum), t1 = bench_ns();
    struct m6_drained d = m6_capture_drain(&c, 0);
    uint64_t t2 = bench_ns();
    m6_capture_settle(&c, t2);
    if (d.records != n || c.holes || c.bad) {
      fprintf(stderr, "drain: %llu records of %llu, %llu holes, %llu bad\n", (unsigned long long)d.records,
              (unsigned long long)n, (unsigned long long)c.holes, (unsigned long long)c.bad);
      return 1;
    }
    if (round < 5) continue;
    drained[round - 5] = (double)(t2 - t1) / (double)n;
    read_ns[round - 5] = (double)(t1 - t0) / (double)n;
    rate[round - 5] = 1e3 / drained[round - 5];
  }
  __asm__ volatile("" : : "r"(sum));
  double plain = bench_spread_of(read_ns, BENCH_ROUNDS).median;
  bench_line("drain", bench_spread_of(rate, BENCH_ROUNDS), "M records drained and aggregated a second",
             "the same records only read, ns", plain, bench_spread_of(drained, BENCH_ROUNDS).median / plain,
             BENCH_AT_LEAST, 25);
  m6_capture_close(&c);
  return 0;
}
