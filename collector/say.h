/* say.h - the collector's words to people: one message for a failure, notes on stderr. Exit statuses are in
 * stats_refuse.h. */
#ifndef M6_SAY_H
#define M6_SAY_H

#include <stddef.h>

#include "stats_refuse.h"

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
