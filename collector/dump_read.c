/* dump_read.c - a dump's bytes as a snapshot block. See dump.h for the format and the promise.
 *
 * One pass: skim (is it whole?), decode (msgpack-c), check, copy into arrays that grow with the rows that are there;
 * then one block is laid out, and stats_check.c has the last word. Memory is O(bytes of the file). Calls: msgpack-c,
 * dump_skim.c, dump_table.c, stats_check.c.
 */
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"

#define COLUMNS_MAX 256u
#define NUMBER_MAX 0x1p64 /* bytes, ns, numbers of things: what is larger was not measured */
#define SECTIONS_MAX 64u
#define KEYS_MAX 256u /* of a map: those of a dump have ten, or one a section */

struct part { /* what was read of one section */
  char *rows;
  uint32_t count, room;
};
struct reader {
  const struct m6_section *sections;
  unsigned section_count;
  struct part part[SECTIONS_MAX];
  char *text;
  size_t text_bytes, text_room;
  struct mach6_dump_info *info;
  int header, trailer, no_memory;
};

/* ---- values -------------------------------------------------------------------------------------------------------
 * */

static int is_text(const msgpack_object *o, const char *word)
{
  return o->type == MSGPACK_OBJECT_STR && o->via.str.size == strlen(word) &&
         !memcmp(o->via.str.ptr, word, o->via.str.size);
}
static int is_uint(const msgpack_object *o, uint64_t most)
{
  return o->type == MSGPACK_OBJECT_POSITIVE_INTEGER && o->via.u64 <= most;
}

/* Keys are texts, each there once: of two, readers take the one or the other. */
static int keys_ok(const msgpack_object *map)
{
  const msgpack_object_kv *kv = map->via.map.ptr;
  if (map->via.map.size > KEYS_MAX) return 0;
  for (uint32_t i = 0; i < map->via.map.size; i++) {
    if (kv[i].key.type != MSGPACK_OBJECT_STR) return 0;
    for (uint32_t k = 0; k < i; k++)
      if (msgpack_object_equal(kv[k].key, kv[i].key)) return 0;
  }
  return 1;
}

/* The value of a key; NULL when it is not there. */
static const msgpack_object *get(const msgpack_object *map, const char *key)
{
  for (uint32_t i = 0; i < map->via.map.size; i++)
    if (is_text(&map->via.map.ptr[i].key, key)) return &map->via.map.ptr[i].val;
  return NULL;
}

/* A text goes behind the others; *at its place. 0 when it is none, or too long. */
static int add_text(struct reader *r, const msgpack_object *o, uint32_t *at)
{
  if (o->type != MSGPACK_OBJECT_STR || o->via.str.size > M6_TEXT_MAX || !m6_utf8_valid(o->via.str.ptr, o->via.str.size))
    return 0;
  uint32_t n = o->via.str.size;
  if (r->text_bytes + n > M6_SNAPSHOT_BYTES_MAX) return 0;
  if (r->text_bytes + n > r->text_room) {
    size_t room = 2 * (r->text_bytes + n) + 4096;
    char *more = realloc(r->text, room);
    if (!more) return r->no_memory = 1, 0;
    r->text = more;
    r->text_room = room;
  }
  if (n) memcpy(r->text + r->text_bytes, o->via.str.ptr, n);
  at[0] = n ? (uint32_t)r->text_bytes : 0;
  at[1] = n;
  r->text_bytes += n;
  return 1;
}

static int set_field(struct reader *r, char *row, const struct m6_field *f, const msgpack_object *o)
{
  char *at = row + f->offset;
  int positive = o->type == MSGPACK_OBJECT_POSITIVE_INTEGER, negative = o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER;
  double v = positive ? (double)o->via.u64 : negative ? (double)o->via.i64 : NAN;
  switch (f->type) {
  case M6_U8: return is_uint(o, UINT8_MAX) && (*(uint8_t *)at = (uint8_t)o->via.u64, 1);
  case M6_U32: return is_uint(o, UINT32_MAX) && (*(uint32_t *)at = (uint32_t)o->via.u64, 1);
  case M6_U64: return positive && (*(uint64_t *)at = o->via.u64, 1);
  case M6_I32:
    if (!(positive && o->via.u64 <= INT32_MAX) && !(negative && o->via.i64 >= INT32_MIN)) return 0;
    *(int32_t *)at = (int32_t)o->via.i64;
    return 1;
  case M6_I64:
    if (!(positive && o->via.u64 <= INT64_MAX) && !negative) return 0;
    *(int64_t *)at = o->via.i64;
    return 1;
  case M6_F32:
  case M6_F64:
    if (o->type == MSGPACK_OBJECT_FLOAT32 || o->type == MSGPACK_OBJECT_FLOAT64) v = o->via.f64;
    else if (!positive && !negative && o->type != MSGPACK_OBJECT_NIL) return 0;
    if (isinf(v)) v = NAN; /* a bound that holds for everything would be met by it */
    if (fabs(v) > NUMBER_MAX) return 0;
    if (f->type == M6_F64) *(double *)at = v;
    else *(float *)at = (float)v;
    return 1;
  case M6_TEXT: return add_text(r, o, (uint32_t *)at);
  default: return 0;
  }
}

