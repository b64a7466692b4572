/* launch.h - the processes of `mach6 run`: the game, its collector, and a witness of signals. */
#ifndef M6_LAUNCH_H
#define M6_LAUNCH_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "program.h"

struct launch {
  char **argv; /* the program and its arguments */
  const struct program *program;
  const char *out;                       /* where the collector writes its dump, an absolute path; NULL: no dump */
  const char *frame_symbol;              /* frames by this function, and no shim; NULL: the usual */
  const char *level;                     /* NULL: the collector's default */
  unsigned ttl;                          /* 0: the collector's default */
  const char *sessions, *session_frames; /* a chain: how many, and how long each is in frames; or NULL */
  const char *budgets[8];                /* NAME=VALUE, as they were given; NULL ends them */
  uint32_t sites;                        /* mean bytes between sampled ones; 1 = every allocation, 0 = none */
  int profile;                           /* 0: only run it */

  uint64_t token; /* what its images and its collector know the run by */
  pid_t game, collector, witness;
  int go_fd;            /* one byte lets the game start */
  int failed_fd;        /* the game's errno when it could not be executed */
  int final_fd, end_fd; /* memfd for the final snapshot; our end of the pipe that says "it has ended" */
  int collector_err;    /* memfd with what the collector said; -1 when there is none */
  int witness_fd;
  int shim_fd;          /* kept open when the shim is reached through /proc/<pid>/fd */
  int status;           /* waitpid's, once the game has ended */
  int gone;             /* it has */
  int collector_signal; /* what ended the collector, once that has; 0: it ended by itself */
  sigset_t old_mask;
};

/* Where a part of mach6 lies: $variable, beside this program, or below its prefix. 0 when `out` is there and
 * readable. */
int launch_find(const char *variable, const char *file, const char *below_prefix, char *out, size_t room);
/* Starts the collector, then the game. 0, or an exit status (125..127) after a message; then nothing runs. */
int launch_start(struct launch *l, const char *shim, const char *collector);
/* Waits until the game has ended, passing on signals and stops. */
void launch_wait(struct launch *l);
/* Tells the collector that the game has ended and waits for it. 0 when the final snapshot is there. From then on INT,
 * TERM, QUIT and HUP make a call that waits fail with EINTR, and do nothing else. */
int launch_finish(struct launch *l);
/* Has one of them come? Then who is interrupted gives up. */
int launch_impatient(void);

#endif
