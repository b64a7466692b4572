/* links: collector/stats_check_kernel.c collector/stats_kernel.c */
/* links: collector/dump_table.c collector/dump_encode.c collector/dump_read.c collector/dump_skim.c collector/stats_check.c */
/* links: collector/reservoir.c -lmsgpackc -lm */
/* sanitizers: address */
/* test_dump - a dump is the snapshot that it was made from; its reader believes nothing (hard cases D01, D02).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dump_fixture.h"

static uint64_t seed = 99;
static uint64_t next(void)
{
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  return seed;
}

/* Every field of every row gets a value of its own that its type can hold. */
static void scatter(const struct m6_section *x, char *rows, uint32_t n)
{
  for (uint32_t r = 0; r < n; r++)
    for (uint32_t i = 0; i < x->field_count; i++) {
      char *at = rows + (size_t)r * x->row_bytes + x->fields[i].offset;
      uint64_t v = next() >> next() % 64;
      switch (x->fields[i].type) {
      case M6_U8: *(uint8_t *)at = (uint8_t)v; break;
      case M6_U32: *(uint32_t *)at = (uint32_t)v; break;
      case M6_I32: *(int32_t *)at = (int32_t)v; break;
      case M6_U64: *(uint64_t *)at = v; break;
      case M6_I64: *(int64_t *)at = (int64_t)(v & 1 ? v : 0 - v); break;
      case M6_F32: *(float *)at = (float)(v >> 8); break;
      case M6_F64: *(double *)at = v % 5 ? (double)v / 7 : NAN; break;
      default: break; /* texts keep their places */
      }
    }
}

/* A small session with something of everything. */
static struct m6_snapshot *everything(size_t *bytes)
{
  struct fx f;
  fx_game(&f, 250, 64);
  struct m6_snapshot *h = &f.head;
  unsigned sections;
  const struct m6_section *x = m6_dump_sections(&sections);
  h->series_count = 4, h->frame_count = 6, h->bucket_count = 5, h->growth_count = 4, h->stall_count = 3;
  for (uint32_t i = 0; i < h->node_count; i++) {
    f.nodes[i].reservoir = i % 5;
    h->sample_count += i % 5;
  }
  scatter(&x[7], (char *)f.buckets, 5);
  scatter(&x[8], (char *)f.growth, 4);
  scatter(&x[9], (char *)f.stalls, 3);
  scatter(&x[10], (char *)f.samples, h->sample_count);
  scatter(&x[11], (char *)f.frames, 6);
  scatter(&x[2], (char *)h->allocs, M6_ALLOC_KIND_COUNT);
  scatter(&x[4], (char *)h->histogram, 8);
  for (int i = 0; i < 3; i++) f.stalls[i].node = (uint32_t)i;
  fx_kernel(&f); /* what levels lite and full add */
  h->sites.second_count = 1;
  f.site_seconds[0] = (struct m6_snap_site_second){24, -1, 1ll << 40, 2, 3, 4};
  h->ending_known = 1, h->ending = -3;
  struct m6_snapshot *b = fx_block(&f, bytes);
  fx_free(&f);
  assert_int_equal(m6_snapshot_check(b, *bytes), 0);
  return b;
}

static void assert_same(const struct m6_snapshot *a, const struct m6_snapshot *b)
{
  unsigned sections;
  const struct m6_section *x = m6_dump_sections(&sections);
  for (unsigned k = 0; k < sections; k++, x++) {
    uint32_t n = m6_section_rows(x, a);
    assert_int_equal(m6_section_rows(x, b), n);
    for (uint32_t r = 0; r < n; r++)
      for (uint32_t i = 0; i < x->field_count; i++) {
        const char *p = m6_section_at(x, a) + (size_t)r * x->row_bytes + x->fields[i].offset;
        const char *q = m6_section_at(x, b) + (size_t)r * x->row_bytes + x->fields[i].offset;
        const uint32_t *t = (const uint32_t *)p, *u = (const uint32_t *)q;
        switch (x->fields[i].type) {
        case M6_TEXT:
          assert_int_equal(t[1], u[1]);
          assert_memory_equal(m6_snap_text(a) + t[0], m6_snap_text(b) + u[0], t[1]);
          break;
        case M6_F64:
          if (*(const double *)p != *(const double *)p) assert_true(*(const double *)q != *(const double *)q);
          else assert_memory_equal(p, q, 8);
          break;
        case M6_U8: assert_memory_equal(p, q, 1); break;
        default: assert_memory_equal(p, q, x->fields[i].type == M6_U64 || x->fields[i].type == M6_I64 ? 8 : 4);
        }
      }
  }
  for (uint32_t i = 0; i < a->node_count; i++) {
    assert_int_equal(m6_snap_nodes(a)[i].first_child, m6_snap_nodes(b)[i].first_child);
    assert_int_equal(m6_snap_nodes(a)[i].next_sibling, m6_snap_nodes(b)[i].next_sibling);
  }
}

