/* dump_encode.c - a snapshot as the objects of a dump, one at a time, within the budgets. See dump.h.
 *
 * Each row's length is bounded before it is written, so that no object and no dump grows over its cap; what does not
 * fit is counted. Memory: one object. Calls: msgpack-c, dump_table.c.
 */
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dump.h"

#define TRAILER_ROOM 2048u     /* kept free for it: a few numbers and a name a section */
#define ROOM_BESIDE_ROWS 8192u /* keys and column names of one object */
#define SECTIONS_MAX 64u

struct m6_encoder {
  const struct m6_snapshot *s;
  const struct m6_section *sections;
  unsigned section_count;
  int section;        /* -1: the header comes next; section_count: the trailer; more: the end */
  uint32_t row, rows; /* next one of the section, and where they end */
  int begun;
  uint64_t most, object, bytes, objects; /* the caps of all and of one object; so far */
  uint64_t left_out[SECTIONS_MAX];
  msgpack_sbuffer buffer;
  msgpack_packer pack;
  int failed; /* no memory: what is in the buffer is no whole object */
};

static int append(void *encoder, const char *bytes, size_t n)
{
  struct m6_encoder *e = encoder;
  if (e->failed || msgpack_sbuffer_write(&e->buffer, bytes, n)) e->failed = 1;
  return -e->failed;
}

static void put_text(msgpack_packer *p, const char *text, size_t n) { msgpack_pack_str_with_body(p, text, n); }
static void put_key(msgpack_packer *p, const char *key) { put_text(p, key, strlen(key)); }
static void put_number(msgpack_packer *p, const char *key, uint64_t v)
{
  put_key(p, key);
  msgpack_pack_uint64(p, v);
}
static void put_word(msgpack_packer *p, const char *key, const char *word)
{
  put_key(p, key);
  put_key(p, word);
}

static void put_field(msgpack_packer *p, const struct m6_snapshot *s, const char *row, const struct m6_field *f)
{
  const char *at = row + f->offset;
  double v;
  switch (f->type) {
  case M6_U8: msgpack_pack_uint8(p, *(const uint8_t *)at); break;
  case M6_U32: msgpack_pack_uint32(p, *(const uint32_t *)at); break;
  case M6_I32: msgpack_pack_int32(p, *(const int32_t *)at); break;
  case M6_U64: msgpack_pack_uint64(p, *(const uint64_t *)at); break;
  case M6_I64: msgpack_pack_int64(p, *(const int64_t *)at); break;
  case M6_F32: msgpack_pack_float(p, *(const float *)at); break;
  case M6_F64:
    v = *(const double *)at;
    if (isfinite(v)) msgpack_pack_double(p, v);
    else msgpack_pack_nil(p);
    break;
  case M6_TEXT: put_text(p, m6_snap_text(s) + ((const uint32_t *)at)[0], ((const uint32_t *)at)[1]); break;
  }
}

/* The most bytes that a row can take. */
static size_t bound(const struct m6_section *x, const char *row)
{
  size_t n = x->field_count > 1 ? 5 : 0;
  for (uint32_t i = 0; i < x->field_count; i++) {
    n += x->fields[i].type == M6_U8                                                                  ? 2
         : x->fields[i].type == M6_U32 || x->fields[i].type == M6_F32 || x->fields[i].type == M6_I32 ? 5
                                                                                                     : 9;
    if (x->fields[i].type == M6_TEXT) n += ((const uint32_t *)(row + x->fields[i].offset))[1];
  }
  return n;
}

