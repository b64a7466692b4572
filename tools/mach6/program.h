/* program.h - what is the file that shall be started, and can the shim go into it? */
#ifndef M6_PROGRAM_H
#define M6_PROGRAM_H

#include <limits.h>
#include <stddef.h>

struct program {
  char path[PATH_MAX]; /* as execve will get it */
  int attachable;      /* 1: the shim may be preloaded */
  char why_not[512];   /* else the reason: a clause that follows "NAME is not profiled: " */
  char sanitizer[64];  /* soname of a sanitizer's runtime that must come before the shim; "" */
};

/* Finds `name` as execvp would. 0; ENOENT, EACCES or another errno of what was found last. */
int program_find(const char *name, struct program *out);
/* Looks into it: ELF header, interpreter, privileges; for a script, into its interpreter. Never fails: what cannot be
 * read is attachable, and the loader decides. */
void program_inspect(struct program *p);

#endif
