/* socket_rude - bad manners at a collector's control socket: socket_rude PATH. More clients than it takes that say nothing; then one that
 * sends bytes that are no command, one that sends more than a packet, one that goes away without waiting for its answer. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int reach(const char *path)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  return connect(fd, (struct sockaddr *)&a, sizeof a) == 0 ? fd : -1;
}

int main(int argc, char **argv)
{
  static char long_one[100000];
  int silent[8], n = 0;
  if (argc < 2) return 2;
  memset(long_one, 'x', sizeof long_one);
  for (int i = 0; i < 8; i++) n += (silent[i] = reach(argv[1])) >= 0;
  if (n == 0) return 1;
  sleep(1);
  for (int i = 0; i < 8; i++) close(silent[i]);
  sleep(1);
  const struct {
    const void *bytes;
    size_t count;
  } rude[] = {{"\0\1\377 off", 7}, {long_one, sizeof long_one}, {"", 0}, {"offf", 4}, {" off", 4}, {"state", 5}};
  for (size_t i = 0; i < sizeof rude / sizeof *rude; i++) {
    int fd = reach(argv[1]);
    if (fd < 0) return 1;
    send(fd, rude[i].bytes, rude[i].count, MSG_NOSIGNAL);
    close(fd);
  }
  return 0;
}
