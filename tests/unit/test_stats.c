/* test_stats.c - the inspectors' library: what it promises about snapshots that are good. */
/* links: collector/stats_check_kernel.c collector/stats_kernel.c collector/payload_kernel.c */
/* links: collector/stats.c collector/stats_check.c collector/stats_words.c collector/payload.c collector/payload_encode.c collector/payload_report.c collector/payload_govern.c collector/payload_seconds.c collector/payload_sites.c collector/stats_sites.c -ljansson -lmsgpackc -lm */
#include <msgpack.h>

#include "tests/unit/stats_fixture.h"

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
  b->mapped = INT64_MIN + 1;
  struct m6_snap_heap *h = &b->govern.heap;
  *h = (struct m6_snap_heap){.count = 1, .held = (1ull << 62) + 9, .mapped = (1ll << 61) + 1, .live = 3};
  json_t *j = report_of(b, bytes);
  assert_true(json_integer_value(at(j, "allocs/mapped_bytes")) == INT64_MIN + 1);
  assert_true(json_integer_value(at(j, "heap/held_bytes")) == (1ll << 62) + 9);
  assert_true(json_integer_value(at(j, "heap/own_mappings_bytes")) == (1ll << 61) + 1);
  assert_true(json_integer_value(at(j, "heap/unused_bytes")) == (1ll << 61) + 5);
  assert_true(json_integer_value(at(j, "books/reading_now_bytes")) == 9007199254740993);
  assert_true(json_integer_value(at(j, "books/reading_start_bytes")) == INT64_MIN);
  assert_true(json_integer_value(at(j, "presents")) == 9007199254740995);
  assert_true(json_integer_value(at(j, "allocs/malloc/bytes")) == INT64_MAX);
  assert_true(json_integer_value(at(j, "root/children/1/stats/mem.net_bytes")) == INT64_MAX);
  json_decref(j);
  static const struct m6_snap_heap unknown[] = {{.count = 1, .held = UINT64_MAX, .live = 1},
                                                {.count = 1, .held = 5, .mapped = INT64_MAX, .live = INT64_MAX},
                                                {.count = 1, .held = 5, .mapped = INT64_MIN, .live = -1}};
  for (int i = 0; i < 3; i++) {
    *h = unknown[i];
    j = report_of(b, bytes);
    assert_true(json_is_null(at(j, "heap/unused_bytes")) && json_is_null(at(j, "heap/unused_share")));
    assert_true(json_integer_value(at(j, "heap/own_mappings_bytes")) == (i == 1 ? INT64_MAX : 0));
    json_decref(j);
  }
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
    cmocka_unit_test(reads_back_what_was_written),      cmocka_unit_test(report_has_the_fixed_keys),
    cmocka_unit_test(integers_above_2_to_53_are_exact), cmocka_unit_test(nan_and_infinity_become_null),
    cmocka_unit_test(hostile_labels_parse_back_equal),  cmocka_unit_test(msgpack_says_what_json_says),
    cmocka_unit_test(deep_trees_are_cut_and_counted),   cmocka_unit_test(every_error_has_its_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
