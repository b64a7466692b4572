/* symbols.h - addresses of a running (or just ended) process to names: module, function, file and line, inlined frames.
 *
 *   struct m6_symbols *y;
 *   m6_symbols_open(pid, &y);            takes a snapshot of what is mapped, and opens every file of it
 *   m6_symbols_refresh(y);               again, when m6_symbols_covers says no: libraries and JIT code come and go
 *   n = m6_symbols_names(y, address, M6_SYM_RETURN, names, M6_SYM_INLINE_MAX);
 *
 * A snapshot holds descriptors, so that names can be asked for after the process has ended, and whatever became of the
 * files. A mapped file is reached, in this order, each checked against the mapping's inode:
 *   by its path inside the target's own file system (/proc/PID/root)     the usual case
 *   by /proc/PID/map_files                                              deleted or replaced; CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN
 *   by /proc/PID/exe                                                    the same for the program itself, without a capability
 *   as an image put together from /proc/PID/mem                         the same for libraries; symbols of .dynsym, and the build-id
 *                                                                       that leads to a debug file
 * All of it through any thread that lives, so a leader that has ended does not matter. Old mappings are kept until
 * something else is mapped there. Code that no file maps (JIT) is named by /tmp/perf-PID.map, read again when it has
 * grown. The kernel's names are /proc/kallsyms's, where that shows addresses.
 * What has no name is module+0xoffset, or [unknown]; never the neighbour's name.
 * Demangling: libiberty, because it is a plain C library (libstdc++'s __cxa_demangle would bring C++ along), is linked
 * statically, knows Rust too, and may be linked with anything. Parameters are left out, template arguments are kept.
 *
 * Names are interned: equal names are equal pointers, and hold until close. They are the target's: any bytes but NUL.
 * Errors: 0 or an errno. One thread. May use symbols_elf.h; nothing else of the collector.
 */
#ifndef M6_SYMBOLS_H
#define M6_SYMBOLS_H

#include <stdint.h>
#include <sys/types.h>

#define M6_SYM_INLINE_MAX 24
#define M6_SYM_RETURN 1u /* the address is a return address: the call before it is meant */
#define M6_SYM_KERNEL 2u
#define M6_SYM_NOT_KEPT 1u /* an address: instead of a stack for which there was no room (M6_STACK_LOST) */

struct m6_sym_name {
  const char *function; /* demangled; never NULL. Without a name module+0xoffset: where the function begins in
                           the file (what `mach6 probe FILE+OFFSET` takes), or, of code that no file maps, its mapping */
  const char *module;   /* base name of the file, "[kernel]", "[vdso]", "[jit]", "[unknown]"; never NULL */
  const char *file;     /* source; NULL when not known */
  uint32_t line;
  uint8_t inlined; /* into the next name */
  uint8_t named;   /* 0: function is only an address */
};

enum m6_sym_source { M6_SYM_NONE, M6_SYM_PATH, M6_SYM_MAP_FILES, M6_SYM_EXE, M6_SYM_MEMORY, M6_SYM_VDSO };
struct m6_sym_module {         /* one file that is, or was, mapped */
  const char *path, *build_id; /* build_id: hex, "" when it has none or could not be read */
  const char *debug_file;      /* separate debug file that was used; NULL when none */
  uint64_t start, end, offset; /* of its first executable mapping */
  enum m6_sym_source source;
  int error; /* why source is M6_SYM_NONE, or not the path */
};

struct m6_symbols;

int m6_symbols_open(pid_t pid, struct m6_symbols **out);
int m6_symbols_refresh(struct m6_symbols *y); /* ESRCH when the process has ended: the old snapshot stands */
void m6_symbols_close(struct m6_symbols *y);
int m6_symbols_covers(const struct m6_symbols *y, uint64_t address); /* is it in code that was mapped? */
/* All mappings of code that are known; made: of no file, so that others may come at any time. */
void m6_symbols_code(const struct m6_symbols *y, void (*each)(void *arg, uint64_t start, uint64_t end, int made),
                     void *arg);
/* Can this be a return address? Not when it is in no code, or comes after no call: then the frames from here on are no
 * callers. */
int m6_symbols_is_return(struct m6_symbols *y, uint64_t address);
/* The callers of a sampled thread by .eh_frame: for options.unwind of kernel_samples.h, with `symbols` a struct
 * m6_symbols. Ends where the stack does, where its copy ends, or where no rule is known, no frame pointer leads to a
 * call, and no word of the stack near by is a caller from which the rules lead to the end. */
struct m6_user_state;
uint32_t m6_symbols_unwind(void *symbols, const struct m6_user_state *state, uint64_t *ip, uint32_t most);
/* Did it end where the stack does? *whole tells. */
uint32_t m6_symbols_unwind_whole(struct m6_symbols *y, const struct m6_user_state *state, uint64_t *ip, uint32_t most,
                                 int *whole);
/* An address for keeps: another library may come to lie there, but this says which one it was now. Its names can be
 * asked for until close, by ONE other thread too, while this one refreshes and unwinds and does not ask for names
 * itself: reading a large file's debug information takes long. flags as for names. */
struct m6_sym_place {
  const void *file; /* NULL: in no file; then offset is an address */
  uint64_t offset;
};
struct m6_sym_place m6_symbols_place(const struct m6_symbols *y, uint64_t address, unsigned int flags);
int m6_symbols_place_names(struct m6_symbols *y, struct m6_sym_place place, struct m6_sym_name *out, int most);
/* The same by symbol tables alone: the function and its library, no inlined ones, no line. Costs next to nothing, so it
 * is for while the game runs. */
int m6_symbols_place_brief(struct m6_symbols *y, struct m6_sym_place place, struct m6_sym_name *out, int most);
/* Separate debug files that only debuginfod has (symbols_debuginfod.h: only with DEBUGINFOD_URLS) are waited for by
 * whoever asks for names. So that nobody has to: ask beforehand for those of a stack's files, which waits for nothing,
 * and as the thread that asks for a place's names whether its file's is still to come. */
void m6_symbols_ask(struct m6_symbols *y, const uint64_t *ip, uint32_t n);
int m6_symbols_place_pending(struct m6_symbols *y, struct m6_sym_place place);
/* Innermost first; at least one. */
int m6_symbols_names(struct m6_symbols *y, uint64_t address, unsigned int flags, struct m6_sym_name *out, int most);
/* All modules, in no order; reads the build-ids of those that were not needed so far. */
uint32_t m6_symbols_modules(struct m6_symbols *y, void (*each)(void *arg, const struct m6_sym_module *m), void *arg);
/* Only those that were needed: opens nothing. */
uint32_t m6_symbols_met(struct m6_symbols *y, void (*each)(void *arg, const struct m6_sym_module *m), void *arg);
const char *m6_symbols_intern(struct m6_symbols *y, const char *text);
const char *m6_sym_source_name(enum m6_sym_source source);

#endif
