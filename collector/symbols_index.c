/* symbols_index.c - see symbols_index.h. */
#include "symbols_index.h"

#include <stdlib.h>

#define UNSIZED_REACH 0x1000u /* how far a symbol without a size (hand-written assembly) is believed */

struct symbol {
  uint64_t start, end; /* end = start: without a size */
  uint64_t reach;      /* the last end of this one and all before it: none of them covers what is beyond */
  uint64_t believed;   /* without a size: until where */
  const char *name;
  int order, binding; /* in the file; 0 local, 1 weak, 2 global */
};
struct m6_sym_index {
  size_t count;
  struct symbol symbol[];
};

/* Of one start, what is looked at first comes last. */
static int by_start(const void *a, const void *b)
{
  const struct symbol *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  if (x->binding != y->binding) return x->binding - y->binding;
  return (x->order < y->order) - (x->order > y->order);
}

/* Where the code ends that a section of code has at vaddr; 0: there is none. */
static uint64_t code_end(Elf *elf, uint64_t vaddr)
{
  for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
    GElf_Shdr h;
    if (gelf_getshdr(scn, &h) && h.sh_flags & SHF_EXECINSTR && vaddr >= h.sh_addr && vaddr - h.sh_addr < h.sh_size)
      return h.sh_addr + h.sh_size;
  }
  return 0;
}

static int names_code(const GElf_Sym *s, const char *name)
{
  int type = GELF_ST_TYPE(s->st_info);
  return name && *name && s->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

static int binding_of(const GElf_Sym *s)
{
  int b = GELF_ST_BIND(s->st_info);
  return b == STB_LOCAL ? 0 : b == STB_WEAK ? 1 : 2;
}

struct m6_sym_index *m6_sym_index_new(Dwfl_Module *module, Elf *elf)
{
  int all = dwfl_module_getsymtab(module);
  struct m6_sym_index *x = malloc(sizeof *x + (all > 0 ? (size_t)all : 0) * sizeof *x->symbol), *fit;
  if (!x) return NULL;
  x->count = 0;
  for (int i = 1; i < all; i++) {
    GElf_Sym s;
    GElf_Addr start;
    const char *name = dwfl_module_getsym_info(module, i, &s, &start, NULL, NULL, NULL);
    if (!names_code(&s, name) || start + s.st_size < start) continue;
    struct symbol *to = &x->symbol[x->count];
    *to = (struct symbol){start, start + s.st_size, .name = name, .order = i, .binding = binding_of(&s)};
    if (s.st_size == 0) {
      to->believed = code_end(elf, start);
      if (to->believed > start + UNSIZED_REACH) to->believed = start + UNSIZED_REACH;
      if (to->believed == 0) continue;
    }
    x->count++;
  }
  qsort(x->symbol, x->count, sizeof *x->symbol, by_start);
  for (size_t i = 0; i < x->count; i++) {
    struct symbol *s = &x->symbol[i];
    s->reach = i && s[-1].reach > s->end ? s[-1].reach : s->end;
  }
  fit = realloc(x, sizeof *x + x->count * sizeof *x->symbol);
  return fit ? fit : x;
}

void m6_sym_index_free(struct m6_sym_index *index) { free(index); }

const char *m6_sym_index_name(const struct m6_sym_index *index, uint64_t vaddr)
{
  size_t low = 0, high = index->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (index->symbol[middle].start <= vaddr) low = middle + 1;
    else high = middle;
  }
  const struct symbol *local = NULL, *unsized = NULL;
  const struct symbol *last = low ? &index->symbol[low - 1] : NULL;
  for (const struct symbol *s = last; s && s >= index->symbol && s->reach > vaddr; s--) {
    if (s->end <= vaddr) continue;
    if (s->binding) return s->name;
    if (!local) local = s;
  }
  if (local) return local->name;
  for (const struct symbol *s = last; s && s >= index->symbol && s->start >= last->reach; s--)
    if (s->start == s->end && vaddr < s->believed && (!unsized || s->binding > unsized->binding)) unsized = s;
  return unsized ? unsized->name : NULL;
}
