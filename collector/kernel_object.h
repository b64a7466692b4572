/* kernel_object.h - opening the kernel programs that are embedded in this library, and letting go of them in the right
 * order.
 *
 * Calls libbpf. Every resource here has a cleanup attribute, so that each way out of a function closes what it opened,
 * last opened first: links before programs and maps, when they are declared in that order (object, memory, link).
 */
#ifndef M6_KERNEL_OBJECT_H
#define M6_KERNEL_OBJECT_H

#include <bpf/libbpf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_fault.h"

/* ---- resources that close themselves ---------------------------------------------------------------------------- */
static inline void m6_close_fd(int *fd)
{
  if (*fd >= 0) close(*fd);
  *fd = -1;
}
static inline void m6_close_object(struct bpf_object **object)
{
  bpf_object__close(*object); /* NULL is fine */
  *object = NULL;
}
struct m6_mapping {
  void *at; /* NULL: none */
  size_t bytes;
};
static inline void m6_unmap(struct m6_mapping *m)
{
  if (m->at) munmap(m->at, m->bytes);
  m->at = NULL;
}
#define M6_AUTO_FD __attribute__((cleanup(m6_close_fd))) int
#define M6_AUTO_OBJECT __attribute__((cleanup(m6_close_object))) struct bpf_object *
#define M6_AUTO_MAPPING __attribute__((cleanup(m6_unmap))) struct m6_mapping
/* Hands a descriptor on: the variable no longer closes it. */
static inline int m6_keep_fd(int *fd)
{
  int kept = *fd;
  *fd = -1;
  return kept;
}

/* ---- embedded objects (bpf/embed.S) ----------------------------------------------------------------------------- */
#define M6_BLOB(name)                                                                                                  \
  extern const char m6_blob_##name[];                                                                                  \
  extern const uint64_t m6_blob_##name##_size
#define m6_open_blob(name, object, fault) m6_object_open(#name, m6_blob_##name, m6_blob_##name##_size, object, fault)

/* 0 and *object, not yet loaded; or an errno and the fault. */
int m6_object_open(const char *name, const void *bytes, size_t size, struct bpf_object **object,
                   struct m6_fault *fault);
/* Loads it: 0, or an errno and the fault, whose text holds the line that libbpf or the verifier said last. */
int m6_object_load(const char *name, struct bpf_object *object, struct m6_fault *fault);
/* Sets the object's constants (its only .rodata, one struct) before it is loaded: 0 or an errno. */
int m6_object_configure(struct bpf_object *object, const void *config, size_t size);
/* A map's descriptor by name; -1 when there is none. */
int m6_object_map(struct bpf_object *object, const char *name);

/* The running kernel's number of CPU numbers, and of them the highest + 1 that there may be. */
int m6_possible_cpus(void);
/* Are this process's pids the kernel's own? Inside a pid namespace they are not, and a program would take the host's
 * namesake. */
int m6_pids_are_global(void);

#endif
