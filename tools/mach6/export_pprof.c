/* export_pprof.c - stacks with weights as pprof reads them: a profile.proto message, gzip'd.
 *
 * Format: profile.proto of github.com/google/pprof. What is written:
 *   sites        alloc_objects, alloc_space, inuse_objects, inuse_space of each stack, and what --of named if it is none of these;
 *                its scope, its samples and the standard error of its bytes as labels
 *   mapped memory  mapped_space, mapped_inuse_space
 *   CPU samples  samples, and what they stand for in nanoseconds; the thread is a label
 *   scopes       nanoseconds outside of the scopes below
 * The interval of the sum, what the books say and whether the recording is whole are comments. A location is a function
 * with what is inlined into it; it has an address where the function has no name but that (module+0xoffset: of the
 * file). The sampled values are rounded to whole numbers as in every other format, so their sums are the same.
 */
#define HASH_NONFATAL_OOM 1
#include "export.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../../collector/hash_free.h"
#include "wire.h"

/* Numbers of fields in profile.proto. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION, PROFILE_FUNCTION, PROFILE_STRING };
enum { PROFILE_TIME = 9, PROFILE_DURATION, PROFILE_PERIOD_TYPE, PROFILE_PERIOD, PROFILE_COMMENT, PROFILE_DEFAULT_TYPE };
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER, LABEL_UNIT };
enum {
  MAPPING_ID = 1,
  MAPPING_FILE = 5,
  MAPPING_BUILD_ID = 6,
  MAPPING_HAS_FUNCTIONS = 7,
  MAPPING_HAS_FILES,
  MAPPING_HAS_LINES,
  MAPPING_HAS_INLINES
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

/* ---- things that are numbered
 * ------------------------------------------------------------------------------------------- */

struct numbered {
  uint64_t id;
  UT_hash_handle hh;
  unsigned char key[];
};
struct numbers {
  struct numbered *all;
  int failed;
};

/* The number of what these bytes are, from 1 on; *is_new tells that it was given just now. */
static uint64_t number_of(struct numbers *of, const void *key, size_t n, int *is_new)
{
  struct numbered *k = NULL;
  HASH_FIND(hh, of->all, key, n, k);
  *is_new = !k;
  if (k) return k->id;
  if (!(k = calloc(1, sizeof *k + n + 1))) return of->failed = 1, 0;
  memcpy(k->key, key, n);
  k->id = HASH_COUNT(of->all) + 1;
  HASH_ADD_KEYPTR(hh, of->all, k->key, n, k);
  if (k->hh.tbl) return k->id;
  free(k); /* the hash found no memory */
  return of->failed = 1, 0;
}

/* ---- the profile
 * ------------------------------------------------------------------------------------------------------------ */

struct pprof {
  const struct export_stacks *x;
  struct wire out, part, inner, key;
  struct numbers strings, mappings, locations;
  unsigned char *function_done; /* by export_function.index */
};

/* 0 is "", as the format wants it. */
static uint64_t text(struct pprof *p, const char *s)
{
  int is_new;
  if (!*s) return 0;
  uint64_t id = number_of(&p->strings, s, strlen(s), &is_new);
  if (is_new) wire_bytes(&p->out, PROFILE_STRING, s, strlen(s));
  return id;
}

static void value_type(struct pprof *p, unsigned field, const char *type, const char *unit)
{
  wire_number(&p->part, TYPE_TYPE, text(p, type));
  wire_number(&p->part, TYPE_UNIT, text(p, unit));
  wire_message(&p->out, field, &p->part);
}

static void comment(struct pprof *p, const char *s) { wire_number(&p->out, PROFILE_COMMENT, text(p, s)); }

/* Of the file of that name. Two of one name, one of them unloaded: whose stack it was is not known, and no id is better
 * than a wrong one. */
