/* symbols.c - see symbols.h: addresses to names, with a cache; demangling.
 *
 * A name is found once for each address of a file (not of a process), so nothing is asked twice, wherever the file is
 * mapped. May call symbols_maps.c, symbols_tables.c, symbols_elf.h, libiberty, libc.
 */
#include "symbols_parts.h"
#include "hash_free.h"
#include "symbols_debuginfod.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libiberty/demangle.h>

const char *m6_sym_source_name(enum m6_sym_source source)
{
  static const char *const names[] = {"not read", "path", "map_files", "exe", "memory", "vdso"};
  return names[source];
}

/* ---- texts
 * --------------------------------------------------------------------------------------------------------------- */

static const char *intern_bytes(struct m6_symbols *y, const char *text, size_t n)
{
  struct m6_sym_text *t;
  if (n > M6_SYM_NAME_MAX) n = M6_SYM_NAME_MAX;
  pthread_mutex_lock(&y->lock);
  HASH_FIND(hh, y->texts, text, n, t);
  if (!t && (t = malloc(sizeof *t + n + 1)) != NULL) {
    memcpy(t->text, text, n);
    t->text[n] = 0;
    HASH_ADD_KEYPTR(hh, y->texts, t->text, n, t);
  }
  pthread_mutex_unlock(&y->lock);
  return t ? t->text : "(no memory)";
}

const char *m6_symbols_intern(struct m6_symbols *y, const char *text) { return intern_bytes(y, text, strlen(text)); }

/* A symbol's version (name@@VERSION) is no part of its name. */
static const char *demangled(struct m6_symbols *y, const char *name)
{
  size_t n = strcspn(name, "@");
  if (n && name[n] && n < M6_SYM_NAME_MAX) name = intern_bytes(y, name, n);
  if (name[0] != '_' || strlen(name) > M6_SYM_NAME_MAX) return m6_symbols_intern(y, name);
  char *plain = cplus_demangle(name, DMGL_NO_OPTS);
  const char *kept = m6_symbols_intern(y, plain ? plain : name);
  free(plain);
  return kept;
}

static const char *as_offset(struct m6_symbols *y, const char *module, uint64_t offset)
{
  char text[512];
  snprintf(text, sizeof text, "%.400s+0x%" PRIx64, module, offset);
  return m6_symbols_intern(y, text);
}

/* ---- one address
 * ------------------------------------------------------------------------------------------------------------ */

static struct m6_sym_found *new_found(uint64_t key, int count)
{
  struct m6_sym_found *k = malloc(sizeof *k + (size_t)count * sizeof *k->name);
  if (k) *k = (struct m6_sym_found){.key = key, .count = count};
  return k;
}

/* How a file is asked: which handle, what of it, and where the answers are kept. */
struct way {
  struct m6_elf *(*elf)(struct m6_symbols *, struct m6_sym_file *);
  int (*names)(struct m6_elf *, uint64_t vaddr, struct m6_elf_name *, int most);
  size_t kept;
};
#define KEPT(field) offsetof(struct m6_sym_file, field)
static const struct way by_address = {m6_sym_elf, m6_elf_names, KEPT(found)},
                        by_place = {m6_sym_names_elf, m6_elf_names, KEPT(found)},
                        by_place_brief = {m6_sym_names_elf, m6_elf_symbol, KEPT(brief)};

static struct m6_sym_found *in_file(struct m6_symbols *y, struct m6_sym_file *f, uint64_t offset, const struct way *way)
{
  struct m6_sym_found *k, **kept = (struct m6_sym_found **)((char *)f + way->kept);
  HASH_FIND(hh, *kept, &offset, sizeof offset, k);
  if (k) return k;
  struct m6_elf *elf = way->elf(y, f);
  struct m6_elf_name names[M6_SYM_INLINE_MAX] = {{0}};
  uint64_t vaddr = 0;
  uint64_t into = 0; /* the function, as far as known */
  int n = elf && m6_elf_vaddr(elf, offset, &vaddr) ? way->names(elf, vaddr, names, M6_SYM_INLINE_MAX) : 1;
  if (!(k = new_found(offset, n))) return NULL;
  if (elf && names[n - 1].start) into = vaddr - names[n - 1].start;
  for (int i = 0; i < n; i++) {
    k->name[i] = (struct m6_sym_name){
      .function = names[i].function ? demangled(y, names[i].function) : as_offset(y, f->module, offset - into),
      .module = f->module,
      .file = names[i].file ? m6_symbols_intern(y, names[i].file) : NULL,
      .line = names[i].line,
      .inlined = (uint8_t)names[i].inlined,
      .named = names[i].function != NULL,
    };
  }
  HASH_ADD(hh, *kept, key, sizeof k->key, k);
  return k;
}

