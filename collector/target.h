/* target.h - finding a target, making sure that it is the one that is meant, and mapping its segment.
 *
 * Promise: a segment is taken only when it is a regular file of the process's own user, of the right size and version,
 * and written by the process that has the pid now: one that started later than the segment was made is another. Each
 * refusal is one message and one exit status (stats_refuse.h). A mapped segment is locked (flock), which tells other
 * collectors and m6_reap.
 */
#ifndef M6_TARGET_H
#define M6_TARGET_H

#include "capture.h"
#include "say.h"
#include "stats_targets.h"

struct m6_image { /* one loaded shim: a process between two execs */
  struct m6_target who;
  int fd, pidfd; /* pidfd -1: the process was gone already, or this kernel has none */
  void *segment; /* NULL when let go */
  uint64_t exe_device, exe_inode;
  int exe_known;
  uint64_t stack;      /* as in struct m6_proc */
  int dead;            /* nobody writes any more */
  int failed;          /* its memory went away or made no sense */
  int settled;         /* dead, and its last readings are taken */
  uint32_t end_reason; /* enum m6_end, once dead */
  uint32_t exec;       /* M6_EXEC_*, as its shim noted; and for which program: "" = not known */
  char became[256];
  uint64_t cpu_start_ns, cpu_ns;
  struct m6_totals base, now; /* totals at the session's start, and last */
  uint64_t base_presents[M6_STREAMS];
  struct m6_capture *capture;    /* NULL: no record came yet */
  struct m6_kernel_side *kernel; /* of its process, whoever opened it; NULL: none */
  char exe[1024];
  char caller[M6_STREAMS][256];
  uint32_t session;           /* the number that was asked for */
  uint64_t site_ns;           /* the collector's own CPU time for its sampled allocations */
  uint32_t site_interval;     /* that its shim is told; 0 = no sites */
  struct m6_site_side *sites; /* made with the capture, when they are wanted */
};

/* The target with that pid; its newest image. 0 or an exit status with *e filled. */
int m6_find_pid(pid_t pid, struct m6_target *out, struct m6_error *e);
/* The one living target whose name matches a glob. */
int m6_find_name(const char *glob, struct m6_target *out, struct m6_error *e);

/* Why it cannot be captured: an exit status, *e filled. For what has a problem. */
int m6_target_refuse(const struct m6_target *who, struct m6_error *e);

/* Maps it. `run_token` != 0: an image of that run, which may be dead already. */
int m6_image_open(struct m6_image *i, const struct m6_target *who, uint64_t run_token, struct m6_error *e);
/* The file goes, and the lock; what is mapped stays. */
void m6_image_unlink(struct m6_image *i);
/* Unmaps and unlocks; `unlink_it`: the file goes too. The capture stays. */
void m6_image_release(struct m6_image *i, int unlink_it);
/* Does its process still run this image? Sets dead and end_reason when not. The first looks at the pidfd alone and
 * is cheap, the second also whether exec has put another program in its place. */
int m6_image_running(struct m6_image *i);
int m6_image_alive(struct m6_image *i);
/* Has its shim noted an exec that did not come back? 1: then exec and became are filled. It may be under way. */
int m6_image_exec(struct m6_image *i);
/* Takes what only /proc knows: CPU time, the executable's path, modules of streams' first callers. */
void m6_image_look(struct m6_image *i);

/* All foreign accesses go through this: fn(arg) under the guard; a fault fails the image. 0 = fine. */
int m6_image_guarded(struct m6_image *i, void (*fn)(void *), void *arg);

#endif
