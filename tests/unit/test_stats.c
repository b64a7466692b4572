/* test_stats.c - the inspectors' library: what it promises about snapshots that are good, and about those that are not. */
/* links: collector/stats_check_kernel.c collector/stats_kernel.c collector/payload_kernel.c */
/* links: collector/stats.c collector/stats_check.c collector/stats_words.c collector/payload.c collector/payload_encode.c collector/payload_report.c collector/payload_govern.c collector/payload_sites.c collector/stats_sites.c -ljansson -lmsgpackc -lm */
#include <fcntl.h>
#include <msgpack.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "collector/stats_internal.h"
#include "shm/clock.h"
#include "shm/seqlock.h"
#include "tests/unit/snapshot_fixture.h"

static struct m6_snapshot *game(size_t *bytes)
{
  struct fx f;
  fx_game(&f, 1501, 96);
  fx_kernel(&f);
  f.head.frame_count = 50;
  struct m6_snapshot *b = fx_block(&f, bytes);
  fx_free(&f);
  return b;
}

static int open_block(const void *block, size_t bytes, mach6_stats **out)
{
  int fd = memfd_create("snapshot", MFD_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, block, bytes), bytes);
  int error = mach6_stats_open_fd(fd, out);
  close(fd);
  return error;
}

/* Opens, and when that works converts everything, so that a sanitizer sees each access. JSON must parse. */
static int exercise(const void *block, size_t bytes)
{
  mach6_stats *s;
  int error = open_block(block, bytes, &s);
  if (error) {
    assert_null(s);
    return error;
  }
  json_error_t je;
  char *out;
  size_t n;
  assert_int_equal(mach6_stats_convert(s, MACH6_JSON, &out, &n), MACH6_OK);
  json_t *j = json_loadb(out, n, 0, &je);
  assert_non_null(j);
  json_decref(j);
  free(out);
  assert_int_equal(mach6_stats_convert(s, MACH6_MSGPACK, &out, &n), MACH6_OK);
  free(out);
  json_decref(m6_payload_report(s, 1));
  mach6_stats_close(s);
  return MACH6_OK;
}

static json_t *report_of(const struct m6_snapshot *b, size_t bytes)
{
  mach6_stats *s;
  char *out;
  size_t n;
  json_error_t je;
  assert_int_equal(open_block(b, bytes, &s), MACH6_OK);
  assert_int_equal(mach6_stats_convert(s, MACH6_JSON, &out, &n), MACH6_OK);
  json_t *j = json_loadb(out, n, 0, &je);
  assert_non_null(j);
  free(out);
  mach6_stats_close(s);
  return j;
}

static json_t *at(json_t *j, const char *path)
{
  char copy[256], *save;
  snprintf(copy, sizeof copy, "%s", path);
  for (char *k = strtok_r(copy, "/", &save); k; k = strtok_r(NULL, "/", &save)) {
    j = json_is_array(j) ? json_array_get(j, (size_t)atoi(k)) : json_object_get(j, k);
    if (!j) fail_msg("no %s in %s", k, path);
  }
  return j;
}

/* ---- good snapshots ---------------------------------------------------------------------------------------------- */

static void reads_back_what_was_written(void **state)
{
  (void)state;
  size_t bytes;
  struct m6_snapshot *b = game(&bytes);
  mach6_stats *s;
  assert_int_equal(open_block(b, bytes, &s), MACH6_OK);
  const mach6_node *frame = mach6_node_find(mach6_stats_root(s), "frame");
  assert_non_null(frame);
  const mach6_node *path = mach6_node_find(mach6_node_find(mach6_node_find(frame, "update"), "ai"), "find path");
  assert_non_null(path);
  assert_null(mach6_node_find(path, "nothing"));
  struct mach6_node_stats n = mach6_node_stats(frame);
  assert_int_equal(n.count, 1500);
  assert_true(n.inverse_is_measure && !mach6_node_stats(path).inverse_is_measure);
  assert_true(fabs(n.time_p50 - 0.0141) < 1e-12 && fabs(n.time_avg - 0.0141 * 1.03) < 1e-9);
  assert_true(n.mem_delta_total == 1500 * 2144 / 1024.0 && n.mem_delta_avg == 2144 / 1024.0);
  assert_true(n.inverse_mem_total == -1500 * 2048 / 1024.0 && n.mem_net == 1500 * 96 / 1024.0);
  assert_int_equal(mach6_node_stats(path).abandoned, 2);
  assert_int_equal(mach6_stats_ended(s), 1);
  mach6_stats_close(s);
  free(b);
}