/* A field that somebody adds to a struct and forgets here would be lost without a word. */
static void every_member_of_every_struct_is_in_the_table(void **state)
{
  (void)state;
  unsigned sections;
  const struct m6_section *x = m6_dump_sections(&sections);
  struct m6_snapshot s;
  /* Members of the heads that other sections hold, and those that say where they are and how many: [1] of the kernel's,
   * [2] of the sites'. */
  static const char *const heads[] = {"session", "kernel", "site_sums"};
  size_t elsewhere[3] = {0, 0, 0};
#define HEAD(at)                                                                                                       \
  ((at) >= offsetof(struct m6_snapshot, modules)  ? 0                                                                  \
   : (at) >= offsetof(struct m6_snapshot, sites)  ? 2                                                                  \
   : (at) >= offsetof(struct m6_snapshot, kernel) ? 1                                                                  \
                                                  : 0)
  for (unsigned k = 1; k < sections; k++) {
    if (x[k].count_at != M6_FIXED) elsewhere[HEAD(x[k].count_at)] += 4;
    if (x[k].offset_at != M6_FIXED) elsewhere[HEAD(x[k].offset_at)] += 8;
  }
  elsewhere[0] += sizeof s.streams + sizeof s.allocs + sizeof s.series + sizeof s.histogram + sizeof s.govern.steps +
                  sizeof s.govern.links + sizeof s.kernel + sizeof s.sites;
  /* Not in a dump: budgets are the collector's at that moment. */
  elsewhere[0] += sizeof s.govern.budgets + sizeof s.govern.budget_count;
  elsewhere[0] += sizeof s.magic + sizeof s.version + sizeof s.head_bytes + sizeof s.bytes + sizeof s.text_bytes +
                  sizeof s.text_offset;
  for (unsigned k = 0; k < sections; k++) {
    static const unsigned char size[] = {
      [M6_U8] = 1, [M6_U32] = 4, [M6_I32] = 4, [M6_F32] = 4, [M6_U64] = 8, [M6_I64] = 8, [M6_F64] = 8, [M6_TEXT] = 8};
    size_t n = 0;
    for (uint32_t i = 0; i < x[k].field_count; i++) n += size[x[k].fields[i].type];
    if (!strcmp(x[k].name, "nodes")) n += 8; /* first_child and next_sibling follow from the parents */
    int head = 0;
    for (int h = 0; h < 3; h++)
      if (!strcmp(x[k].name, heads[h])) n += elsewhere[h], head = 1;
    assert_true(n <= x[k].row_bytes && x[k].row_bytes - n < (head ? 8u : 1u));
  }
}

static void what_is_read_is_what_was_written(void **state)
{
  (void)state;
  size_t bytes, n;
  struct m6_snapshot *a = everything(&bytes), *b;
  struct mach6_dump_info info;
  char *dump = dg_encode(a, 0, &n);
  assert_int_equal(m6_dump_read(dump, n, &b, &info), 0);
  assert_same(a, b);
  assert_int_equal(info.whole, 1);
  assert_null(info.broke_why);
  assert_int_equal(info.bytes, n);
  assert_int_equal(info.broke_at, n);
  free(b);
  free(dump);
  free(a);
}

static void d01_cut_at_every_byte(void **state)
{
  (void)state;
  size_t bytes, n, at = 0;
  struct m6_snapshot *a = everything(&bytes), *b;
  struct mach6_dump_info info;
  char *dump = dg_encode(a, 0, &n);
  size_t ends[64], objects = 0;
  while (at < n) {
    at += (size_t)m6_dump_skim(dump + at, n - at, M6_DUMP_OBJECT_BYTES, M6_DUMP_DEPTH_MAX);
    ends[objects++] = at;
  }
  assert_true(objects > 10);
  for (size_t cut = 0; cut < n; cut++) {
    size_t whole = 0;
    while (whole < objects && ends[whole] <= cut) whole++;
    int e = dg_read(dump, cut, &b, &info);
    assert_int_equal(info.objects, whole);
    assert_int_equal(info.broke_at, whole ? ends[whole - 1] : 0);
    assert_non_null(info.broke_why);
    assert_int_equal(e, whole >= 2 ? 0 : MACH6_EINVALID); /* the header, and the session's own row */
    if (e) continue;
    assert_int_equal(info.whole, 0);
    assert_int_equal(b->pid, a->pid);
    /* Chunks are whole sections here: each is all there, or not at all. */
    assert_true(b->frame_count == (whole >= 13 ? 6 : 0)); /* the header and twelve sections */
    assert_true(b->node_count == (whole >= 7 ? a->node_count : 1));
    free(b);
  }
  free(dump);
  free(a);
}

