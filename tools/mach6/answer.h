/* answer.h - asks a command: a text to its standard input, what it prints is the answer.
 *
 * Promises: it takes no longer than it may, whatever the command does, its children included as long as they stay in
 * its process group; no more of the answer is kept than may be, cut at a character, and the rest is counted; what was
 * sent to mach6 to end it (SIGINT, SIGTERM, SIGHUP, SIGQUIT) ends the command as well. The command's standard error is
 * ours, and signals are for it as they were for us. Its group is its own, so it is never the terminal's: it is asked by
 * a text, not by keys.
 */
#ifndef M6_ANSWER_H
#define M6_ANSWER_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

struct answer {
  char *bytes; /* malloc'ed, n of them; NULL: there is none */
  size_t n;
  uint64_t more;   /* bytes beyond what may be kept */
  uint64_t taken;  /* bytes of the text that the command took */
  uint64_t ns;     /* how long it was */
  int status;      /* waitpid's word; of a command that could not be waited for, that of SIGKILL */
  int late, ended; /* its time was over; the signal to us that ended it, or 0 */
  int held;        /* late, but it had ended: something that it started held its output */
};

/* Runs `path` with `argv`, with a signal mask, or with ours (NULL). 0, or an errno: it could not be started. a->bytes
 * is to be freed in either case. */
int answer_get(const char *path, char *const *argv, const sigset_t *mask, const char *text, size_t n, uint64_t most,
               uint64_t ms, struct answer *a);

#endif