static void report_has_the_fixed_keys(void **state)
{
  (void)state;
  static const char *const keys[] = {"target/pid",
                                     "target/name",
                                     "target/unseen",
                                     "session/state",
                                     "session/level",
                                     "presents",
                                     "frame_source/symbol",
                                     "frame_source/route",
                                     "books/reading_start_kib",
                                     "books/reading_now_kib",
                                     "books/sum_d_kib",
                                     "books/sum_i_kib",
                                     "books/closed",
                                     "allocs/malloc/count",
                                     "allocs/new/bytes",
                                     "allocs/total/count",
                                     "losses/records_lost",
                                     "overhead/shim_s",
                                     "root/label",
                                     "root/children/1/stats/time.avg",
                                     "root/children/1/stats/time.p10",
                                     "root/children/1/stats/time.p50",
                                     "root/children/1/stats/time.p90",
                                     "root/children/1/stats/time.max",
                                     "root/children/1/stats/mem_delta.avg",
                                     "root/children/1/stats/mem_delta.total",
                                     "root/children/1/stats/inverse_mem.total",
                                     "root/children/1/stats/mem.net",
                                     "root/children/1/stats/count",
                                     "root/children/1/stats/split.scopes",
                                     "root/children/1/stats/split.thread_rest",
                                     "root/children/1/stats/split.others"};
  size_t bytes;
  struct m6_snapshot *b = game(&bytes);
  json_t *j = report_of(b, bytes);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) at(j, keys[i]);
  assert_string_equal(json_string_value(at(j, "frame_source/symbol")), "SDL_GL_SwapWindow");
  assert_true(json_is_true(at(j, "books/closed")));
  /* KiB are exact: the books close in the JSON, too. */
  assert_true(json_number_value(at(j, "books/sum_d_kib")) + json_number_value(at(j, "books/sum_i_kib")) ==
              json_number_value(at(j, "books/reading_now_kib")) - json_number_value(at(j, "books/reading_start_kib")));
  json_decref(j);
  free(b);
}

static void integers_above_2_to_53_are_exact(void **state)
{
  (void)state;
  size_t bytes;
  struct m6_snapshot *b = game(&bytes);
  b->reading_now = 9007199254740993;
  b->reading_start = INT64_MIN;
  b->allocs[0].bytes = UINT64_MAX;
  b->presents = 9007199254740995u;
  struct m6_snap_node *frame = (struct m6_snap_node *)((char *)b + b->nodes_offset) + 3;
  frame->d_sum = INT64_MAX;
  frame->i_sum = 5; /* the sum saturates */
  json_t *j = report_of(b, bytes);
  assert_true(json_integer_value(at(j, "books/reading_now_bytes")) == 9007199254740993);
  assert_true(json_integer_value(at(j, "books/reading_start_bytes")) == INT64_MIN);
  assert_true(json_integer_value(at(j, "presents")) == 9007199254740995);
  assert_true(json_integer_value(at(j, "allocs/malloc/bytes")) == INT64_MAX);
  assert_true(json_integer_value(at(j, "root/children/1/stats/mem.net_bytes")) == INT64_MAX);
  json_decref(j);
  free(b);
}

static void count_reals(json_t *j, int *reals)
{
  const char *k;
  size_t i;
  json_t *v;
  if (json_is_real(j)) (*reals)++, assert_true(isfinite(json_real_value(j)));
  if (json_is_array(j)) json_array_foreach(j, i, v) count_reals(v, reals);
  if (json_is_object(j)) json_object_foreach(j, k, v) count_reals(v, reals);
}