/* ---- objects: each gives NULL, or what is wrong with it -------------------------------------------------------------
 * */

static const char *take_header(struct reader *r, const msgpack_object *o)
{
  const msgpack_object *format = get(o, "format"), *version = get(o, "version");
  if (!format || !is_text(format, M6_DUMP_FORMAT) || !version || !is_uint(version, UINT32_MAX))
    return "this is no dump of mach6";
  r->header = (int)version->via.u64 == M6_DUMP_VERSION ? 1 : -1;
  return r->header > 0 ? NULL : "it was written in another version of the format";
}

/* What a row must be in itself to be of use; the block as a whole is checked later. */
static int row_ok(const struct reader *r, unsigned section, const char *row, uint32_t number)
{
  if (section == M6_SECTION_NODES) {
    const struct m6_snap_node *n = (const struct m6_snap_node *)row;
    return (number ? n->parent < number : n->parent == 0 && n->kind == M6_NODE_ROOT) && n->kind <= M6_NODE_SCOPE &&
           n->reservoir <= M6_RESERVOIR && n->label_bytes <= M6_SNAP_LABEL_MAX;
  }
  if (!strcmp(r->sections[section].name, "samples")) return *(const float *)row >= 0 && *(const float *)row <= 0x1p64f;
  return 1;
}

static int add_row(struct reader *r, unsigned section, const struct m6_field *const *column, uint32_t columns,
                   const msgpack_object *o)
{
  const struct m6_section *x = &r->sections[section];
  struct part *p = &r->part[section];
  if (p->count >= x->most) return 0;
  if (p->count == p->room) {
    uint32_t room = p->room ? 2 * p->room : 16;
    if (room > x->most) room = x->most;
    char *more = realloc(p->rows, (size_t)room * x->row_bytes);
    if (!more) return r->no_memory = 1, 0;
    p->rows = more;
    p->room = room;
  }
  char *row = p->rows + (size_t)p->count * x->row_bytes;
  memset(row, 0, x->row_bytes);
  if (columns > 1 && (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != columns)) return 0;
  for (uint32_t i = 0; i < columns; i++)
    if (column[i] && !set_field(r, row, column[i], columns > 1 ? &o->via.array.ptr[i] : o)) return 0;
  if (!row_ok(r, section, row, p->count)) return 0;
  p->count++;
  return 1;
}

static const char *take_rows(struct reader *r, const msgpack_object *o)
{
  const msgpack_object *of = get(o, "of"), *names = get(o, "columns"), *first = get(o, "first"), *rows = get(o, "rows");
  const struct m6_field *column[COLUMNS_MAX];
  unsigned section = 0;
  if (!of || of->type != MSGPACK_OBJECT_STR || !names || names->type != MSGPACK_OBJECT_ARRAY ||
      names->via.array.size == 0 || names->via.array.size > COLUMNS_MAX || !first || !rows ||
      rows->type != MSGPACK_OBJECT_ARRAY)
    return "a chunk lacks one of its parts";
  while (section < r->section_count && !is_text(of, r->sections[section].name)) section++;
  if (section == r->section_count) return NULL; /* of a later writer */
  const struct m6_section *x = &r->sections[section];
  if (!is_uint(first, UINT32_MAX) || first->via.u64 != r->part[section].count) return "a chunk before it is missing";
  uint32_t columns = names->via.array.size;
  for (uint32_t i = 0; i < columns; i++) {
    column[i] = NULL;
    if (names->via.array.ptr[i].type != MSGPACK_OBJECT_STR) return "the name of a column is no text";
    for (uint32_t k = 0; k < x->field_count; k++)
      if (is_text(&names->via.array.ptr[i], x->fields[k].name)) column[i] = &x->fields[k];
    for (uint32_t k = 0; k < i && column[i]; k++)
      if (column[k] == column[i]) return "a column is there twice";
  }
  /* All of a chunk or nothing of it: half of one could be taken for all that there was. */
  uint32_t before = r->part[section].count;
  size_t text_before = r->text_bytes;
  for (uint32_t i = 0; i < rows->via.array.size; i++)
    if (!add_row(r, section, column, columns, &rows->via.array.ptr[i])) {
      r->part[section].count = before;
      r->text_bytes = text_before;
      return "a row holds what no collector writes";
    }
  return NULL;
}