static uint64_t build_id(struct pprof *p, const char *module)
{
  const struct m6_snapshot *s = p->x->of->snap;
  const struct m6_snap_module *m = m6_snap_module_rows(s), *found = NULL;
  size_t n = strlen(module);
  for (uint32_t i = 0; i < s->modules.count; i++, m++) {
    const char *path = m6_snap_text(s) + m->path_offset;
    if (m->path_bytes < n || memcmp(path + m->path_bytes - n, module, n) != 0) continue;
    if (m->path_bytes > n && path[m->path_bytes - n - 1] != '/') continue;
    if (found) return 0;
    found = m;
  }
  if (!found || !found->build_id_bytes) return 0;
  char *id = strndup(m6_snap_text(s) + found->build_id_offset, found->build_id_bytes);
  uint64_t number = id ? text(p, id) : 0;
  p->out.failed |= !id;
  free(id);
  return number;
}

static uint64_t mapping(struct pprof *p, const char *module)
{
  int is_new;
  if (!*module) return 0;
  uint64_t id = number_of(&p->mappings, module, strlen(module), &is_new);
  if (!is_new) return id;
  wire_number(&p->part, MAPPING_ID, id);
  wire_number(&p->part, MAPPING_FILE, text(p, module));
  wire_number(&p->part, MAPPING_BUILD_ID, build_id(p, module));
  for (unsigned field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINES; field++) wire_number(&p->part, field, 1);
  wire_message(&p->out, PROFILE_MAPPING, &p->part);
  return id;
}

static uint64_t function(struct pprof *p, const struct export_function *f)
{
  uint64_t id = f->index + 1;
  if (p->function_done[f->index]) return id;
  p->function_done[f->index] = 1;
  wire_number(&p->part, FUNCTION_ID, id);
  wire_number(&p->part, FUNCTION_NAME, text(p, f->name));
  wire_number(&p->part, FUNCTION_SYSTEM_NAME, text(p, f->name));
  wire_number(&p->part, FUNCTION_FILE, text(p, f->file));
  wire_message(&p->out, PROFILE_FUNCTION, &p->part);
  return id;
}

/* "module+0x12": a function without a name. */
static uint64_t address_of(const struct export_function *f)
{
  size_t n = strlen(f->module);
  if (n == 0 || strncmp(f->name, f->module, n) != 0 || strncmp(f->name + n, "+0x", 3) != 0) return 0;
  return strtoull(f->name + n + 3, NULL, 16);
}

/* The innermost of a location's functions leads to it; *up is the function that called it. */
static uint64_t location(struct pprof *p, const struct export_node *n, const struct export_node **up)
{
  const struct export_node *last = n, *i;
  int is_new;
  p->key.n = 0;
  for (i = n; i; i = i->key.inlined ? i->key.parent : NULL) {
    uint32_t line[2] = {i->key.function->index, i->key.line ? i->key.line : i->key.function->line};
    wire_raw(&p->key, line, sizeof line);
    last = i;
  }
  *up = last->key.parent;
  if (p->key.failed) return 0;
  uint64_t id = number_of(&p->locations, p->key.bytes, p->key.n, &is_new);
  if (!is_new) return id;
  uint64_t module = mapping(p, last->key.function->module);
  for (i = n; i != *up; i = i->key.parent) function(p, i->key.function);
  wire_number(&p->part, LOCATION_ID, id);
  wire_number(&p->part, LOCATION_MAPPING, module);
  wire_number(&p->part, LOCATION_ADDRESS, address_of(last->key.function));
  for (i = n; i != *up; i = i->key.parent) {
    wire_number(&p->inner, LINE_FUNCTION, function(p, i->key.function));
    wire_number(&p->inner, LINE_LINE, i->key.line ? i->key.line : i->key.function->line);
    wire_message(&p->part, LOCATION_LINE, &p->inner);
  }
  wire_message(&p->out, PROFILE_LOCATION, &p->part);
  return id;
}

/* ---- what is measured
 * ------------------------------------------------------------------------------------------------------- */