static void nan_and_infinity_become_null(void **state)
{
  (void)state;
  double bad[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3; i++) {
    size_t bytes;
    int reals = 0;
    struct m6_snapshot *b = game(&bytes);
    b->fps = b->low_1pct_fps = b->low_01pct_fps = b->leak_per_frame = b->leak_ci = bad[i];
    b->price_pair_ns = b->price_scope_ns = b->price_frame_ns = bad[i];
    json_t *j = report_of(b, bytes);
    count_reals(j, &reals);
    assert_true(reals > 50);
    assert_true(json_is_null(at(j, "frame_time/fps")) && json_is_null(at(j, "frame_time/low_1pct_fps")));
    assert_true(json_is_null(at(j, "books/leak_per_frame_bytes")) && json_is_null(at(j, "overhead/price_pair_ns")));
    json_decref(j);
    free(b);
  }
  /* A node that never ran has no averages. */
  struct fx f;
  size_t bytes;
  fx_init(&f, "empty");
  fx_node(&f, 0, M6_NODE_FRAME, "frame");
  struct m6_snapshot *b = fx_block(&f, &bytes);
  json_t *j = report_of(b, bytes);
  assert_true(json_is_null(at(j, "root/children/0/stats/time.avg")) &&
              json_is_null(at(j, "root/children/0/stats/time.p50")));
  assert_true(json_is_null(at(j, "root/children/0/stats/mem_delta.avg")) && json_is_null(at(j, "frame_source")));
  assert_int_equal(json_integer_value(at(j, "root/children/0/stats/count")), 0);
  json_decref(j);
  free(b);
  fx_free(&f);
}

/* ---- labels, both encodings -------------------------------------------------------------------------------------- */

static const char *const hostile[] = {"quote \" and \\",
                                      "a,b;c",
                                      "line\nbreak\r\t",
                                      "\x01\x02\x1b[31m",
                                      "%s%n%d",
                                      "</script>",
                                      "=1+1",
                                      "\xef\xbf\xbd",
                                      "",
                                      "日本語",
                                      "e\xcc\x81",
                                      "\xf4\x8f\xbf\xbf",
                                      "/",
                                      "label",
                                      "stats"};
#define HOSTILE (sizeof hostile / sizeof *hostile)

static struct m6_snapshot *hostile_block(size_t *bytes)
{
  struct fx f;
  fx_init(&f, "hostile");
  for (size_t i = 0; i < HOSTILE; i++)
    fx_fill(&f, fx_node(&f, 0, M6_NODE_SCOPE, hostile[i]), i, 1.5, 7.25, -(int64_t)i, i);
  struct m6_snapshot *b = fx_block(&f, bytes);
  fx_free(&f);
  return b;
}

static void hostile_labels_parse_back_equal(void **state)
{
  (void)state;
  size_t bytes, n;
  struct m6_snapshot *b = hostile_block(&bytes);
  json_t *j = report_of(b, bytes), *children = at(j, "root/children");
  assert_int_equal(json_array_size(children), HOSTILE);
  for (size_t i = 0; i < HOSTILE; i++) {
    json_t *label = json_object_get(json_array_get(children, i), "label");
    assert_string_equal(json_string_value(label), hostile[i]);
  }
  json_decref(j);
  mach6_stats *s;
  char *out;
  assert_int_equal(open_block(b, bytes, &s), MACH6_OK);
  assert_int_equal(mach6_convert(mach6_node_find(mach6_stats_root(s), "\x01\x02\x1b[31m"), MACH6_JSON, &out, &n),
                   MACH6_OK);
  assert_int_equal(strlen(out), n);
  for (size_t i = 0; i < n; i++) assert_true((unsigned char)out[i] >= 0x20);
  free(out);
  mach6_stats_close(s);
  free(b);
}

