/* symbols_parts.h - what symbols.c, symbols_maps.c, symbols_tables.c and symbols_unwind.c share. Nobody else includes
 * it. */
#ifndef M6_SYMBOLS_PARTS_H
#define M6_SYMBOLS_PARTS_H

#include <pthread.h>
#include <stddef.h>
#include <uthash.h>

#include "symbols.h"
#include "symbols_elf.h"

#define M6_SYM_RANGES_MAX 65536u        /* executable mappings kept */
#define M6_SYM_JIT_BYTES (64u << 20)    /* of a perf map that are read */
#define M6_SYM_JIT_MAX (1u << 20)       /* entries of it that are kept */
#define M6_SYM_NAME_MAX 2048            /* bytes of a mangled name that are demangled, of any name that are kept */
#define M6_SYM_IMAGE_BYTES (256u << 20) /* of an image from memory */

struct m6_sym_text { /* an interned text */
  UT_hash_handle hh;
  char text[];
};
struct m6_sym_found { /* what an address of a file, or of the kernel, was found to be */
  uint64_t key;
  int count;
  UT_hash_handle hh;
  struct m6_sym_name name[];
};
struct m6_sym_row;
struct m6_sym_file {
  uint64_t dev, ino;
  char *path;         /* as in maps, without " (deleted)" */
  const char *module; /* interned base name */
  int fd;             /* until it is opened as ELF; then -1 */
  int kept_fd;        /* the same, and after that too, while elf is open */
  int tried, names_tried, asked;
  struct m6_elf *elf;
  struct m6_elf *names; /* a second one, for a thread that names places while another unwinds */
  enum m6_sym_source source;
  int error;
  uint64_t start, end, offset;
  struct m6_sym_found *found, *brief; /* brief: by symbol tables alone */
  struct m6_sym_row *rows;
  struct m6_sym_file *next;
};
struct m6_sym_range { /* one executable mapping */
  uint64_t start, end, offset;
  struct m6_sym_file *file; /* NULL: anonymous */
};
struct m6_sym_near { /* the rule of an address that was looked up lately, as long as nothing is mapped anew */
  uint64_t address;
  const struct m6_sym_row *row;
};
#define M6_SYM_NEAR 4096u
struct m6_sym_entry { /* of the perf map, or of kallsyms */
  uint64_t start, size;
  const char *name, *module; /* in the table's text; module only in kallsyms */
};
struct m6_sym_table {
  char *text;
  struct m6_sym_entry *entries; /* by start; of two with the same start the later one in the file comes last */
  uint32_t count;
  off_t bytes; /* the file's size when it was read */
};
struct m6_symbols {
  pthread_mutex_t lock; /* recursive: texts; whole refreshes; opening files */
  pid_t pid, own_pid;   /* as the caller counts; as the target's own namespace counts */
  pid_t via;            /* a thread of it that lived when its mappings were last read */
  uid_t uid;
  char root[64];
  int held_root, held_mounts; /* descriptors; -1: none */
  char kept_root[64];         /* the root as it is found when the process has ended, too */
  struct m6_sym_range *ranges;
  uint32_t range_count;
  struct m6_sym_near near[M6_SYM_NEAR]; /* symbols_unwind.c, by a hash of the address */
  struct m6_sym_file *files;
  struct m6_sym_text *texts;
  struct m6_sym_table jit, kernel;
  int kernel_tried;
};

/* symbols_maps.c */
int m6_sym_snapshot(struct m6_symbols *y);
const struct m6_sym_range *m6_sym_range_at(const struct m6_symbols *y, uint64_t address);
struct m6_elf *m6_sym_elf(struct m6_symbols *y, struct m6_sym_file *f);
struct m6_elf *m6_sym_names_elf(struct m6_symbols *y, struct m6_sym_file *f);
char *m6_sym_read_all(int fd, size_t most, size_t *bytes); /* malloc'ed, NUL-terminated; NULL without memory */
/* symbols_unwind.c */
void m6_sym_rows_free(struct m6_sym_file *f);
/* symbols_tables.c */
void m6_sym_read_jit(struct m6_symbols *y);
void m6_sym_read_kernel(struct m6_symbols *y);
void m6_sym_table_free(struct m6_sym_table *t);
const struct m6_sym_entry *m6_sym_entry_at(const struct m6_sym_table *t, uint64_t address);

#endif
