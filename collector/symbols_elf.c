/* symbols_elf.c - see symbols_elf.h. May call elfutils (libdwfl, libdw, libelf) and libc.
 *
 * elfutils looks an address up in a compilation unit by walking all of it. Here a unit's functions are put into a
 * sorted table once, and only the function at hand is walked for what was inlined into it.
 */
#include "symbols_elf.h"
#include "hash_free.h"
#include "symbols_debug.h"
#include "symbols_debuginfod.h"
#include "symbols_index.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#define DEPTH_MAX 64 /* of namespaces, and of inlining */

struct function {
  Dwarf_Addr low, high;
  Dwarf_Die die;
};
struct unit {
  Dwarf_Off offset;
  struct function *functions;
  size_t count, room;
  UT_hash_handle hh;
};
struct m6_elf {
  Dwfl *dwfl;
  Dwfl_Module *module;
  Elf *elf;
  char *path, *debug_file;
  char root[64];
  char build_id[M6_BUILD_ID_TEXT];
  enum { ASKS_UNKNOWN, ASKS_NO, ASKS_YES } asks; /* debuginfod, as there is no debug information here */
  int fetched;                                   /* its debug file is debuginfod's */
  struct unit *units;
  struct m6_sym_index *index; /* NULL: not asked yet */
};

/* ---- separate debug files --------------------------------------------------------------------------------------- */

static int has_dwarf(Elf *elf)
{
  size_t names;
  if (elf_getshdrstrndx(elf, &names)) return 0;
  for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
    GElf_Shdr h;
    const char *name = gelf_getshdr(scn, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;
    if (name && (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info"))) return h.sh_type != SHT_NOBITS;
  }
  return 0;
}

int m6_elf_pending(struct m6_elf *e)
{
  if (!m6_debuginfod_on()) return 0;
  if (e->asks == ASKS_UNKNOWN) {
    GElf_Word crc = 0;
    const char *link = dwelf_elf_gnu_debuglink(e->elf, &crc);
    struct m6_debug_of of = {e->path, e->root, e->build_id, link, crc};
    char *found = NULL;
    int fd = !e->build_id[0] || has_dwarf(e->elf) ? 0 : m6_debug_local(&of, &found);
    e->asks = fd < 0 ? ASKS_YES : ASKS_NO;
    if (found) close(fd);
    free(found);
  }
  return e->asks == ASKS_YES && m6_debuginfod_pending(e->build_id);
}

/* elfutils asks for the file that dwz put common parts into by the same call: then link is that one's name, and the id
 * stands in the DWARF that was opened just now. */
static int is_shared_part(struct m6_elf *e, const char *link, char *build_id)
{
  GElf_Word crc;
  GElf_Addr bias;
  const char *own = dwelf_elf_gnu_debuglink(e->elf, &crc), *name;
  const void *bits = NULL;
  if (!link || (own && !strcmp(own, link))) return 0;
  Dwarf *dwarf = dwfl_module_getdwarf(e->module, &bias);
  ssize_t n = dwarf ? dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &bits) : -1;
  m6_debug_hex(bits, n, build_id);
  return 1;
}

static int find_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *file,
                          const char *link, GElf_Word crc, char **found)
{
  (void)module, (void)name, (void)base, (void)file;
  struct m6_elf *e = *user;
  char path[4096], shared_id[M6_BUILD_ID_TEXT];
  struct m6_debug_of of = {e->path, e->root, e->build_id, link, crc};
  int shared = is_shared_part(e, link, shared_id);
  if (shared) of.build_id = shared_id, of.link = NULL; /* by its name libdw itself looks for it */
  int fd = m6_debug_local(&of, found);
  if (fd < 0 && (shared ? e->fetched : !has_dwarf(e->elf)) && m6_debuginfod_path(of.build_id, path, sizeof path) &&
      (fd = m6_debug_try(&of, path)) >= 0) {
    *found = strdup(path);
    e->fetched = 1;
  }
  if (fd < 0 || shared) return fd;
  free(e->debug_file);
  e->debug_file = *found ? strdup(*found) : NULL;
  return fd;
}

static int find_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, char **found, Elf **elf)
{
  (void)module, (void)user, (void)name, (void)base, (void)found, (void)elf;
  return -1; /* it was given when the module was reported */
}

