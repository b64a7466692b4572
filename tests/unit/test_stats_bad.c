/* test_stats_bad.c - the inspectors' library: a snapshot that is cut, damaged or forged is an error, or a report, and never a crash. */
/* links: collector/stats_check_kernel.c collector/stats_kernel.c collector/payload_kernel.c */
/* links: collector/stats.c collector/stats_check.c collector/stats_words.c collector/payload.c collector/payload_encode.c collector/payload_report.c collector/payload_govern.c collector/payload_seconds.c collector/payload_sites.c collector/stats_sites.c -ljansson -lmsgpackc -lm */

#include "tests/unit/stats_fixture.h"

/* ---- bad snapshots ----------------------------------------------------------------------------------------------- */

static void truncation_is_an_error_at_every_length(void **state)
{
  (void)state;
  size_t bytes;
  struct m6_snapshot *b = game(&bytes);
  mach6_stats *s;
  uint64_t end = b->kernel.folded_offset + b->kernel.folded_bytes; /* what comes last */
  assert_int_equal(open_block(b, 0, &s), MACH6_ENOTFOUND);
  for (size_t n = 1; n < bytes; n += n < 64 || n > bytes - 64 ? 1 : 8) {
    char *cut = malloc(n); /* its own allocation, so that reading beyond it is seen */
    memcpy(cut, b, n);
    if (n >= 8) { /* also when the block itself claims the shorter size */
      assert_int_equal(open_block(cut, n, &s), MACH6_EINVALID);
      if (n >= 24) ((struct m6_snapshot *)cut)->bytes = n;
      if (n % 8 == 0) assert_int_equal(m6_snapshot_check(cut, n) != MACH6_OK, n < end);
    }
    free(cut);
  }
  free(b);
}

