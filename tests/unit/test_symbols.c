/* test_symbols.c - names, table and folded stacks of this very process, whose addresses, lines and build are known; and foreign bytes. */
/* links: collector/symbols.c collector/symbols_maps.c collector/symbols_tables.c collector/symbols_elf.c collector/symbols_eh.c collector/symbols_index.c collector/symbols_unwind.c collector/profile.c -ldw -lelf -liberty */
/* links: collector/symbols_debug.c collector/symbols_debuginfod.c */
/* flags: -fno-omit-frame-pointer -fno-optimize-sibling-calls */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "collector/kernel_samples.h"
#include "collector/profile.h"
#include "collector/symbols_elf.h"
#include "collector/symbols_index.h"

#define KEEP __attribute__((noinline, noclone))

static struct m6_symbols *symbols;

/* The address of the instruction after this place. */
static inline __attribute__((always_inline)) uint64_t here(void)
{
  uint64_t pc;
#if defined(__x86_64__)
  __asm__ volatile("leaq 0(%%rip), %0" : "=r"(pc));
#else
  __asm__ volatile("adr %0, ." : "=r"(pc));
#endif
  return pc;
}
static KEEP uint64_t around(uint64_t *line)
{
  *line = __LINE__ + 1;
  uint64_t pc = here();
  __asm__ volatile("" ::: "memory");
  return pc;
}

static uint64_t chain[8];
static uint32_t chain_length;
static KEEP void keep_chain(void)
{
  void **frame = __builtin_frame_address(0);
  chain[chain_length++] = (uint64_t)(uintptr_t)keep_chain;
  while (chain_length < 6) {
    chain[chain_length++] = (uint64_t)(uintptr_t)frame[1];
    frame = frame[0];
  }
}
static KEEP void recurse(int n)
{
  if (n) recurse(n - 1);
  else keep_chain();
  __asm__ volatile("" ::: "memory");
}
static KEEP void call_recurse(void)
{
  recurse(2);
  __asm__ volatile("" ::: "memory");
}

static int set_up(void **state) { return m6_symbols_open(getpid(), &symbols); }
static int tear_down(void **state)
{
  m6_symbols_close(symbols);
  return 0;
}

static void an_inlined_function_comes_with_the_line_of_its_caller(void **state)
{
  struct m6_sym_name names[M6_SYM_INLINE_MAX];
  uint64_t line, pc = around(&line);
  int n = m6_symbols_names(symbols, pc, M6_SYM_RETURN, names, M6_SYM_INLINE_MAX);
  assert_int_equal(n, 2);
  assert_string_equal(names[0].function, "here");
  assert_true(names[0].inlined);
  assert_string_equal(names[1].function, "around");
  assert_false(names[1].inlined);
  assert_int_equal(names[1].line, line);
  assert_non_null(strstr(names[1].file, "test_symbols.c"));
  assert_string_equal(names[1].module, "test_symbols");
}

/* libdw unpacks sections where they are, and their headers say so. */
static int packed_sections(struct m6_elf *e)
{
  GElf_Addr bias;
  GElf_Shdr h;
  int n = 0;
  Elf *elf = dwfl_module_getelf(m6_elf_module(e), &bias);
  for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) n += gelf_getshdr(scn, &h) && h.sh_flags & SHF_COMPRESSED;
  return n;
}
static void a_brief_name_unpacks_no_debug_information(void **state)
{
  char self[4096] = "", command[2 * sizeof self], packed[] = "/tmp/test_symbols.XXXXXX";
  struct m6_sym_name brief[M6_SYM_INLINE_MAX];
  struct m6_elf_name names[M6_SYM_INLINE_MAX];
  uint64_t line, pc = around(&line), vaddr;
  struct m6_sym_place place = m6_symbols_place(symbols, pc, M6_SYM_RETURN);
  assert_int_equal(m6_symbols_place_brief(symbols, place, brief, M6_SYM_INLINE_MAX), 1);
  assert_string_equal(brief[0].function, "around");
  assert_string_equal(brief[0].module, "test_symbols");
  assert_true(brief[0].named && !brief[0].inlined && !brief[0].file && !brief[0].line);

  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  close(mkstemp(packed));
  snprintf(command, sizeof command, "objcopy --compress-debug-sections '%s' %s", self, packed);
  int status = system(command);
  struct m6_elf *e = m6_elf_open(open(packed, O_RDONLY | O_CLOEXEC), packed, "");
  unlink(packed);
  if (status) skip();
  assert_true(m6_elf_vaddr(e, place.offset, &vaddr));
  int all = packed_sections(e);
  assert_true(all > 0);
  assert_int_equal(m6_elf_symbol(e, vaddr, names, M6_SYM_INLINE_MAX), 1);
  assert_string_equal(names[0].function, "around");
  assert_int_equal(packed_sections(e), all);
  assert_int_equal(m6_elf_names(e, vaddr, names, M6_SYM_INLINE_MAX), 2);
  assert_string_equal(names[0].function, "here");
  assert_true(packed_sections(e) < all);
  m6_elf_close(e);
}

