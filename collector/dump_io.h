/* dump_io.h - one file operation at a time that does not block its caller: by io_uring, or by a thread where that is
 * refused.
 *
 * Promise: m6_io_start and m6_io_poll return at once; an operation's buffers must hold until it is done. A kernel that
 * has io_uring but not one of the operations gets that one from a plain call. Callers: dump_write.c. One thread calls;
 * the thread that works blocks all signals. Calls: liburing, pthread.
 */
#ifndef M6_DUMP_IO_H
#define M6_DUMP_IO_H

#include <stddef.h>
#include <sys/types.h>

/* NAME: gives a nameless file the name `temp` and renames that to `to`, one right after the other: nobody can be killed
 * for long in between. */
enum m6_io_what { M6_IO_WRITE, M6_IO_SYNC, M6_IO_NAME, M6_IO_RENAME };
struct m6_io_op {
  enum m6_io_what what;
  int fd;            /* WRITE, SYNC: the file. NAME, RENAME: the folder of all names */
  const void *bytes; /* WRITE */
  size_t n;          /* WRITE */
  off_t at;          /* WRITE */
  const char *from;  /* NAME: a path by which the file can be linked */
  const char *temp;  /* a name in the folder */
  const char *to;    /* a name in the folder */
};

struct m6_io;
/* `plain`: not io_uring. *refused: the errno that closed io_uring, 0 when it is used or was not asked for. NULL: no
 * memory, or not even a thread (errno). */
struct m6_io *m6_io_open(int plain, int *refused);
void m6_io_start(struct m6_io *io, const struct m6_io_op *op);
/* 1: it is done, *result is what the call gave, or minus an errno. 0: not yet; with `wait` it is waited for. */
int m6_io_poll(struct m6_io *io, int wait, ssize_t *result);
/* Waits for what is under way. */
void m6_io_close(struct m6_io *io);

#endif