/* Without a name, all of one mapping is one function. */
static struct m6_sym_name in_jit(struct m6_symbols *y, const struct m6_sym_range *r, uint64_t address)
{
  const struct m6_sym_entry *e = m6_sym_entry_at(&y->jit, address);
  const char *module = m6_symbols_intern(y, "[jit]");
  if (!e) return (struct m6_sym_name){.function = as_offset(y, module, r ? r->start : address), .module = module};
  return (struct m6_sym_name){.function = demangled(y, e->name), .module = m6_symbols_intern(y, "[jit]"), .named = 1};
}

static struct m6_sym_name in_kernel(struct m6_symbols *y, uint64_t address)
{
  m6_sym_read_kernel(y);
  const struct m6_sym_entry *e = m6_sym_entry_at(&y->kernel, address);
  if (!e)
    return (struct m6_sym_name){.function = m6_symbols_intern(y, "[kernel]"),
                                .module = m6_symbols_intern(y, "[kernel]")};
  return (struct m6_sym_name){
    .function = m6_symbols_intern(y, e->name),
    .module = m6_symbols_intern(y, e->module ? e->module : "[kernel]"),
    .named = 1,
  };
}

int m6_symbols_names(struct m6_symbols *y, uint64_t address, unsigned int flags, struct m6_sym_name *out, int most)
{
  if (address == M6_SYM_NOT_KEPT) {
    const char *what = m6_symbols_intern(y, "[stack not kept]");
    out[0] = (struct m6_sym_name){.function = what, .module = what};
    return 1;
  }
  if (flags & M6_SYM_RETURN) address--;
  if (flags & M6_SYM_KERNEL) {
    out[0] = in_kernel(y, address);
    return 1;
  }
  const struct m6_sym_range *r = m6_sym_range_at(y, address);
  if (r && r->file) {
    const struct m6_sym_found *k = in_file(y, r->file, address - r->start + r->offset, &by_address);
    for (int i = 0; k && i < k->count && i < most; i++) out[i] = k->name[i];
    if (k) return k->count < most ? k->count : most;
  }
  if (r || m6_sym_entry_at(&y->jit, address)) {
    out[0] = in_jit(y, r, address);
    return 1;
  }
  out[0] = (struct m6_sym_name){.function = m6_symbols_intern(y, "[unknown]"),
                                .module = m6_symbols_intern(y, "[unknown]")};
  return 1;
}

struct m6_sym_place m6_symbols_place(const struct m6_symbols *y, uint64_t address, unsigned int flags)
{
  if (flags & M6_SYM_RETURN) address--;
  const struct m6_sym_range *r = m6_sym_range_at(y, address);
  if (r && r->file) return (struct m6_sym_place){r->file, address - r->start + r->offset};
  return (struct m6_sym_place){NULL, address};
}

static int place_names(struct m6_symbols *y, struct m6_sym_place place, struct m6_sym_name *out, int most,
                       const struct way *way)
{
  const struct m6_sym_found *k = NULL;
  if (place.file) k = in_file(y, (struct m6_sym_file *)(uintptr_t)place.file, place.offset, way);
  if (!k) {
    pthread_mutex_lock(&y->lock);
    int n = m6_symbols_names(y, place.file ? 0 : place.offset, 0, out, most);
    pthread_mutex_unlock(&y->lock);
    return n;
  }
  for (int i = 0; i < k->count && i < most; i++) out[i] = k->name[i];
  return k->count < most ? k->count : most;
}

int m6_symbols_place_names(struct m6_symbols *y, struct m6_sym_place place, struct m6_sym_name *out, int most)
{
  return place_names(y, place, out, most, &by_place);
}
int m6_symbols_place_brief(struct m6_symbols *y, struct m6_sym_place place, struct m6_sym_name *out, int most)
{
  return place_names(y, place, out, most, &by_place_brief);
}

void m6_symbols_ask(struct m6_symbols *y, const uint64_t *ip, uint32_t n)
{
  for (uint32_t i = 0; m6_debuginfod_on() && i < n; i++) {
    const struct m6_sym_range *r = m6_sym_range_at(y, ip[i]);
    if (!r || !r->file || r->file->asked) continue;
    r->file->asked = 1;
    struct m6_elf *elf = m6_sym_elf(y, r->file);
    if (elf) m6_elf_pending(elf);
  }
}

int m6_symbols_place_pending(struct m6_symbols *y, struct m6_sym_place place)
{
  struct m6_elf *elf = place.file && m6_debuginfod_on()
                         ? m6_sym_names_elf(y, (struct m6_sym_file *)(uintptr_t)place.file)
                         : NULL;
  return elf && m6_elf_pending(elf);
}

int m6_symbols_covers(const struct m6_symbols *y, uint64_t address)
{
  const struct m6_sym_range *r = m6_sym_range_at(y, address);
  return r && (r->file || m6_sym_entry_at(&y->jit, address));
}

void m6_symbols_code(const struct m6_symbols *y, void (*each)(void *, uint64_t, uint64_t, int), void *arg)
{
  for (uint32_t i = 0; i < y->range_count; i++)
    each(arg, y->ranges[i].start, y->ranges[i].end, y->ranges[i].file == NULL);
}