/* ---- opening ------------------------------------------------------------------------------------------------------
 * */

struct m6_elf *m6_elf_open(int fd, const char *path, const char *root)
{
  static const Dwfl_Callbacks callbacks = {.find_elf = find_elf, .find_debuginfo = find_debuginfo};
  struct m6_elf *e = calloc(1, sizeof *e);
  if (!e || !(e->path = strdup(path)) || !(e->dwfl = dwfl_begin(&callbacks))) {
    close(fd);
    m6_elf_close(e);
    return NULL;
  }
  snprintf(e->root, sizeof e->root, "%s", root);
  elf_version(EV_CURRENT);
  dwfl_report_begin(e->dwfl);
  e->module = dwfl_report_elf(e->dwfl, path, path, fd, 0, true);
  if (!e->module) close(fd); /* consumed only on success */
  GElf_Addr bias;
  if (dwfl_report_end(e->dwfl, NULL, NULL) || !e->module || !(e->elf = dwfl_module_getelf(e->module, &bias))) {
    m6_elf_close(e);
    return NULL;
  }
  void **user;
  dwfl_module_info(e->module, &user, NULL, NULL, NULL, NULL, NULL, NULL);
  *user = e;
  const void *bits = NULL;
  ssize_t n = dwelf_elf_gnu_build_id(e->elf, &bits);
  m6_debug_hex(bits, n, e->build_id);
  return e;
}

static void free_unit(struct unit *u)
{
  free(u->functions);
  free(u);
}

void m6_elf_close(struct m6_elf *e)
{
  if (!e) return;
  M6_HASH_FREE(e->units, free_unit);
  m6_sym_index_free(e->index);
  if (e->dwfl) dwfl_end(e->dwfl);
  free(e->path);
  free(e->debug_file);
  free(e);
}

struct Dwfl_Module *m6_elf_module(struct m6_elf *e) { return e->module; }
const char *m6_elf_build_id(struct m6_elf *e) { return e->build_id; }
const char *m6_elf_debug_file(struct m6_elf *e) { return e->debug_file; }

int m6_elf_vaddr(struct m6_elf *e, uint64_t offset, uint64_t *vaddr)
{
  size_t n;
  if (elf_getphdrnum(e->elf, &n)) return 0;
  for (size_t i = 0; i < n; i++) {
    GElf_Phdr p;
    if (!gelf_getphdr(e->elf, (int)i, &p) || p.p_type != PT_LOAD) continue;
    if (offset < p.p_offset || offset - p.p_offset >= p.p_filesz) continue;
    *vaddr = offset - p.p_offset + p.p_vaddr;
    return 1;
  }
  return 0;
}

/* ---- DWARF ---------------------------------------------------------------------------------------------------------
 * */

static void add_function(struct unit *u, Dwarf_Die *die)
{
  Dwarf_Addr base, low, high;
  for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;) {
    if (u->count == u->room) {
      size_t room = u->room ? u->room * 2 : 32;
      struct function *more = realloc(u->functions, room * sizeof *more);
      if (!more) return;
      u->functions = more, u->room = room;
    }
    if (low < high) u->functions[u->count++] = (struct function){low, high, *die};
  }
}

/* Functions with code stand in the unit itself or in its namespaces. */
static void collect(struct unit *u, Dwarf_Die *parent, int depth)
{
  Dwarf_Die die;
  if (depth > DEPTH_MAX || dwarf_child(parent, &die)) return;
  do {
    int tag = dwarf_tag(&die);
    if (tag == DW_TAG_subprogram) add_function(u, &die);
    else if (tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
             tag == DW_TAG_structure_type)
      collect(u, &die, depth + 1);
  } while (!dwarf_siblingof(&die, &die));
}

static int by_low(const void *a, const void *b)
{
  const struct function *x = a, *y = b;
  return (x->low > y->low) - (x->low < y->low);
}

