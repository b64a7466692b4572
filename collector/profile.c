/* profile.c - see profile.h: a tree of frames, from which both the table and the folded stacks are read.
 *
 * A node is a function called from its parent; totals are sums over subtrees, counted at the outermost node of each
 * function. May call symbols.h and libc.
 */
#include "profile.h"
#include "hash_free.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct place { /* a line of a function, and the samples seen there */
  const char *file;
  uint32_t line;
  uint64_t self, calls;
};
struct function {
  struct {
    const char *function, *module; /* interned: pointers are identities */
  } key;
  int kernel, outside; /* outside: seen other than inlined */
  uint64_t self, total;
  struct place *places;
  uint32_t place_count;
  uint32_t open; /* nodes of it on the current path */
  UT_hash_handle hh;
};
struct node {
  struct {
    struct node *parent;
    const void *what; /* a function, or a thread's interned name */
  } key;
  struct function *function; /* NULL for a thread */
  uint64_t self, below;
  struct node *child, *sibling;
  UT_hash_handle hh;
};
struct m6_profile {
  struct m6_symbols *symbols;
  struct function *functions;
  struct node *nodes, *roots;
  struct m6_profile_row *rows;
  struct m6_profile_sum sum;
};

struct m6_profile *m6_profile_new(struct m6_symbols *y)
{
  struct m6_profile *p = calloc(1, sizeof *p);
  if (p) p->symbols = y;
  return p;
}

static void free_function(struct function *f)
{
  free(f->places);
  free(f);
}

void m6_profile_free(struct m6_profile *p)
{
  if (!p) return;
  M6_HASH_FREE(p->nodes, free);
  M6_HASH_FREE(p->functions, free_function);
  free(p->rows);
  free(p);
}

/* ---- adding
 * ------------------------------------------------------------------------------------------------------------ */

static struct function *function_of(struct m6_profile *p, const struct m6_sym_name *name, int kernel)
{
  struct function *f, like;
  memset(&like.key, 0, sizeof like.key);
  like.key.function = name->function, like.key.module = name->module;
  HASH_FIND(hh, p->functions, &like.key, sizeof like.key, f);
  if (!f) {
    if (!(f = calloc(1, sizeof *f))) return NULL;
    f->key.function = name->function, f->key.module = name->module;
    f->kernel = kernel;
    HASH_ADD(hh, p->functions, key, sizeof f->key, f);
  }
  if (!name->inlined) f->outside = 1;
  return f;
}

static void note_place(struct function *f, const struct m6_sym_name *name, uint64_t count, int self)
{
  if (!name->file) return;
  for (uint32_t i = 0; i < f->place_count; i++) {
    struct place *l = &f->places[i];
    if (l->file != name->file || l->line != name->line) continue;
    if (self) l->self += count;
    else l->calls += count;
    return;
  }
  /* Room grows by powers of two. */
  if (!(f->place_count & (f->place_count - 1))) {
    struct place *more = realloc(f->places, (f->place_count ? f->place_count * 2 : 1) * sizeof *more);
    if (!more) return;
    f->places = more;
  }
  f->places[f->place_count++] = (struct place){name->file, name->line, self ? count : 0, self ? 0 : count};
}

static struct node *node_of(struct m6_profile *p, struct node *parent, const void *what, struct function *f)
{
  struct node *n, like;
  memset(&like.key, 0, sizeof like.key);
  like.key.parent = parent, like.key.what = what;
  HASH_FIND(hh, p->nodes, &like.key, sizeof like.key, n);
  if (n) return n;
  if (!(n = calloc(1, sizeof *n))) return NULL;
  n->key.parent = parent, n->key.what = what, n->function = f;
  struct node **list = parent ? &parent->child : &p->roots;
  n->sibling = *list;
  *list = n;
  HASH_ADD(hh, p->nodes, key, sizeof n->key, n);
  return n;
}

/* One address: its names from the outermost function inwards. */
static struct node *descend(struct m6_profile *p, struct node *at, uint64_t ip, unsigned int flags, uint64_t count,
                            int leaf)
{
  struct m6_sym_name names[M6_SYM_INLINE_MAX];
  int n = m6_symbols_names(p->symbols, ip, flags, names, M6_SYM_INLINE_MAX);
  for (int i = n - 1; i >= 0 && at; i--) {
    struct function *f = function_of(p, &names[i], (flags & M6_SYM_KERNEL) != 0);
    if (!f) return NULL;
    note_place(f, &names[i], count, leaf && i == 0);
    at = node_of(p, at, f, f);
  }
  return at;
}

