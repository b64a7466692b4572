/* symbols_unwind.c - callers without frame pointers: by the call frame information that exceptions need, which strip
 * leaves.
 *
 * x86-64. libdw interprets .eh_frame; what it finds for an address (where the caller's frame begins, where it saved
 * registers) is a row, and is kept: by the place in the file, and, while mappings stay, by the address, so that a step
 * costs one comparison. Rules that are not of that simple form are few: procedure linkage stubs, whose form is known,
 * and signal frames, where the stack ends for us. Code that was compiled at run time has none: there a frame pointer
 * leads on, or a search for the first caller from which the rules lead to the thread's first function. Foreign bytes:
 * only the copied stack is read, within its bounds; each frame must lie above the last, so it ends. May call
 * symbols_maps.c, elfutils. Caller: kernel_samples_perf.c, by options.unwind.
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#include "hash_free.h"
#include "kernel_samples.h"
#include "symbols_parts.h"

enum { BX, BP, R12, R13, R14, R15, SAVED }; /* what a function gives back as it was */
static const int dwarf_number[SAVED] = {3, 6, 12, 13, 14, 15};
#define DWARF_SP 7
#define DWARF_RA 16
#define SAME INT32_MIN /* not saved */
#define HOME_MAX 256
#define SEARCH_BYTES 4096u /* of stack, for a caller to which no rule leads */
#define SEARCH_TRIES 8

enum row_kind { ROW_NONE, ROW_SIMPLE, ROW_STUB, ROW_LAST };
struct m6_sym_row {
  uint64_t vaddr;
  uint8_t kind;
  int8_t base;              /* CFA = this one of SAVED, or -1: the stack pointer, */
  int32_t offset;           /* + this */
  int32_t ra, saved[SAVED]; /* where they are, from CFA */
  UT_hash_handle hh;
};

void m6_sym_rows_free(struct m6_sym_file *f) { M6_HASH_FREE(f->rows, free); }

static int base_of(Dwarf_Word number, int8_t *base)
{
  *base = -1;
  if (number == DWARF_SP) return 1;
  for (int i = 0; i < SAVED; i++) {
    if ((Dwarf_Word)dwarf_number[i] != number) continue;
    *base = (int8_t)i;
    return 1;
  }
  return 0;
}

/* "At CFA + n", "not saved" or neither. */
static int place_of(Dwarf_Frame *frame, int number, int32_t *offset, int *undefined)
{
  Dwarf_Op memory[3], *ops = NULL;
  size_t n = 0;
  *offset = SAME, *undefined = 0;
  if (dwarf_frame_register(frame, number, memory, &ops, &n)) return 0;
  if (!n) {
    *undefined = ops == memory;
    return 1;
  }
  if (ops[0].atom != DW_OP_call_frame_cfa || n > 2 || (n == 2 && ops[1].atom != DW_OP_plus_uconst)) return 0;
  *offset = n == 2 ? (int32_t)ops[1].number : 0;
  return 1;
}

static void read_row(struct m6_elf *elf, uint64_t vaddr, struct m6_sym_row *r)
{
  Dwarf_Addr bias;
  Dwarf_CFI *cfi = dwfl_module_eh_cfi(m6_elf_module(elf), &bias);
  Dwarf_Frame *frame = NULL;
  Dwarf_Op *ops;
  size_t n;
  int undefined;
  if (!cfi || dwarf_cfi_addrframe(cfi, vaddr - bias, &frame)) return;
  if (!dwarf_frame_cfa(frame, &ops, &n) && n) {
    Dwarf_Word number = ops[0].atom == DW_OP_bregx ? ops[0].number : (Dwarf_Word)ops[0].atom - DW_OP_breg0;
    if (n == 1 && base_of(number, &r->base)) {
      r->offset = (int32_t)(ops[0].atom == DW_OP_bregx ? ops[0].number2 : ops[0].number);
      r->kind = ROW_SIMPLE;
    } else if (n > 2 && ops[0].atom == DW_OP_breg7 && ops[1].atom == DW_OP_breg16) {
      r->kind = ROW_STUB; /* CFA = sp + 8, and 8 more behind the push, which ends at byte 11 of 16 */
    }
  }
  if (r->kind != ROW_NONE && !place_of(frame, DWARF_RA, &r->ra, &undefined)) r->kind = ROW_NONE;
  else if (r->kind != ROW_NONE && r->ra == SAME) r->kind = ROW_LAST;
  for (int i = 0; i < SAVED && r->kind == ROW_SIMPLE; i++)
    if (!place_of(frame, dwarf_number[i], &r->saved[i], &undefined)) r->saved[i] = SAME;
  free(frame);
}

static const struct m6_sym_row *look_up(struct m6_symbols *y, uint64_t address)
{
  const struct m6_sym_range *range = m6_sym_range_at(y, address);
  struct m6_elf *elf = range && range->file ? m6_sym_elf(y, range->file) : NULL;
  uint64_t vaddr;
  if (!elf || !m6_elf_vaddr(elf, address - range->start + range->offset, &vaddr)) return NULL;
  struct m6_sym_row *r;
  HASH_FIND(hh, range->file->rows, &vaddr, sizeof vaddr, r);
  if (r) return r;
  if (!(r = calloc(1, sizeof *r))) return NULL;
  r->vaddr = vaddr;
  read_row(elf, vaddr, r);
  HASH_ADD(hh, range->file->rows, vaddr, sizeof r->vaddr, r);
  return r;
}

