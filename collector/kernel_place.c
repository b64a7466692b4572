/* kernel_place.c - resolves BINARY:SYMBOL, BINARY+OFFSET and PID:SYMBOL. */
#include "kernel_place.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kernel_fault.h"
#include "stats_refuse.h"

#define SHOWN 6 /* functions named when several fit */

static int regular(const char *path)
{
  struct stat s;
  return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

/* BINARY as it was written, to a path: 1 when there is such a file. */
static int find_binary(const char *text, size_t length, char path[PATH_MAX])
{
  if (length == 0 || length >= PATH_MAX) return 0;
  snprintf(path, PATH_MAX, "%.*s", (int)length, text);
  if (regular(path)) return 1;
  const char *dir = memchr(text, '/', length) ? NULL : getenv("PATH");
  while (dir && *dir) {
    size_t n = strcspn(dir, ":");
    int made = snprintf(path, PATH_MAX, "%.*s/%.*s", (int)n, dir, (int)length, text);
    if (n && made < PATH_MAX && regular(path)) return 1;
    dir += n + (dir[n] == ':');
  }
  return 0;
}

static void step_over_endbr(struct m6_place *p)
{
  static const unsigned char endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
  unsigned char code[4];
  int fd = open(p->path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (pread(fd, code, sizeof code, (off_t)p->offset) == sizeof code && memcmp(code, endbr64, sizeof code) == 0) {
    p->offset += sizeof code;
    p->after_endbr = 1;
  }
  close(fd);
}

/* One of the functions found in p->path, when it is one that can be probed. */
static int choose(struct m6_place *p, const char *name, const struct m6_symbol *found, int count, char *why,
                  size_t size)
{
  int indirect = 0;
  for (int i = 0; i < count && i < SHOWN; i++) indirect += found[i].indirect;
  if (indirect == count) {
    snprintf(why, size,
             "%s of %s is an indirect function: what runs is one of its variants, chosen when the program starts; "
             "probe that one",
             name, p->file);
    return ENOTSUP;
  }
  if (count > 1) {
    size_t n = (size_t)snprintf(why, size, "%d functions of %s answer to %s; say which:", count, p->file, name);
    for (int i = 0; i < count && i < SHOWN && n < size; i++)
      n += (size_t)snprintf(why + n, size - n, "\n  %s+0x%llx  %s", p->file, (unsigned long long)found[i].offset,
                            found[i].name);
    if (count > SHOWN && n < size) snprintf(why + n, size - n, "\n  and %d more", count - SHOWN);
    return EEXIST;
  }
  p->symbol = found[0];
  p->offset = found[0].offset;
  step_over_endbr(p);
  return 0;
}

static int bad_file(int err, const char *file, char *why, size_t size)
{
  struct m6_fault f;
  if (err == ENOEXEC) {
    snprintf(why, size, "%s is no ELF program or library", file);
    return err;
  }
  m6_fault_set(&f, err, M6_AREA_FILE, "read", "%s", file);
  m6_fault_text(&f, why, size);
  return err;
}

/* ---- BINARY ----------------------------------------------------------------------------------------------------- */

static int by_symbol(struct m6_place *p, const char *name, char *why, size_t size)
{
  struct m6_symbol found[SHOWN];
  int count = m6_symbol_find(p->path, name, found, SHOWN);
  if (count < 0) return bad_file(-count, p->file, why, size);
  if (count == 0) {
    snprintf(why, size,
             "no function %s is in %s, nor in debug information that belongs to it: it may be inlined, or its name "
             "stripped (then BINARY+OFFSET can reach it)",
             name, p->file);
    return ENOENT;
  }
  return choose(p, name, found, count, why, size);
}

static int by_offset(struct m6_place *p, uint64_t offset, char *why, size_t size)
{
  struct m6_symbol at;
  int known = m6_symbol_at(p->path, offset, &at);
  if (known == -EFAULT) {
    snprintf(why, size, "byte 0x%llx of %s is no code", (unsigned long long)offset, p->file);
    return EFAULT;
  }
  if (known < 0) return bad_file(-known, p->file, why, size);
  p->offset = offset;
  if (known) p->symbol = at;
  if (!known)
    snprintf(p->note, sizeof p->note,
             "no function is known at 0x%llx: it must be the first byte of an instruction, or the program "
             "will crash",
             (unsigned long long)offset);
  else if (at.offset != offset)
    snprintf(p->note, sizeof p->note,
             "0x%llx lies 0x%llx bytes inside %.200s: it must be the first byte of an instruction, or the "
             "program will crash",
             (unsigned long long)offset, (unsigned long long)(offset - at.offset), at.name);
  step_over_endbr(p);
  return 0;
}

/* ---- PID -------------------------------------------------------------------------------------------------------- */

/* How this process's file can be reached from here: by its name when that still is the same file, else by the kernel's
 * own link to it, which also works for files that were deleted or replaced and in other mount namespaces. */
static int reach(pid_t pid, const char *name, const char *range, ino_t inode, dev_t device, char path[PATH_MAX])
{
  struct stat s;
  snprintf(path, PATH_MAX, "%s", name);
  if (stat(path, &s) == 0 && s.st_ino == inode && s.st_dev == device) return 1;
  if (snprintf(path, PATH_MAX, "/proc/%d/root%s", (int)pid, name) < PATH_MAX && stat(path, &s) == 0 &&
      s.st_ino == inode)
    return 1;
  snprintf(path, PATH_MAX, "/proc/%d/exe", (int)pid);
  if (stat(path, &s) == 0 && s.st_ino == inode) return 1;
  snprintf(path, PATH_MAX, "/proc/%d/map_files/%s", (int)pid, range);
  return access(path, R_OK) == 0;
}

/* One line of /proc/PID/maps: 1 when it is code from a file. */
static int code_from_file(char *line, char range[64], ino_t *inode, dev_t *device, char **name)
{
  char flags[8];
  unsigned major, minor;
  unsigned long number;
  int at = 0;
  line[strcspn(line, "\n")] = 0;
  if (sscanf(line, "%63s %7s %*x %x:%x %lu %n", range, flags, &major, &minor, &number, &at) < 5 || !at) return 0;
  if (flags[2] != 'x' || number == 0 || line[at] != '/') return 0;
  *inode = number;
  *device = makedev(major, minor);
  *name = line + at;
  char *deleted = strstr(*name, " (deleted)");
  if (deleted && !deleted[10]) *deleted = 0;
  return 1;
}

static int by_pid(struct m6_place *p, pid_t pid, const char *name, char *why, size_t size)
{
  char maps[64], line[PATH_MAX + 128], range[64], *file;
  struct m6_symbol found[SHOWN], chosen[SHOWN];
  struct stat exe = {0};
  ino_t inode, seen = 0;
  dev_t device;
  int have = 0, files = 0, unreachable = 0;
  snprintf(maps, sizeof maps, "/proc/%d/exe", (int)pid);
  int exe_known = stat(maps, &exe) == 0;
  snprintf(maps, sizeof maps, "/proc/%d/maps", (int)pid);
  FILE *f = fopen(maps, "re");
  int err = f ? 0 : errno;
  errno = 0;
  while (f && fgets(line, sizeof line, f)) {
    char path[PATH_MAX];
    if (!code_from_file(line, range, &inode, &device, &file) || inode == seen) continue;
    seen = inode;
    files++;
    if (!reach(pid, file, range, inode, device, path)) {
      unreachable++;
      continue;
    }
    int count = m6_symbol_find(path, name, found, SHOWN);
    if (count <= 0) continue;
    /* The executable is what the dynamic linker searches first, wherever it is mapped. */
    if (have && !(exe_known && exe.st_ino == inode)) {
      snprintf(p->note, sizeof p->note, "%.200s is also in %.200s, which is not probed", name, file);
      continue;
    }
    if (have) snprintf(p->note, sizeof p->note, "%.200s is also in %.200s, which is not probed", name, p->file);
    have = count;
    memcpy(chosen, found, sizeof chosen);
    snprintf(p->path, sizeof p->path, "%s", path);
    snprintf(p->file, sizeof p->file, "%s", file);
  }
  if (f && !files && !err) err = ferror(f) ? errno : 0;
  if (f) fclose(f);
  p->pid = pid;
  if (err == ENOENT || err == ESRCH) {
    snprintf(why, size, M6_NO_PROCESS, (int)pid);
    return ESRCH;
  }
  if (have) return choose(p, name, chosen, have, why, size);
  if (err || !files) {
    struct m6_fault fault;
    err = m6_fault_set(&fault, err ? err : EACCES, M6_AREA_PROC, "read the mappings of process", "%d", (int)pid);
    m6_fault_text(&fault, why, size);
    return err;
  }
  snprintf(why, size,
           "no function %s is in the %d files that process %d has mapped%s: it may be inlined, or its name stripped "
           "(then BINARY+OFFSET can reach it)",
           name, files, (int)pid, unreachable ? " and that can be read" : "");
  return ENOENT;
}

int m6_place_in_process(pid_t pid, const char *file, const char *name, struct m6_place *p, char *why, size_t size)
{
  char maps[64], line[PATH_MAX + 128], range[64], *mapped;
  ino_t inode;
  dev_t device;
  int err = ENOENT;
  memset(p, 0, sizeof *p);
  p->pid = pid;
  snprintf(maps, sizeof maps, "/proc/%d/maps", (int)pid);
  snprintf(why, size, "process %d has no %s mapped", (int)pid, file);
  FILE *f = fopen(maps, "re");
  if (!f) {
    struct m6_fault fault;
    err = m6_fault_set(&fault, errno == ENOENT ? ESRCH : errno, M6_AREA_PROC, "read the mappings of process", "%d",
                       (int)pid);
    m6_fault_text(&fault, why, size);
    return err;
  }
  while (err == ENOENT && fgets(line, sizeof line, f)) {
    if (!code_from_file(line, range, &inode, &device, &mapped) || strcmp(strrchr(mapped, '/') + 1, file) != 0) continue;
    snprintf(p->file, sizeof p->file, "%s", mapped);
    if (!reach(pid, mapped, range, inode, device, p->path)) {
      snprintf(why, size, "%s, as process %d has it mapped, cannot be opened (deleted, and map_files is not allowed?)",
               mapped, (int)pid);
      err = EACCES;
    } else err = by_symbol(p, name, why, size);
  }
  fclose(f);
  return err;
}

/* ---- what was written ------------------------------------------------------------------------------------------- */

static int parse_number(const char *text, uint64_t *value)
{
  char *end;
  if (!isdigit((unsigned char)*text)) return 0;
  errno = 0;
  *value = strtoull(text, &end, 0);
  return *end == 0 && errno == 0;
}

int m6_place_find(const char *text, struct m6_place *p, char *why, size_t size)
{
  memset(p, 0, sizeof *p);
  const char *colon = strchr(text, ':');
  size_t digits = strspn(text, "0123456789");
  uint64_t offset, pid = 0;
  int by_number = colon && digits && text + digits == colon && colon[1];
  if (by_number) {
    errno = 0;
    pid = strtoull(text, NULL, 10);
    if (errno == 0 && pid > 0 && pid <= INT_MAX) return by_pid(p, (pid_t)pid, colon + 1, why, size);
  }
  for (; colon; colon = strchr(colon + 1, ':')) {
    if (!colon[1] || !find_binary(text, (size_t)(colon - text), p->path)) continue;
    snprintf(p->file, sizeof p->file, "%s", p->path);
    return by_symbol(p, colon + 1, why, size);
  }
  const char *plus = strrchr(text, '+');
  if (plus && parse_number(plus + 1, &offset) && find_binary(text, (size_t)(plus - text), p->path)) {
    snprintf(p->file, sizeof p->file, "%s", p->path);
    return by_offset(p, offset, why, size);
  }
  if (strchr(text, ':') || (plus && parse_number(plus + 1, &offset))) {
    if (by_number) snprintf(why, size, "%.*s is no process, and no file is named so", (int)digits, text);
    else
      snprintf(why, size, "there is no file as named before the %c in %s, here or in PATH",
               strchr(text, ':') ? ':' : '+', text);
    return ENOENT;
  }
  snprintf(why, size, "%s is neither BINARY:SYMBOL nor BINARY+OFFSET nor PID:SYMBOL", text);
  return EINVAL;
}
