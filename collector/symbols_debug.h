/* symbols_debug.h - the separate debug file of an ELF file, where distributions and people put it on this machine.
 *
 * In the target's file system first, then in this one's: by build-id in /usr/lib/debug/.build-id, then by the name of
 * .gnu_debuglink beside the file, in .debug there, and in /usr/lib/debug. A file is taken only when it has the same
 * build-id; where there is none, when its CRC is the link's.
 * No network (symbols_debuginfod.h asks that). Any thread. Callers: symbols_elf.c, symbols_debuginfod.c,
 * kernel_symbol.c.
 */
#ifndef M6_SYMBOLS_DEBUG_H
#define M6_SYMBOLS_DEBUG_H

#include <stdint.h>
#include <sys/types.h>

#define M6_BUILD_ID_TEXT 130 /* bytes of a build-id in hex, with its NUL */

struct m6_debug_of {
  const char *path;     /* of the file itself */
  const char *root;     /* where its file system begins; "" for this one's */
  const char *build_id; /* "": none */
  const char *link;     /* NULL: none */
  uint32_t crc;         /* of the link */
};

int m6_debug_local(const struct m6_debug_of *of,
                   char **found); /* a descriptor, and its path (malloc'ed); -1 and NULL */
int m6_debug_try(const struct m6_debug_of *of, const char *path); /* a descriptor when it is this file's; -1 */
void m6_debug_hex(const void *bits, ssize_t n, char out[M6_BUILD_ID_TEXT]); /* "" when n is none */

#endif
