/* export_stacks.c - see export_stacks.h. May use the library's readers of sites and of the kernel's part, uthash and
 * libc. */
#define HASH_NONFATAL_OOM 1
#include "export_stacks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/hash_free.h"
#include "../../collector/stats_kernel.h"
#include "export.h"

#define Z 1.959963984540054
#define LINES 64     /* functions of a site's stack; the collector writes fewer */
#define LARGEST 9e15 /* whole numbers up to here are exact in every reader */

/* ---- measures
 * ----------------------------------------------------------------------------------------------------------- */

static struct export_value amount(const struct m6_snap_amount *a)
{
  return (struct export_value){a->bytes, a->low, a->high};
}
static struct export_value plain(double v) { return (struct export_value){v, NAN, NAN}; }

#define ROW const struct m6_snapshot *s, const struct m6_snap_site *r
static struct export_value made(ROW) { return (void)s, amount(&r->made); }
static struct export_value made_blocks(ROW) { return (void)s, plain(r->made.blocks); }
static struct export_value live(ROW) { return (void)s, amount(&r->live); }
static struct export_value live_blocks(ROW) { return (void)s, plain(r->live.blocks); }
static struct export_value peak(ROW)
{
  struct m6_snap_amount a = m6_snap_peak(r->peak, r->peak_low, r->peak_high);
  return (void)s, amount(&a);
}
static struct export_value same_frame(ROW) { return (void)s, amount(&r->same_frame); }
/* Its slope times the session's length: bytes that can be compared with the other measures. Only what still grew at the
 * end. */
static struct export_value growth(ROW)
{
  double long_ = s->sites.per_second ? (double)s->elapsed_ns / 1e9 : (double)m6_snap_sites_presents(s);
  if (!r->suspect) return plain(0);
  return (struct export_value){r->growth * long_, (r->growth - r->growth_error) * long_,
                               (r->growth + r->growth_error) * long_};
}
#undef ROW

static const struct export_measure measures[] = {
  {"time", "time in scopes, self", "time", EXPORT_SCOPES, EXPORT_NS, NULL, 0, 0},
  {"cpu", "CPU samples", "samples", EXPORT_CPU, EXPORT_SAMPLES, NULL, 0, 0},
  {"bytes", "bytes allocated by site", "alloc_space", EXPORT_SITES, EXPORT_BYTES, made, 1, 0},
  {"allocations", "blocks allocated by site", "alloc_objects", EXPORT_SITES, EXPORT_BLOCKS, made_blocks, 0, 0},
  {"live", "bytes live at the end by site", "inuse_space", EXPORT_SITES, EXPORT_BYTES, live, 1, 0},
  {"live-blocks", "blocks live at the end by site", "inuse_objects", EXPORT_SITES, EXPORT_BLOCKS, live_blocks, 0, 0},
  {"growth", "bytes that suspected leaks grew by", "growth_space", EXPORT_SITES, EXPORT_BYTES, growth, 0, 0},
  {"peak", "most bytes live at one time, of each site", "peak_space", EXPORT_SITES, EXPORT_BYTES, peak, 1, 0},
  {"same-frame", "bytes that died in the frame they were born in", "same_frame_space", EXPORT_SITES, EXPORT_BYTES,
   same_frame, 1, 0},
  {"mapped", "bytes that the program mapped itself, by site", "mapped_space", EXPORT_SITES, EXPORT_BYTES, made, 0, 1},
  {"mapped-live", "bytes of these that are mapped at the end", "mapped_inuse_space", EXPORT_SITES, EXPORT_BYTES, live,
   0, 1},
};
#define MEASURES (sizeof measures / sizeof *measures)

const struct export_measure *export_measures(unsigned *count)
{
  *count = MEASURES;
  return measures;
}

const struct export_measure *export_measure_named(const char *word)
{
  for (size_t i = 0; i < MEASURES; i++)
    if (!strcmp(measures[i].word, word)) return &measures[i];
  return NULL;
}

const char *export_unit_name(enum export_unit u)
{
  static const char *const names[] = {"nanoseconds", "bytes", "blocks", "samples"};
  return names[u];
}

int64_t export_whole(double v) { return v > 0 ? v < LARGEST ? (int64_t)(v + 0.5) : (int64_t)LARGEST : 0; }

/* Both ends solve (value - end)^2 = z^2 w end, with w = variance / value what a sample weighs. The low end is asked:
 * the high one may hold what is missing, too. */
