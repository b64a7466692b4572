/* command.c - see command.h. */
#include "command.h"

#include "budgets.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int m6_command_open(struct m6_commands *c)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  char folder[M6_SOCKET_PATH];
  memset(c, 0, sizeof *c);
  c->fd = -1;
  for (unsigned i = 0; i < M6_CONTROL_CLIENTS; i++) c->client[i].fd = -1;
  m6_socket_reap();
  int e = m6_socket_folder(geteuid(), 1, folder);
  if (e) return e;
  int n = snprintf(a.sun_path, sizeof a.sun_path, "%s/%d", folder, (int)getpid());
  if (n < 0 || (size_t)n >= sizeof a.sun_path) return ENAMETOOLONG;
  int other = m6_socket_connect(geteuid(), getpid()); /* of our pid in another pid namespace */
  if (other >= 0) {
    close(other);
    return EADDRINUSE;
  }
  unlink(a.sun_path); /* left by one that was killed, of a pid that is ours now */
  c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (c->fd < 0) return errno;
  if (bind(c->fd, (struct sockaddr *)&a, sizeof a) != 0 || chmod(a.sun_path, 0600) != 0 ||
      listen(c->fd, M6_CONTROL_CLIENTS) != 0) {
    e = errno;
    close(c->fd);
    c->fd = -1;
    return e;
  }
  memcpy(c->path, a.sun_path, sizeof c->path);
  return 0;
}

static void let_go(struct m6_client *k)
{
  close(k->fd);
  k->fd = -1;
  k->verb = M6_VERB_NONE;
}

void m6_command_close(struct m6_commands *c)
{
  if (c->fd < 0) return;
  unlink(c->path);
  close(c->fd);
  c->fd = -1;
  for (unsigned i = 0; i < M6_CONTROL_CLIENTS; i++)
    if (c->client[i].fd >= 0) let_go(&c->client[i]);
}

static void take_clients(struct m6_commands *c, uint64_t now_ns)
{
  for (int fd; (fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    struct ucred who;
    socklen_t n = sizeof who;
    unsigned i = 0;
    while (i < M6_CONTROL_CLIENTS && c->client[i].fd >= 0) i++;
    if (i >= m6_budget_cap(M6_BUDGET_CLIENTS) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) != 0 ||
        (who.uid != geteuid() && who.uid != 0)) {
      c->refused++;
      close(fd);
      continue;
    }
    c->client[i].fd = fd;
    c->client[i].verb = M6_VERB_NONE;
    c->client[i].since_ns = now_ns;
  }
}

static enum m6_verb verb_of(char *packet, const char **rest)
{
  static const struct {
    const char *word;
    enum m6_verb verb;
  } verbs[] = {{"on", M6_VERB_ON}, {"off", M6_VERB_OFF}, {"state", M6_VERB_STATE}, {"dump", M6_VERB_DUMP}};
  size_t n = strcspn(packet, " ");
  *rest = packet[n] ? packet + n + 1 : "";
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    if (strlen(verbs[i].word) == n && memcmp(packet, verbs[i].word, n) == 0) return verbs[i].verb;
  return M6_VERB_NONE;
}

struct m6_client *m6_command_next(struct m6_commands *c, uint64_t now_ns)
{
  if (c->fd < 0) return NULL;
  if (c->called) take_clients(c, now_ns);
  c->called = 0;
  for (unsigned i = 0; i < M6_CONTROL_CLIENTS; i++) {
    struct m6_client *k = &c->client[i];
    char packet[M6_SOCKET_PACKET];
    if (k->fd < 0) continue;
    ssize_t n = recv(k->fd, packet, sizeof packet - 1, 0);
    if (n < 0 && errno == EAGAIN) {
      if (k->verb == M6_VERB_NONE && now_ns - k->since_ns > M6_COMMAND_SILENCE_MS * 1000000ull) let_go(k);
      continue;
    }
    if (n <= 0) { /* gone; what it asked for is done all the same */
      let_go(k);
      continue;
    }
    if (k->verb != M6_VERB_NONE) continue; /* one command a connection */
    const char *rest;
    packet[n] = 0;
    k->verb = verb_of(packet, &rest);
    snprintf(k->text, sizeof k->text, "%s", rest);
    k->since_ns = now_ns;
    if (k->verb != M6_VERB_NONE) return k;
    m6_command_answer(k, 2, "'%.64s' is no command of this collector", packet);
  }
  return NULL;
}

void m6_command_answer(struct m6_client *k, int status, const char *format, ...)
{
  char packet[M6_SOCKET_PACKET];
  va_list a;
  int n = snprintf(packet, sizeof packet, "%d ", status);
  va_start(a, format);
  int more = vsnprintf(packet + n, sizeof packet - (size_t)n, format, a);
  va_end(a);
  size_t bytes = more < 0 ? (size_t)n : (size_t)n + (size_t)more;
  if (bytes >= sizeof packet) bytes = sizeof packet - 1;
  if (k->fd >= 0) {
    send(k->fd, packet, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    let_go(k);
  }
}

unsigned m6_command_clients(const struct m6_commands *c)
{
  unsigned n = 0;
  for (unsigned i = 0; i < M6_CONTROL_CLIENTS; i++) n += c->fd >= 0 && c->client[i].fd >= 0;
  return n;
}