static const char *take_trailer(struct reader *r, const msgpack_object *o)
{
  const msgpack_object *objects = get(o, "objects"), *bytes = get(o, "bytes"), *left = get(o, "left_out"),
                       *whole = get(o, "whole");
  if (!objects || !bytes || !left || left->type != MSGPACK_OBJECT_MAP || !keys_ok(left) || !whole ||
      whole->type != MSGPACK_OBJECT_BOOLEAN)
    return "the trailer lacks one of its parts";
  if (!is_uint(objects, r->info->objects) || !is_uint(bytes, r->info->bytes) || objects->via.u64 != r->info->objects ||
      bytes->via.u64 != r->info->bytes)
    return "the trailer tells of other objects than there are";
  uint64_t n = 0;
  for (uint32_t i = 0; i < left->via.map.size; i++) {
    if (!is_uint(&left->via.map.ptr[i].val, UINT32_MAX)) return "the trailer lacks one of its parts";
    n += left->via.map.ptr[i].val.via.u64;
  }
  const struct part *session = &r->part[M6_SECTION_SESSION];
  int all = n == 0 && (session->count == 0 || ((const struct m6_snapshot *)session->rows)->frames_overwritten == 0);
  r->info->left_out = n;
  if (whole->via.boolean != (all != 0)) return "the trailer calls it whole or not, and the rows say otherwise";
  r->trailer = 1;
  return NULL;
}

static const char *take(struct reader *r, const msgpack_object *o)
{
  if (o->type != MSGPACK_OBJECT_MAP) return r->header ? "an object is none of a dump's" : "this is no dump of mach6";
  if (!keys_ok(o)) return r->header ? "a key is there twice, or is no text" : "this is no dump of mach6";
  const msgpack_object *type = get(o, "type");
  if (!type || type->type != MSGPACK_OBJECT_STR)
    return r->header ? "an object has no type" : "this is no dump of mach6";
  if (r->trailer) return "something follows the trailer";
  if (is_text(type, "header") && !r->header) return take_header(r, o);
  if (!r->header) return "this is no dump of mach6";
  if (is_text(type, "header")) return "a second header";
  if (is_text(type, "rows")) return take_rows(r, o);
  if (is_text(type, "trailer")) return take_trailer(r, o);
  return NULL; /* of a later writer */
}

static void take_all(struct reader *r, const char *p, size_t n)
{
  struct mach6_dump_info *info = r->info;
  msgpack_unpacked object;
  msgpack_unpacked_init(&object);
  while (info->bytes < n && !info->broke_why && !r->no_memory) {
    ssize_t length = m6_dump_skim(p + info->bytes, n - info->bytes, M6_DUMP_OBJECT_BYTES, M6_DUMP_DEPTH_MAX);
    info->broke_why = length == M6_SKIM_CUT     ? "the file is cut off there"
                      : length == M6_SKIM_BAD   ? "a byte that msgpack does not have"
                      : length == M6_SKIM_DEEP  ? "objects in objects, deeper than in any dump"
                      : length == M6_SKIM_LARGE ? "an object larger than those of a dump"
                                                : NULL;
    if (info->broke_why) break;
    size_t at = 0;
    msgpack_unpack_return got = msgpack_unpack_next(&object, p + info->bytes, (size_t)length, &at);
    if (got == MSGPACK_UNPACK_NOMEM_ERROR) r->no_memory = 1;
    else if ((got != MSGPACK_UNPACK_SUCCESS && got != MSGPACK_UNPACK_EXTRA_BYTES) || at != (size_t)length)
      info->broke_why = "no msgpack";
    else info->broke_why = take(r, &object.data);
    if (info->broke_why || r->no_memory) break;
    info->bytes += (size_t)length;
    info->objects++;
  }
  msgpack_unpacked_destroy(&object);
  info->broke_at = info->bytes;
  if (!info->broke_why && !r->trailer && n) info->broke_why = "the file is cut off there";
}

/* ---- the block -----------------------------------------------------------------------------------------------------
 * */