/* Most stacks lead through the same places: one comparison finds those. */
static const struct m6_sym_row *row_at(struct m6_symbols *y, uint64_t address)
{
  struct m6_sym_near *k = &y->near[address * 0x9e3779b97f4a7c15ull >> 32 & (M6_SYM_NEAR - 1)];
  if (k->address == address && k->row) return k->row;
  const struct m6_sym_row *r = look_up(y, address);
  if (r) *k = (struct m6_sym_near){address, r};
  return r;
}

static int load(const struct m6_user_state *u, uint64_t address, uint64_t *value)
{
  if (address < u->sp || u->bytes < 8 || address - u->sp > u->bytes - 8) return 0;
  memcpy(value, u->stack + (address - u->sp), sizeof *value);
  return 1;
}

/* ---- steps
 * ----------------------------------------------------------------------------------------------------------------------
 * */

struct at { /* a frame: where it is, and what the registers were that functions give back */
  uint64_t pc, sp, saved[SAVED];
};
enum step { STEP_UP, STEP_LAST, STEP_CUT, STEP_NO_RULE };

static void move_up(struct at *a, uint64_t cfa, uint64_t pc) { a->sp = cfa, a->pc = pc; }

/* To the caller, by the rule for this place. `call`: pc is a return address, which may be the next function's first:
 * the call counts. */
static enum step by_rule(struct m6_symbols *y, const struct m6_user_state *u, struct at *a, int call)
{
  const struct m6_sym_row *r = row_at(y, call ? a->pc - 1 : a->pc);
  uint64_t cfa, next;
  if (!r || r->kind == ROW_NONE) return STEP_NO_RULE;
  if (r->kind == ROW_LAST) return STEP_LAST;
  if (r->kind == ROW_STUB) cfa = a->sp + 8 + ((a->pc & 15) >= 11 ? 8 : 0);
  else cfa = (r->base < 0 ? a->sp : a->saved[r->base]) + (uint64_t)(int64_t)r->offset;
  if (cfa <= a->sp || !load(u, cfa + (uint64_t)(int64_t)r->ra, &next)) return STEP_CUT;
  for (int i = 0; i < SAVED && r->kind == ROW_SIMPLE; i++) {
    uint64_t v;
    if (r->saved[i] != SAME && load(u, cfa + (uint64_t)(int64_t)r->saved[i], &v)) a->saved[i] = v;
  }
  move_up(a, cfa, next);
  return STEP_UP;
}

/* Code of a compiler at run time has no rules. If it keeps frame pointers, they lead to a call. */
static int by_frame_pointer(struct m6_symbols *y, const struct m6_user_state *u, struct at *a)
{
  uint64_t bp, next, cfa = a->saved[BP] + 16;
  if (cfa <= a->sp || !load(u, a->saved[BP] + 8, &next) || !load(u, a->saved[BP], &bp) ||
      !m6_symbols_is_return(y, next))
    return 0;
  a->saved[BP] = bp;
  move_up(a, cfa, next);
  return 1;
}

/* From here on only rules, each of them to a place behind a call, to where the thread began? */
static int leads_home(struct m6_symbols *y, const struct m6_user_state *u, struct at a)
{
  for (int i = 0; i < HOME_MAX; i++) {
    enum step is = by_rule(y, u, &a, 1);
    if (is != STEP_UP) return is == STEP_LAST;
    if (!m6_symbols_is_return(y, a.pc)) return 0;
  }
  return 0;
}

/* Without frame pointers the caller is the first word above that is a return address into a file's code and leads home:
 * a word that is left over from a call that has returned hardly does, as each frame above it must lie where the rules
 * say. Where the stack was not copied to its end nothing leads home. What such code pushes first is mostly the frame
 * pointer. */
static int by_search(struct m6_symbols *y, const struct m6_user_state *u, struct at *a)
{
  int tries = SEARCH_TRIES;
  uint64_t first = (a->sp + 7) & ~7ull, next, bp;
  for (uint64_t place = first; place - first < SEARCH_BYTES && tries && load(u, place, &next); place += 8) {
    const struct m6_sym_range *r = m6_sym_range_at(y, next - 1);
    if (!r || !r->file || !m6_symbols_is_return(y, next)) continue;
    struct at b = *a;
    tries--;
    move_up(&b, place + 8, next);
    if (place >= first + 8 && load(u, place - 8, &bp) && bp > place) {
      uint64_t was = b.saved[BP];
      b.saved[BP] = bp;
      if (leads_home(y, u, b)) return *a = b, 1;
      b.saved[BP] = was;
    }
    if (leads_home(y, u, b)) return *a = b, 1;
  }
  return 0;
}

uint32_t m6_symbols_unwind(void *symbols, const struct m6_user_state *u, uint64_t *ip, uint32_t most)
{
  int whole;
  return m6_symbols_unwind_whole(symbols, u, ip, most, &whole);
}

uint32_t m6_symbols_unwind_whole(struct m6_symbols *y, const struct m6_user_state *u, uint64_t *ip, uint32_t most,
                                 int *whole)
{
  struct at a = {u->ip, u->sp, {u->bx, u->bp, u->r12, u->r13, u->r14, u->r15}};
  uint32_t n = 0;
  int searched = 0;
  *whole = 0;
  while (n < most && a.pc) {
    ip[n++] = a.pc;
    enum step is = by_rule(y, u, &a, n > 1);
    *whole = is == STEP_LAST;
    if (is == STEP_UP) continue;
    if (is != STEP_NO_RULE) break;
    if (by_frame_pointer(y, u, &a)) continue;
    if (searched++ || !by_search(y, u, &a)) break;
  }
  return n;
}