static void same(json_t *j, const msgpack_object *m)
{
  size_t i;
  const char *k;
  json_t *v;
  switch (json_typeof(j)) {
  case JSON_NULL: assert_int_equal(m->type, MSGPACK_OBJECT_NIL); break;
  case JSON_TRUE:
  case JSON_FALSE: assert_true(m->type == MSGPACK_OBJECT_BOOLEAN && m->via.boolean == json_is_true(j)); break;
  case JSON_INTEGER:
    assert_true(m->type == MSGPACK_OBJECT_POSITIVE_INTEGER || m->type == MSGPACK_OBJECT_NEGATIVE_INTEGER);
    assert_true(m->via.i64 == json_integer_value(j));
    break;
  case JSON_REAL: assert_true(m->type == MSGPACK_OBJECT_FLOAT64 && m->via.f64 == json_real_value(j)); break;
  case JSON_STRING:
    assert_int_equal(m->type, MSGPACK_OBJECT_STR);
    assert_int_equal(m->via.str.size, json_string_length(j));
    assert_memory_equal(m->via.str.ptr, json_string_value(j), json_string_length(j));
    break;
  case JSON_ARRAY:
    assert_int_equal(m->type, MSGPACK_OBJECT_ARRAY);
    assert_int_equal(m->via.array.size, json_array_size(j));
    json_array_foreach(j, i, v) same(v, &m->via.array.ptr[i]);
    break;
  case JSON_OBJECT:
    assert_int_equal(m->type, MSGPACK_OBJECT_MAP);
    assert_int_equal(m->via.map.size, json_object_size(j));
    i = 0;
    json_object_foreach(j, k, v)
    {
      const msgpack_object_kv *kv = &m->via.map.ptr[i++];
      assert_int_equal(kv->key.via.str.size, strlen(k));
      assert_memory_equal(kv->key.via.str.ptr, k, strlen(k));
      same(v, &kv->val);
    }
    break;
  }
}

