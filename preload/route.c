/* route.c - what dlsym, dlopen and dlmopen do here; their entries are in dl.S.
 *
 * Promise: dlsym answers what it would without us, but a hooked function is answered with a variant of it. Whatever is
 * no hooked name, and RTLD_NEXT when there is one, goes to the next dlsym by a jump, with the caller's return address
 * in place, because that is how dlsym and dlopen know whose scope and whose $ORIGIN they are asked for. "The next
 * dlsym" may be another preload's: then its answer is the one that is wrapped.
 * May run before the shim's constructor. Allocates only as the real functions do.
 */
#include <dlfcn.h>
#include <link.h>

#include "hook.h"

struct m6_choice m6_dlsym_choose(void *handle, const char *name, const void *caller)
  __attribute__((visibility("hidden")));
void *m6_dlopen_target(const char *file, int mode) __attribute__((visibility("hidden")));
void *m6_dlmopen_target(long space) __attribute__((visibility("hidden")));

static M6_COLD void *boot_dlsym(void)
{
  void *next = m6_next("dlsym"); /* makes m6_real_dlsym known */
  return m6_real_dlsym ? (void *)m6_real_dlsym : next;
}

/* RTLD_NEXT from a module that comes before us (the program, an earlier preload) would find our symbol, also where
 * nobody behind us has the function: an optional function must stay missing. dlerror is then what m6_next left. */
static M6_COLD int next_is_missing(const char *name, const void *caller)
{
  void *first = m6_libc_dlsym ? m6_libc_dlsym(RTLD_DEFAULT, name) : NULL;
  if (!first || !m6_is_ours(first)) return 0;
  const struct link_map *from = m6_module_of(caller), *m = m6_module_of((const void *)m6_dlsym_choose);
  while (m && m != from) m = m->l_prev;
  return m && !m6_next(name);
}

struct m6_choice m6_dlsym_choose(void *handle, const char *name, const void *caller)
{
  struct m6_choice c = {NULL, (void *)m6_observe((void **)&m6_real_dlsym)};
  if (m6_unlikely(!c.jump)) c.jump = boot_dlsym();
  int hook = m6_hook_find(name);
  if (handle == RTLD_NEXT) { /* only libc's own knows what that is: another preload's passes on its own address */
    if (m6_libc_dlsym) c.jump = (void *)m6_libc_dlsym;
    if (hook >= 0 && next_is_missing(name, caller)) c.jump = NULL;
    return c;
  }
  if (m6_likely(hook < 0)) return c;
  void *found = ((void *(*)(void *, const char *))c.jump)(handle, name);
  c.jump = NULL;
  if (!found) return c;    /* and dlerror says what the real one left */
  if (m6_is_ours(found)) { /* the handle's scope includes us: is it defined behind us? */
    found = m6_next(name);
    if (!found && handle == RTLD_DEFAULT) found = m6_find_for_caller(name, caller);
    if (!found || m6_is_ours(found)) return c;
  }
  c.answer = m6_variant_for(hook, found, M6_ROUTE_DLSYM, caller);
  return c;
}

static void *next_of(void **kept, const char *name)
{
  void *next = m6_peek(kept);
  if (!next) m6_poke(kept, next = m6_next(name));
  return next;
}

void *m6_dlopen_target(const char *file, int mode)
{
  static void *next;
  if (file && (mode & RTLD_DEEPBIND)) m6_note_unseen(M6_UNSEEN_DEEPBIND);
  if (m6_seg && m6_peek(&m6_gate.alive)) m6_shared_add(&m6_seg->loads, 1);
  m6_poll_control(0);
  return next_of(&next, "dlopen");
}

void *m6_dlmopen_target(long space)
{
  static void *next;
  if (space != LM_ID_BASE) m6_note_unseen(M6_UNSEEN_NAMESPACE);
  m6_poll_control(0);
  return next_of(&next, "dlmopen");
}