static void each_bad_field_is_an_error(void **state)
{
  (void)state;
#define H(member) offsetof(struct m6_snapshot, member), sizeof(((struct m6_snapshot *)0)->member)
  static const struct {
    size_t offset, size;
    uint64_t value;
    int want;
  } t[] = {
    {H(magic), 1, MACH6_EINVALID},
    {H(magic), 0, MACH6_EINVALID},
    {H(version), M6_SNAPSHOT_VERSION + 1, MACH6_EVERSION},
    {H(version), 0, MACH6_EVERSION},
    {H(head_bytes), 8, MACH6_EVERSION},
    {H(bytes), 0, MACH6_EINVALID},
    {H(bytes), UINT64_MAX, MACH6_EINVALID},
    {H(node_count), 0, MACH6_EINVALID},
    {H(node_count), UINT32_MAX, MACH6_EINVALID},
    {H(node_count), M6_NODES_MAX, MACH6_EINVALID},
    {H(node_count), 5, MACH6_EINVALID},
    {H(spike_count), M6_SPIKES_RETAINED + 1, MACH6_EINVALID},
    {H(frame_count), M6_FRAMES_RETAINED, MACH6_EINVALID},
    {H(frame_count), UINT32_MAX, MACH6_EINVALID},
    {H(text_bytes), UINT32_MAX, MACH6_EINVALID},
    {H(text_bytes), 0, MACH6_EINVALID},
    {H(nodes_offset), 0, MACH6_EINVALID},
    {H(nodes_offset), UINT64_MAX - 7, MACH6_EINVALID},
    {H(nodes_offset), sizeof(struct m6_snapshot) + 4, MACH6_EINVALID},
    {H(spikes_offset), 8, MACH6_EINVALID},
    {H(spikes_offset), UINT64_MAX & ~7ull, MACH6_EINVALID},
    {H(frames_offset), 1ull << 63, MACH6_EINVALID},
    {H(text_offset), UINT64_MAX, MACH6_EINVALID},
    {H(text_offset), 0, MACH6_EINVALID},
    {H(exe_bytes), UINT32_MAX, MACH6_EINVALID},
    {H(exe_offset), UINT32_MAX, MACH6_EINVALID},
    {H(name_bytes), 1u << 20, MACH6_EINVALID},
    {H(state), 3, MACH6_EINVALID},
    {H(end_reason), 99, MACH6_EINVALID},
    {H(level), 3, MACH6_EINVALID},
    {H(lost), M6_LOST_KINDS, MACH6_EINVALID},
    {H(lost_from_bytes), UINT32_MAX, MACH6_EINVALID},
    {H(lost_to_bytes), UINT32_MAX, MACH6_EINVALID},
    {H(stream_count), M6_STREAMS + 1, MACH6_EINVALID},
    {H(main_stream), 1, MACH6_EINVALID},
    {H(main_stream), UINT32_MAX, MACH6_EINVALID},
    {H(verdict), UINT32_MAX, MACH6_EINVALID},
    {H(verdict), 4, MACH6_EINVALID},
    {H(series_count), M6_SERIES + 1, MACH6_EINVALID},
    {H(kernel.counters), M6_KERNEL_PROC + 1, MACH6_EINVALID},
    {H(kernel.samples), UINT32_MAX, MACH6_EINVALID},
    {H(kernel.refusal_count), M6_KERNEL_REFUSALS_MAX + 1, MACH6_EINVALID},
    {H(kernel.refusals_offset), 0, MACH6_EINVALID},
    {H(kernel.refusals_offset), UINT64_MAX & ~7ull, MACH6_EINVALID},
    {H(kernel.thread_count), UINT32_MAX, MACH6_EINVALID},
    {H(kernel.threads_offset), sizeof(struct m6_snapshot) + 4, MACH6_EINVALID},
    {H(kernel.threads_offset), UINT64_MAX, MACH6_EINVALID},
    {H(kernel.call_count), M6_KERNEL_CALLS_MAX, MACH6_EINVALID},
    {H(kernel.calls_offset), 8, MACH6_EINVALID},
    {H(kernel.function_count), M6_KERNEL_FUNCTIONS_MAX, MACH6_EINVALID},
    {H(kernel.functions_offset), 1ull << 63, MACH6_EINVALID},
    {H(kernel.sample_count), 1, MACH6_EINVALID},
    {H(kernel.samples_offset), UINT64_MAX - 7, MACH6_EINVALID},
    {H(kernel.spike_cause_count), 2, MACH6_EINVALID},
    {H(kernel.spike_causes_offset), 16, MACH6_EINVALID},
    {H(kernel.frame_cause_count), 1, MACH6_EINVALID},
    {H(kernel.second_count), M6_BUCKETS_RETAINED + 1, MACH6_EINVALID},
    {H(kernel.second_count), 200, MACH6_EINVALID},
    {H(kernel.seconds_offset), 24, MACH6_EINVALID},
    {H(kernel.seconds_offset), UINT64_MAX & ~7ull, MACH6_EINVALID},
    {H(sites.second_count), M6_BUCKETS_RETAINED + 1, MACH6_EINVALID},
    {H(sites.second_count), M6_BUCKETS_RETAINED, MACH6_EINVALID},
    {H(kernel.folded_bytes), M6_KERNEL_FOLDED_MAX, MACH6_EINVALID},
    {H(kernel.folded_offset), 0, MACH6_EINVALID},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    size_t bytes;
    struct m6_snapshot *b = game(&bytes);
    memcpy((char *)b + t[i].offset, &t[i].value, t[i].size);
    int got = exercise(b, bytes);
    if (got != t[i].want) fail_msg("row %zu: got %d, want %d", i, got, t[i].want);
    free(b);
  }
}

static void each_bad_node_is_an_error(void **state)
{
  (void)state;
#define N(member) offsetof(struct m6_snap_node, member)
  static const struct {
    uint32_t node, offset, value;
  } t[] = {
    {3, N(first_child), 3},
    {3, N(first_child), 0},
    {4, N(next_sibling), 4}, /* itself; lost; itself */
    {5, N(first_child), 4},
    {5, N(first_child), 3},
    {6, N(next_sibling), 5}, /* cycles by a child, by siblings */
    {6, N(parent), 8},
    {3, N(parent), UINT32_MAX},
    {1, N(next_sibling), UINT32_MAX},
    {1, N(next_sibling), 0},
    {0, N(first_child), UINT32_MAX},
    {0, N(first_child), 0},
    {0, N(next_sibling), 1},
    {0, N(parent), 1},
    {0, N(kind), M6_NODE_SCOPE},
    {2, N(kind), 6},
    {2, N(label_offset), UINT32_MAX},
    {2, N(label_bytes), UINT32_MAX},
    {2, N(label_bytes), 100000},
    {2, N(reservoir), M6_RESERVOIR + 1},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    size_t bytes;
    struct m6_snapshot *b = game(&bytes);
    memcpy((char *)b + b->nodes_offset + t[i].node * sizeof(struct m6_snap_node) + t[i].offset, &t[i].value, 4);
    if (exercise(b, bytes) != MACH6_EINVALID) fail_msg("row %zu was taken", i);
    free(b);
  }
}