static void d01_every_byte_changed(void **state)
{
  (void)state;
  size_t bytes, n;
  struct m6_snapshot *a = everything(&bytes), *b;
  struct mach6_dump_info info;
  char *dump = dg_encode(a, 0, &n);
  static const unsigned char to[] = {0x00, 0x91, 0xc1, 0xc6, 0xcf, 0xdb, 0xdd, 0xdf, 0xff};
  unsigned long saved = 0, refused = 0;
  for (size_t i = 0; i < n; i++) {
    char before = dump[i];
    for (size_t k = 0; k < sizeof to; k += 1 + 3 * (i % 16 != 0)) {
      dump[i] = (char)to[k];
      int e = dg_read(dump, n, &b, &info);
      assert_true(info.broke_at <= n);
      if (e == 0) {
        assert_int_equal(m6_snapshot_check(b, b->bytes), 0);
        saved++;
        free(b);
      } else {
        assert_true(e == MACH6_EINVALID || e == MACH6_EVERSION);
        refused++;
      }
    }
    dump[i] = before;
  }
  assert_true(saved > 0 && refused > 0);
  free(dump);
  free(a);
}

static void d02_bombs_cost_an_error(void **state)
{
  (void)state;
  static const struct {
    const char *bytes;
    size_t n;
  } bombs[] = {{"\xdd\xff\xff\xff\xff", 5},
               {"\xdf\xff\xff\xff\xff", 5},
               {"\xdb\xff\xff\xff\xff", 5},
               {"\xc6\xff\xff\xff\xff", 5},
               {"\xc9\xff\xff\xff\xff\x01", 6},
               {"\xdc\xff\xff\x01", 4},
               {"\xc1", 1},
               {"\xd9", 1},
               {"\xcf\1", 2}};
  size_t bytes, n;
  struct m6_snapshot *a = everything(&bytes), *b;
  struct mach6_dump_info info;
  char *dump = dg_encode(a, 0, &n), *longer = malloc(n + 200000);
  ssize_t header = m6_dump_skim(dump, n, n, M6_DUMP_DEPTH_MAX);
  for (size_t k = 0; k < sizeof bombs / sizeof *bombs; k++) {
    assert_int_equal(dg_read(bombs[k].bytes, bombs[k].n, &b, &info), MACH6_EINVALID);
    memcpy(longer, dump, (size_t)header);
    memcpy(longer + header, bombs[k].bytes, bombs[k].n);
    memset(longer + header + bombs[k].n, 0x01, 1000);
    assert_int_equal(dg_read(longer, (size_t)header + bombs[k].n + 1000, &b, &info), MACH6_EINVALID);
    assert_int_equal(info.broke_at, header);
    memcpy(longer, dump, n);
    memcpy(longer + n, bombs[k].bytes, bombs[k].n);
    assert_int_equal(dg_read(longer, n + bombs[k].n, &b, &info), 0);
    assert_int_equal(info.broke_at, n);
    free(b);
  }
  memset(longer, 0x91, 100000);
  assert_int_equal(dg_read(longer, 100000, &b, &info), MACH6_EINVALID);
  memcpy(longer, dump, n);
  memset(longer + n, 0x91, 100000);
  assert_int_equal(dg_read(longer, n + 100000, &b, &info), 0);
  assert_string_equal(info.broke_why, "objects in objects, deeper than in any dump");
  free(b);
  free(longer);
  free(dump);
  free(a);
}

/* ---- budgets -------------------------------------------------------------------------------------------------------- */

static void what_does_not_fit_is_counted_and_the_newest_stay(void **state)
{
  (void)state;
  struct fx f;
  size_t bytes, n;
  dg_make(&f, &(struct dump_game){.seed = 3, .frames = 20000, .scopes = 6});
  struct m6_snapshot *a = fx_block(&f, &bytes), *b;
  static const uint64_t most[] = {M6_DUMP_BYTES, 900000, 300000, 100000, 40000, 5000};
  uint32_t frames = UINT32_MAX;
  for (size_t k = 0; k < sizeof most / sizeof *most; k++) {
    struct mach6_dump_info info;
    char *dump = dg_encode(a, most[k], &n);
    assert_true(n <= most[k]);
    for (size_t at = 0; at < n;) {
      ssize_t length = m6_dump_skim(dump + at, n - at, M6_DUMP_OBJECT_BYTES, M6_DUMP_DEPTH_MAX);
      assert_true(length > 0);
      at += (size_t)length;
    }
    int e = m6_dump_read(dump, n, &b, &info);
    if (most[k] <= 5000) {
      assert_int_equal(e, MACH6_EINVALID); /* no room for as much as the session */
    } else {
      assert_int_equal(e, 0);
      assert_null(info.broke_why);
      assert_true(b->frame_count <= frames);
      if (k) assert_true(b->frame_count < a->frame_count);
      else assert_same(a, b);
      assert_int_equal(info.whole, k == 0);
      assert_true(k == 0 ? info.left_out == 0 : info.left_out >= a->frame_count - b->frame_count);
      if (b->frame_count) assert_int_equal(m6_snap_frames(b)[b->frame_count - 1].present, 20001);
      frames = b->frame_count;
      free(b);
    }
    free(dump);
  }
  free(a);
  fx_free(&f);
}