static void mend(struct m6_snapshot *s)
{
  struct m6_snap_node *n = (struct m6_snap_node *)((char *)s + s->nodes_offset);
  struct m6_snap_spike *k = (struct m6_snap_spike *)((char *)s + s->spikes_offset);
  struct m6_snap_stall *t = (struct m6_snap_stall *)((char *)s + s->stalls_offset);
  uint32_t most = 0;
  /* Links from the parents: backwards, so that each list begins with the first. */
  for (uint32_t i = s->node_count; i-- > 1;) {
    n[i].next_sibling = n[n[i].parent].first_child;
    n[n[i].parent].first_child = i;
  }
  for (uint32_t i = 0; i < s->node_count; i++) most += n[i].reservoir;
  if (s->sample_count > most) s->sample_count = most;
  /* What refers to a node that was lost refers to none. */
  for (uint32_t i = 0; i < s->spike_count; i++)
    for (int c = 0; c < M6_SPIKE_CAUSES; c++)
      if (k[i].cause[c].node >= s->node_count) memset(&k[i].cause[c], 0, sizeof k[i].cause[c]);
  for (uint32_t i = 0; i < s->stall_count; i++)
    if (t[i].node >= s->node_count) t[i].node = t[i].calls = 0, t[i].node_time = 0;
  if (s->main_stream >= s->stream_count) s->main_stream = 0;
  /* What goes with rows of another section goes when they do. */
  struct m6_snap_kernel *x = &s->kernel;
  if (x->sample_count != s->node_count) x->sample_count = 0;
  if (x->spike_cause_count != s->spike_count) x->spike_cause_count = 0;
  if (x->frame_cause_count != s->frame_count) x->frame_cause_count = 0;
  const char *folded = (const char *)s + x->folded_offset;
  while (x->folded_bytes && folded[x->folded_bytes - 1] != '\n') x->folded_bytes--; /* whole lines */
}

static int build(struct reader *r, struct m6_snapshot **out)
{
  size_t bytes = sizeof(struct m6_snapshot);
  struct part *root = &r->part[M6_SECTION_NODES];
  static const struct m6_snap_node lone = {.kind = M6_NODE_ROOT}; /* cut before the tree */
  if (r->part[M6_SECTION_SESSION].count != 1) return MACH6_EINVALID;
  if (root->count == 0) {
    free(root->rows);
    if (!(root->rows = malloc(sizeof lone))) return MACH6_ENOMEM;
    memcpy(root->rows, &lone, sizeof lone);
    root->count = 1;
  }
  for (unsigned i = 0; i < r->section_count; i++)
    if (r->sections[i].offset_at != M6_FIXED)
      bytes = ((bytes + 7) & ~(size_t)7) + (size_t)r->part[i].count * r->sections[i].row_bytes;
  size_t text = bytes;
  bytes = (text + r->text_bytes + 7) & ~(size_t)7;
  if (bytes > M6_SNAPSHOT_BYTES_MAX) return MACH6_EINVALID;
  struct m6_snapshot *s = calloc(1, bytes);
  if (!s) return MACH6_ENOMEM;
  memcpy(s, r->part[M6_SECTION_SESSION].rows, sizeof *s);
  size_t at = sizeof *s;
  for (unsigned i = 1; i < r->section_count; i++) {
    const struct m6_section *x = &r->sections[i];
    size_t n = (size_t)r->part[i].count * x->row_bytes;
    char *to = (char *)s + x->inline_at;
    if (x->count_at != M6_FIXED) *(uint32_t *)((char *)s + x->count_at) = r->part[i].count;
    if (x->offset_at != M6_FIXED) {
      at = (at + 7) & ~(size_t)7;
      *(uint64_t *)((char *)s + x->offset_at) = at;
      to = (char *)s + at;
      at += n;
    }
    if (n) memcpy(to, r->part[i].rows, n);
  }
  s->text_offset = text;
  s->text_bytes = (uint32_t)r->text_bytes;
  if (r->text_bytes) memcpy((char *)s + text, r->text, r->text_bytes);
  s->magic = M6_SNAPSHOT_MAGIC;
  s->version = M6_SNAPSHOT_VERSION;
  s->head_bytes = sizeof *s;
  s->bytes = bytes;
  mend(s);
  int error = m6_snapshot_check(s, bytes);
  if (error) free(s);
  else *out = s;
  return error;
}

int m6_dump_read(const void *bytes, size_t n, struct m6_snapshot **out, struct mach6_dump_info *info)
{
  struct reader *r = calloc(1, sizeof *r);
  *out = NULL;
  memset(info, 0, sizeof *info);
  if (!r) return MACH6_ENOMEM;
  r->info = info;
  r->sections = m6_dump_sections(&r->section_count);
  take_all(r, bytes, n);
  int error = r->no_memory    ? MACH6_ENOMEM
              : r->header < 0 ? MACH6_EVERSION
              : !r->header    ? MACH6_EINVALID
                              : build(r, out);
  if (error == MACH6_EINVALID && !info->broke_why)
    info->broke_why = n ? "its parts do not fit together" : "the file is empty";
  if (!error) {
    info->overwritten = (*out)->frames_overwritten;
    info->whole = !info->broke_why && !info->left_out && !info->overwritten;
  }
  for (unsigned i = 0; i < r->section_count; i++) free(r->part[i].rows);
  free(r->text);
  free(r);
  return error;
}
