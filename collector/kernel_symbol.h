/* kernel_symbol.h - functions of an ELF file by name: the names of .symtab, of .dynsym, of minidebuginfo, and of a
 * debug file that a build-id or a debug link leads to; mangled, or demangled with or without parameters.
 *
 * Calls libdw (elfutils), symbols_debug.h, and __cxa_demangle of the C++ runtime when that is installed. Never asks the
 * network, whatever DEBUGINFOD_URLS says: a name is looked for in every file of a process.
 */
#ifndef M6_KERNEL_SYMBOL_H
#define M6_KERNEL_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

struct m6_symbol {
  char name[256];  /* as it is in the file, without a version; cut when longer */
  uint64_t offset; /* of its first byte in the file */
  uint64_t size;   /* 0 when the file does not say */
  int indirect;    /* an IFUNC's resolver, which runs once: not the function that runs */
};

/* Writes up to `max` functions that `name` fits best (exactly, else demangled with parameters, else without), one for
 * each address, and gives how many there are; 0: none; negative: -errno, ENOEXEC when it is no ELF file that runs. */
int m6_symbol_find(const char *path, const char *name, struct m6_symbol *out, int max);
/* The function that the file's byte at `offset` lies in: 1 and *out, 0 when none is known, or -errno; -EFAULT when that
 * byte is not code. */
int m6_symbol_at(const char *path, uint64_t offset, struct m6_symbol *out);
/* 1 and the readable form in out, or 0: no C++ name, or no C++ runtime. */
int m6_symbol_demangle(const char *name, char *out, size_t size);

#endif
