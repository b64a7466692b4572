/* symbols_maps.c - snapshots of a process's executable mappings, and the files behind them. See symbols.h.
 *
 * Promise: a file is used only when it is the one that is mapped (device and inode, or read from the mapping itself).
 * No device is opened. A process that has no memory left (a zombie) keeps the last snapshot.
 * May call symbols_elf.h and libc.
 */
#include "symbols_parts.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct line { /* of maps */
  uint64_t start, end, offset, dev, ino;
  int executable, readable;
  char *path; /* "" when anonymous */
};

/* ---- maps
 * ------------------------------------------------------------------------------------------------------------ */

char *m6_sym_read_all(int fd, size_t most, size_t *bytes)
{
  size_t n = 0, room = 65536;
  char *text = malloc(room + 1);
  while (text && n < most) {
    ssize_t got = read(fd, text + n, room - n);
    if (got <= 0) break;
    n += (size_t)got;
    if (n == room) {
      char *more = realloc(text, room * 2 + 1);
      if (!more) break;
      text = more, room *= 2;
    }
  }
  if (text) text[n] = 0;
  *bytes = n;
  return text;
}

/* NULL when there is nothing to read; *error then says why, 0 for an empty file. */
static char *read_file(const char *path, int *error)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  size_t n;
  *error = fd < 0 ? errno : 0;
  char *text = fd < 0 ? NULL : m6_sym_read_all(fd, SIZE_MAX, &n);
  if (fd >= 0) close(fd);
  if (text && !*text) {
    free(text);
    text = NULL;
  }
  return text;
}

/* The maps of the process by any of its threads: an ended leader's own file is empty. *via: the thread that answered.
 * */
static char *read_maps(pid_t pid, pid_t *via, int *error)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/maps", pid);
  char *text = read_file(path, error);
  *via = pid;
  if (*error == ENOENT) *error = ESRCH;
  if (text || *error) return text;
  *error = ESRCH;
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *d = opendir(path);
  for (struct dirent *e; d && !text && (e = readdir(d));) {
    if (e->d_name[0] < '0' || e->d_name[0] > '9') continue;
    int ignored;
    *via = (pid_t)strtol(e->d_name, NULL, 10);
    snprintf(path, sizeof path, "/proc/%d/task/%d/maps", pid, *via);
    text = read_file(path, &ignored);
  }
  if (d) closedir(d);
  return text;
}

/* One line of maps, in place. */
static int parse_line(char *text, struct line *l)
{
  char mode[8];
  unsigned int dev_major, dev_minor;
  int at = 0;
  *l = (struct line){0};
  if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &l->start, &l->end, mode, &l->offset,
             &dev_major, &dev_minor, &l->ino, &at) < 7)
    return 0;
  l->dev = makedev(dev_major, dev_minor);
  l->readable = mode[0] == 'r', l->executable = mode[2] == 'x';
  l->path = text + at;
  return 1;
}

/* ---- files
 * ------------------------------------------------------------------------------------------------------------ */

static int open_regular(const char *path, uint64_t dev, uint64_t ino, int exact, int *error)
{
  struct stat st;
  *error = ENOENT;
  if (stat(path, &st)) {
    *error = errno;
    return -1;
  }
  /* Layered file systems show another device in stat than in maps; the inode is the same. */
  if (!S_ISREG(st.st_mode) ||
      (exact && (st.st_ino != ino || (st.st_dev != dev && major(dev) != 0 && major(st.st_dev) != 0)))) {
    *error = ESTALE;
    return -1;
  }
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  *error = fd < 0 ? errno : 0;
  return fd;
}

/* The loader has made the addresses in the dynamic section absolute; in a file they are not. */
static void undo_relocation(int fd, uint64_t base)
{
  static const Elf64_Sxword pointers[] = {DT_HASH, DT_GNU_HASH, DT_STRTAB, DT_SYMTAB, DT_VERSYM};
  Elf64_Ehdr h;
  Elf64_Phdr p;
  Elf64_Dyn d;
  if (pread(fd, &h, sizeof h, 0) != sizeof h || h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_type != ET_DYN) return;
  for (int i = 0; i < h.e_phnum; i++) {
    if (pread(fd, &p, sizeof p, (off_t)(h.e_phoff + (uint64_t)i * sizeof p)) != sizeof p || p.p_type != PT_DYNAMIC)
      continue;
    for (uint64_t at = 0; at + sizeof d <= p.p_filesz; at += sizeof d) {
      if (pread(fd, &d, sizeof d, (off_t)(p.p_offset + at)) != sizeof d || d.d_tag == DT_NULL) return;
      for (size_t k = 0; k < sizeof pointers / sizeof *pointers; k++) {
        if (d.d_tag != pointers[k] || d.d_un.d_ptr < base) continue;
        d.d_un.d_ptr -= base;
        if (pwrite(fd, &d, sizeof d, (off_t)(p.p_offset + at)) != sizeof d) return;
      }
    }
  }
}

