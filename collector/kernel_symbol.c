/* kernel_symbol.c - reads an ELF file's functions through libdwfl, which knows where else their names may be. */
#include "kernel_symbol.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols_debug.h"

/* ---- names ------------------------------------------------------------------------------------------------------ */

int m6_symbol_demangle(const char *name, char *out, size_t size)
{
  static char *(*demangle)(const char *, char *, size_t *, int *);
  static int asked;
  if (strncmp(name, "_Z", 2) != 0) return 0;
  if (!asked) {
    /* Looked up rather than linked: whoever has a C++ game has it, and nobody else needs it. */
    void *runtime = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (runtime) *(void **)&demangle = dlsym(runtime, "__cxa_demangle");
    asked = 1;
  }
  if (!demangle) return 0;
  int status = -1;
  char *text = demangle(name, NULL, NULL, &status);
  if (!text) return 0;
  snprintf(out, size, "%s", text);
  free(text);
  return status == 0;
}

/* Cuts the parameters, and what comes after them, off a demangled name. */
static void cut_parameters(char *text)
{
  char *at = strrchr(text, ')');
  for (int depth = 0; at && at > text; at--) {
    depth += (*at == ')') - (*at == '(');
    if (depth == 0) {
      *at = 0;
      return;
    }
  }
}
static int equal_but_spaces(const char *a, const char *b)
{
  for (;;) {
    while (*a == ' ') a++;
    while (*b == ' ') b++;
    if (*a != *b) return 0;
    if (!*a) return 1;
    a++;
    b++;
  }
}

enum grade { NO, BASE, DEMANGLED, EXACT };

/* How well does this name of a file answer to what the user wrote? */
static enum grade matches(const char *name, const char *wanted)
{
  size_t length = strcspn(name, "@"); /* memcpy@@GLIBC_2.14 */
  if (length && strlen(wanted) == length && memcmp(name, wanted, length) == 0) return EXACT;
  char text[4096];
  if (!m6_symbol_demangle(name, text, sizeof text)) return NO;
  if (equal_but_spaces(text, wanted)) return DEMANGLED;
  cut_parameters(text);
  if (equal_but_spaces(text, wanted)) return BASE;
  /* A template's instance is spelt with its result: "void sum<int>". */
  size_t have = strlen(text), want = strlen(wanted);
  if (want && have > want + 1 && text[have - want - 1] == ' ' && strcmp(text + have - want, wanted) == 0) return BASE;
  return NO;
}

/* ---- one file --------------------------------------------------------------------------------------------------- */

struct file {
  Dwfl *dwfl;
  Dwfl_Module *module;
  Elf *elf; /* the file itself, wherever the names come from */
  GElf_Addr bias;
};

static void file_close(struct file *f)
{
  if (f->dwfl) dwfl_end(f->dwfl);
}
#define AUTO_FILE __attribute__((cleanup(file_close))) struct file

/* Not elfutils' own, which asks debuginfod. */
static int find_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *file,
                          const char *link, GElf_Word crc, char **found)
{
  (void)user, (void)name, (void)base;
  GElf_Addr bias;
  Elf *elf = dwfl_module_getelf(module, &bias);
  char path[PATH_MAX], build_id[M6_BUILD_ID_TEXT];
  const void *bits = NULL;
  ssize_t n = elf ? dwelf_elf_gnu_build_id(elf, &bits) : -1;
  m6_debug_hex(bits, n, build_id);
  if (!file) return -1;
  struct m6_debug_of of = {
    .path = realpath(file, path) ? path : file, .root = "", .build_id = build_id, .link = link, .crc = crc};
  return m6_debug_local(&of, found);
}
static int find_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, char **found, Elf **elf)
{
  (void)module, (void)user, (void)name, (void)base, (void)found, (void)elf;
  return -1; /* it was given when the module was reported */
}