static void equal_names_are_equal_pointers(void **state)
{
  struct m6_sym_name a[M6_SYM_INLINE_MAX], b[M6_SYM_INLINE_MAX];
  m6_symbols_names(symbols, (uint64_t)(uintptr_t)recurse, 0, a, M6_SYM_INLINE_MAX);
  m6_symbols_names(symbols, (uint64_t)(uintptr_t)recurse + 1, 0, b, M6_SYM_INLINE_MAX);
  assert_ptr_equal(a[0].function, b[0].function);
  assert_ptr_equal(a[0].module, b[0].module);
}

static void a_return_address_is_told_from_any_other(void **state)
{
  chain_length = 0;
  call_recurse();
  for (uint32_t i = 1; i < 5; i++) assert_true(m6_symbols_is_return(symbols, chain[i]));
  assert_false(m6_symbols_is_return(symbols, (uint64_t)(uintptr_t)recurse + 1)); /* in code, but after no call */
  assert_false(m6_symbols_is_return(symbols, (uint64_t)(uintptr_t)&chain));
  assert_false(m6_symbols_is_return(symbols, 1));
  assert_true(m6_symbols_covers(symbols, chain[0]));
  assert_false(m6_symbols_covers(symbols, (uint64_t)(uintptr_t)&chain));
}

static void what_is_not_known_has_no_name(void **state)
{
  struct m6_sym_name name[M6_SYM_INLINE_MAX];
  assert_int_equal(m6_symbols_names(symbols, 0x10, 0, name, M6_SYM_INLINE_MAX), 1);
  assert_string_equal(name[0].function, "[unknown]");
  assert_false(name[0].named);
  assert_int_equal(m6_symbols_names(symbols, (uint64_t)(uintptr_t)&chain, 0, name, M6_SYM_INLINE_MAX), 1);
  assert_string_equal(name[0].function, "[unknown]"); /* data is no code */
}

/* Its samples are nobody else's: not the caller's, not the user's side of a system call. */
static void a_stack_that_was_not_kept_is_named_so(void **state)
{
  uint64_t not_kept = M6_STACK_LOST;
  uint32_t n;
  struct m6_profile *p = m6_profile_new(symbols);
  chain[0] = (uint64_t)(uintptr_t)recurse;
  m6_profile_add(p, "t", chain, 1, &not_kept, 1, 3);
  const struct m6_profile_row *r = m6_profile_rows(p, &n);
  assert_int_equal(n, 2);
  assert_string_equal(r[0].function, "[stack not kept]");
  assert_int_equal(r[0].self, 3);
  assert_int_equal(r[1].self, 0);
  assert_int_equal(r[1].total, 3);
  m6_profile_free(p);
}