int m6_symbols_is_return(struct m6_symbols *y, uint64_t address)
{
  const struct m6_sym_range *r = m6_sym_range_at(y, address - 1);
  if (!r) return m6_sym_entry_at(&y->jit, address - 1) != NULL;
  struct m6_elf *elf = r->file ? m6_sym_elf(y, r->file) : NULL;
  uint64_t vaddr;
  /* One byte further than the last of a segment is in none: the call before it is what is looked at. */
  if (!elf || !m6_elf_vaddr(elf, address - 1 - r->start + r->offset, &vaddr)) return 1;
  return m6_elf_after_call(elf, vaddr + 1);
}

/* ---- the process
 * -------------------------------------------------------------------------------------------------------------- */

static void read_identity(struct m6_symbols *y)
{
  char path[64], line[256];
  struct stat st;
  y->own_pid = y->pid;
  snprintf(path, sizeof path, "/proc/%d", y->pid);
  y->uid = stat(path, &st) ? getuid() : st.st_uid;
  snprintf(path, sizeof path, "/proc/%d/status", y->pid);
  FILE *f = fopen(path, "re");
  while (f && fgets(line, sizeof line, f)) {
    char *p = line + 6, *end;
    if (strncmp(line, "NSpid:", 6) != 0) continue;
    for (long v; v = strtol(p, &end, 10), end != p; p = end) y->own_pid = (pid_t)v;
  }
  if (f) fclose(f);
}

/* Debug files are looked for when a name is first asked for, which may be after the process's end: then its root has no
 * path any more, and what a container had mounted is gone, unless somebody holds it. */
static void hold_root(struct m6_symbols *y)
{
  char path[64];
  y->held_root = open(y->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  snprintf(y->kept_root, sizeof y->kept_root, "%s", y->root);
  if (y->held_root < 0) return;
  snprintf(path, sizeof path, "/proc/%d/ns/mnt", y->via);
  y->held_mounts = open(path, O_RDONLY | O_CLOEXEC);
  snprintf(y->kept_root, sizeof y->kept_root, "/proc/self/fd/%d", y->held_root);
}

int m6_symbols_open(pid_t pid, struct m6_symbols **out)
{
  *out = NULL;
  struct m6_symbols *y = calloc(1, sizeof *y);
  if (!y) return ENOMEM;
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&y->lock, &recursive);
  y->pid = pid;
  y->held_root = y->held_mounts = -1;
  read_identity(y);
  int e = m6_symbols_refresh(y);
  if (e) {
    m6_symbols_close(y);
    return e;
  }
  hold_root(y);
  *out = y;
  return 0;
}

int m6_symbols_refresh(struct m6_symbols *y)
{
  pthread_mutex_lock(&y->lock);
  int e = m6_sym_snapshot(y);
  m6_sym_read_jit(y);
  pthread_mutex_unlock(&y->lock);
  return e;
}

static void tell(struct m6_sym_file *f, void (*each)(void *, const struct m6_sym_module *), void *arg)
{
  struct m6_sym_module m = {
    .path = f->path,
    .build_id = f->elf ? m6_elf_build_id(f->elf) : "",
    .debug_file = f->elf ? m6_elf_debug_file(f->elf) : NULL,
    .start = f->start,
    .end = f->end,
    .offset = f->offset,
    .source = f->source,
    .error = f->error,
  };
  each(arg, &m);
}

uint32_t m6_symbols_modules(struct m6_symbols *y, void (*each)(void *, const struct m6_sym_module *), void *arg)
{
  uint32_t n = 0;
  for (struct m6_sym_file *f = y->files; f; f = f->next, n++) {
    m6_sym_elf(y, f);
    tell(f, each, arg);
  }
  return n;
}

uint32_t m6_symbols_met(struct m6_symbols *y, void (*each)(void *, const struct m6_sym_module *), void *arg)
{
  uint32_t n = 0;
  for (struct m6_sym_file *f = y->files; f; f = f->next) {
    if (!f->tried) continue;
    tell(f, each, arg);
    n++;
  }
  return n;
}

void m6_symbols_close(struct m6_symbols *y)
{
  if (!y) return;
  for (struct m6_sym_file *f = y->files, *next; f; f = next) {
    next = f->next;
    M6_HASH_FREE(f->found, free);
    M6_HASH_FREE(f->brief, free);
    m6_sym_rows_free(f);
    m6_elf_close(f->elf);
    m6_elf_close(f->names);
    if (f->fd >= 0) close(f->fd);
    free(f->path);
    free(f);
  }
  if (y->held_root >= 0) close(y->held_root);
  if (y->held_mounts >= 0) close(y->held_mounts);
  M6_HASH_FREE(y->texts, free);
  m6_sym_table_free(&y->jit);
  m6_sym_table_free(&y->kernel);
  free(y->ranges);
  pthread_mutex_destroy(&y->lock);
  free(y);
}