double export_standard_error(const struct export_measure *m, struct export_value v)
{
  if (!m->scored || !isfinite(v.low)) return NAN;
  if (!(v.value > v.low)) return 0;
  return v.low > 0 ? (v.value - v.low) / Z * sqrt(v.value / v.low) : NAN;
}

/* ---- functions, nodes, stacks
 * --------------------------------------------------------------------------------------------- */

struct text {
  const char *at;
  size_t n;
};
static struct text whole(const char *s) { return (struct text){s, strlen(s)}; }

/* Its name, a NUL and its module are the key; its file follows. NULL: no memory. */
static struct export_function *function_of(struct export_stacks *x, struct text name, struct text module,
                                           struct text file)
{
  struct export_function *f = NULL;
  if (name.n == 0) name = whole("(no name)");
  size_t key = name.n + 1 + module.n;
  char *text = malloc(key + 1 + file.n + 1);
  if (!text) return NULL;
  memcpy(text, name.at, name.n);
  text[name.n] = 0;
  memcpy(text + name.n + 1, module.at, module.n);
  text[key] = 0;
  memcpy(text + key + 1, file.at, file.n);
  text[key + 1 + file.n] = 0;
  HASH_FIND(hh, x->functions, text, key, f);
  if (f || !(f = calloc(1, sizeof *f))) {
    free(text);
    return f;
  }
  *f = (struct export_function){
    .name = text, .module = text + name.n + 1, .file = text + key + 1, .index = HASH_COUNT(x->functions)};
  HASH_ADD_KEYPTR(hh, x->functions, text, key, f);
  if (f->hh.tbl) return f;
  free(text); /* the hash found no memory */
  free(f);
  return NULL;
}

static struct export_node *node_of(struct export_stacks *x, struct export_node *parent,
                                   struct export_function *function, uint32_t line, uint32_t inlined)
{
  struct export_node *n = NULL, like;
  if (!function) return NULL;
  memset(&like.key, 0, sizeof like.key);
  like.key.parent = parent, like.key.function = function, like.key.line = line, like.key.inlined = inlined;
  HASH_FIND(hh, x->nodes, &like.key, sizeof like.key, n);
  if (n || !(n = calloc(1, sizeof *n))) return n;
  n->key = like.key;
  n->index = HASH_COUNT(x->nodes);
  n->depth = parent ? parent->depth + 1 : 1;
  HASH_ADD(hh, x->nodes, key, sizeof n->key, n);
  if (n->hh.tbl) return n;
  free(n);
  return NULL;
}

static int add(struct export_stacks *x, const struct export_node *node, struct export_value v, const char *group,
               const struct m6_snap_site *row)
{
  if (x->count == x->room) {
    uint32_t room = x->room ? x->room * 2 : 256;
    struct export_stack *more = realloc(x->stack, room * sizeof *more);
    if (!more) return ENOMEM;
    x->stack = more;
    x->room = room;
  }
  x->stack[x->count] = (struct export_stack){node, export_whole(v.value), v.low, v.high, row, group};
  x->all.value += (double)x->stack[x->count++].value;
  return 0;
}

/* ---- scopes
 * ---------------------------------------------------------------------------------------------------------------- */

static int from_scopes(struct export_stacks *x)
{
  const mach6_node *all = x->of->nodes;
  struct export_node **node = calloc(x->of->snap->node_count, sizeof(struct export_node *));
  const char **part = calloc(x->of->snap->node_count, sizeof(const char *));
  int error = node && part ? 0 : ENOMEM;
  const mach6_node *n = mach6_node_first_child(all) ? export_next(all, all) : NULL;
  for (; n && !error; n = export_next(n, all)) {
    uint32_t i = (uint32_t)(n - all), up = n->raw->parent;
    node[i] = node_of(x, node[up], function_of(x, whole(n->label), whole(""), whole("")), 0, 0);
    part[i] = up ? part[up] : n->label;
    uint64_t self = export_self(n);
    if (!node[i] || (self && add(x, node[i], plain((double)self), part[i], NULL))) error = ENOMEM;
  }
  free(node);
  free(part);
  return error;
}

/* ---- CPU samples
 * ------------------------------------------------------------------------------------------------------------ */

/* The collector folded them, without modules: those are in its table of functions. The first of a name has most
 * samples. */
struct known {
  const struct m6_snap_function *row;
  UT_hash_handle hh;
};
static struct known *known_functions(const struct m6_snapshot *s)
{
  struct known *all = NULL, *k;
  for (uint32_t i = 0; i < s->kernel.function_count; i++) {
    const struct m6_snap_function *f = &m6_snap_functions(s)[i];
    const char *name = m6_snap_text(s) + f->function_offset;
    HASH_FIND(hh, all, name, f->function_bytes, k);
    if (k || !(k = calloc(1, sizeof *k))) continue;
    k->row = f;
    HASH_ADD_KEYPTR(hh, all, name, f->function_bytes, k);
    if (!k->hh.tbl) free(k);
  }
  return all;
}

