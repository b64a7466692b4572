/* say.h - the collector's words to people: exit statuses, one message for a failure, notes on stderr.
 *
 * The table below is the documentation of the exit statuses; --help prints it.
 */
#ifndef M6_SAY_H
#define M6_SAY_H

#include <stddef.h>

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

struct m6_error {
  int status; /* enum m6_exit */
  char text[768];
};
/* Fills *e; gives the status. */
int m6_fail(struct m6_error *e, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

enum m6_loudness { M6_QUIET = -1, M6_NORMAL = 0, M6_VERBOSE = 1 };
extern int m6_loudness;
/* One line on stderr when the loudness is at least `level`. */
void m6_say(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Foreign text for a message: printable ASCII and valid UTF-8 stay, the rest becomes '?'. A static buffer, for one
 * use at a time. */
const char *m6_plain(const char *text, size_t n);

#endif
