/* socket_say - one command to a collector's control socket, its answer on stdout: socket_say PATH COMMAND. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  char text[8192];
  if (argc < 3) return 2;
  snprintf(a.sun_path, sizeof a.sun_path, "%s", argv[1]);
  int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0) return perror(argv[1]), 1;
  if (send(fd, argv[2], strlen(argv[2]), MSG_NOSIGNAL) < 0) return 1;
  ssize_t n = recv(fd, text, sizeof text - 1, 0);
  if (n <= 0) return 1;
  text[n] = 0;
  puts(text);
  return 0;
}