/* An ELF file put together from what is mapped of it: what the loader needs is there (.dynsym, notes, code), sections
 * are not. */
static int image_from_memory(pid_t via, const struct line *lines, uint32_t n, const struct m6_sym_file *f, int *error)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", via);
  int mem = open(path, O_RDONLY | O_CLOEXEC), fd = -1;
  if (mem < 0) {
    *error = errno;
    return -1;
  }
  fd = memfd_create("m6-image", MFD_CLOEXEC);
  if (fd < 0) *error = errno;
  char *buffer = malloc(65536);
  int header = 0;
  uint64_t base = 0;
  for (uint32_t i = 0; fd >= 0 && buffer && i < n; i++) {
    const struct line *l = &lines[i];
    if (l->dev != f->dev || l->ino != f->ino || !l->readable || l->end - l->start > M6_SYM_IMAGE_BYTES ||
        l->offset > M6_SYM_IMAGE_BYTES)
      continue;
    for (uint64_t at = l->start; at < l->end;) {
      size_t want = l->end - at < 65536 ? l->end - at : 65536;
      ssize_t got = pread(mem, buffer, want, (off_t)at);
      if (got <= 0) break;
      if (at == l->start && !l->offset && got >= (ssize_t)sizeof(Elf64_Ehdr) && !memcmp(buffer, ELFMAG, SELFMAG)) {
        header = 1, base = at;
        /* There are no sections: they are in no segment. */
        if (buffer[EI_CLASS] == ELFCLASS64) {
          Elf64_Ehdr *h = (Elf64_Ehdr *)buffer;
          h->e_shoff = 0, h->e_shnum = h->e_shstrndx = 0;
        } else {
          Elf32_Ehdr *h = (Elf32_Ehdr *)buffer;
          h->e_shoff = 0, h->e_shnum = h->e_shstrndx = 0;
        }
      }
      if (pwrite(fd, buffer, (size_t)got, (off_t)(l->offset + (at - l->start))) != got) break;
      at += (uint64_t)got;
    }
  }
  free(buffer);
  close(mem);
  if (header) undo_relocation(fd, base);
  if (fd >= 0 && !header) {
    *error = ENOEXEC;
    close(fd);
    fd = -1;
  }
  return fd;
}

/* The kernel's own library is mapped in every process: ours will do, when the target's is as wide. */
static int open_vdso(int *error)
{
  const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)image;
  *error = ENOENT;
  if (!image || h->e_ident[EI_CLASS] != ELFCLASS64) return -1;
  size_t bytes = h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
  int fd = memfd_create("m6-vdso", MFD_CLOEXEC);
  if (fd >= 0 && write(fd, image, bytes) != (ssize_t)bytes) {
    close(fd);
    fd = -1;
  }
  if (fd < 0) *error = errno;
  return fd;
}

static void reach_file(struct m6_symbols *y, pid_t via, const struct line *lines, uint32_t n, const struct line *l,
                       struct m6_sym_file *f)
{
  char path[4096 + 80], exe[4096];
  int e;
  if (!strcmp(f->path, "[vdso]")) {
    f->fd = open_vdso(&f->error);
    if (f->fd >= 0) f->error = 0;
    f->source = f->fd >= 0 ? M6_SYM_VDSO : M6_SYM_NONE;
    return;
  }
  snprintf(path, sizeof path, "%s%s", y->root, f->path);
  f->fd = open_regular(path, l->dev, l->ino, 1, &f->error);
  f->source = M6_SYM_PATH;
  if (f->fd < 0 && (f->error == EACCES || f->error == EPERM)) /* root is closed to us; the path may be the same here */
    f->fd = open_regular(f->path, l->dev, l->ino, 1, &e);
  if (f->fd < 0) {
    snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, via, l->start, l->end);
    f->fd = open_regular(path, l->dev, l->ino, 0, &e);
    f->source = M6_SYM_MAP_FILES;
  }
  if (f->fd < 0) {
    snprintf(path, sizeof path, "/proc/%d/exe", via);
    ssize_t got = readlink(path, exe, sizeof exe - 1);
    exe[got > 0 ? got : 0] = 0;
    if (got > 0 && !strncmp(exe, f->path, strlen(f->path))) f->fd = open_regular(path, l->dev, l->ino, 1, &e);
    f->source = M6_SYM_EXE;
  }
  if (f->fd < 0) {
    f->fd = image_from_memory(via, lines, n, f, &e);
    f->source = M6_SYM_MEMORY;
  }
  if (f->fd < 0) f->source = M6_SYM_NONE;
}