/* Is this where a thread begins: nothing above it is missing? libc's own part is often stripped: then any of its code
 * will do. */
static int is_first(const struct m6_sym_name *name, uint32_t frames)
{
  static const char *const firsts[] = {"_start",
                                       "main",
                                       "clone",
                                       "clone3",
                                       "__clone",
                                       "__clone3",
                                       "start_thread",
                                       "__libc_start_call_main",
                                       "__libc_start_main",
                                       "__libc_start_main_impl"};
  for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
    if (!strcmp(name->function, firsts[i])) return 1;
  return frames > 1 && !name->named && !strncmp(name->module, "libc.so", 7);
}

/* The entry point may have no name, but it is called by none, and libc's first function lies next to it. */
static int is_whole(struct m6_profile *p, const uint64_t *ip, uint32_t n)
{
  for (uint32_t i = n; i-- > 0 && i + 3 >= n;) {
    struct m6_sym_name names[M6_SYM_INLINE_MAX];
    int k = m6_symbols_names(p->symbols, ip[i], i ? M6_SYM_RETURN : 0, names, M6_SYM_INLINE_MAX);
    if (is_first(&names[k - 1], i + 1)) return 1;
  }
  return 0;
}

static uint32_t believed(struct m6_profile *p, const uint64_t *ip, uint32_t n)
{
  for (uint32_t i = 1; i < n; i++)
    if (!ip[i] || !m6_symbols_is_return(p->symbols, ip[i])) return i;
  return n;
}

int m6_profile_add(struct m6_profile *p, const char *thread, const uint64_t *user, uint32_t user_frames,
                   const uint64_t *kernel, uint32_t kernel_frames, uint64_t count)
{
  uint32_t n = believed(p, user, user_frames);
  const char *name = m6_symbols_intern(p->symbols, *thread ? thread : "(thread)");
  struct node *at = node_of(p, NULL, name, NULL);
  for (uint32_t i = n; i-- > 0 && at;) at = descend(p, at, user[i], i ? M6_SYM_RETURN : 0, count, !i && !kernel_frames);
  for (uint32_t i = kernel_frames; i-- > 0 && at;)
    at = descend(p, at, kernel[i], M6_SYM_KERNEL | (i ? M6_SYM_RETURN : 0), count, !i);
  if (!at) return ENOMEM;
  at->self += count;
  p->sum.samples += count;
  if (kernel_frames) p->sum.kernel += count;
  if (!n && !kernel_frames) p->sum.bare += count;
  if (n && !is_whole(p, user, n)) p->sum.cut += count;
  return 0;
}

struct m6_profile_sum m6_profile_sum(const struct m6_profile *p) { return p->sum; }

/* ---- the table
 * ------------------------------------------------------------------------------------------------------------ */

/* Samples at n and below it. Depth is bounded by two stacks with what is inlined. */
static uint64_t sum_up(struct node *n)
{
  struct function *f = n->function;
  uint64_t sum = n->self;
  if (f) f->open++, f->self += n->self;
  for (struct node *c = n->child; c; c = c->sibling) sum += sum_up(c);
  if (f && !--f->open) f->total += sum;
  return sum;
}

static int by_self(const void *a, const void *b)
{
  const struct m6_profile_row *x = a, *y = b;
  if (x->self != y->self) return x->self > y->self ? -1 : 1;
  if (x->total != y->total) return x->total > y->total ? -1 : 1;
  int c = strcmp(x->function, y->function);
  return c ? c : strcmp(x->module, y->module);
}