static void msgpack_says_what_json_says(void **state)
{
  (void)state;
  size_t sizes[2], n;
  struct m6_snapshot *blocks[] = {game(&sizes[0]), hostile_block(&sizes[1])};
  for (int i = 0; i < 2; i++) {
    mach6_stats *s;
    char *out;
    assert_int_equal(open_block(blocks[i], sizes[i], &s), MACH6_OK);
    json_t *j = report_of(blocks[i], sizes[i]);
    assert_int_equal(mach6_stats_convert(s, MACH6_MSGPACK, &out, &n), MACH6_OK);
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    size_t off = 0;
    assert_int_equal(msgpack_unpack_next(&u, out, n, &off), MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(off, n);
    same(j, &u.data);
    msgpack_unpacked_destroy(&u);
    free(out);
    json_decref(j);
    mach6_stats_close(s);
    free(blocks[i]);
  }
}

static void deep_trees_are_cut_and_counted(void **state)
{
  (void)state;
  struct fx f;
  size_t bytes;
  fx_init(&f, "deep");
  uint32_t at_node = 0;
  for (int i = 0; i < 5000; i++) fx_fill(&f, at_node = fx_node(&f, at_node, M6_NODE_SCOPE, "deeper"), 1, 1, 1, 0, 0);
  struct m6_snapshot *b = fx_block(&f, &bytes);
  json_t *j = report_of(b, bytes), *n = at(j, "root"), *first;
  int depth = 0;
  while ((first = json_array_get(json_object_get(n, "children"), 0))) n = first, depth++;
  assert_int_equal(depth, M6_PAYLOAD_DEPTH_MAX);
  assert_int_equal(json_integer_value(at(n, "stats/nodes_below")), 5000 - M6_PAYLOAD_DEPTH_MAX);
  json_decref(j);
  free(b);
  fx_free(&f);
}

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

/* ---- the live file ----------------------------------------------------------------------------------------------- */

struct live {
  char path[128];
  int fd;
  struct m6_stats_head *head;
  size_t bytes, place;
};

/* pid: a number that no process has, so that tests in parallel and real captures stay apart. */
static void live_make(struct live *l, pid_t pid, uint64_t load, size_t place)
{
  snprintf(l->path, sizeof l->path, M6_SEGMENT_DIR "/" M6_STATS_PREFIX "%d.%llx", (int)pid, (unsigned long long)load);
  unlink(l->path);
  l->place = place;
  l->bytes = M6_STATS_PLACES_OFFSET + 2 * place;
  l->fd = open(l->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  assert_true(l->fd >= 0);
  assert_int_equal(ftruncate(l->fd, (off_t)l->bytes), 0);
  l->head = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
  *l->head = (struct m6_stats_head){.magic = M6_STATS_MAGIC, .version = M6_SNAPSHOT_VERSION, .place_bytes = place};
}
static void live_publish(struct live *l, const struct m6_snapshot *b)
{
  uint32_t to = 1 - l->head->current;
  m6_seqlock_write(&l->head->seq[to], (uint64_t *)((char *)l->head + M6_STATS_PLACES_OFFSET + to * l->place),
                   (const uint64_t *)b, b->bytes);
  m6_publish(&l->head->current, to);
}
static void live_end(struct live *l)
{
  munmap(l->head, l->bytes);
  close(l->fd);
  unlink(l->path);
}
static pid_t nobody(void) { return 0x20000000 + getpid(); }

static void live_stats_are_found_and_refreshed(void **state)
{
  (void)state;
  struct live l, old;
  size_t bytes;
  struct m6_snapshot *b = game(&bytes);
  mach6_stats *s;
  assert_int_equal(mach6_stats_open(nobody(), &s), MACH6_ENOTFOUND);
  live_make(&l, nobody(), 2000, 1u << 20);
  live_make(&old, nobody(), 1000, 1u << 20);
  assert_int_equal(mach6_stats_open(nobody(), &s), MACH6_EBUSY); /* nothing was published yet */
  live_publish(&l, b);
  assert_int_equal(mach6_stats_open(nobody(), &s), MACH6_OK);
  assert_int_equal(mach6_stats_snapshot(s)->presents, 1501);
  assert_int_equal(mach6_stats_ended(s), 0);
  b->presents = 1502;
  live_publish(&l, b);
  assert_int_equal(mach6_stats_snapshot(s)->presents, 1501);
  assert_int_equal(mach6_stats_refresh(s), MACH6_OK);
  assert_int_equal(mach6_stats_snapshot(s)->presents, 1502);
  /* A writer that died at it, garbage, a shrunk file: errors, and the last snapshot stays. */
  m6_poke(&l.head->seq[l.head->current], 3);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EBUSY);
  m6_poke(&l.head->seq[l.head->current], 4);
  b->node_count++;
  live_publish(&l, b);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EINVALID);
  m6_poke(&l.head->version, 9);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EVERSION);
  m6_poke(&l.head->version, M6_SNAPSHOT_VERSION);
  m6_poke(&l.head->current, 77);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EINVALID);
  m6_poke(&l.head->current, 0);
  m6_poke(&l.head->place_bytes, UINT64_MAX);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EINVALID);
  assert_int_equal(ftruncate(l.fd, 5000), 0);
  m6_poke(&l.head->place_bytes, 1u << 20);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EINVALID);
  assert_int_equal(mach6_stats_snapshot(s)->presents, 1502);
  assert_int_equal(mach6_node_stats(mach6_node_find(mach6_stats_root(s), "frame")).count, 1500);
  m6_poke(&l.head->ended, 1);
  live_end(&l);
  assert_int_equal(mach6_stats_ended(s), 1); /* unlinked: nothing newer will come */
  mach6_stats_close(s);
  live_end(&old);
  free(b);
}

static void stats_of_a_pid_s_former_owner_are_not_taken(void **state)
{
  (void)state;
  struct live l;
  size_t bytes;
  struct m6_snapshot *b = game(&bytes);
  mach6_stats *s;
  live_make(&l, getpid(), 1000, 1u << 20); /* written 1 us after the machine's start: not this process */
  live_publish(&l, b);
  assert_int_equal(mach6_stats_open(getpid(), &s), MACH6_ENOTFOUND);
  live_end(&l);
  live_make(&l, getpid(), UINT64_MAX / 2, 1u << 20);
  live_publish(&l, b);
  assert_int_equal(mach6_stats_open(getpid(), &s), MACH6_OK);
  mach6_stats_close(s);
  /* A name is not followed when it is a link, and not opened when it is a pipe. */
  char path[128];
  snprintf(path, sizeof path, "/tmp/mach6-test-stats.%d", (int)getpid());
  assert_int_equal(rename(l.path, "/dev/shm/mach6-test-elsewhere"), 0);
  assert_int_equal(symlink("/dev/shm/mach6-test-elsewhere", l.path), 0);
  assert_int_equal(mach6_stats_open(getpid(), &s), MACH6_ENOTFOUND);
  unlink(l.path);
  assert_int_equal(mkfifo(l.path, 0600), 0);
  assert_int_equal(mach6_stats_open(getpid(), &s), MACH6_ENOTFOUND);
  live_end(&l);
  unlink("/dev/shm/mach6-test-elsewhere");
  free(b);
}

