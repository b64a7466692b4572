/* program.c - looks at a file before it is started: would the shim be loaded, and would the program survive it?
 *
 * A static program ignores LD_PRELOAD, one of another libc or machine complains or dies, a privileged one drops it silently. Each is
 * told apart here, so that mach6 says "not profiled" instead of reporting 0 allocations.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "program.h"

#define SCRIPTS_DEEP 5 /* the kernel follows as many interpreters */

#if defined(__x86_64__) && !defined(__ILP32__)
#define OUR_MACHINE EM_X86_64
#elif defined(__i386__)
#define OUR_MACHINE EM_386
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE /* not known: any machine passes, only the class is compared */
#endif
#define OUR_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

/* ---- finding ------------------------------------------------------------------------------------------------------- */

/* Can it be executed, as far as can be known before? 0 or an errno. */
static int executable(const char *path)
{
  struct stat st;
  if (stat(path, &st)) return errno;
  if (S_ISDIR(st.st_mode)) return EISDIR;
  return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? errno : 0;
}

int program_find(const char *name, struct program *out)
{
  memset(out, 0, sizeof *out);
  if (!*name) return ENOENT;
  if (strchr(name, '/')) {
    if (strlen(name) >= sizeof out->path) return ENAMETOOLONG;
    strcpy(out->path, name);
    return executable(out->path);
  }
  const char *dirs = getenv("PATH");
  char fallback[256];
  if (!dirs) {
    confstr(_CS_PATH, fallback, sizeof fallback);
    dirs = fallback;
  }
  int worst = ENOENT;
  char denied[PATH_MAX] = "";
  for (const char *d = dirs;; d++) {
    size_t n = strcspn(d, ":");
    int made = snprintf(out->path, sizeof out->path, "%.*s%s%s", (int)n, d, n ? "/" : "./", name);
    int error = made < (int)sizeof out->path ? executable(out->path) : ENAMETOOLONG;
    if (!error) return 0;
    if (error == EACCES && !*denied) worst = EACCES, strcpy(denied, out->path); /* as a shell: remember, and look on */
    d += n;
    if (!*d) break;
  }
  snprintf(out->path, sizeof out->path, "%s", *denied ? denied : name);
  return worst;
}

/* ---- privileges ---------------------------------------------------------------------------------------------------- */

/* Would the kernel run it in secure mode, in which the loader ignores LD_PRELOAD? */
static const char *privilege(int fd)
{
  struct stat st;
  struct statvfs fs;
  if (fstat(fd, &st) || (!fstatvfs(fd, &fs) && fs.f_flag & ST_NOSUID)) return NULL;
  /* Secure mode comes with capabilities even where they cannot be gained (no_new_privs), but not for root. */
  if (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0) return "given capabilities (setcap)";
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return NULL;
  if (st.st_mode & S_ISUID && st.st_uid != getuid()) return "setuid";
  if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid()) return "setgid";
  return NULL;
}

/* ---- ELF ----------------------------------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3))) refuse(struct program *p, const char *why, ...)
{
  va_list a;
  va_start(a, why);
  vsnprintf(p->why_not, sizeof p->why_not, why, a);
  va_end(a);
  p->attachable = 0;
}

/* Is it glibc's dynamic loader? Its name is ld-linux*.so.N or ld64.so.N, ld.so.N on old ports. */
static int glibc_loader(const char *interpreter)
{
  const char *base = strrchr(interpreter, '/');
  base = base ? base + 1 : interpreter;
  return !strncmp(base, "ld-linux", 8) || !strncmp(base, "ld64.so", 7) || !strncmp(base, "ld.so", 5) ||
         !strncmp(base, "ld-2.", 5);
}

/* A sanitizer's runtime must be the first library of all: which does this program need? */
static void find_sanitizer(Elf *elf, struct program *p)
{
  static const char *const runtimes[] = {"libasan.so",       "libtsan.so",       "liblsan.so",        "libhwasan.so",
                                         "libclang_rt.asan", "libclang_rt.tsan", "libclang_rt.hwasan"};
  Elf_Scn *scn = NULL;
  while ((scn = elf_nextscn(elf, scn))) {
    GElf_Shdr sh;
    Elf_Data *data;
    if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_DYNAMIC || !(data = elf_getdata(scn, NULL)) || !sh.sh_entsize)
      continue;
    for (size_t i = 0; i < sh.sh_size / sh.sh_entsize; i++) {
      GElf_Dyn dyn;
      if (!gelf_getdyn(data, (int)i, &dyn) || dyn.d_tag == DT_NULL) break;
      if (dyn.d_tag != DT_NEEDED) continue;
      const char *name = elf_strptr(elf, sh.sh_link, dyn.d_un.d_val);
      for (size_t r = 0; name && r < sizeof runtimes / sizeof *runtimes; r++)
        if (!strncmp(name, runtimes[r], strlen(runtimes[r])) && strlen(name) < sizeof p->sanitizer && !*p->sanitizer)
          strcpy(p->sanitizer, name);
    }
  }
}

static void inspect_elf(int fd, struct program *p)
{
  GElf_Ehdr header;
  char interpreter[PATH_MAX] = "";
  size_t count = 0;
  elf_version(EV_CURRENT);
  Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
  if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) || elf_getphdrnum(elf, &count)) {
    if (elf) elf_end(elf);
    return; /* no ELF that can be read: the kernel will say */
  }
  if (header.e_ident[EI_CLASS] != OUR_CLASS) {
    refuse(p, "it is a %d-bit program and this mach6 is for %d-bit ones",
           header.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32, OUR_CLASS == ELFCLASS64 ? 64 : 32);
  } else if (OUR_MACHINE != EM_NONE && header.e_machine != OUR_MACHINE) {
    refuse(p, "it is a program for another kind of processor");
  } else {
    for (size_t i = 0; i < count; i++) {
      GElf_Phdr ph;
      if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_INTERP || ph.p_filesz == 0 ||
          ph.p_filesz >= sizeof interpreter)
        continue;
      ssize_t n = pread(fd, interpreter, ph.p_filesz, (off_t)ph.p_offset);
      interpreter[n > 0 ? n : 0] = 0;
    }
    if (!*interpreter) {
      refuse(p, "it is linked statically (no dynamic loader, so nothing can be preloaded)");
    } else if (!glibc_loader(interpreter)) {
      refuse(p, "its loader is %s, not glibc's", interpreter);
    } else {
      find_sanitizer(elf, p);
    }
  }
  elf_end(elf);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

void program_inspect(struct program *p)
{
  char path[PATH_MAX];
  p->attachable = 1;
  p->why_not[0] = p->sanitizer[0] = 0;
  snprintf(path, sizeof path, "%s", p->path);
  for (int depth = 0; depth < SCRIPTS_DEEP && p->attachable; depth++) {
    char head[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const char *privileged = privilege(fd);
    ssize_t n = read(fd, head, sizeof head - 1);
    head[n > 0 ? n : 0] = 0;
    int script = n > 2 && head[0] == '#' && head[1] == '!';
    if (privileged && !script) /* the kernel ignores these on scripts */
      refuse(p, "it is %s, so the system ignores LD_PRELOAD; profile a copy without that privilege", privileged);
    if (!script) {
      if (p->attachable) inspect_elf(fd, p);
      close(fd);
      return;
    }
    close(fd);
    char *at = head + 2;
    at += strspn(at, " \t");
    at[strcspn(at, " \t\n")] = 0;
    if (!*at) return;
    snprintf(path, sizeof path, "%s", at);
  }
}
