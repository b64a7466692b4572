/* answer.c - see answer.h. Calls libc only.
 *
 * The command stays a zombie until all is over: its process group keeps its number as long, so that no other's can be
 * signalled.
 */
#include "answer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../collector/utf8.h"
#include "../../shm/clock.h"

#define MS 1000000ull
#define GRACE_MS 500 /* between being asked to end and being killed */
#define LAST_MS 500  /* and from there to being given up: it may hang in the kernel */
#define HELD_MS 50   /* the same when only its output is still held, by what left its group */

static const int enders[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

struct talk {
  struct answer *a;
  const char *text; /* what is left of it */
  size_t left;
  uint64_t most, start;
  pid_t pid;
  int to, from, signals; /* descriptors; -1: closed */
  int over;              /* it has ended */
};

static void close_fd(int *fd)
{
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* ---- starting it ------------------------------------------------------------------------------------------------- */

static int start(struct talk *t, const char *path, char *const *argv, const sigset_t *mask, int ours_pipe)
{
  extern char **environ;
  int in[2] = {-1, -1}, out[2] = {-1, -1}, error = 0;
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  sigset_t usual;
  if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) error = errno;
  if (!error && (error = posix_spawn_file_actions_init(&files)) == 0) {
    if ((error = posix_spawnattr_init(&how)) == 0) {
      sigemptyset(&usual);
      if (ours_pipe) sigaddset(&usual, SIGPIPE); /* which we ignore, and it shall not */
      posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
      posix_spawnattr_setpgroup(&how, 0);
      posix_spawnattr_setsigmask(&how, mask);
      posix_spawnattr_setsigdefault(&how, &usual);
      error = posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
      if (!error) error = posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
      if (!error) error = posix_spawn(&t->pid, path, &files, &how, argv, environ);
      posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
  }
  close_fd(&in[0]);
  close_fd(&out[1]);
  t->to = in[1];
  t->from = out[0];
  if (error) return error;
  fcntl(t->to, F_SETFL, O_NONBLOCK);
  fcntl(t->from, F_SETFL, O_NONBLOCK);
  return 0;
}

/* ---- talking to it ----------------------------------------------------------------------------------------------- */

static void give(struct talk *t)
{
  ssize_t n = t->left ? write(t->to, t->text, t->left) : 0;
  if (n > 0) t->text += n, t->left -= (size_t)n, t->a->taken += (uint64_t)n;
  if (t->left == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) close_fd(&t->to); /* it need not read */
}

static void take(struct talk *t)
{
  struct answer *a = t->a;
  char away[65536];
  size_t room = (size_t)t->most - a->n;
  ssize_t n = room ? read(t->from, a->bytes + a->n, room) : read(t->from, away, sizeof away);
  if (n > 0 && room) a->n += (size_t)n;
  else if (n > 0) a->more += (uint64_t)n;
  else if (n == 0 || (errno != EAGAIN && errno != EINTR)) close_fd(&t->from);
}

static void listen_to(struct talk *t)
{
  struct signalfd_siginfo i;
  siginfo_t end = {0};
  while (read(t->signals, &i, sizeof i) == sizeof i)
    if (i.ssi_signo != SIGCHLD) t->a->ended = (int)i.ssi_signo;
  if (waitid(P_PID, (id_t)t->pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid) t->over = 1;
}

/* Until it has ended and nobody holds its output, or until then; 1 when all is over. */
static int follow(struct talk *t, uint64_t until)
{
  int asked = t->a->ended;
  while (!t->over || t->from >= 0) {
    uint64_t now = m6_monotonic_ns();
    if (now >= until) return 0;
    struct pollfd on[] = {{t->signals, POLLIN, 0}, {t->from, POLLIN, 0}, {t->to, POLLOUT, 0}};
    uint64_t wait = (until - now + MS - 1) / MS;
    if (poll(on, 3, wait > 60000 ? 60000 : (int)wait) <= 0) continue;
    if (on[0].revents) listen_to(t);
    if (on[1].revents) take(t);
    if (on[2].revents) give(t);
    if (t->a->ended && !asked) return 0;
  }
  return 1;
}

static void end_it(struct talk *t)
{
  kill(-t->pid, t->a->ended ? t->a->ended : SIGTERM);
  kill(-t->pid, SIGCONT); /* one that is stopped hears nothing else */
  if (!follow(t, m6_monotonic_ns() + GRACE_MS * MS)) {
    kill(-t->pid, SIGKILL);
    follow(t, m6_monotonic_ns() + (t->over ? HELD_MS : LAST_MS) * MS);
  }
}

int answer_get(const char *path, char *const *argv, const sigset_t *mask, const char *text, size_t n, uint64_t most,
               uint64_t ms, struct answer *a)
{
  struct talk t = {.a = a, .text = text, .left = n, .most = most, .to = -1, .from = -1};
  sigset_t ours, before;
  memset(a, 0, sizeof *a);
  a->bytes = malloc((size_t)most);
  if (!a->bytes) return ENOMEM;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  for (size_t i = 0; i < sizeof enders / sizeof *enders; i++) {
    struct sigaction now; /* nohup and a shell's background ignore some: blocked, they would arrive all the same */
    if (sigaction(enders[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&ours, enders[i]);
  }
  sigprocmask(SIG_BLOCK, &ours, &before);
  void (*pipe_before)(int) = signal(SIGPIPE, SIG_IGN);
  void (*child_before)(int) = signal(SIGCHLD, SIG_DFL); /* ignored, there would be nobody to wait for */
  t.signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  t.start = m6_monotonic_ns();
  int error = t.signals < 0 ? errno : start(&t, path, argv, mask ? mask : &before, pipe_before != SIG_IGN);
  if (!error) {
    if (!follow(&t, t.start + ms * MS)) {
      a->late = !a->ended;
      a->held = a->late && t.over;
      end_it(&t);
    }
    a->ns = m6_monotonic_ns() - t.start;
    if (waitpid(t.pid, &a->status, t.over ? 0 : WNOHANG) != t.pid) a->status = SIGKILL;
    size_t kept = a->more ? m6_utf8_whole(a->bytes, a->n) : a->n;
    a->more += a->n - kept;
    a->n = kept;
  }
  close_fd(&t.to);
  close_fd(&t.from);
  close_fd(&t.signals);
  signal(SIGCHLD, child_before);
  signal(SIGPIPE, pipe_before);
  sigprocmask(SIG_SETMASK, &before, NULL);
  return error;
}