struct writer {
  struct live *l;
  struct m6_snapshot *b;
  uint32_t stop;
};
static void *writes(void *p)
{
  struct writer *w = p;
  for (uint64_t i = 1; !m6_peek(&w->stop); i++) {
    /* All words that are only printed say the same number: a torn copy would show. */
    w->b->presents = w->b->records = w->b->frees = w->b->publishes = i;
    for (int k = 0; k < M6_HIST_BUCKETS; k++) w->b->histogram[k] = (uint32_t)i;
    live_publish(w->l, w->b);
    usleep(50);
  }
  return NULL;
}

static void snapshots_are_never_torn(void **state)
{
  (void)state;
  struct live l;
  size_t bytes;
  struct m6_snapshot *b = game(&bytes);
  live_make(&l, nobody() + 1, 2000, 1u << 20);
  live_publish(&l, b);
  struct writer w = {&l, b, 0};
  pthread_t t;
  mach6_stats *s;
  uint64_t last = 0, changes = 0;
  assert_int_equal(mach6_stats_open(nobody() + 1, &s), MACH6_OK);
  assert_int_equal(pthread_create(&t, NULL, writes, &w), 0);
  for (int i = 0; i < 1500; i++) {
    int error = mach6_stats_refresh(s);
    assert_true(error == MACH6_OK || error == MACH6_EBUSY);
    const struct m6_snapshot *n = mach6_stats_snapshot(s);
    if (n->publishes != n->presents || n->records != n->presents || n->frees != n->presents) {
      if (n->presents != 1501)
        fail_msg("torn: %llu %llu", (unsigned long long)n->presents, (unsigned long long)n->records);
      continue;
    }
    for (int k = 0; k < M6_HIST_BUCKETS; k++) assert_int_equal(n->histogram[k], (uint32_t)n->presents);
    changes += n->presents != last;
    last = n->presents;
  }
  m6_poke(&w.stop, 1);
  pthread_join(t, NULL);
  assert_true(changes > 20);
  mach6_stats_close(s);
  live_end(&l);
  free(b);
}

static void every_error_has_its_words(void **state)
{
  (void)state;
  for (int e = MACH6_ESYSTEM; e <= 0; e++) {
    assert_true(strlen(mach6_stats_strerror(e)) > 5);
    for (int o = MACH6_ESYSTEM; o < e; o++) assert_string_not_equal(mach6_stats_strerror(e), mach6_stats_strerror(o));
  }
  assert_string_equal(mach6_stats_strerror(1), mach6_stats_strerror(-100));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_back_what_was_written),
    cmocka_unit_test(report_has_the_fixed_keys),
    cmocka_unit_test(integers_above_2_to_53_are_exact),
    cmocka_unit_test(nan_and_infinity_become_null),
    cmocka_unit_test(hostile_labels_parse_back_equal),
    cmocka_unit_test(msgpack_says_what_json_says),
    cmocka_unit_test(deep_trees_are_cut_and_counted),
    cmocka_unit_test(truncation_is_an_error_at_every_length),
    cmocka_unit_test(each_bad_field_is_an_error),
    cmocka_unit_test(each_bad_node_is_an_error),
    cmocka_unit_test(only_utf8_without_nul_is_a_label),
    cmocka_unit_test(no_word_can_crash_it),
    cmocka_unit_test(random_damage_never_crashes_it),
    cmocka_unit_test(live_stats_are_found_and_refreshed),
    cmocka_unit_test(stats_of_a_pid_s_former_owner_are_not_taken),
    cmocka_unit_test(snapshots_are_never_torn),
    cmocka_unit_test(every_error_has_its_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