static struct unit *unit_of(struct m6_elf *e, Dwarf_Die *cu)
{
  Dwarf_Off offset = dwarf_dieoffset(cu);
  struct unit *u;
  HASH_FIND(hh, e->units, &offset, sizeof offset, u);
  if (u) return u;
  if (!(u = calloc(1, sizeof *u))) return NULL;
  u->offset = offset;
  collect(u, cu, 0);
  if (u->count) qsort(u->functions, u->count, sizeof *u->functions, by_low);
  HASH_ADD(hh, e->units, offset, sizeof u->offset, u);
  return u;
}

static Dwarf_Die *function_at(struct unit *u, Dwarf_Addr pc)
{
  size_t low = 0, high = u->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (u->functions[middle].low <= pc) low = middle + 1;
    else high = middle;
  }
  return low && pc < u->functions[low - 1].high ? &u->functions[low - 1].die : NULL;
}

/* What was inlined at pc, outermost first. */
static int inlined_at(Dwarf_Die *parent, Dwarf_Addr pc, Dwarf_Die *chain, int n, int most, int depth)
{
  Dwarf_Die die;
  if (depth > DEPTH_MAX || n == most || dwarf_child(parent, &die)) return n;
  do {
    int tag = dwarf_tag(&die);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block && tag != DW_TAG_try_block &&
        tag != DW_TAG_catch_block)
      continue;
    if (dwarf_haspc(&die, pc) <= 0) continue;
    if (tag == DW_TAG_inlined_subroutine) chain[n++] = die;
    return inlined_at(&die, pc, chain, n, most, depth + 1);
  } while (!dwarf_siblingof(&die, &die));
  return n;
}

static const char *text_of(Dwarf_Die *die, unsigned int attribute)
{
  Dwarf_Attribute a;
  return dwarf_formstring(dwarf_attr_integrate(die, attribute, &a));
}

/* The name with its scope, mangled; without one (C, or seen in this file alone), the plain one. */
static const char *linkage_name_of(Dwarf_Die *die)
{
  const char *name = text_of(die, DW_AT_linkage_name);
  return name ? name : text_of(die, DW_AT_MIPS_linkage_name);
}
static const char *name_of(Dwarf_Die *die)
{
  const char *name = linkage_name_of(die);
  return name ? name : text_of(die, DW_AT_name);
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned int attribute)
{
  Dwarf_Attribute a;
  Dwarf_Word v;
  return dwarf_formudata(dwarf_attr(die, attribute, &a), &v) ? 0 : v;
}

static const char *symbol_at(struct m6_elf *e, uint64_t vaddr)
{
  if (!e->index) e->index = m6_sym_index_new(e->module, e->elf);
  return e->index ? m6_sym_index_name(e->index, vaddr) : NULL;
}

/* elfutils finds the unit whose code begins before an address, and takes what lies between two pieces of it for its
 * own; its search for the line there then gives the row that the piece before ended with. */
static int in_unit(Dwarf_Die *cu, Dwarf_Addr pc)
{
  if (!dwarf_hasattr(cu, DW_AT_ranges) && !dwarf_hasattr(cu, DW_AT_high_pc)) return 1; /* it does not say */
  return dwarf_haspc(cu, pc) != 0;
}

/* Fills out with the frames at vaddr; 0 when DWARF knows no function there (the line may still be known). */
static int dwarf_names(struct m6_elf *e, uint64_t vaddr, struct m6_elf_name *out, int most)
{
  Dwarf_Addr bias;
  Dwarf_Die *cu = dwfl_module_addrdie(e->module, vaddr, &bias), chain[DEPTH_MAX];
  if (!cu) return 0;
  Dwarf_Addr pc = vaddr - bias;
  if (!in_unit(cu, pc)) return 0;
  Dwarf_Line *line = dwarf_getsrc_die(cu, pc);
  int number = 0;
  out[0] = (struct m6_elf_name){0};
  if (line) {
    out[0].file = dwarf_linesrc(line, NULL, NULL);
    if (!dwarf_lineno(line, &number)) out[0].line = (uint32_t)number;
  }
  struct unit *u = unit_of(e, cu);
  Dwarf_Die *function = u ? function_at(u, pc) : NULL;
  if (!function) return 0;
  Dwarf_Files *files = NULL;
  size_t file_count;
  if (dwarf_getsrcfiles(cu, &files, &file_count)) files = NULL;
  int n = inlined_at(function, pc, chain, 0, most < DEPTH_MAX ? most - 1 : DEPTH_MAX - 1, 0);
  for (int i = n - 1; i >= 0; i--) { /* innermost first; where it was called is the place in the one around it */
    struct m6_elf_name *inner = &out[n - 1 - i], *outer = inner + 1;
    inner->function = name_of(&chain[i]);
    inner->inlined = 1;
    *outer = (struct m6_elf_name){.line = (uint32_t)number_of(&chain[i], DW_AT_call_line)};
    Dwarf_Word file = number_of(&chain[i], DW_AT_call_file);
    if (files && file < file_count) outer->file = dwarf_filesrc(files, file, NULL, NULL);
  }
  /* A C++ function of an anonymous namespace has no mangled name in DWARF, but a symbol. */
  const char *symbol = linkage_name_of(function) ? NULL : symbol_at(e, vaddr);
  out[n].function = symbol && symbol[0] == '_' && symbol[1] == 'Z' ? symbol : name_of(function);
  return n + 1;
}

