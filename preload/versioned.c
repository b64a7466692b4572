/* versioned.c - what dlvsym does here, and how the real one is found, which no lookup by name can do once there is one
 * of ours.
 *
 * Promise: a lookup by version passes over whatever has no versions, ours included, so dlvsym answers what it would
 * without us, but for two things, in which it does as dlsym does: a hooked present is answered with a variant of the
 * very function that was asked for, and RTLD_DEFAULT is answered with our allocation function where that of the version
 * is the one behind us in line, because its blocks will be given back through ours. RTLD_NEXT, which is how a preload
 * finds its own next one, and all else go to the real function by a jump. May run before the shim's constructor. Takes
 * no lock: it reads the list of what was loaded at the start, which only grows at its end.
 */
#include <dlfcn.h>
#include <link.h>

#include "hook.h"

void *(*m6_libc_dlvsym)(void *, const char *, const char *);

#if defined(__x86_64__) /* where dl.S exports one */

struct m6_choice m6_dlvsym_choose(void *handle, const char *name, const char *version, const void *caller)
  __attribute__((visibility("hidden")));

struct table { /* of one library's dynamic symbols */
  const ElfW(Sym) * symbols;
  const char *text;
  const uint32_t *gnu, *sysv;
  const ElfW(Versym) * versions;
};

static int table_of(const struct link_map *m, struct table *t)
{
  *t = (struct table){0};
  for (const ElfW(Dyn) *d = m->l_ld; d && d->d_tag != DT_NULL; d++) {
    const void *at = (const void *)d->d_un.d_ptr;
    switch (d->d_tag) {
    case DT_SYMTAB: t->symbols = at; break;
    case DT_STRTAB: t->text = at; break;
    case DT_GNU_HASH: t->gnu = at; break;
    case DT_HASH: t->sysv = at; break;
    case DT_VERSYM: t->versions = at; break;
    default: break;
    }
  }
  /* Addresses that are still offsets are the kernel's own library's. */
  return t->symbols && t->text && t->versions && (uintptr_t)t->text >= m->l_addr;
}

/* A definition with a version: an interposer's has none. */
static void *defined(const struct link_map *m, const struct table *t, uint32_t i, const char *name)
{
  const ElfW(Sym) *s = &t->symbols[i];
  if (s->st_shndx == SHN_UNDEF || (t->versions[i] & 0x7fff) < 2 || !m6_same_name(t->text + s->st_name, name))
    return NULL;
  return (void *)(m->l_addr + s->st_value);
}

/* Hash tables: the System V ABI, "Hash Table"; GNU's has chains of hashes beside the symbols, whose last one is odd. */
static void *find_in(const struct link_map *m, const char *name)
{
  struct table t;
  void *found = NULL;
  if (!table_of(m, &t)) return NULL;
  if (t.gnu) {
    uint32_t hash = 5381, count = t.gnu[0], first = t.gnu[1], bloom = t.gnu[2];
    for (const char *c = name; *c; c++) hash = hash * 33 + (unsigned char)*c;
    const uint32_t *buckets = t.gnu + 4 + bloom * (sizeof(ElfW(Addr)) / 4), *chain = buckets + count;
    uint32_t i = count ? buckets[hash % count] : 0;
    if (i < first) return NULL;
    do
      if ((chain[i - first] | 1) == (hash | 1)) found = defined(m, &t, i, name);
    while (!found && !(chain[i++ - first] & 1));
  } else if (t.sysv)
    for (uint32_t i = 1; i < t.sysv[1] && !found; i++) found = defined(m, &t, i, name);
  return found;
}

void m6_find_dlvsym(void)
{
  const struct link_map *m = m6_module_of((const void *)m6_find_dlvsym);
  while (m && m->l_prev) m = m->l_prev;
  for (void *found = NULL; m && !found; m = m->l_next)
    if ((found = find_in(m, "dlvsym")) != NULL) m6_publish((void **)&m6_libc_dlvsym, found);
}

/* The next one in line, which another preload may have; asked by name. */
static M6_COLD void *next_dlvsym(void)
{
  static void *next;
  void *is = m6_peek(&next);
  if (is) return is;
  is = m6_next("dlvsym");
  m6_poke(&next, is = is && !m6_is_ours(is) ? is : (void *)m6_libc_dlvsym);
  return is;
}

static int is_allocator(const char *name)
{
  static const char *const names[] = {
    "malloc",         "free",          "calloc", "realloc", "reallocarray",      "memalign",
    "posix_memalign", "aligned_alloc", "valloc", "pvalloc", "malloc_usable_size"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (m6_same_name(name, names[i])) return 1;
  return 0;
}

/* Ours, when what was found is what stands behind ours. */
static void *ours_before(const char *name, const void *found)
{
  void *first = m6_libc_dlsym ? m6_libc_dlsym(RTLD_DEFAULT, name) : NULL;
  return first && m6_is_ours(first) && m6_next(name) == found ? first : NULL;
}

struct m6_choice m6_dlvsym_choose(void *handle, const char *name, const char *version, const void *caller)
{
  struct m6_choice c = {NULL, next_dlvsym()};
  int hook = m6_hook_find(name);
  if (!c.jump || !name || handle == RTLD_NEXT || (hook < 0 && (handle != RTLD_DEFAULT || !is_allocator(name))))
    return c;
  void *found = ((void *(*)(void *, const char *, const char *))c.jump)(handle, name, version);
  /* Not there: it is asked again from where the caller is, whose scope may be larger than ours, and says what is wrong.
   * */
  if (!found || m6_is_ours(found)) return c;
  c.answer = hook < 0 ? ours_before(name, found) : m6_variant_for(hook, found, M6_ROUTE_DLSYM, caller);
  if (c.answer) c.jump = NULL;
  return c;
}

#else
void m6_find_dlvsym(void) { m6_publish((void **)&m6_libc_dlvsym, (void *)dlvsym); }
#endif