#define VALUES_MAX 5
struct values {
  const struct export_measure *of[VALUES_MAX];
  unsigned count;
};

/* The four that every reader of heap profiles knows, and the one that was asked for. */
static struct values values_of(const struct export_measure *asked)
{
  static const char *const heap[] = {"allocations", "bytes", "live-blocks", "live"}, *const maps[] = {"mapped",
                                                                                                      "mapped-live"};
  struct values v = {.count = 0};
  int is_there = 0;
  for (size_t i = 0; i < (asked->mapped ? sizeof maps / sizeof *maps : sizeof heap / sizeof *heap); i++) {
    v.of[v.count++] = export_measure_named(asked->mapped ? maps[i] : heap[i]);
    is_there |= v.of[i] == asked;
  }
  if (!is_there) v.of[v.count++] = asked;
  return v;
}

static void label(struct pprof *p, const char *key, const char *word, uint64_t number, const char *unit)
{
  wire_number(&p->inner, LABEL_KEY, text(p, key));
  if (word) wire_number(&p->inner, LABEL_TEXT, text(p, word));
  wire_number(&p->inner, LABEL_NUMBER, number);
  if (unit) wire_number(&p->inner, LABEL_UNIT, text(p, unit));
  wire_message(&p->part, SAMPLE_LABEL, &p->inner);
}

static void site_labels(struct pprof *p, const struct m6_snap_site *r)
{
  const struct export_measure *made = export_measure_named("bytes");
  char *scope = export_scope(p->x, r);
  if (scope) label(p, "scope", scope, 0, NULL);
  free(scope);
  double error = p->x->measure->mapped ? 0 : export_standard_error(made, made->site(p->x->of->snap, r));
  if (isfinite(error) && error > 0)
    label(p, "alloc_space_standard_error", NULL, (uint64_t)export_whole(error), "bytes");
  if (r->made.samples && !p->x->measure->mapped) label(p, "samples", NULL, r->made.samples, "count");
}

static void samples(struct pprof *p, const struct values *v)
{
  const struct export_stacks *x = p->x;
  struct wire ids = {0}, numbers = {0};
  int threads = x->measure->source == EXPORT_CPU;
  for (uint32_t i = 0; i < x->count; i++) {
    const struct export_stack *k = &x->stack[i];
    for (const struct export_node *n = k->node; n && (n->key.parent || n == k->node || !threads);)
      wire_varint(&ids, location(p, n, &n));
    wire_message(&p->part, SAMPLE_LOCATION, &ids);
    for (unsigned j = 0; j < v->count; j++)
      wire_varint(&numbers, (uint64_t)export_whole(v->of[j]->site(x->of->snap, k->row).value));
    if (!v->count) wire_varint(&numbers, (uint64_t)k->value);
    if (threads) wire_varint(&numbers, (uint64_t)export_whole((double)k->value * (double)x->ns_each));
    wire_message(&p->part, SAMPLE_VALUE, &numbers);
    if (k->row) site_labels(p, k->row);
    if (threads) label(p, "thread", k->group, 0, NULL);
    wire_message(&p->out, PROFILE_SAMPLE, &p->part);
  }
  p->out.failed |= ids.failed | numbers.failed;
  wire_free(&ids);
  wire_free(&numbers);
}

/* The program's own mapping is the first. */
static void main_mapping(struct pprof *p, const struct m6_snapshot *s)
{
  char *path = strndup(m6_snap_text(s) + s->exe_offset, s->exe_bytes), *slash = path ? strrchr(path, '/') : NULL;
  if (path) mapping(p, slash ? slash + 1 : path);
  else p->out.failed = 1;
  free(path);
}