static void put_header(struct m6_encoder *e)
{
  msgpack_packer *p = &e->pack;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  msgpack_pack_map(p, 9);
  put_word(p, "type", "header");
  put_word(p, "format", M6_DUMP_FORMAT);
  put_number(p, "version", M6_DUMP_VERSION);
  put_word(p, "mach6", MACH6_VERSION);
  put_number(p, "created_ns", (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
  put_number(p, "pid", e->s->pid);
  put_key(p, "name");
  put_text(p, m6_snap_text(e->s) + e->s->name_offset, e->s->name_bytes);
  put_number(p, "session", e->s->session);
  put_key(p, "sections");
  msgpack_pack_array(p, e->section_count);
  for (unsigned i = 0; i < e->section_count; i++) put_key(p, e->sections[i].name);
}

static uint64_t left_out(const struct m6_encoder *e)
{
  uint64_t n = 0;
  for (unsigned i = 0; i < e->section_count; i++) n += e->left_out[i];
  return n;
}

static void put_trailer(struct m6_encoder *e)
{
  msgpack_packer *p = &e->pack;
  unsigned lacking = 0;
  for (unsigned i = 0; i < e->section_count; i++) lacking += e->left_out[i] != 0;
  msgpack_pack_map(p, 5);
  put_word(p, "type", "trailer");
  put_number(p, "objects", e->objects);
  put_number(p, "bytes", e->bytes);
  put_key(p, "left_out");
  msgpack_pack_map(p, lacking);
  for (unsigned i = 0; i < e->section_count; i++)
    if (e->left_out[i]) put_number(p, e->sections[i].name, e->left_out[i]);
  put_key(p, "whole");
  if (lacking || e->s->frames_overwritten) msgpack_pack_false(p);
  else msgpack_pack_true(p);
}

/* Rows from e->row on that fit into one object and into what is left of the whole; gives their number. */
static uint32_t fitting(const struct m6_encoder *e, const struct m6_section *x, const char *rows)
{
  uint64_t room = e->object, left = e->most - TRAILER_ROOM;
  left = left > e->bytes ? left - e->bytes : 0;
  if (left < room) room = left;
  if (room < ROOM_BESIDE_ROWS) return 0;
  room -= ROOM_BESIDE_ROWS;
  uint32_t n = 0;
  while (e->row + n < e->rows) {
    size_t need = bound(x, rows + (size_t)(e->row + n) * x->row_bytes);
    if (need > room) break;
    room -= need;
    n++;
  }
  return n;
}

static void put_rows(struct m6_encoder *e, const struct m6_section *x, const char *rows, uint32_t n, uint32_t first)
{
  msgpack_packer *p = &e->pack;
  msgpack_pack_map(p, 6);
  put_word(p, "type", "rows");
  put_word(p, "of", x->name);
  put_key(p, "columns");
  msgpack_pack_array(p, x->field_count);
  for (uint32_t i = 0; i < x->field_count; i++) put_key(p, x->fields[i].name);
  put_number(p, "first", first);
  put_number(p, "of_all", m6_section_rows(x, e->s));
  put_key(p, "rows");
  msgpack_pack_array(p, n);
  for (uint32_t k = 0; k < n; k++) {
    const char *row = rows + (size_t)(e->row + k) * x->row_bytes;
    if (x->field_count > 1) msgpack_pack_array(p, x->field_count);
    for (uint32_t i = 0; i < x->field_count; i++) put_field(p, e->s, row, &x->fields[i]);
  }
}

/* The first row to be written of a section whose newest rows matter most: rows there are of one length. */
static uint32_t first_of_newest(const struct m6_encoder *e, const struct m6_section *x, uint32_t count)
{
  uint64_t each = bound(x, NULL), left = e->most - TRAILER_ROOM, per_object = (e->object - ROOM_BESIDE_ROWS) / each;
  left = left > e->bytes ? left - e->bytes : 0;
  uint64_t whole = left / e->object, rest = left % e->object;
  uint64_t fit = whole * per_object + (rest > ROOM_BESIDE_ROWS ? (rest - ROOM_BESIDE_ROWS) / each : 0);
  return fit >= count ? 0 : count - (uint32_t)fit;
}

/* One object of rows, or none when nothing more fits or is there. */
static int next_rows(struct m6_encoder *e)
{
  while (e->section < (int)e->section_count) {
    const struct m6_section *x = &e->sections[e->section];
    const char *rows = m6_section_at(x, e->s);
    if (!e->begun) {
      e->begun = 1;
      e->rows = m6_section_rows(x, e->s);
      e->row = x->newest ? first_of_newest(e, x, e->rows) : 0;
      e->left_out[e->section] = e->row;
    }
    uint32_t n = fitting(e, x, rows);
    if (n) {
      put_rows(e, x, rows, n, e->row - (uint32_t)(x->newest ? e->left_out[e->section] : 0));
      e->row += n;
      return 1;
    }
    e->left_out[e->section] += e->rows - e->row;
    e->section++;
    e->begun = 0;
  }
  return 0;
}

struct m6_encoder *m6_dump_encoder(const struct m6_snapshot *s, uint64_t most, uint64_t object)
{
  struct m6_encoder *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  e->s = s;
  e->sections = m6_dump_sections(&e->section_count);
  if (e->section_count > SECTIONS_MAX) e->section_count = SECTIONS_MAX;
  e->section = -1;
  e->most = most == 0 || most > M6_DUMP_BYTES ? M6_DUMP_BYTES : most;
  if (e->most < TRAILER_ROOM) e->most = TRAILER_ROOM;
  e->object = object == 0 || object > M6_DUMP_OBJECT_BYTES ? M6_DUMP_OBJECT_BYTES : object;
  if (e->object < M6_DUMP_OBJECT_BYTES_MIN) e->object = M6_DUMP_OBJECT_BYTES_MIN;
  msgpack_sbuffer_init(&e->buffer);
  msgpack_packer_init(&e->pack, e, append);
  return e;
}

ssize_t m6_dump_next(struct m6_encoder *e, const char **object)
{
  msgpack_sbuffer_clear(&e->buffer);
  if (e->section > (int)e->section_count) return 0;
  if (e->section < 0) {
    put_header(e);
    e->section = 0;
  } else if (!next_rows(e)) {
    put_trailer(e);
    e->section++;
  }
  if (e->failed) return -1;
  e->objects++;
  e->bytes += e->buffer.size;
  *object = e->buffer.data;
  return (ssize_t)e->buffer.size;
}

uint64_t m6_dump_left_out(const struct m6_encoder *e) { return left_out(e); }

void m6_dump_encoder_free(struct m6_encoder *e)
{
  if (!e) return;
  msgpack_sbuffer_destroy(&e->buffer);
  free(e);
}
