/* lost_exec.h - at which exec a run lost the shim: the last image of a process became a program without one.
 *
 * Promise: an entry is there as long as no later image of its process is known. It is what the image's shim noted
 * before the exec, so it does not matter how soon the program ended; an exec past the shim (by a system call) is known
 * when it was seen in /proc. Bounded: of very many, the first ones and the direct child's are kept. Called by run.c
 * alone.
 */
#ifndef M6_LOST_EXEC_H
#define M6_LOST_EXEC_H

#include "target.h"

struct m6_lost_exec {
  pid_t pid;
  uint64_t load_ns; /* of the image */
  uint32_t why;     /* enum m6_lost (shm/snapshot.h) */
  char from[64];    /* what the image called itself */
  char to[256];     /* the program that it became; "" = not known */
};

#define M6_LOST_KEPT 16
struct m6_lost_execs {
  struct m6_lost_exec list[M6_LOST_KEPT];
  size_t count;
};

/* An image that is dead by an exec. `root`: its pid is always kept. */
void m6_lost_exec_add(struct m6_lost_execs *l, const struct m6_image *i, pid_t root);
/* A later image of this process is there: the shim was not lost. */
void m6_lost_exec_found(struct m6_lost_execs *l, pid_t pid, uint64_t load_ns);
/* Is this image the last one of its process? NULL: no, or it did not become anything. */
const struct m6_lost_exec *m6_lost_exec_of(const struct m6_lost_execs *l, const struct m6_image *i);
/* The one to tell of: this image's, the direct child's, the last; NULL: none. */
const struct m6_lost_exec *m6_lost_exec_first(const struct m6_lost_execs *l, const struct m6_image *i, pid_t root);

#endif
