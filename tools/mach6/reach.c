/* reach.c - see reach.h. */
#include "reach.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWER_MS 30000 /* the end of a session may have much to write */

int reach_collector(pid_t collector)
{
  struct stat st;
  char path[64];
  if (collector <= 0) return -ENOENT;
  snprintf(path, sizeof path, "/proc/%d", (int)collector);
  if (stat(path, &st) != 0) return -ENOENT; /* it died */
  int fd = m6_socket_connect(st.st_uid, collector);
  if (fd < 0) return fd;
  struct ucred who;
  socklen_t n = sizeof who;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == st.st_uid) return fd;
  close(fd);
  return -EPERM;
}

int reach_send(int fd, const char *command) { return send(fd, command, strlen(command), MSG_NOSIGNAL) < 0 ? -1 : 0; }

int reach_answer(int fd, char text[M6_SOCKET_PACKET])
{
  ssize_t n = recv(fd, text, M6_SOCKET_PACKET - 1, MSG_DONTWAIT);
  text[n > 0 ? n : 0] = 0;
  char *end;
  long status = strtol(text, &end, 10);
  if (end == text || *end != ' ' || status < 0 || status > 255) return -1;
  memmove(text, end + 1, strlen(end + 1) + 1);
  return (int)status;
}

int reach_ask(int fd, const char *command, char text[M6_SOCKET_PACKET])
{
  struct pollfd p = {fd, POLLIN, 0};
  text[0] = 0;
  if (reach_send(fd, command)) return -1;
  while (poll(&p, 1, ANSWER_MS) < 0 && errno == EINTR) {}
  return reach_answer(fd, text);
}