static void only_utf8_without_nul_is_a_label(void **state)
{
  (void)state;
  static const struct {
    const char *bytes;
    size_t n;
    int valid;
  } t[] = {{"\xff", 1, 0},
           {"\xc0\x80", 2, 0},
           {"\xc3", 1, 0},
           {"\xe0\x80\x80", 3, 0},
           {"\xed\xa0\x80", 3, 0},
           {"\xf4\x90\x80\x80", 4, 0},
           {"\xf0\x80\x80\x80", 4, 0},
           {"a\0b", 3, 0},
           {"\xe2\x82", 2, 0},
           {"\xf8\x88\x80\x80\x80", 5, 0},
           {"\x80", 1, 0},
           {"\xc3\xa9", 2, 1},
           {"\xed\x9f\xbf", 3, 1},
           {"\xf4\x8f\xbf\xbf", 4, 1},
           {"\xe0\xa0\x80", 3, 1},
           {"plain", 5, 1}};
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    struct fx f;
    size_t bytes;
    fx_init(&f, "utf8");
    fx_node_n(&f, 0, M6_NODE_SCOPE, t[i].bytes, t[i].n);
    struct m6_snapshot *b = fx_block(&f, &bytes);
    int got = exercise(b, bytes);
    if ((got == MACH6_OK) != t[i].valid) fail_msg("row %zu: got %d", i, got);
    free(b);
    fx_free(&f);
  }
}

/* Every word of the head's first part, of nodes, spikes and streams, at every extreme: an error or a report, never a crash. */
static void no_word_can_crash_it(void **state)
{
  (void)state;
  static const uint64_t extremes[] = {0,          1,          7,          0x7fffffff,    0x80000000,
                                      0xffffffff, 1ull << 63, UINT64_MAX, UINT64_MAX - 7};
  size_t bytes;
  struct m6_snapshot *b = game(&bytes), *copy = malloc(bytes);
  int taken = 0, refused = 0;
  size_t skip_from = offsetof(struct m6_snapshot, series), skip_to = sizeof *b;
  memcpy(copy, b, bytes);
  for (size_t at_byte = 0; at_byte + 8 <= bytes; at_byte += 4) {
    if (at_byte >= skip_from && at_byte < skip_to) continue; /* numbers that are only ever printed */
    for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++) {
      memcpy((char *)copy + at_byte, &extremes[i], extremes[i] >> 32 ? 8 : 4);
      int got = m6_snapshot_check(copy, bytes);
      if (got) refused++;
      else taken++;
      if (!got && at_byte % 64 == 0 && i % 3 == 0) assert_int_equal(exercise(copy, bytes), MACH6_OK);
      memcpy((char *)copy + at_byte, (char *)b + at_byte, 8);
    }
  }
  assert_true(taken > 1000 && refused > 100);
  free(copy);
  free(b);
}

static void random_damage_never_crashes_it(void **state)
{
  (void)state;
  size_t bytes;
  struct m6_snapshot *b = game(&bytes), *copy = malloc(bytes);
  size_t links = b->nodes_offset, span = b->frames_offset - links;
  uint64_t r = 88172645463325252ull;
  for (int i = 0; i < 2000; i++) {
    memcpy(copy, b, bytes);
    for (int flips = 1 + i % 8; flips; flips--) {
      r ^= r << 13, r ^= r >> 7, r ^= r << 17;
      size_t where = i % 2 ? links + r % span : r % bytes;
      ((unsigned char *)copy)[where] ^= (unsigned char)(1u << (r >> 32) % 8);
    }
    int got = i % 32 ? m6_snapshot_check(copy, bytes) : exercise(copy, bytes);
    assert_true(got == MACH6_OK || got == MACH6_EINVALID || got == MACH6_EVERSION);
  }
  free(copy);
  free(b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(truncation_is_an_error_at_every_length),
    cmocka_unit_test(each_bad_field_is_an_error),
    cmocka_unit_test(each_bad_node_is_an_error),
    cmocka_unit_test(only_utf8_without_nul_is_a_label),
    cmocka_unit_test(no_word_can_crash_it),
    cmocka_unit_test(random_damage_never_crashes_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
