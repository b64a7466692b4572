/* hook.c - the hooked functions themselves: variants, how each finds its real function, and what a hook does.
 *
 * Promise: the real function is called exactly once with the caller's arguments, and its result handed back; it is
 * resolved before the measured part. A function that nobody defines fails as its library would (and says why, once). A
 * known limit: an exported name is there for a program that asks "is it defined?" with a weak reference. Called by the
 * game; calls present.c and what boot.c offers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "hook.h"

/* ---- the functions ---------------------------------------------------------------------------------------------- */
static struct m6_variant variants[M6_HOOK_COUNT][M6_VARIANTS] = {
#define FIRST(name, ...) [M6_HOOK_##name] = {[0] = {.route = M6_ROUTE_LINK, .claimed = 1, .hook = M6_HOOK_##name}},
  M6_HOOKS(FIRST)
#undef FIRST
};

#define THUNK(name, act, n)                                                                                            \
  static m6_arg name##_##n(m6_arg a, m6_arg b, m6_arg c, m6_arg d)                                                     \
  {                                                                                                                    \
    return act(a, b, c, d, &variants[M6_HOOK_##name][n], __builtin_return_address(0));                                 \
  }
#define THUNKS(name, act, ...)                                                                                         \
  THUNK(name, act, 0)                                                                                                  \
  THUNK(name, act, 1)                                                                                                  \
  THUNK(name, act, 2)                                                                                                  \
  THUNK(name, act, 3)                                                                                                  \
  THUNK(name, act, 4)                                                                                                  \
  THUNK(name, act, 5)                                                                                                  \
  THUNK(name, act, 6)                                                                                                  \
  THUNK(name, act, 7)                                                                                                  \
  extern M6_EXPORT m6_arg name(m6_arg, m6_arg, m6_arg, m6_arg) __attribute__((alias(#name "_0")));
M6_HOOKS(THUNKS)
_Static_assert(M6_VARIANTS == 8, "THUNKS and ROW write them out");

const struct m6_hook_row m6_hook_rows[M6_HOOK_COUNT] = {
#define ROW(name, act, kind_, x_, y_)                                                                                  \
  [M6_HOOK_##                                                                                                          \
    name] = {#name, {name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7}, kind_, x_, y_},
  M6_HOOKS(ROW)
#undef ROW
};

/* Most names that go through dlsym are gl*, vk* and such: turned away by their first letters. */
int m6_hook_find(const char *name)
{
  if (!name) return -1;
  switch (name[0]) {
  case 'g':
    if (name[1] != 'l' || (name[2] != 'X' && name[2] != 'f')) return -1;
    break;
  case 'e':
    if (name[1] != 'g' || name[2] != 'l') return -1;
    break;
  case 'v':
    if (name[1] != 'k') return -1;
    break;
  case 'S':
    if (name[1] != 'D' || name[2] != 'L') return -1;
    break;
  case 'X':
    if (name[1] != 'D') return -1;
    break;
  default: return -1;
  }
  for (int i = 0; i < M6_HOOK_COUNT; i++)
    if (name[3] == m6_hook_rows[i].name[3] && m6_same_name(name, m6_hook_rows[i].name)) return i;
  return -1;
}

/* ---- real functions --------------------------------------------------------------------------------------------- */
static void *open_loaded(const char *soname)
{
  static void *(*open)(const char *, int);
  if (!m6_peek(&open)) m6_poke(&open, (void *(*)(const char *, int))m6_next("dlopen"));
  return open ? open(soname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

static void *find_in(void *handle, const char *name)
{
  void *found = handle && m6_real_dlsym ? m6_real_dlsym(handle, name) : NULL;
  return found && !m6_is_ours(found) ? found : NULL;
}

/* A library that was loaded RTLD_LOCAL, with what it is linked to, calls the exported symbol, but the real one is in
 * nobody's scope but its own. Its dynamic section says what it needs; those are loaded, so they can be asked.
 * (Handles stay open: their functions may be called from now on.) */
void *m6_find_for_caller(const char *name, const void *caller)
{
  const struct link_map *map = m6_module_of(caller);
  const char *text = NULL;
  for (const ElfW(Dyn) *d = map ? map->l_ld : NULL; d && d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_STRTAB) text = (const char *)d->d_un.d_ptr;
  if (!text || (uintptr_t)text < map->l_addr) return NULL; /* not relocated: no dynamic linker that we know */
  for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
    if (d->d_tag != DT_NEEDED) continue;
    void *found = find_in(open_loaded(text + d->d_un.d_val), name);
    if (found) return found;
  }
  return NULL;
}

/* For a caller whose own needs don't say (it was a tail call, or it relied on somebody else's needs): where these
 * functions usually live, then whatever is loaded. */
static void *find_anywhere(const char *name)
{
  static const char *const known[] = {"libGL.so.1",      "libGLX.so.0",  "libEGL.so.1",    "libSDL2-2.0.so.0",
                                      "libSDL-1.2.so.0", "libglfw.so.3", "libvulkan.so.1", "libX11.so.6"};
  void *found = NULL;
  for (size_t i = 0; i < sizeof known / sizeof *known && !found; i++) found = find_in(open_loaded(known[i]), name);
  struct link_map *map = m6_module_of(variants);
  while (map && map->l_prev) map = map->l_prev;
  for (; map && !found; map = map->l_next)
    if (map->l_name && map->l_name[0]) found = find_in(open_loaded(map->l_name), name);
  return found;
}

/* What m6_find_for_caller and find_anywhere said: it is the caller's business, so it is kept by caller. */
static struct {
  const void *caller;
  void *real;
  uint32_t hook, claimed;
} kept[32];
#define KEPT (sizeof kept / sizeof *kept)

static M6_COLD void *resolve(struct m6_variant *v, const void *caller)
{
  const char *name = m6_hook_rows[v->hook].name;
  void *found = m6_next(name);
  if (found && !m6_is_ours(found)) {
    m6_publish(&v->real, found);
    return found;
  }
  if (!(found = m6_find_for_caller(name, caller))) found = find_anywhere(name);
  if (!found) {
    m6_reason(0, name, ELIBACC);
    return NULL;
  }
  for (size_t i = 0; i < KEPT; i++) {
    uint32_t nobody = 0;
    if (!m6_claim(&kept[i].claimed, &nobody, 1)) continue;
    kept[i].caller = caller;
    kept[i].hook = v->hook;
    m6_publish(&kept[i].real, found);
    break;
  }
  return found;
}

m6_function m6_variant_real(struct m6_variant *v, const void *caller)
{
  void *real = m6_observe(&v->real);
  if (m6_likely(real != NULL)) return (m6_function)real;
  for (size_t i = 0; i < KEPT; i++) {
    void *r = m6_observe(&kept[i].real);
    if (r && kept[i].caller == caller && kept[i].hook == v->hook) return (m6_function)r;
  }
  return (m6_function)resolve(v, caller);
}

void *m6_variant_for(int hook, void *found, uint32_t route, const void *caller)
{
  struct m6_variant *row = variants[hook];
  if (m6_is_ours(found)) { /* already one of ours: the same function, by another route */
    int n = 0;
    while (n < M6_VARIANTS && (void *)m6_hook_rows[hook].thunk[n] != found) n++;
    m6_function real = n < M6_VARIANTS ? m6_variant_real(&row[n], caller) : NULL;
    if (!real) return found;
    found = (void *)real;
  }
  void *shared = NULL;
  for (int n = 1; n < M6_VARIANTS; n++) {
    uint32_t nobody = 0;
    if (m6_claim(&row[n].claimed, &nobody, 1)) {
      row[n].route = route;
      row[n].hook = (uint32_t)hook;
      m6_publish(&row[n].real, found);
      return (void *)m6_hook_rows[hook].thunk[n];
    }
    if (m6_observe(&row[n].real) != found) continue;
    if (row[n].route == route) return (void *)m6_hook_rows[hook].thunk[n];
    shared = (void *)m6_hook_rows[hook].thunk[n];
  }
  if (!shared && m6_peek(&row[0].real) == found) shared = (void *)m6_hook_rows[hook].thunk[0];
  if (shared) return shared;
  m6_note_unseen(M6_UNSEEN_PROC_ROUTE);
  return found;
}

/* ---- what hooks do ---------------------------------------------------------------------------------------------- */
m6_arg m6_on_present(m6_arg a, m6_arg b, m6_arg c, m6_arg d, struct m6_variant *v, const void *caller)
{
  const struct m6_hook_row *h = &m6_hook_rows[v->hook];
  m6_function real = m6_variant_real(v, caller);
  if (!real) return h->y == M6_RESULT_NOT_NEGATIVE ? (m6_arg)-1 : 0;
  struct m6_present p;
  /* SDL 1.2 has one window and passes nothing: 1, because (0, 0) is mach6_frame()'s. */
  uint64_t display = h->x == M6_KEY_A_B ? a : 0, drawable = h->x == M6_KEY_A_B ? b : h->x == M6_KEY_A ? a : 1;
  m6_present_enter(&p, h->kind, v->route, display, drawable, caller);
  m6_arg result = real(a, b, c, d);
  int ok = h->y == M6_RESULT_BOOLEAN ? (uint32_t)result != 0
           : h->y == M6_RESULT_NOT_NEGATIVE
             ? (int32_t)result >= 0
             : !m6_self.present_failed; /* nothing returned: as the presents inside said */
  m6_present_leave(&p, ok);
  return result;
}

/* Counted as gone before it is, so that whoever gets the same handle next is a new stream. */
m6_arg m6_on_destroy(m6_arg a, m6_arg b, m6_arg c, m6_arg d, struct m6_variant *v, const void *caller)
{
  m6_function real = m6_variant_real(v, caller);
  if (!real) return 0;
  m6_present_destroyed(m6_hook_rows[v->hook].x ? b : a);
  return real(a, b, c, d);
}

m6_arg m6_on_proc(m6_arg a, m6_arg b, m6_arg c, m6_arg d, struct m6_variant *v, const void *caller)
{
  const struct m6_hook_row *h = &m6_hook_rows[v->hook];
  m6_function real = m6_variant_real(v, caller);
  if (!real) return 0;
  m6_arg found = real(a, b, c, d);
  int hook = found ? m6_hook_find((const char *)(h->x ? b : a)) : -1;
  return hook < 0 ? found : (m6_arg)m6_variant_for(hook, (void *)found, h->kind, caller);
}