/* ---- names ----------------------------------------------------------------------------------------------------------
 * */

/* A stripped program's linkage stubs have no symbols, but a section. */
static const char *stub_at(struct m6_elf *e, uint64_t vaddr)
{
  size_t names;
  if (elf_getshdrstrndx(e->elf, &names)) return NULL;
  for (Elf_Scn *scn = NULL; (scn = elf_nextscn(e->elf, scn));) {
    GElf_Shdr h;
    if (!gelf_getshdr(scn, &h) || vaddr < h.sh_addr || vaddr - h.sh_addr >= h.sh_size) continue;
    const char *name = elf_strptr(e->elf, names, h.sh_name);
    return name && !strncmp(name, ".plt", 4) ? "[plt]" : NULL;
  }
  return NULL;
}

/* The function itself, where DWARF does not name it or is not asked. */
static void name_whole(struct m6_elf *e, uint64_t vaddr, struct m6_elf_name *out, int may_be_stub)
{
  out->function = symbol_at(e, vaddr);
  if (!out->function && may_be_stub) out->function = stub_at(e, vaddr);
  if (!out->function && !m6_eh_function(e->elf, vaddr, &out->start)) out->start = vaddr;
}

int m6_elf_names(struct m6_elf *e, uint64_t vaddr, struct m6_elf_name *out, int most)
{
  out[0] = (struct m6_elf_name){0};
  int n = dwarf_names(e, vaddr, out, most);
  if (n && out[n - 1].function) return n;
  n = n ? n : 1;
  name_whole(e, vaddr, &out[n - 1], n == 1);
  return n;
}

int m6_elf_symbol(struct m6_elf *e, uint64_t vaddr, struct m6_elf_name *out, int most)
{
  (void)most;
  out[0] = (struct m6_elf_name){0};
  name_whole(e, vaddr, out, 1);
  return 1;
}

/* x86: e8 is a call by displacement, five bytes; ff /2 through a register or memory, two to seven with its operands,
 * and prefixes do not matter, as they come before. */
int m6_elf_after_call(struct m6_elf *e, uint64_t vaddr)
{
  GElf_Ehdr h;
  if (!gelf_getehdr(e->elf, &h) || (h.e_machine != EM_X86_64 && h.e_machine != EM_386)) return 1;
  size_t n, bytes;
  const unsigned char *file = (const unsigned char *)elf_rawfile(e->elf, &bytes);
  if (!file || elf_getphdrnum(e->elf, &n)) return 1;
  for (size_t i = 0; i < n; i++) {
    GElf_Phdr p;
    if (!gelf_getphdr(e->elf, (int)i, &p) || p.p_type != PT_LOAD) continue;
    if (vaddr < p.p_vaddr || vaddr - p.p_vaddr > p.p_filesz || p.p_offset > bytes || p.p_filesz > bytes - p.p_offset)
      continue;
    uint64_t back = vaddr - p.p_vaddr;
    const unsigned char *at = file + p.p_offset + back;
    if (back >= 5 && at[-5] == 0xe8) return 1;
    for (unsigned int k = 2; k <= 7 && k <= back; k++)
      if (at[-(int)k] == 0xff && (at[-(int)k + 1] >> 3 & 7) == 2) return 1;
    return 0;
  }
  return 1;
}
