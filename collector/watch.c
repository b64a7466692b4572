/* watch.c - see watch.h. */
#include "watch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "../shm/layout.h"

#define BRIEF_NS 100000 /* and the timer's slack */

int m6_watch_open(struct m6_watch *w, int end_fd, int in_run)
{
  memset(w, -1, sizeof *w);
  w->ending_known = w->ending = 0;
  w->epoll = epoll_create1(EPOLL_CLOEXEC);
  if (w->epoll < 0) return errno;
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGTERM);
  if (in_run) {
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
  } else {
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGHUP);
  }
  signal(SIGPIPE, SIG_IGN);
  signal(
    SIGXFSZ,
    SIG_IGN); /* a file-size limit is an error like others: live stats, a dump or the final snapshot may be missing */
  sigprocmask(SIG_BLOCK, &taken, NULL);
  w->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  if (w->signals < 0) return errno;
  m6_watch_add(w, w->signals);
  w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (w->inotify >= 0 && inotify_add_watch(w->inotify, M6_SEGMENT_DIR, IN_CREATE | IN_MOVED_TO) < 0) {
    close(w->inotify);
    w->inotify = -1;
  }
  if (w->inotify >= 0) m6_watch_add(w, w->inotify);
  w->end = end_fd;
  if (end_fd >= 0) m6_watch_add(w, end_fd);
  return 0;
}

void m6_watch_close(struct m6_watch *w)
{
  if (w->inotify >= 0) close(w->inotify);
  if (w->signals >= 0) close(w->signals);
  if (w->epoll >= 0) close(w->epoll);
}

void m6_watch_add(struct m6_watch *w, int fd)
{
  struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
  epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e);
}
static void drop(struct m6_watch *w, int fd) { epoll_ctl(w->epoll, EPOLL_CTL_DEL, fd, NULL); }

static void take_signal(struct m6_watch *w, struct m6_woken *woken)
{
  struct signalfd_siginfo s;
  while (read(w->signals, &s, sizeof s) == (ssize_t)sizeof s) woken->signal = (int)s.ssi_signo;
}

static void take_end(struct m6_watch *w, struct m6_woken *woken)
{
  char got[64];
  ssize_t n = read(w->end, got, sizeof got);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  woken->ended = 1;
  if (n == sizeof w->ending) {
    memcpy(&w->ending, got, sizeof w->ending);
    w->ending_known = 1;
  }
  drop(w, w->end);
}

struct m6_woken m6_watch_wait(struct m6_watch *w, int ms)
{
  struct m6_woken woken = {0, 0, 0, 0};
  struct epoll_event events[16];
  if (ms == M6_WAIT_BRIEF) nanosleep(&(struct timespec){.tv_nsec = BRIEF_NS}, NULL);
  int n = epoll_wait(w->epoll, events, 16, ms == M6_WAIT_BRIEF ? 0 : ms);
  for (int i = 0; i < n; i++) {
    int fd = events[i].data.fd;
    if (fd == w->signals) take_signal(w, &woken);
    else if (fd == w->end) take_end(w, &woken);
    else if (fd == w->inotify) {
      char names[4096] __attribute__((aligned(8)));
      while (read(w->inotify, names, sizeof names) > 0) woken.created = 1;
    } else if (fd == w->command) {
      woken.called = 1;
    } else {
      drop(w, fd); /* a process ended: told once */
    }
  }
  return woken;
}
