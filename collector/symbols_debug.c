/* symbols_debug.c - see symbols_debug.h. May call elfutils (libelf, libdw) and libc. */
#include "symbols_debug.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The CRC of .gnu_debuglink: CRC-32 as in IEEE 802.3, over the whole file. */
static int crc_matches(int fd, uint32_t want)
{
  uint32_t table[256], crc = ~0u;
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
    table[i] = c;
  }
  unsigned char buffer[16384];
  off_t at = 0;
  for (ssize_t n; (n = pread(fd, buffer, sizeof buffer, at)) > 0; at += n)
    for (ssize_t i = 0; i < n; i++) crc = table[(crc ^ buffer[i]) & 255] ^ crc >> 8;
  return ~crc == want;
}

void m6_debug_hex(const void *bits, ssize_t n, char out[M6_BUILD_ID_TEXT])
{
  const unsigned char *b = bits;
  *out = 0;
  for (ssize_t i = 0; i < n && 2 * i + 3 <= M6_BUILD_ID_TEXT; i++) snprintf(out + 2 * i, 3, "%02x", b[i]);
}

static int same_build(int fd, const char *build_id)
{
  char found[M6_BUILD_ID_TEXT] = "";
  elf_version(EV_CURRENT);
  Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
  const void *bits;
  ssize_t n = elf ? dwelf_elf_gnu_build_id(elf, &bits) : -1;
  if (n > 0) m6_debug_hex(bits, n, found);
  elf_end(elf);
  return found[0] && !strcmp(found, build_id);
}

int m6_debug_try(const struct m6_debug_of *of, const char *path)
{
  struct stat st;
  if (stat(path, &st) || !S_ISREG(st.st_mode)) return -1;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return -1;
  if (of->build_id[0] ? same_build(fd, of->build_id) : crc_matches(fd, of->crc)) return fd;
  close(fd);
  return -1;
}

int m6_debug_local(const struct m6_debug_of *of, char **found)
{
  char path[4096];
  const char *slash = strrchr(of->path, '/');
  int directory = slash ? (int)(slash - of->path) : 0, fd = -1;
  static const char *const by_link[] = {"%s%.*s/%s", "%s%.*s/.debug/%s", "%s/usr/lib/debug%.*s/%s"};
  *found = NULL;
  for (int host = 0; host < 2 && fd < 0; host++) {
    const char *root = host ? "" : of->root;
    if (host && !of->root[0]) break;
    if (of->build_id[0]) {
      snprintf(path, sizeof path, "%s/usr/lib/debug/.build-id/%.2s/%s.debug", root, of->build_id, of->build_id + 2);
      fd = m6_debug_try(of, path);
    }
    for (size_t i = 0; i < sizeof by_link / sizeof *by_link && fd < 0 && of->link && of->link[0] != '/'; i++) {
      snprintf(path, sizeof path, by_link[i], root, directory, of->path, of->link);
      fd = m6_debug_try(of, path);
    }
  }
  if (fd < 0 || (*found = strdup(path))) return fd;
  close(fd);
  return -1;
}