static struct m6_sym_file *file_of(struct m6_symbols *y, pid_t via, const struct line *lines, uint32_t n,
                                   const struct line *l)
{
  static const char deleted[] = " (deleted)";
  struct m6_sym_file *f;
  size_t length = strlen(l->path), cut = sizeof deleted - 1;
  if (length > cut && !strcmp(l->path + length - cut, deleted)) length -= cut;
  for (f = y->files; f; f = f->next)
    if (f->dev == l->dev && f->ino == l->ino && !strncmp(f->path, l->path, length) && !f->path[length]) return f;
  f = calloc(1, sizeof *f);
  if (!f || !(f->path = strndup(l->path, length))) {
    free(f);
    return NULL;
  }
  const char *slash = strrchr(f->path, '/');
  f->module = m6_symbols_intern(y, slash && slash[1] ? slash + 1 : f->path);
  f->dev = l->dev, f->ino = l->ino;
  f->start = l->start, f->end = l->end, f->offset = l->offset;
  f->fd = -1;
  reach_file(y, via, lines, n, l, f);
  f->next = y->files;
  y->files = f;
  return f;
}

struct m6_elf *m6_sym_elf(struct m6_symbols *y, struct m6_sym_file *f)
{
  if (f->tried) return f->elf;
  pthread_mutex_lock(&y->lock);
  f->tried = 1;
  f->kept_fd = f->fd;
  if (f->fd >= 0) f->elf = m6_elf_open(f->fd, f->path, y->kept_root);
  if (f->fd >= 0 && !f->elf) f->error = ENOEXEC, f->kept_fd = -1;
  f->fd = -1; /* taken over */
  pthread_mutex_unlock(&y->lock);
  return f->elf;
}

struct m6_elf *m6_sym_names_elf(struct m6_symbols *y, struct m6_sym_file *f)
{
  if (f->names_tried) return f->names;
  pthread_mutex_lock(&y->lock);
  int fd = f->tried ? f->kept_fd : f->fd, own = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
  pthread_mutex_unlock(&y->lock);
  f->names_tried = 1;
  if (own >= 0) f->names = m6_elf_open(own, f->path, y->kept_root);
  return f->names;
}

/* ---- snapshots
 * --------------------------------------------------------------------------------------------------------- */

/* Code in memfds and shared memory is a JIT's. */
static int is_file(const struct line *l)
{
  static const char *const not_files[] = {"/memfd:", "/dev/zero", "/SYSV"};
  if (!strcmp(l->path, "[vdso]")) return 1;
  for (size_t i = 0; i < sizeof not_files / sizeof *not_files; i++)
    if (!strncmp(l->path, not_files[i], strlen(not_files[i]))) return 0;
  return l->path[0] == '/' && l->ino;
}

/* Old mappings that nothing new lies upon stay. Both lists are sorted. */
static void merge(struct m6_symbols *y, struct m6_sym_range *fresh, uint32_t n)
{
  struct m6_sym_range *all = malloc((n + y->range_count + 1) * sizeof *all);
  if (!all) {
    free(fresh);
    return;
  }
  uint32_t out = 0, i = 0;
  for (uint32_t k = 0; k < y->range_count; k++) {
    const struct m6_sym_range *old = &y->ranges[k];
    while (i < n && fresh[i].end <= old->start) all[out++] = fresh[i++];
    if ((i == n || fresh[i].start >= old->end) && out < M6_SYM_RANGES_MAX) all[out++] = *old;
  }
  while (i < n) all[out++] = fresh[i++];
  free(y->ranges);
  free(fresh);
  y->ranges = all, y->range_count = out;
}

int m6_sym_snapshot(struct m6_symbols *y)
{
  int error = 0;
  pid_t via;
  char *text = read_maps(y->pid, &via, &error);
  if (!text) return error;
  y->via = via;
  snprintf(y->root, sizeof y->root, "/proc/%d/root", via);
  uint32_t count = 0, room = 1, n = 0;
  for (const char *p = text; (p = strchr(p, '\n')); p++) room++;
  struct line *lines = malloc(room * sizeof *lines);
  struct m6_sym_range *fresh = malloc(room * sizeof *fresh);
  if (!lines || !fresh) {
    free(lines);
    free(fresh);
    free(text);
    return ENOMEM;
  }
  for (char *p = text, *save; (p = strtok_r(p, "\n", &save)) && count < room; p = NULL)
    count += (uint32_t)parse_line(p, &lines[count]);
  for (uint32_t i = 0; i < count && n < M6_SYM_RANGES_MAX; i++) {
    const struct line *l = &lines[i];
    if (!l->executable || !strcmp(l->path, "[vsyscall]")) continue;
    struct m6_sym_file *f = is_file(l) ? file_of(y, via, lines, count, l) : NULL;
    fresh[n++] = (struct m6_sym_range){l->start, l->end, l->offset, f};
  }
  merge(y, fresh, n);
  memset(y->near, 0, sizeof y->near);
  free(lines);
  free(text);
  return 0;
}

const struct m6_sym_range *m6_sym_range_at(const struct m6_symbols *y, uint64_t address)
{
  uint32_t low = 0, high = y->range_count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (y->ranges[middle].start <= address) low = middle + 1;
    else high = middle;
  }
  return low && address < y->ranges[low - 1].end ? &y->ranges[low - 1] : NULL;
}
