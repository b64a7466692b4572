/* stats_sites.c - see stats_sites.h. */
#include "stats_sites.h"

#include <math.h>
#include <string.h>

int m6_site_next_line(const char **at, const char *end, struct m6_site_line *out)
{
  const char *from = *at, *line_end, *tab;
  if (from >= end) return 0;
  line_end = memchr(from, '\n', (size_t)(end - from));
  if (!line_end) line_end = end;
  *at = line_end < end ? line_end + 1 : end;
  memset(out, 0, sizeof *out);
  if (from < line_end && *from == '^') out->inlined = 1, from++;
  const char **field[3] = {&out->function, &out->module, &out->source};
  int *bytes[3] = {&out->function_bytes, &out->module_bytes, &out->source_bytes};
  for (int i = 0; i < 3; i++) {
    tab = i < 2 && from < line_end ? memchr(from, '\t', (size_t)(line_end - from)) : NULL;
    if (!tab) tab = line_end;
    *field[i] = from;
    *bytes[i] = (int)(tab - from);
    from = tab < line_end ? tab + 1 : line_end;
  }
  return 1;
}

int m6_site_lines(const struct m6_snapshot *s, const struct m6_snap_site *row, struct m6_site_line *out, int most)
{
  const char *at = m6_snap_text(s) + row->stack_offset, *end = at + row->stack_bytes;
  int n = 0;
  while (n < most && m6_site_next_line(&at, end, &out[n])) n++;
  return n;
}

static int begins(const struct m6_site_line *l, const char *with)
{
  size_t n = strlen(with);
  return (size_t)l->function_bytes >= n && !memcmp(l->function, with, n);
}
static int is(const struct m6_site_line *l, const char *name)
{
  return (size_t)l->function_bytes == strlen(name) && begins(l, name);
}

int m6_site_is_allocator(const struct m6_site_line *l)
{
  static const char *const names[] = {
    "malloc",        "calloc",          "realloc",         "reallocarray",     "memalign",     "posix_memalign",
    "aligned_alloc", "valloc",          "pvalloc",         "g_malloc",         "g_malloc0",    "g_malloc_n",
    "g_malloc0_n",   "g_realloc",       "g_slice_alloc",   "g_slice_alloc0",   "SDL_malloc",   "SDL_calloc",
    "SDL_realloc",   "SDL_malloc_REAL", "SDL_calloc_REAL", "SDL_realloc_REAL", "operator new", "operator new[]",
    "strdup",        "__strdup",        "strndup",         "xmalloc",          "xcalloc",      "xrealloc"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (is(l, names[i])) return 1;
  return begins(l, "operator new(") || begins(l, "operator new[](") || begins(l, "__gnu_cxx::new_allocator<") ||
         begins(l, "std::__new_allocator<") || begins(l, "std::allocator<") || begins(l, "std::allocator_traits<");
}

int m6_site_is_library(const struct m6_site_line *l) { return begins(l, "std::") || begins(l, "__gnu_cxx::"); }

struct m6_heap_unused m6_heap_unused_of(const struct m6_snapshot *s)
{
  const struct m6_snap_heap *h = &s->govern.heap;
  struct m6_heap_unused u = {h->mapped > 0 ? h->mapped : 0, 0, -1, NAN};
  if (h->count == 0 || h->held > INT64_MAX || (int64_t)h->held <= u.mapped || h->live < 0) return u;
  u.held = (int64_t)h->held - u.mapped;
  u.bytes = u.held > h->live ? u.held - h->live : 0;
  u.share = (double)u.bytes / (double)u.held;
  return u;
}
