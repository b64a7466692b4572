/* export_tables.c - a dump's tables as JSON, JSON lines and CSV. They are those of collector/dump_table.c: what is
 * added there is exported. Times stay ns and memory bytes, as the tables have them; only the report within `json` has
 * the payload's units.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/dump.h"
#include "dumpfile.h"
#include "export.h"

/* ---- one value -----------------------------------------------------------------------------------------------------
 * */

static json_t *value(const struct m6_snapshot *s, const char *row, const struct m6_field *f)
{
  const char *at = row + f->offset;
  switch (f->type) {
  case M6_U8: return json_integer(*(const uint8_t *)at);
  case M6_U32: return json_integer(*(const uint32_t *)at);
  case M6_I32: return json_integer(*(const int32_t *)at);
  case M6_U64: return m6_json_u64(*(const uint64_t *)at);
  case M6_I64: return json_integer(*(const int64_t *)at);
  case M6_F32: return m6_json_real(*(const float *)at);
  case M6_F64: return m6_json_real(*(const double *)at);
  default: return json_stringn_nocheck(m6_snap_text(s) + ((const uint32_t *)at)[0], ((const uint32_t *)at)[1]);
  }
}

static int is_nodes(const struct m6_section *x) { return !strcmp(x->name, "nodes"); }
static const char *row_of(const struct m6_section *x, const struct m6_snapshot *s, uint32_t i)
{
  return m6_section_at(x, s) + (size_t)i * x->row_bytes;
}

/* ---- JSON -----------------------------------------------------------------------------------------------------------
 * */

static json_t *table(const mach6_stats *h, const struct m6_section *x)
{
  json_t *columns = json_array(), *rows = json_array();
  for (uint32_t i = 0; i < x->field_count; i++) json_array_append_new(columns, json_string(x->fields[i].name));
  for (uint32_t k = 0; k < m6_section_rows(x, h->snap); k++) {
    json_t *row = json_array();
    for (uint32_t i = 0; i < x->field_count; i++)
      json_array_append_new(row, value(h->snap, row_of(x, h->snap, k), &x->fields[i]));
    json_array_append_new(rows, row);
  }
  return json_pack("{s:o, s:o}", "columns", columns, "rows", rows);
}

int export_json(const mach6_stats *h, FILE *to)
{
  unsigned count;
  const struct m6_section *x = m6_dump_sections(&count);
  json_t *o = m6_payload_report(h, 0), *tables = json_object();
  int error = !o || !tables;
  for (unsigned i = 0; i < count && !error; i++) error = json_object_set_new(tables, x[i].name, table(h, &x[i]));
  if (!error) error = json_object_set_new(o, "tables", tables);
  if (!error) error = json_dumpf(o, to, JSON_COMPACT);
  json_decref(o);
  fputc('\n', to);
  return error ? (errno ? errno : ENOMEM) : 0;
}

int export_jsonl(const mach6_stats *h, FILE *to)
{
  unsigned count;
  const struct m6_section *x = m6_dump_sections(&count);
  char why[512];
  int whole = !m6_stats_not_whole(h, why, sizeof why);
  json_t *o = json_pack("{s:s, s:s, s:b, s:s}", "table", "recording", "mach6", MACH6_VERSION, "whole", whole, "why",
                        why);
  int error = json_dumpf(o, to, JSON_COMPACT);
  json_decref(o);
  fputc('\n', to);
  for (unsigned i = 0; i < count && !error; i++)
    for (uint32_t k = 0; k < m6_section_rows(&x[i], h->snap) && !error; k++) {
      o = json_pack("{s:s}", "table", x[i].name);
      for (uint32_t f = 0; f < x[i].field_count; f++)
        json_object_set_new(o, x[i].fields[f].name, value(h->snap, row_of(&x[i], h->snap, k), &x[i].fields[f]));
      char *path = is_nodes(&x[i]) ? node_path(&h->nodes[k]) : NULL;
      if (path) json_object_set_new_nocheck(o, "path", json_string_nocheck(path));
      free(path);
      error = json_dumpf(o, to, JSON_COMPACT);
      json_decref(o);
      fputc('\n', to);
    }
  return error ? EIO : 0;
}

/* ---- CSV
 * ------------------------------------------------------------------------------------------------------------- */

/* A field as RFC 4180 has it: quoted when it must be, a quote doubled; the text itself is unchanged. */
static void quoted(FILE *to, const char *text, size_t n)
{
  int quote = n == 0;
  for (size_t i = 0; i < n; i++) quote |= strchr(",\"\r\n", text[i]) != NULL;
  if (quote) fputc('"', to);
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '"') fputc('"', to);
    fputc(text[i], to);
  }
  if (quote) fputc('"', to);
}

static void csv_value(const struct m6_snapshot *s, FILE *to, const char *row, const struct m6_field *f)
{
  const char *at = row + f->offset;
  double v;
  switch (f->type) {
  case M6_U8: fprintf(to, "%u", *(const uint8_t *)at); break;
  case M6_U32: fprintf(to, "%" PRIu32, *(const uint32_t *)at); break;
  case M6_I32: fprintf(to, "%" PRId32, *(const int32_t *)at); break;
  case M6_U64: fprintf(to, "%" PRIu64, *(const uint64_t *)at); break;
  case M6_I64: fprintf(to, "%" PRId64, *(const int64_t *)at); break;
  case M6_F32:
  case M6_F64: /* what is no number is an empty field */
    v = f->type == M6_F64 ? *(const double *)at : (double)*(const float *)at;
    if (isfinite(v)) fprintf(to, "%.17g", v);
    break;
  default: quoted(to, m6_snap_text(s) + ((const uint32_t *)at)[0], ((const uint32_t *)at)[1]);
  }
}

int export_csv(const mach6_stats *h, FILE *to, const char *name)
{
  unsigned count;
  const struct m6_section *x = m6_dump_sections(&count), *end = x + count;
  char why[512];
  const char *recording = m6_stats_not_whole(h, why, sizeof why) ? "part" : "whole";
  while (x < end && strcmp(x->name, name) != 0) x++;
  if (x == end) return EINVAL;
  for (uint32_t i = 0; i < x->field_count; i++) fprintf(to, "%s,", x->fields[i].name);
  /* In the heading, too: a table may be empty because its rows were lost. */
  fprintf(to, "%s%s\r\n", is_nodes(x) ? "path," : "", *why ? "not_the_whole_recording" : "recording");
  for (uint32_t k = 0; k < m6_section_rows(x, h->snap); k++) {
    for (uint32_t i = 0; i < x->field_count; i++) {
      csv_value(h->snap, to, row_of(x, h->snap, k), &x->fields[i]);
      fputc(',', to);
    }
    char *path = is_nodes(x) ? node_path(&h->nodes[k]) : NULL;
    if (path) quoted(to, path, strlen(path)), fputc(',', to);
    free(path);
    fprintf(to, "%s\r\n", recording);
  }
  return 0;
}
