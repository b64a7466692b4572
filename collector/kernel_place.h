/* kernel_place.h - where a probe goes: from what a person writes to a file and an offset in it.
 *
 *   BINARY:SYMBOL    every process that runs BINARY; without a slash it is looked for here, then in PATH
 *   BINARY+OFFSET    the same, by the offset in the file (0x... or decimal)
 *   PID:SYMBOL       that process alone: its executable, then its libraries in the order in which they are mapped
 *
 * Colons and spaces in paths, and colons and plus signs in C++ names, are understood: BINARY is the shortest beginning
 * that is a file. Where the code begins with endbr64 the place is 4 bytes later, which every call passes as well: the
 * kernel emulates what follows more cheaply. Calls kernel_symbol; reads /proc of PID.
 */
#ifndef M6_KERNEL_PLACE_H
#define M6_KERNEL_PLACE_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel_symbol.h"

struct m6_place {
  char path[PATH_MAX];     /* what the kernel is given */
  char file[PATH_MAX];     /* what people are shown */
  struct m6_symbol symbol; /* name empty: none is known there */
  uint64_t offset;         /* in the file */
  pid_t pid;               /* 0 = every process */
  int after_endbr;
  char note[512]; /* what the user should know; empty when nothing */
};

/* 0, or an errno and the reason in `why`: EINVAL when it cannot be read that way, EEXIST when several functions fit. */
int m6_place_find(const char *text, struct m6_place *place, char *why, size_t why_size);
/* The function `name` of the file that process `pid` has mapped as code and whose name, without folders, is `file`:
 * also when it was deleted or replaced since, or lies in another mount namespace. 0, or as above; ENOENT when it has no
 * such file. */
int m6_place_in_process(pid_t pid, const char *file, const char *name, struct m6_place *place, char *why,
                        size_t why_size);

#endif