static void types(struct pprof *p, const struct values *v)
{
  const struct export_stacks *x = p->x;
  const struct m6_snapshot *s = x->of->snap;
  static const char *const units[] = {"nanoseconds", "bytes", "count", "count"};
  for (unsigned i = 0; i < v->count; i++) value_type(p, PROFILE_SAMPLE_TYPE, v->of[i]->pprof, units[v->of[i]->unit]);
  if (!v->count) value_type(p, PROFILE_SAMPLE_TYPE, x->measure->pprof, units[x->measure->unit]);
  if (x->measure->source == EXPORT_CPU) value_type(p, PROFILE_SAMPLE_TYPE, "cpu", units[EXPORT_NS]);
  value_type(p, PROFILE_PERIOD_TYPE,
             v->count                           ? "space"
             : x->measure->source == EXPORT_CPU ? "cpu"
                                                : x->measure->pprof,
             units[v->count ? EXPORT_BYTES : EXPORT_NS]);
  wire_number(&p->out, PROFILE_PERIOD,
              v->count && !x->measure->mapped    ? s->sites.interval
              : x->measure->source == EXPORT_CPU ? x->ns_each
                                                 : 1);
  wire_number(&p->out, PROFILE_DEFAULT_TYPE, text(p, x->measure->source == EXPORT_CPU ? "cpu" : x->measure->pprof));
}

static void comments(struct pprof *p)
{
  const struct m6_snap_sites *h = &p->x->of->snap->sites;
  char line[700];
  export_title(p->x, line, sizeof line);
  comment(p, line);
  if (*p->x->why) comment(p, p->x->why);
  if (p->x->measure->source != EXPORT_SITES || p->x->measure->mapped) return;
  snprintf(line, sizeof line,
           "The books say %" PRIu64 " bytes in %" PRIu64 " blocks, and %" PRId64
           " bytes more live than at the start; these are exact.",
           h->exact_bytes, h->exact_count, h->exact_live);
  comment(p, line);
}

/* ---- gzip
 * ----------------------------------------------------------------------------------------------------------------------
 * */

/* RFC 1952, without a name or a time: the same profile is the same file. */
static int zip(const struct wire *w, FILE *to)
{
  unsigned char out[16384] = {0};
  z_stream z = {.next_in = w->bytes, .avail_in = (uInt)w->n};
  int state = deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  if (state != Z_OK || w->n > UINT32_MAX) return state == Z_OK ? deflateEnd(&z), EFBIG : ENOMEM;
  do {
    z.next_out = out;
    z.avail_out = sizeof out;
    state = deflate(&z, Z_FINISH);
    fwrite(out, 1, sizeof out - z.avail_out, to);
  } while (state == Z_OK || state == Z_BUF_ERROR);
  deflateEnd(&z);
  return state == Z_STREAM_END ? ferror(to) ? EIO : 0 : ENOMEM;
}

int export_pprof(const struct export_stacks *x, FILE *to)
{
  const struct m6_snapshot *s = x->of->snap;
  struct pprof p = {.x = x, .function_done = calloc(HASH_COUNT(x->functions) + 1, 1)};
  struct values v = {.count = 0};
  if (!p.function_done) return ENOMEM;
  if (x->measure->source == EXPORT_SITES) v = values_of(x->measure);
  wire_bytes(&p.out, PROFILE_STRING, "", 0);
  types(&p, &v);
  main_mapping(&p, s);
  samples(&p, &v);
  wire_number(&p.out, PROFILE_TIME, s->started_unix_ns);
  wire_number(&p.out, PROFILE_DURATION, s->elapsed_ns);
  comments(&p);
  int failed = p.out.failed | p.part.failed | p.inner.failed | p.key.failed | p.strings.failed | p.mappings.failed |
               p.locations.failed;
  int error = failed ? ENOMEM : zip(&p.out, to);
  M6_HASH_FREE(p.strings.all, free);
  M6_HASH_FREE(p.mappings.all, free);
  M6_HASH_FREE(p.locations.all, free);
  wire_free(&p.out);
  wire_free(&p.part);
  wire_free(&p.inner);
  wire_free(&p.key);
  free(p.function_done);
  return error;
}
