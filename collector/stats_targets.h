/* stats_targets.h - which targets there are on this machine, whose they are, and which segments nobody needs any more.
 *
 * Part of the inspectors' library: `mach6 ps`, the dashboard and the collector share it. Reads segments with pread, so
 * a truncated one is a short read and never a fault.
 * Thread-safe; not for signal handlers.
 */
#ifndef M6_STATS_TARGETS_H
#define M6_STATS_TARGETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../shm/layout.h"

enum m6_target_problem {
  M6_TARGET_FINE,
  M6_TARGET_UNREADABLE, /* error says why: EACCES = another user's */
  M6_TARGET_UNFINISHED, /* no magic yet: its shim is still at it, or died at it */
  M6_TARGET_VERSION,    /* of another version of mach6 */
  M6_TARGET_INVALID,    /* not a regular file, the wrong size, or not its process's user's */
  M6_TARGET_STALE,      /* its process is gone, or the pid is another process's by now */
  M6_TARGET_NAMESPACE,  /* its pid counts in another pid namespace */
};

struct m6_target {
  char file[64]; /* name in M6_SEGMENT_DIR */
  pid_t via;     /* 0, or the process in whose M6_SEGMENT_DIR it is: that is not ours */
  pid_t pid;
  uint64_t load_ns;
  uint32_t uid;     /* owner of the file */
  uint32_t problem; /* enum m6_target_problem; what follows holds when FINE, STALE or NAMESPACE */
  int error;
  int alive; /* the process that wrote it still runs */
  int mine;  /* may this user start a session? */
  uint32_t version;
  uint32_t state; /* enum m6_state */
  uint32_t pointer_bits, unseen;
  uint32_t sessions_allowed, sessions_started;
  uint32_t collector_pid; /* who captures it now; 0 = nobody */
  uint64_t run_token;
  uint64_t exec_inode; /* of the segment, when its shim noted an exec that did not come back; 0 */
  uint64_t pidns;      /* NAMESPACE: which one */
  char name[64];       /* as the target gave it: foreign bytes, NUL-terminated */
};

/* pid and load time in a segment's file name: 1 = it is one. */
int m6_target_parse(const char *file, pid_t *pid, uint64_t *load_ns);
/* Fills *out from one file of M6_SEGMENT_DIR: ours, or (not 0) that of the process `via`. */
void m6_target_look(const char *file, pid_t via, struct m6_target *out);
#define M6_TARGET_PATH 160
void m6_target_path(const struct m6_target *t, char path[M6_TARGET_PATH]);
/* Has the process another M6_SEGMENT_DIR than we? 1 or 0; -1: we may not know. */
int m6_shm_elsewhere(pid_t pid);
/* Every segment in such a folder, as far as we may look into its processes. Looks through all of /proc. */
void m6_targets_elsewhere(void (*visit)(void *arg, const char *file, pid_t via), void *arg);
/* Finds the process of a target with problem NAMESPACE, whose namespace must be one inside of ours: then it is FINE,
 * its pid the one here; or it is STALE, because it is gone. Left as it is where neither can be known. */
void m6_target_resolve(struct m6_target *t);
/* All of them, by pid, newest image of a pid first. *list is the caller's to free(). 0 or an errno. The second one
 * leaves out those elsewhere, for who asks often. */
int m6_targets_list(struct m6_target **list, size_t *count);
int m6_targets_list_here(struct m6_target **list, size_t *count);
/* Unlinks segments and live stats whose process is gone, of one's own user (root: of all), unless a collector holds
 * them or the run that they belong to may still want them; and control sockets of collectors that are gone. Gives how
 * many went. */
size_t m6_reap(void);
/* What is left of a run whose collector is gone: its segments, whoever still writes them, and that collector's live
 * stats. */
size_t m6_reap_run(uint64_t token, pid_t collector);

#endif
