/* stats_socket.c - see stats_socket.h. */
#include "stats_socket.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Is it a folder of this user's, that nobody else (but root) can write to; `closed`: nor enter? */
static int trusted(const char *path, uid_t uid, int closed)
{
  struct stat st;
  if (lstat(path, &st) != 0) return errno;
  if (!S_ISDIR(st.st_mode) || st.st_uid != uid || (st.st_mode & (closed ? 077 : 022)) != 0) return EPERM;
  return 0;
}

static const char *const places[] = {"/run/user/%u", "/tmp/mach6-%u"};

/* One of the two places; ENOENT when the first one's parent is not there. */
static int folder_at(unsigned place, uid_t uid, int make, char out[M6_SOCKET_PATH])
{
  snprintf(out, M6_SOCKET_PATH, places[place], (unsigned)uid);
  if (place == 0) {
    if (trusted(out, uid, 0) != 0) return ENOENT;
    snprintf(out + strlen(out), M6_SOCKET_PATH - strlen(out), "/mach6");
  }
  if (make && mkdir(out, 0700) != 0 && errno != EEXIST) return errno;
  return trusted(out, uid, 1);
}

int m6_socket_folder(uid_t uid, int make, char out[M6_SOCKET_PATH])
{
  int e = folder_at(0, uid, make, out);
  return e == 0 ? 0 : folder_at(1, uid, make, out);
}

static int reach(const char *path)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), e = 0;
  if (fd < 0) return -errno;
  snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
  if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0) e = errno;
  if (e == 0) return fd;
  close(fd);
  return -e;
}

int m6_socket_connect(uid_t uid, pid_t collector)
{
  char path[M6_SOCKET_PATH + 16];
  int got = -ENOENT;
  for (unsigned p = 0; p < 2 && got < 0; p++) {
    int e = folder_at(p, uid, 0, path);
    if (e == 0) {
      snprintf(path + strlen(path), 16, "/%d", (int)collector);
      got = reach(path);
    } else if (e != ENOENT) {
      got = -e;
    }
  }
  return got;
}

/* Nobody listens and nobody has that pid: a socket between bind and listen is neither. */
size_t m6_socket_reap(void)
{
  size_t gone = 0;
  for (unsigned p = 0; p < 2; p++) {
    char folder[M6_SOCKET_PATH], path[M6_SOCKET_PATH + 300];
    if (folder_at(p, geteuid(), 0, folder) != 0) continue;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
      char *end;
      long pid = strtol(e->d_name, &end, 10);
      if (pid <= 0 || *end || kill((pid_t)pid, 0) == 0 || errno != ESRCH) continue;
      snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
      int fd = strlen(path) < M6_SOCKET_PATH ? reach(path) : -EINVAL;
      if (fd >= 0) close(fd);
      else if (fd == -ECONNREFUSED && unlink(path) == 0) gone++;
    }
    if (d) closedir(d);
  }
  return gone;
}