#define KERNEL_SUFFIX "_[k]"
static struct export_function *cpu_function(struct export_stacks *x, struct known *all, struct text name, int is_thread)
{
  const char *text = m6_snap_text(x->of->snap);
  struct known *k = NULL;
  size_t tail = strlen(KERNEL_SUFFIX);
  int kernel = !is_thread && name.n > tail && !memcmp(name.at + name.n - tail, KERNEL_SUFFIX, tail);
  if (kernel) name.n -= tail;
  if (!is_thread) HASH_FIND(hh, all, name.at, name.n, k);
  struct text module = whole(is_thread ? "[thread]" : kernel ? "[kernel]" : ""), file = whole("");
  if (k && !kernel) module = (struct text){text + k->row->module_offset, k->row->module_bytes};
  if (k) file = (struct text){text + k->row->file_offset, k->row->file_bytes};
  struct export_function *f = function_of(x, name, module, file);
  if (f) f->kernel = kernel, f->line = k ? k->row->line : 0;
  return f;
}

/* One line, "thread;outermost;...;innermost COUNT". */
static int cpu_line(struct export_stacks *x, struct known *all, const char *at, const char *end)
{
  const char *space = memrchr(at, ' ', (size_t)(end - at)), *thread = NULL;
  struct export_node *node = NULL;
  double samples = 0;
  if (!space) return 0; /* none of ours */
  for (const char *d = space + 1; d < end && *d >= '0' && *d <= '9'; d++) samples = samples * 10 + (*d - '0');
  while (at <= space) {
    const char *stop = memchr(at, ';', (size_t)(space - at));
    if (!stop) stop = space;
    struct export_function *f = cpu_function(x, all, (struct text){at, (size_t)(stop - at)}, !thread);
    if (!(node = node_of(x, node, f, 0, 0))) return ENOMEM;
    if (!thread) thread = f->name;
    at = stop + 1;
  }
  return samples > 0 ? add(x, node, plain(samples), thread, NULL) : 0;
}

static int from_cpu(struct export_stacks *x)
{
  const struct m6_snapshot *s = x->of->snap;
  const char *at = m6_snap_folded(s), *end = at + s->kernel.folded_bytes;
  if (at == end) return ENODATA;
  struct known *all = known_functions(s);
  int error = 0;
  x->ns_each = (uint64_t)s->kernel.period_us * 1000;
  while (at < end && !error) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    error = cpu_line(x, all, at, stop);
    at = stop + 1;
  }
  M6_HASH_FREE(all, free);
  return error;
}

/* ---- sites
 * -------------------------------------------------------------------------------------------------------------------
 * */

static struct export_node *site_function(struct export_stacks *x, struct export_node *up, const struct m6_site_line *l,
                                         unsigned flags)
{
  struct text file = {l->source, (size_t)l->source_bytes};
  const char *colon = file.n ? memrchr(file.at, ':', file.n) : NULL;
  uint32_t line = 0;
  if (colon) {
    for (const char *d = colon + 1; d < file.at + file.n && *d >= '0' && *d <= '9' && line < 1u << 27; d++)
      line = line * 10 + (uint32_t)(*d - '0');
    file.n = (size_t)(colon - file.at);
  }
  struct export_function *f = function_of(x, (struct text){l->function, (size_t)l->function_bytes},
                                          (struct text){l->module, (size_t)l->module_bytes}, file);
  return flags & EXPORT_LINES ? node_of(x, up, f, line, (uint32_t)l->inlined) : node_of(x, up, f, 0, 0);
}

char *export_scope(const struct export_stacks *x, const struct m6_snap_site *row)
{
  return row->scope_bytes ? strndup(m6_snap_text(x->of->snap) + row->scope_offset, row->scope_bytes) : NULL;
}

