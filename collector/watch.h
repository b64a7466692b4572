/* watch.h - what wakes the collector: time, signals, new segments, the end of a process, the end of a run.
 *
 * One epoll set. New segments are told by inotify on the segments' folder; where that can't be had, by looking each
 * M6_RESCAN_MS. One thread.
 */
#ifndef M6_WATCH_H
#define M6_WATCH_H

#define M6_RESCAN_MS 100

struct m6_watch {
  int epoll, inotify, signals, end;
  int command;              /* a listening socket, -1: none: wakes as long as somebody waits at it */
  int ending_known, ending; /* what waitpid said of a run's direct child, when the end descriptor brought it */
};
struct m6_woken {
  int signal;  /* number of one that asks for the end, or 0 */
  int ended;   /* the end descriptor is at its end, or has a byte */
  int created; /* there may be new segments */
  int called;  /* somebody connects to the control socket */
};

/* end_fd: -1 or a descriptor whose end-of-file is to be told; `in_run`: SIGINT, SIGQUIT and SIGHUP come to the whole
 * process group and are the game's, so they are not taken. 0 or an errno. */
int m6_watch_open(struct m6_watch *w, int end_fd, int in_run);
void m6_watch_close(struct m6_watch *w);
/* Wakes when fd becomes readable (a pidfd). Closing the fd removes it. */
void m6_watch_add(struct m6_watch *w, int fd);
#define M6_WAIT_BRIEF (-2) /* some tenths of a millisecond */
struct m6_woken m6_watch_wait(struct m6_watch *w, int ms);

#endif
