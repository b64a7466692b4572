/* dump_io.c - see dump_io.h. */
#include "dump_io.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct m6_io {
  int use_ring, pending; /* pending: completions that are still to come */
  struct m6_io_op op;
  struct io_uring ring;
  pthread_t thread;
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t changed;
  int todo, done, leave;
  ssize_t result;
};

static ssize_t plainly(const struct m6_io_op *op)
{
  ssize_t n = -1;
  switch (op->what) {
  case M6_IO_WRITE: n = pwrite(op->fd, op->bytes, op->n, op->at); break;
  case M6_IO_SYNC: n = fsync(op->fd); break;
  case M6_IO_NAME:
    n = linkat(AT_FDCWD, op->from, op->fd, op->temp, AT_SYMLINK_FOLLOW);
    if (n < 0 && errno != EEXIST) break; /* it has it already: from a first try, in which the second step was refused */
    __attribute__((fallthrough));
  case M6_IO_RENAME: n = renameat(op->fd, op->temp, op->fd, op->to); break;
  }
  return n < 0 ? -errno : n;
}

static void *work(void *arg)
{
  struct m6_io *io = arg;
  pthread_mutex_lock(&io->lock);
  for (;;) {
    while (!io->todo && !io->leave) pthread_cond_wait(&io->changed, &io->lock);
    if (!io->todo) break;
    io->todo = 0;
    pthread_mutex_unlock(&io->lock);
    ssize_t result = plainly(&io->op);
    pthread_mutex_lock(&io->lock);
    io->result = result;
    io->done = 1;
    pthread_cond_broadcast(&io->changed);
  }
  pthread_mutex_unlock(&io->lock);
  return NULL;
}

static int start_thread(struct m6_io *io)
{
  sigset_t all, before;
  sigfillset(&all);
  pthread_mutex_init(&io->lock, NULL);
  pthread_cond_init(&io->changed, NULL);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int e = pthread_create(&io->thread, NULL, work, io);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return e;
}

struct m6_io *m6_io_open(int plain, int *refused)
{
  struct m6_io *io = calloc(1, sizeof *io);
  *refused = 0;
  if (io == NULL) return NULL;
  if (!plain) {
    int e = io_uring_queue_init(4, &io->ring, 0);
    io->use_ring = e == 0;
    *refused = -e;
  }
  if (!io->use_ring && (errno = start_thread(io)) != 0) {
    free(io);
    return NULL;
  }
  return io;
}

void m6_io_start(struct m6_io *io, const struct m6_io_op *op)
{
  io->pending = 1;
  io->result = 0;
  if (!io->use_ring) {
    pthread_mutex_lock(&io->lock);
    io->op = *op;
    io->todo = 1;
    io->done = 0;
    pthread_cond_broadcast(&io->changed);
    pthread_mutex_unlock(&io->lock);
    return;
  }
  io->op = *op;
  io->done = 0;
  struct io_uring_sqe *q = io_uring_get_sqe(&io->ring);
  if (q == NULL) { /* cannot be: one at a time, in a queue of four */
    io->result = plainly(op);
    io->done = 1;
    return;
  }
  switch (op->what) {
  case M6_IO_WRITE: io_uring_prep_write(q, op->fd, op->bytes, (unsigned)op->n, (__u64)op->at); break;
  case M6_IO_SYNC: io_uring_prep_fsync(q, op->fd, 0); break;
  case M6_IO_NAME:
    io_uring_prep_linkat(q, AT_FDCWD, op->from, op->fd, op->temp, AT_SYMLINK_FOLLOW);
    q->flags |= IOSQE_IO_LINK | IOSQE_ASYNC;
    io->pending = 2;
    q = io_uring_get_sqe(&io->ring);
    __attribute__((fallthrough));
  case M6_IO_RENAME: io_uring_prep_renameat(q, op->fd, op->temp, op->fd, op->to, 0); break;
  }
  q->flags |= IOSQE_ASYNC; /* the kernel's own worker copies, too: not this thread within the submission */
  int e = io_uring_submit(&io->ring);
  if (e < 0) {
    io->result = e;
    io->done = 1;
  }
}

int m6_io_poll(struct m6_io *io, int wait, ssize_t *result)
{
  if (!io->pending) return 0;
  if (!io->use_ring) {
    pthread_mutex_lock(&io->lock);
    while (wait && !io->done) pthread_cond_wait(&io->changed, &io->lock);
    int done = io->done;
    *result = io->result;
    pthread_mutex_unlock(&io->lock);
    io->pending = !done;
    return done;
  }
  while (!io->done) {
    struct io_uring_cqe *c = NULL;
    int e;
    while ((e = wait ? io_uring_wait_cqe(&io->ring, &c) : io_uring_peek_cqe(&io->ring, &c)) == -EINTR) {}
    if (e == -EAGAIN) return 0;
    ssize_t got = e;
    if (e >= 0) {
      got = c->res;
      io_uring_cqe_seen(&io->ring, c);
    }
    if (io->result == 0) io->result = got; /* of two, the first that failed: the other is cancelled then */
    if (e >= 0 && --io->pending > 0) continue;
    io->done = 1;
    /* An operation that this kernel's io_uring does not have. */
    if (io->result == -EINVAL || io->result == -EOPNOTSUPP) io->result = plainly(&io->op);
  }
  *result = io->result;
  io->pending = 0;
  return 1;
}

void m6_io_close(struct m6_io *io)
{
  ssize_t ignored;
  if (io == NULL) return;
  if (io->pending) m6_io_poll(io, 1, &ignored);
  if (io->use_ring) {
    io_uring_queue_exit(&io->ring);
  } else {
    pthread_mutex_lock(&io->lock);
    io->leave = 1;
    pthread_cond_broadcast(&io->changed);
    pthread_mutex_unlock(&io->lock);
    pthread_join(io->thread, NULL);
    pthread_cond_destroy(&io->changed);
    pthread_mutex_destroy(&io->lock);
  }
  free(io);
}