static void a_recursive_function_counts_once_in_total(void **state)
{
  chain_length = 0;
  call_recurse(); /* keep_chain < recurse x 3 < call_recurse < this */
  struct m6_profile *p = m6_profile_new(symbols);
  assert_int_equal(m6_profile_add(p, "t", chain, 6, NULL, 0, 10), 0);
  assert_int_equal(m6_profile_add(p, "t", chain + 1, 5, NULL, 0, 3), 0);
  uint32_t n;
  const struct m6_profile_row *r = m6_profile_rows(p, &n);
  uint64_t self = 0;
  int seen = 0;
  for (uint32_t i = 0; i < n; i++) {
    self += r[i].self;
    if (!strcmp(r[i].function, "keep_chain")) assert_int_equal(r[i].self, 10), assert_int_equal(r[i].total, 10), seen++;
    if (!strcmp(r[i].function, "recurse")) assert_int_equal(r[i].self, 3), assert_int_equal(r[i].total, 13), seen++;
    if (!strcmp(r[i].function, "call_recurse"))
      assert_int_equal(r[i].self, 0), assert_int_equal(r[i].total, 13), seen++;
  }
  assert_int_equal(seen, 3);
  assert_int_equal(self, 13);
  assert_string_equal(r[0].function, "keep_chain");
  assert_int_equal(m6_profile_sum(p).samples, 13);
  m6_profile_free(p);
}

static void a_stack_ends_where_no_caller_can_be(void **state)
{
  chain_length = 0;
  call_recurse();
  uint64_t broken[4] = {chain[0], chain[1], (uint64_t)(uintptr_t)&chain, chain[2]};
  struct m6_profile *p = m6_profile_new(symbols);
  m6_profile_add(p, "t", broken, 4, NULL, 0, 5);
  m6_profile_add(p, "t", NULL, 0, NULL, 0, 2);
  uint32_t n;
  m6_profile_rows(p, &n);
  assert_int_equal(n, 2); /* keep_chain, recurse */
  assert_int_equal(m6_profile_sum(p).cut, 5);
  assert_int_equal(m6_profile_sum(p).bare, 2);
  assert_int_equal(m6_profile_sum(p).samples, 7);
  m6_profile_free(p);
}

static void folded_stacks_survive_hostile_names(void **state)
{
  struct m6_profile *p = m6_profile_new(symbols);
  chain[0] = (uint64_t)(uintptr_t)recurse;
  m6_profile_add(p, "a;b\n\x01\xff\xc3\xa9\xed\xa0\x80", chain, 1, NULL, 0, 4);
  char *text = NULL;
  size_t bytes;
  FILE *f = open_memstream(&text, &bytes);
  assert_int_equal(m6_profile_folded(p, f), 0);
  fclose(f);
  assert_string_equal(text, "a?b???\xc3\xa9???;recurse 4\n");
  free(text);
  assert_int_equal(m6_profile_folded(p, fopen("/dev/full", "w")), ENOSPC);
  m6_profile_free(p);
}

/* A perf map is anybody's text. What is well-formed in it counts, the last entry wins; nothing crashes. */
static void a_perf_map_is_foreign_text(void **state)
{
  char path[64];
  unsigned char *code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint64_t at = (uint64_t)(uintptr_t)code;
  struct m6_sym_name name[M6_SYM_INLINE_MAX];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "%lx 2000 first\n\n \nzz 10 no\n%lx\n%lx 10\n%lx 10 \n%lx 0 empty\n%lx ffffffffffffffff wraps\n", at, at,
          at, at, at, at + 4096);
  fprintf(f, "%lx 100 second one\nffffffffffffffffffffff 1 huge\n%lx 10 \xff\xfe;bytes\n%lx 10 unended", at + 256,
          at + 512, at + 768);
  fclose(f);
  m6_symbols_refresh(symbols);
  static const struct {
    uint64_t offset;
    const char *want;
  } cases[] = {{0, "first"},   {255, "first"},   {256, "second one"}, {511, "second one"}, {512, "\xff\xfe;bytes"},
               {528, "first"}, {768, "unended"}, {4096, "first"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    m6_symbols_names(symbols, at + cases[i].offset, 0, name, M6_SYM_INLINE_MAX);
    assert_string_equal(name[0].function, cases[i].want);
    assert_string_equal(name[0].module, "[jit]");
  }
  /* It grows: a refresh reads it again. */
  f = fopen(path, "a");
  fprintf(f, "\n%lx 10 third\n", at);
  fclose(f);
  m6_symbols_refresh(symbols);
  m6_symbols_names(symbols, at, 0, name, M6_SYM_INLINE_MAX);
  assert_string_equal(name[0].function, "third");
  /* A link is not followed, and what is no file is not read. */
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  m6_symbols_refresh(symbols);
  unlink(path);
  munmap(code, 8192);
}

