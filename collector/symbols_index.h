/* symbols_index.h - the symbols of one ELF file by address. elfutils walks all of them for each address; here they are
 * sorted once.
 *
 * Promise: the name that dwfl_module_addrinfo would find among the symbols that name code: of those that have a size
 * and cover the address the one that begins last, a global one before any local; else the last one before it that has
 * no size, when no other ended in between, and not beyond its section.
 * Caller: symbols_elf.c. One thread.
 */
#ifndef M6_SYMBOLS_INDEX_H
#define M6_SYMBOLS_INDEX_H

#include <elfutils/libdwfl.h>
#include <stdint.h>

struct m6_sym_index;

/* elf: the module's own. The names are the module's. NULL: no memory. */
struct m6_sym_index *m6_sym_index_new(Dwfl_Module *module, Elf *elf);
void m6_sym_index_free(struct m6_sym_index *index);
const char *m6_sym_index_name(const struct m6_sym_index *index, uint64_t vaddr); /* NULL: no symbol covers it */

#endif