const struct m6_profile_row *m6_profile_rows(struct m6_profile *p, uint32_t *count)
{
  *count = 0;
  free(p->rows);
  p->rows = calloc(HASH_COUNT(p->functions) + 1, sizeof *p->rows);
  if (!p->rows) return NULL;
  for (struct function *f = p->functions; f; f = f->hh.next) f->self = f->total = 0;
  for (struct node *n = p->roots; n; n = n->sibling) sum_up(n);
  for (struct function *f = p->functions; f; f = f->hh.next) {
    struct m6_profile_row *r = &p->rows[(*count)++];
    *r = (struct m6_profile_row){
      .function = f->key.function, .module = f->key.module, .self = f->self, .total = f->total, .inlined = !f->outside};
    const struct place *best = NULL;
    for (uint32_t i = 0; i < f->place_count; i++) {
      const struct place *l = &f->places[i];
      if (!best || l->self > best->self || (l->self == best->self && l->calls > best->calls)) best = l;
    }
    if (best) r->file = best->file, r->line = best->line;
  }
  qsort(p->rows, *count, sizeof *p->rows, by_self);
  return p->rows;
}

/* ---- text
 * ------------------------------------------------------------------------------------------------------------------ */

/* Bytes of the UTF-8 character at s, 0 when it is none (Unicode 15, table 3-7). */
static size_t utf8_bytes(const unsigned char *s)
{
  if (s[0] < 0x80) return 1;
  size_t n = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
      (s[0] == 0xf4 && s[1] > 0x8f))
    return 0;
  return n;
}

/* At most room bytes, the NUL included; at least one character that can be read. `not`: a character that may not stand
 * there. */
static size_t clean(const char *from, char not, char *to, size_t room)
{
  const unsigned char *s = (const unsigned char *)from;
  size_t n = 0;
  while (*s) {
    size_t k = *s < 32 || *s == 127 || *s == (unsigned char)not ? 0 : utf8_bytes(s);
    if (n + (k ? k : 1) >= room) break;
    if (k) memcpy(to + n, s, k);
    else to[n] = '?';
    n += k ? k : 1, s += k ? k : 1;
  }
  to[n] = 0;
  return n;
}

struct fold {
  FILE *to;
  char *path;
  size_t room;
};

static int fold(struct fold *o, struct node *n, size_t length)
{
  char name[512];
  size_t k = clean(n->function ? n->function->key.function : n->key.what, ';', name, sizeof name - 8);
  if (n->function && n->function->kernel) k += (size_t)sprintf(name + k, "_[k]");
  if (!o->path || length + k + 2 > o->room) {
    char *more = realloc(o->path, (length + k + 2) * 2);
    if (!more) return ENOMEM;
    o->path = more, o->room = (length + k + 2) * 2;
  }
  if (length) o->path[length++] = ';';
  memcpy(o->path + length, name, k + 1);
  length += k;
  if (n->self && fprintf(o->to, "%s %llu\n", o->path, (unsigned long long)n->self) < 0) return errno;
  for (struct node *c = n->child; c; c = c->sibling) {
    int e = fold(o, c, length);
    if (e) return e;
    o->path[length] = 0;
  }
  return 0;
}

int m6_profile_folded(struct m6_profile *p, FILE *to)
{
  struct fold o = {.to = to};
  int e = 0;
  for (struct node *n = p->roots; n && !e; n = n->sibling) e = fold(&o, n, 0);
  free(o.path);
  return e ? e : fflush(to) ? errno : 0;
}

int m6_profile_print(struct m6_profile *p, FILE *to, uint32_t most)
{
  uint32_t n;
  const struct m6_profile_row *rows = m6_profile_rows(p, &n);
  if (!rows) return ENOMEM;
  double all = p->sum.samples ? (double)p->sum.samples : 1;
  fprintf(to, "  self %%  total %%     self    total  function  [module]  file:line\n");
  for (uint32_t i = 0; i < n && i < most; i++) {
    const struct m6_profile_row *r = &rows[i];
    char function[161], module[81], file[161];
    clean(r->function, 0, function, sizeof function);
    clean(r->module, 0, module, sizeof module);
    fprintf(to, "  %6.2f   %6.2f %8llu %8llu  %s  %s%s%s%s", 100 * (double)r->self / all, 100 * (double)r->total / all,
            (unsigned long long)r->self, (unsigned long long)r->total, function, module[0] == '[' ? "" : "[", module,
            module[0] == '[' ? "" : "]", r->inlined ? " (inlined)" : "");
    if (r->file) {
      clean(r->file, 0, file, sizeof file);
      fprintf(to, "  %s:%u", file, r->line);
    }
    fputc('\n', to);
  }
  return ferror(to) ? EIO : 0;
}