static void mappings_that_went_away_keep_their_names(void **state)
{
  FILE *f = fopen("/proc/self/exe", "r");
  assert_non_null(f);
  void *text = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0);
  fclose(f);
  uint64_t at = (uint64_t)(uintptr_t)text;
  assert_int_equal(m6_symbols_refresh(symbols), 0);
  assert_true(m6_symbols_covers(symbols, at));
  munmap(text, 4096);
  m6_symbols_refresh(symbols);
  assert_true(m6_symbols_covers(symbols, at));
  void *other = mmap(text, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  m6_symbols_refresh(symbols);
  struct m6_sym_name name[M6_SYM_INLINE_MAX];
  m6_symbols_names(symbols, at, 0, name, M6_SYM_INLINE_MAX);
  assert_string_equal(name[0].module, "[jit]"); /* the newer one */
  munmap(other, 4096);
}

static void *main_code(void) { return (void *)(uintptr_t)recurse; }

/* Its own stack, with its own registers: the callers are those that frame pointers give. */
static KEEP uint32_t unwind_here(uint64_t *ip, uint32_t most, uint32_t bytes)
{
#if defined(__x86_64__)
  struct m6_user_state u = {0};
  __asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2\n\tmovq %%rbx, %3\n\tmovq %%r12, %4\n\t"
                   "movq %%r13, %5\n\tmovq %%r14, %6\n\tmovq %%r15, %7"
                   : "=&r"(u.ip), "=m"(u.sp), "=m"(u.bp), "=m"(u.bx), "=m"(u.r12), "=m"(u.r13), "=m"(u.r14),
                     "=m"(u.r15));
  u.stack = (const unsigned char *)(uintptr_t)u.sp;
  u.bytes = bytes;
  return m6_symbols_unwind(symbols, &u, ip, most);
#else
  return 0;
#endif
}
static void unwinding_finds_the_callers_and_stays_in_the_copy(void **state)
{
#if defined(__x86_64__)
  uint64_t ip[32];
  uint32_t n = unwind_here(ip, 32, 2048);
  struct m6_sym_name name[M6_SYM_INLINE_MAX];
  assert_true(n >= 3);
  m6_symbols_names(symbols, ip[0], 0, name, M6_SYM_INLINE_MAX);
  assert_string_equal(name[0].function, "unwind_here");
  int k = m6_symbols_names(symbols, ip[1], M6_SYM_RETURN, name, M6_SYM_INLINE_MAX);
  assert_string_equal(name[k - 1].function, __func__);
  assert_int_equal(unwind_here(ip, 2, 2048), 2);
  assert_int_equal(unwind_here(ip, 32, 0), 1);
  assert_int_equal(unwind_here(ip, 32, 7), 1);
  /* Whatever the registers and the stack hold, it ends within the room, and reads nothing but the copy (which ends at the page's end). */
  srand(6);
  unsigned char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_int_equal(mprotect(page + 4096, 4096, PROT_NONE), 0);
  for (int i = 0; i < 20000; i++) {
    uint64_t code = (uint64_t)(uintptr_t)main_code(),
             sp = i % 3 ? 0x7ffc00001000 : (uint64_t)rand() << 33 | (uint64_t)rand();
    struct m6_user_state u = {
      .ip = code + (uint64_t)(rand() % 4096), .sp = sp, .bp = sp + (uint64_t)(rand() % 5000), .bx = sp + 16};
    u.bytes = (uint32_t)(rand() % 4097);
    u.stack = page + 4096 - u.bytes;
    for (uint32_t w = 0; w + 8 <= u.bytes; w += 8) {
      uint64_t v = rand() % 2 ? code + (uint64_t)(rand() % 8192) : sp + (uint64_t)(rand() % 6000);
      memcpy(page + 4096 - u.bytes + w, &v, sizeof v);
    }
    uint32_t got = m6_symbols_unwind(symbols, &u, ip, 32);
    assert_in_range(got, 1, 32);
  }
  munmap(page, 8192);
#endif
}

