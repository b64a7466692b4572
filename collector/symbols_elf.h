/* symbols_elf.h - names for the addresses of one ELF file: symbols, inlined functions, files and lines.
 *
 * Addresses here are the file's own (p_vaddr), so that what is found does not depend on where it was mapped.
 * Sources, best first: DWARF of the file or of its separate debug file (symbols_debug.h says where that is looked for),
 * .symtab, .gnu_debugdata (the compressed small table that stripped distributions ship), .dynsym. elfutils reads all.
 * What has no name is told apart by function all the same (symbols_eh.c).
 * The network: debuginfod, only when DEBUGINFOD_URLS is set and neither the file nor this machine has the debug
 * information (symbols_debuginfod.h). m6_elf_names then waits for it, as patience allows; nothing else here does, and
 * who may not wait asks m6_elf_pending first.
 * Promise: a symbol is named only when the address lies inside it; a stripped gap has no name, never its neighbour's.
 * Caller: symbols.c. One thread. A file that shrinks while it is read raises SIGBUS, as for every reader by mmap.
 */
#ifndef M6_SYMBOLS_ELF_H
#define M6_SYMBOLS_ELF_H

#include <libelf.h>
#include <stdint.h>

struct m6_elf;

struct m6_elf_name {
  const char *function; /* as it stands in the file (mangled); NULL when not known */
  const char *file;     /* NULL when not known */
  uint32_t line;        /* 0 when not known */
  uint64_t start;       /* without a name: where the function begins, as far as known */
  int inlined;          /* into the next one */
};

/* fd is taken over in every case. path: for messages, and where debug files are looked for beside it; root: where the
 * target's file system begins ("" or /proc/PID/root). NULL when it is no ELF file. */
struct m6_elf *m6_elf_open(int fd, const char *path, const char *root);
void m6_elf_close(struct m6_elf *e);
const char *m6_elf_build_id(struct m6_elf *e); /* lower-case hex; "" when it has none */
const char *m6_elf_debug_file(
  struct m6_elf *e); /* the separate debug file; NULL when there is none, or none was needed yet */
int m6_elf_vaddr(struct m6_elf *e, uint64_t offset,
                 uint64_t *vaddr);    /* of a byte of the file; 0 when it is in no segment */
int m6_elf_pending(struct m6_elf *e); /* asks debuginfod, if at all, and does not wait: is the file still to come? */
/* Innermost first; number of them. At least one entry, whose function may be NULL. */
int m6_elf_names(struct m6_elf *e, uint64_t vaddr, struct m6_elf_name *out, int most);
/* The same by symbol tables alone, the separate debug file's included: one name, no line. No debug section is read or
 * unpacked, which takes some 50 ms for libc's alone. */
int m6_elf_symbol(struct m6_elf *e, uint64_t vaddr, struct m6_elf_name *out, int most);
/* Can the instruction before vaddr be a call? 1 also where this is not known (other architectures, no text). */
int m6_elf_after_call(struct m6_elf *e, uint64_t vaddr);

/* elfutils' own handle, for symbols_unwind.c. */
struct Dwfl_Module;
struct Dwfl_Module *m6_elf_module(struct m6_elf *e);
/* symbols_eh.c: the beginning of the function that vaddr lies in; 0 when that is not known. */
int m6_eh_function(Elf *elf, uint64_t vaddr, uint64_t *start);

#endif
