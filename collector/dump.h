/* dump.h - a dump: a session in a file, self-describing and versioned, from a snapshot block and back into one.
 *
 *   dump_table.c   what is in it: one table of sections, one of fields for each; a new section is a row and its fields
 *   dump_encode.c  snapshot -> objects, one at a time
 *   dump_skim.c    is this whole msgpack, and how long? Foreign bytes in, a length or a fault out
 *   dump_read.c    objects -> snapshot, which stats_check.c then checks as any other
 *   dump_write.c   the collector's: objects -> a file that is whole or not there (dump_write.h)
 *
 * THE FORMAT. A stream of msgpack objects, each a map of at most M6_DUMP_OBJECT_BYTES, all together at most
 * M6_DUMP_BYTES:
 *   header   {type: "header", format: "mach6-dump", version, mach6, created_ns, pid, name, session, sections: [names]}
 *   rows     {type: "rows", of: section, columns: [names], first: number of the first row, of_all: rows in all,
 *             rows: [[value, ...], ...]}; a section of one column has rows of bare values
 *   trailer  {type: "trailer", objects, bytes (both of what came before it), left_out: {section: rows}, whole}
 * Values are integers, floats, strings and nil (a float that is no number, or infinite). A map has each key once. Times
 * are ns, memory is bytes, unless a name says otherwise. Section "modules" has the files whose code the stacks lead
 * through, with their build-ids: a function without a name, module+0xoffset, is at that offset of the file, and can be
 * named later. Whoever reads it skips types, sections and columns that he does not know; a column that is missing reads
 * as 0. A version is raised when that is not enough.
 *
 * Promise of the reader: nothing is allocated from a declared length, nothing is believed that was not checked; what is
 * cut or damaged yields the whole objects before that, and the offset where it broke.
 * All of it is pure and is part of libmach6stats. One thread for each object.
 */
#ifndef M6_DUMP_H
#define M6_DUMP_H

#include "stats_internal.h"

#define M6_DUMP_FORMAT "mach6-dump"
#define M6_DUMP_VERSION 1u
#define M6_DUMP_DEPTH_MAX 4u /* of objects in objects; deeper than what is written is damage */

/* ---- the table ----------------------------------------------------------------------------------------------------
 * */

enum m6_field_type { M6_U8, M6_U32, M6_I32, M6_U64, M6_I64, M6_F32, M6_F64, M6_TEXT };
struct m6_field {
  const char *name;
  uint32_t offset; /* in the row; M6_TEXT: of an offset into the text, a uint32_t, which its length follows */
  uint32_t type;   /* enum m6_field_type */
};
struct m6_section {
  const char *name;
  const struct m6_field *fields;
  uint32_t field_count;
  uint32_t row_bytes, most; /* rows at most */
  uint32_t count_at;        /* of the uint32_t in the head that counts rows; M6_FIXED: always `most` */
  uint32_t offset_at; /* of the uint64_t in the head that says where they are; M6_FIXED: in the head, at `inline_at` */
  uint32_t inline_at, newest; /* newest: when not all fit, the last ones are kept, not the first */
};
#define M6_FIXED UINT32_MAX

const struct m6_section *m6_dump_sections(unsigned *count) M6_HIDDEN;
enum { M6_SECTION_SESSION, M6_SECTION_NODES = 5 }; /* places in the table that the reader must know */

static inline uint32_t m6_section_rows(const struct m6_section *x, const struct m6_snapshot *s)
{
  return x->count_at == M6_FIXED ? x->most : *(const uint32_t *)((const char *)s + x->count_at);
}
static inline const char *m6_section_at(const struct m6_section *x, const struct m6_snapshot *s)
{
  return (const char *)s +
         (x->offset_at == M6_FIXED ? x->inline_at : *(const uint64_t *)((const char *)s + x->offset_at));
}

/* ---- writing ------------------------------------------------------------------------------------------------------
 * */

struct m6_encoder;
/* The snapshot has been checked, or built here; it must not change until the end. `most`: bytes in all, at most
 * M6_DUMP_BYTES, 0 = that; `object`: in one object, from M6_DUMP_OBJECT_BYTES_MIN to M6_DUMP_OBJECT_BYTES, 0 = that.
 * NULL: no memory. */
struct m6_encoder *m6_dump_encoder(const struct m6_snapshot *s, uint64_t most, uint64_t object) M6_HIDDEN;
/* The next object; it holds until the next call. 0 bytes: that was the last. -1: no memory. */
ssize_t m6_dump_next(struct m6_encoder *e, const char **object) M6_HIDDEN;
/* Rows that did not fit, so far. */
uint64_t m6_dump_left_out(const struct m6_encoder *e) M6_HIDDEN;
void m6_dump_encoder_free(struct m6_encoder *e) M6_HIDDEN;

/* ---- reading ------------------------------------------------------------------------------------------------------
 * */

/* The length of the msgpack object at p, of which n bytes are there: > 0; or one of these. Nothing is allocated; a
 * container that claims more members than there are bytes is refused at its head. */
enum { M6_SKIM_CUT = 0, M6_SKIM_BAD = -1, M6_SKIM_DEEP = -2, M6_SKIM_LARGE = -3 };
ssize_t m6_dump_skim(const void *p, size_t n, size_t most, unsigned depth_max) M6_HIDDEN;

/* A snapshot block from a dump's bytes, malloc'ed and checked: 0 and *out, or MACH6_EINVALID (nothing could be saved),
 * MACH6_EVERSION, MACH6_ENOMEM. *info is filled in either case. */
int m6_dump_read(const void *bytes, size_t n, struct m6_snapshot **out, struct mach6_dump_info *info) M6_HIDDEN;

#endif