/* Code that was made at run time, without rules and without a frame pointer (0 in its register): it calls what it is given. */
typedef void through(void (*call)(void));
static uint64_t made_ip[32];
static uint32_t made_count;
static uintptr_t made_top;
static int made_whole;
static KEEP void from_made_code(void)
{
#if defined(__x86_64__)
  struct m6_user_state u = {0};
  __asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2\n\tmovq %%rbx, %3\n\tmovq %%r12, %4\n\t"
                   "movq %%r13, %5\n\tmovq %%r14, %6\n\tmovq %%r15, %7"
                   : "=&r"(u.ip), "=m"(u.sp), "=m"(u.bp), "=m"(u.bx), "=m"(u.r12), "=m"(u.r13), "=m"(u.r14),
                     "=m"(u.r15));
  u.stack = (const unsigned char *)(uintptr_t)u.sp;
  u.bytes = (uint32_t)(made_top - u.sp) & ~7u;
  made_count = m6_symbols_unwind_whole(symbols, &u, made_ip, 32, &made_whole);
#endif
}
static KEEP void *calls_made_code(void *code)
{
  made_top = (uintptr_t)pthread_self() & ~(uintptr_t)15;
  ((through *)(uintptr_t)code)(from_made_code);
  __asm__ volatile("" ::: "memory");
  return NULL;
}
static void code_without_rules_has_callers_all_the_same(void **state)
{
#if defined(__x86_64__)
  /* push rbp; push rbx; sub rsp, 0x48; xor ebp, ebp; call rdi; add rsp, 0x48; pop rbx; pop rbp; ret */
  static const unsigned char bytes[] = {0x55, 0x53, 0x48, 0x83, 0xec, 0x48, 0x31, 0xed, 0xff,
                                        0xd7, 0x48, 0x83, 0xc4, 0x48, 0x5b, 0x5d, 0xc3};
  unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) skip(); /* not allowed here */
  memcpy(code, bytes, sizeof bytes);
  assert_int_equal(m6_symbols_refresh(symbols), 0);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, calls_made_code, code), 0);
  pthread_join(thread, NULL);
  struct m6_sym_name name[M6_SYM_INLINE_MAX];
  assert_true(made_count >= 4);
  assert_int_equal(made_ip[1], (uintptr_t)code + 10);
  int k = m6_symbols_names(symbols, made_ip[2], M6_SYM_RETURN, name, M6_SYM_INLINE_MAX);
  assert_string_equal(name[k - 1].function, "calls_made_code");
  assert_int_equal(made_whole, 1);
  munmap(code, 4096);
#else
  skip();
#endif
}

/* Headers, program headers and the tables of this program, damaged at random: whatever comes out, nothing crashes. Each in a
 * child: elfutils is read by us, but is not ours. Ours is at fault when the sanitizer says so (exit status), not by a signal. */