static void objects_as_small_as_may_be_hold_the_same(void **state)
{
  (void)state;
  struct fx f;
  size_t bytes, n, large;
  dg_make(&f, &(struct dump_game){.seed = 3, .frames = 20000, .scopes = 6});
  struct m6_snapshot *a = fx_block(&f, &bytes), *b;
  struct mach6_dump_info info;
  free(dg_encode(a, 0, &large));
  char *dump = dg_encode_as(a, 0, M6_DUMP_OBJECT_BYTES_MIN, &n);
  unsigned objects = 0;
  for (size_t at = 0; at < n; objects++) {
    ssize_t length = m6_dump_skim(dump + at, n - at, M6_DUMP_OBJECT_BYTES_MIN, M6_DUMP_DEPTH_MAX);
    assert_true(length > 0);
    at += (size_t)length;
  }
  assert_true(n > large && objects > 10);
  assert_int_equal(m6_dump_read(dump, n, &b, &info), 0);
  assert_int_equal(info.whole, 1);
  assert_same(a, b);
  free(b);
  free(dump);
  /* Its newest rows stay there, too, when the whole is bounded. */
  dump = dg_encode_as(a, 300000, M6_DUMP_OBJECT_BYTES_MIN, &n);
  assert_true(n <= 300000);
  assert_int_equal(m6_dump_read(dump, n, &b, &info), 0);
  assert_true(b->frame_count > 1000 && m6_snap_frames(b)[b->frame_count - 1].present == 20001);
  free(b);
  free(dump);
  free(a);
  fx_free(&f);
}

static void a_recording_that_lost_its_oldest_frames_says_so(void **state)
{
  (void)state;
  struct fx f;
  size_t bytes, n;
  struct mach6_dump_info info;
  dg_make(&f, &(struct dump_game){.seed = 4, .frames = M6_FRAMES_RETAINED + 1000, .scopes = 2});
  struct m6_snapshot *a = fx_block(&f, &bytes), *b;
  char *dump = dg_encode(a, 0, &n);
  assert_int_equal(m6_dump_read(dump, n, &b, &info), 0);
  assert_same(a, b);
  assert_null(info.broke_why);
  assert_int_equal(info.whole, 0);
  assert_int_equal(info.overwritten, 1000);
  free(b);
  free(dump);
  free(a);
  fx_free(&f);
}

/* The address sanitizer's allocator takes minutes over the largest. */
#ifdef __SANITIZE_ADDRESS__
#define MANY_NODES 500u
#else
#define MANY_NODES M6_NODES_MAX
#endif

static void the_largest_snapshot_has_room(void **state)
{
  (void)state;
  struct fx f;
  size_t bytes, n;
  struct mach6_dump_info info;
  dg_make(&f, &(struct dump_game){.seed = 5, .frames = M6_FRAMES_RETAINED, .scopes = 1});
  char label[M6_SNAP_LABEL_MAX];
  memset(label, 'x', sizeof label);
  f.head.sample_count = 0;
  while (f.head.node_count < MANY_NODES) fx_node_n(&f, f.head.node_count / 2, M6_NODE_SCOPE, label, sizeof label - 60);
  for (uint32_t i = 0; i < MANY_NODES; i++) f.nodes[i].reservoir = M6_RESERVOIR;
  f.head.sample_count = MANY_NODES * M6_RESERVOIR;
  struct m6_snapshot *a = fx_block(&f, &bytes), *b;
  char *dump = dg_encode(a, 0, &n);
  assert_true(n < M6_DUMP_BYTES);
  assert_int_equal(m6_dump_read(dump, n, &b, &info), 0);
  assert_int_equal(info.whole, 1);
  assert_same(a, b);
  free(b);
  free(dump);
  free(a);
  fx_free(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_member_of_every_struct_is_in_the_table),
                                     cmocka_unit_test(what_is_read_is_what_was_written),
                                     cmocka_unit_test(d01_cut_at_every_byte),
                                     cmocka_unit_test(d01_every_byte_changed),
                                     cmocka_unit_test(d02_bombs_cost_an_error),
                                     cmocka_unit_test(what_does_not_fit_is_counted_and_the_newest_stay),
                                     cmocka_unit_test(objects_as_small_as_may_be_hold_the_same),
                                     cmocka_unit_test(a_recording_that_lost_its_oldest_frames_says_so),
                                     cmocka_unit_test(the_largest_snapshot_has_room)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