static int from_site(struct export_stacks *x, const struct m6_snap_site *r, unsigned flags)
{
  struct export_value v = x->measure->site(x->of->snap, r);
  struct m6_site_line line[LINES];
  struct export_node *node = NULL;
  int is_rest = r == &x->rest, n = is_rest ? 0 : m6_site_lines(x->of->snap, r, line, LINES);
  if (export_whole(v.value) == 0 && !(flags & EXPORT_ALL_SITES && (r->made.bytes > 0 || r->live.bytes > 0))) return 0;
  if (flags & EXPORT_BY_SCOPE && !is_rest) {
    char *scope = export_scope(x, r);
    node = node_of(x, NULL, function_of(x, whole(scope ? scope : "(no scope)"), whole("[scope]"), whole("")), 0, 0);
    free(scope);
    if (!node) return ENOMEM;
  }
  for (int i = n; i-- > 0;)
    if (!(node = site_function(x, node, &line[i], flags))) return ENOMEM;
  const char *nameless = is_rest      ? "(sites without a row)"
                         : r->unnamed ? "(name not known)"
                                      : "(places without a stack)";
  if (n == 0 && !(node = node_of(x, node, function_of(x, whole(nameless), whole(""), whole("")), 0, 0))) return ENOMEM;
  return add(x, node, v, "allocation sites", r);
}

static void take(struct m6_snap_amount *rest, const struct m6_snap_amount *row)
{
  rest->bytes -= row->bytes;
  rest->blocks -= row->blocks;
  rest->samples -= rest->samples < row->samples ? rest->samples : row->samples;
}

/* Whether sites' growth goes together is not known, so the ends add up: at least 95 % it is. */
static void all_growth(struct export_stacks *x)
{
  x->all.low = x->all.high = x->count ? 0 : NAN;
  for (uint32_t i = 0; i < x->count; i++)
    if (x->stack[i].value > 0) x->all.low += x->stack[i].low, x->all.high += x->stack[i].high;
}

static int from_sites(struct export_stacks *x, unsigned flags)
{
  const struct m6_snap_sites *h = &x->of->snap->sites;
  int error = 0;
  if (!h->interval) return ENODATA;
  int mapped = x->measure->mapped;
  const struct m6_snap_site *rows = mapped ? m6_snap_site_maps(x->of->snap) : m6_snap_sites_rows(x->of->snap);
  uint32_t count = mapped ? h->map_count : h->row_count;
  x->rest = (struct m6_snap_site){
    .made = h->made, .in_frames = h->in_frames, .live = h->live, .same_frame = h->same_frame};
  if (mapped) x->rest = (struct m6_snap_site){.made.bytes = h->maps_made, .live.bytes = h->maps_live};
  for (uint32_t i = 0; i < count && !error; i++) {
    const struct m6_snap_site *r = &rows[i];
    take(&x->rest.made, &r->made);
    take(&x->rest.in_frames, &r->in_frames);
    take(&x->rest.live, &r->live);
    take(&x->rest.same_frame, &r->same_frame);
    error = from_site(x, r, flags);
  }
  x->rest.made.low = x->rest.made.high = x->rest.live.low = x->rest.live.high = NAN;
  x->rest.same_frame.low = x->rest.same_frame.high = NAN;
  if (!error) error = from_site(x, &x->rest, flags);
  /* Peaks were not at one time: of their sum there is nothing to know. */
  const struct m6_snap_amount *sum = mapped                                                    ? NULL
                                     : x->measure->site == made                                ? &h->made
                                     : x->measure->site == live                                ? &h->live
                                     : x->measure->site == same_frame && h->same_frame.samples ? &h->same_frame
                                                                                               : NULL;
  if (sum) x->all.low = sum->low, x->all.high = sum->high;
  if (x->measure->site == growth) all_growth(x);
  return error;
}

/* ---- all of it
 * ----------------------------------------------------------------------------------------------------------------- */

int export_stacks_new(const mach6_stats *s, const struct export_measure *m, unsigned flags, struct export_stacks **out)
{
  struct export_stacks *x = calloc(1, sizeof *x);
  *out = NULL;
  if (!x) return ENOMEM;
  x->of = s;
  x->measure = m;
  x->all.low = x->all.high = NAN;
  if (!m6_stats_not_whole(s, x->why, sizeof x->why) && m->source == EXPORT_CPU && s->snap->kernel.folded_more)
    snprintf(x->why, sizeof x->why, "This is not the whole recording: the stacks of its CPU samples did not all fit.");
  int error = m->source == EXPORT_SCOPES ? from_scopes(x)
              : m->source == EXPORT_CPU  ? from_cpu(x)
                                         : from_sites(x, flags);
  if (error) export_stacks_free(x);
  else *out = x;
  return error;
}

static void free_function(struct export_function *f)
{
  free((char *)f->name);
  free(f);
}

void export_stacks_free(struct export_stacks *x)
{
  if (!x) return;
  M6_HASH_FREE(x->functions, free_function);
  M6_HASH_FREE(x->nodes, free);
  free(x->stack);
  free(x);
}
