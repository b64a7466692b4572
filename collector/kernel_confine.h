/* kernel_confine.h - what confines this process: which capabilities count, whether it can get more, and whether a
 * seccomp filter, a namespace or lockdown stands between it and the kernel. kernel_fault.c makes text of it. Calls libc
 * and the kernel only.
 *
 * A refusal has several makers that use the same errno. A seccomp filter is told from the kernel by asking for what the
 * kernel always answers with another error, before it looks at any right: that filter answers as it does to everything.
 */
#ifndef M6_KERNEL_CONFINE_H
#define M6_KERNEL_CONFINE_H

#include <stdint.h>

#include "kernel_fault.h"

enum { M6_CAP_PTRACE = 19, M6_CAP_ADMIN = 21, M6_CAP_PERFMON = 38, M6_CAP_BPF = 39, M6_CAP_NONE = 64 };

struct m6_confinement {
  uint64_t effective, bounding; /* capabilities, a bit each */
  int user_namespace;           /* not the initial one: none of them counts for what mach6 asks for */
  int pid_namespace;            /* nor this: a container, most likely */
  int no_new_privs;             /* files give no capabilities */
  int seccomp;                  /* a filter is there */
};
void m6_confinement_read(struct m6_confinement *c);
/* Does it have the capability, so that the kernel takes it? */
int m6_confinement_has(const struct m6_confinement *c, unsigned capability);
/* 1 and the hint when the refusal is not the kernel's own rights at work: a filter, or lockdown. */
int m6_confinement_hint(const struct m6_confinement *c, enum m6_area area, int err, struct m6_hint *hint);
/* The command that gives the capability, here: the usual one when nothing is in its way; adds to the setting what is.
 * */
void m6_confinement_open(const struct m6_confinement *c, unsigned capability, const char *usual, struct m6_hint *hint);

#endif