static void damaged_files_cost_a_name_and_nothing_else(void **state)
{
  int self = open("/proc/self/exe", O_RDONLY);
  off_t size = lseek(self, 0, SEEK_END);
  unsigned char *whole = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, self, 0);
  close(self);
  assert_true(whole != MAP_FAILED);
  srand(6);
  for (int round = 0; round < 60; round++) {
    int fd = memfd_create("damaged", 0);
    size_t bytes = round % 3 ? (size_t)size : (size_t)rand() % (size_t)size;
    assert_int_equal(write(fd, whole, bytes), bytes);
    for (int i = 0; i < 1 + round % 16; i++) {
      unsigned char byte = (unsigned char)rand();
      off_t at = i % 2 ? rand() % 1024 : rand() % (off_t)(bytes + 1);
      if (pwrite(fd, &byte, 1, at) != 1) fail();
    }
    pid_t child = fork();
    if (!child) {
      alarm(20);
      struct m6_elf *e = m6_elf_open(fd, "/damaged", "");
      struct m6_elf_name names[8];
      uint64_t vaddr;
      for (uint64_t offset = 0; e && offset < (uint64_t)size; offset += 997) {
        if (!m6_elf_vaddr(e, offset, &vaddr)) continue;
        m6_elf_names(e, vaddr, names, 8);
        m6_elf_after_call(e, vaddr);
      }
      m6_elf_close(e);
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    close(fd);
    assert_int_equal(status, 0);
  }
  munmap(whole, (size_t)size);
}

/* What elfutils' own walk over all symbols finds, as far as it is believed (symbols_index.h). */
static const char *walked(Dwfl_Module *module, uint64_t vaddr)
{
  GElf_Off into;
  GElf_Sym s;
  const char *name = dwfl_module_addrinfo(module, vaddr, &into, &s, NULL, NULL, NULL);
  if (!name || !*name || into >= (s.st_size ? s.st_size : 0x1000)) return NULL;
  return name;
}
/* In the code of the file at path: addresses looked up; *named of them have a name. */
static int compare_with_walk(const char *path, int *named)
{
  struct m6_elf *e = m6_elf_open(open(path, O_RDONLY | O_CLOEXEC), path, "");
  assert_non_null(e);
  Dwfl_Module *module = m6_elf_module(e);
  GElf_Addr bias;
  Elf *elf = dwfl_module_getelf(module, &bias);
  struct m6_sym_index *index = m6_sym_index_new(module, elf);
  int n = 0;
  for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
    GElf_Shdr h;
    assert_non_null(gelf_getshdr(scn, &h));
    if (!(h.sh_flags & SHF_EXECINSTR)) continue;
    for (uint64_t at = 0; at < h.sh_size; at += h.sh_size / 1000 + 1, n++) {
      const char *expected = walked(module, h.sh_addr + at), *found = m6_sym_index_name(index, h.sh_addr + at);
      assert_string_equal(found ? found : "", expected ? expected : "");
      *named += found != NULL;
    }
  }
  m6_sym_index_free(index);
  m6_elf_close(e);
  return n;
}
static void the_index_finds_what_a_walk_over_all_symbols_finds(void **state)
{
  char line[512], path[256];
  int named = 0, n = compare_with_walk("/proc/self/exe", &named), libraries = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%*s r-xp %*s %*s %*s %255[^\n]", path) != 1 || path[0] != '/' || !strstr(path, ".so")) continue;
    n += compare_with_walk(path, &named);
    libraries++;
  }
  fclose(maps);
  print_message("# %d of %d addresses have names, in this program and %d libraries\n", named, n, libraries);
  assert_true(libraries >= 3 && named > 1000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_index_finds_what_a_walk_over_all_symbols_finds),
    cmocka_unit_test(an_inlined_function_comes_with_the_line_of_its_caller),
    cmocka_unit_test(a_brief_name_unpacks_no_debug_information),
    cmocka_unit_test(equal_names_are_equal_pointers),
    cmocka_unit_test(a_return_address_is_told_from_any_other),
    cmocka_unit_test(what_is_not_known_has_no_name),
    cmocka_unit_test(a_stack_that_was_not_kept_is_named_so),
    cmocka_unit_test(a_recursive_function_counts_once_in_total),
    cmocka_unit_test(a_stack_ends_where_no_caller_can_be),
    cmocka_unit_test(folded_stacks_survive_hostile_names),
    cmocka_unit_test(a_perf_map_is_foreign_text),
    cmocka_unit_test(mappings_that_went_away_keep_their_names),
    cmocka_unit_test(unwinding_finds_the_callers_and_stays_in_the_copy),
    cmocka_unit_test(code_without_rules_has_callers_all_the_same),
    cmocka_unit_test(damaged_files_cost_a_name_and_nothing_else),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
