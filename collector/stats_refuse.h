/* stats_refuse.h - why a process cannot be captured or shown: one set of words, with what to do about it, and one table
 * of exit statuses, for the collector and for every command of mach6.
 *
 * Part of the inspectors' library: libc only. The table below is the documentation of the exit statuses; the
 * collector's --help prints it. The functions give a status of it, with the words in `why`; 0 and nothing in `why` when
 * nothing is wrong. Foreign names are made harmless for a terminal. Thread-safe; not for signal handlers.
 */
#ifndef M6_STATS_REFUSE_H
#define M6_STATS_REFUSE_H

#include <stddef.h>
#include <sys/types.h>

#include "stats_targets.h"

/* X(name, status, meaning) */
#define M6_EXITS(X)                                                                                                    \
  X(OK, 0, "the session ended: by its time, by request, or with the target")                                           \
  X(OTHER, 1, "something else failed; the message says what")                                                          \
  X(USAGE, 2, "the command line makes no sense")                                                                       \
  X(NO_TARGET, 3, "no such process, or none with that name")                                                           \
  X(NOT_LOADED, 4, "the process lives, but the shim is not loaded in it")                                              \
  X(NOT_PERMITTED, 5, "the target is another user's, or its grant allows no further session")                          \
  X(VERSION, 6, "the shim in the target is of another version of mach6")                                               \
  X(INVALID, 7, "the target's segment is damaged or hostile")                                                          \
  X(CAPTURED, 8, "another collector captures this target already")                                                     \
  X(UNATTACHABLE, 9, "a static or privileged program: no preload reaches it")                                          \
  X(DUMP, 11, "the dump could not be written; if there was a session, it is over")

#define M6_EXIT_ENUM(name, status, meaning) M6_EXIT_##name = status,
enum m6_exit { M6_EXITS(M6_EXIT_ENUM) };

#define M6_HOW_TO_LOAD "start it with LD_PRELOAD=/path/to/libmach6.so, or by 'mach6 run -- PROGRAM'"
#define M6_NO_PROCESS "there is no process %d"
#define M6_NEEDS_SHIM "%s needs the shim, and --frame-symbol is without it: leave one of the two out"

#pragma GCC visibility push(hidden)
/* The newest usable image of a process. */
int m6_refuse_find(pid_t pid, struct m6_target *out, char *why, size_t room);
/* A segment with a problem: what is wrong with it. */
int m6_refuse_target(const struct m6_target *t, char *why, size_t room);
/* Its grant: are there sessions left? `started` without one that is taken over. */
int m6_refuse_grant(pid_t pid, uint32_t allowed, uint32_t started, char *why, size_t room);
#pragma GCC visibility pop

#endif