static int file_open(struct file *f, const char *path)
{
  static const Dwfl_Callbacks callbacks = {
    .find_elf = find_elf,
    .find_debuginfo = find_debuginfo,
    .section_address = dwfl_offline_section_address,
  };
  *f = (struct file){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  f->dwfl = dwfl_begin(&callbacks);
  if (!f->dwfl) {
    close(fd);
    return ENOMEM;
  }
  dwfl_report_begin(f->dwfl);
  f->module = dwfl_report_offline(f->dwfl, path, path, fd); /* takes the descriptor when it succeeds */
  dwfl_report_end(f->dwfl, NULL, NULL);
  if (!f->module) {
    close(fd);
    return ENOEXEC;
  }
  f->elf = dwfl_module_getelf(f->module, &f->bias);
  GElf_Ehdr header;
  if (!f->elf || !gelf_getehdr(f->elf, &header) || (header.e_type != ET_EXEC && header.e_type != ET_DYN))
    return ENOEXEC;
  return 0;
}

/* Between an address as linked and an offset in the file, through the executable segments. 1 when there is one. */
static int convert(Elf *elf, int to_offset, uint64_t in, uint64_t *out)
{
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return 0;
  for (size_t i = 0; i < count; i++) {
    GElf_Phdr p;
    if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X)) continue;
    uint64_t from = to_offset ? p.p_vaddr : p.p_offset, to = to_offset ? p.p_offset : p.p_vaddr;
    if (in < from || in - from >= p.p_filesz) continue;
    *out = in - from + to;
    return 1;
  }
  return 0;
}

/* The i-th name when it is one of a function with code in this file. */
static const char *function_name(const struct file *f, int i, GElf_Sym *symbol, uint64_t *offset)
{
  GElf_Addr address;
  GElf_Word section;
  const char *name = dwfl_module_getsym_info(f->module, i, symbol, &address, &section, NULL, NULL);
  int type = GELF_ST_TYPE(symbol->st_info);
  if (!name || !*name || section == SHN_UNDEF) return NULL;
  if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) return NULL;
  return convert(f->elf, 1, address - f->bias, offset) ? name : NULL;
}

static void fill(struct m6_symbol *out, const char *name, const GElf_Sym *symbol, uint64_t offset)
{
  snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(name, "@"), name);
  out->offset = offset;
  out->size = symbol->st_size;
  out->indirect = GELF_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
}

int m6_symbol_find(const char *path, const char *name, struct m6_symbol *out, int max)
{
  AUTO_FILE f;
  int err = file_open(&f, path), found = 0;
  if (err) return -err;
  enum grade best = BASE;
  int count = dwfl_module_getsymtab(f.module);
  for (int i = 0; i < count; i++) {
    GElf_Sym symbol;
    uint64_t offset;
    const char *have = function_name(&f, i, &symbol, &offset);
    if (!have) continue;
    enum grade grade = matches(have, name);
    if (grade < best || grade == NO) continue;
    if (grade > best) found = 0;
    best = grade;
    int known = 0;
    for (int k = 0; k < found && k < max; k++) known |= out[k].offset == offset;
    if (known) continue; /* an alias, as a constructor's two names */
    if (found < max) fill(&out[found], have, &symbol, offset);
    found++;
  }
  return found;
}

int m6_symbol_at(const char *path, uint64_t offset, struct m6_symbol *out)
{
  AUTO_FILE f;
  uint64_t address;
  int err = file_open(&f, path);
  if (err) return -err;
  if (!convert(f.elf, 0, offset, &address)) return -EFAULT;
  int count = dwfl_module_getsymtab(f.module), found = 0;
  for (int i = 0; i < count; i++) {
    GElf_Sym symbol;
    uint64_t start;
    const char *have = function_name(&f, i, &symbol, &start);
    if (!have || GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE || start > offset) continue;
    if (offset - start >= (symbol.st_size ? symbol.st_size : 1)) continue;
    if (found && start <= out->offset) continue;
    fill(out, have, &symbol, start);
    found = 1;
  }
  return found;
}
