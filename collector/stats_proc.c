/* stats_proc.c - see stats_proc.h. */
#include "stats_proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The whole of a small file: length, or -1 with errno. */
static ssize_t slurp(const char *path, char *out, size_t room)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  size_t n = 0;
  ssize_t got;
  while (n < room - 1 && (got = read(fd, out + n, room - 1 - n)) > 0) n += (size_t)got;
  close(fd);
  out[n] = 0;
  return (ssize_t)n;
}

uint64_t m6_proc_tick_ns(void)
{
  long hz = sysconf(_SC_CLK_TCK);
  return 1000000000u / (uint64_t)(hz > 0 ? hz : 100);
}

int m6_proc_stat(pid_t pid, struct m6_proc *out)
{
  char path[64], text[4096];
  memset(out, 0, sizeof *out);
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  ssize_t n = slurp(path, text, sizeof text);
  if (n <= 0) return n == 0 || errno == ENOENT ? ESRCH : errno;
  /* pid (comm) state ...: comm may hold anything, so fields count from the last parenthesis. */
  char *open_at = strchr(text, '('), *close_at = strrchr(text, ')');
  if (open_at == NULL || close_at == NULL || close_at < open_at) return EINVAL;
  size_t length = (size_t)(close_at - open_at - 1);
  if (length >= sizeof out->comm) length = sizeof out->comm - 1;
  memcpy(out->comm, open_at + 1, length);
  unsigned long long utime, stime, threads, start, stack = 0;
  if (sscanf(
        close_at + 1,
        " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s %llu %*s %llu %*s %*s %*s %*s %*s %llu",
        &out->state, &utime, &stime, &threads, &start, &stack) < 5)
    return EINVAL;
  out->stack = stack;
  if (out->state == 'Z' && threads > 1) out->state = 'S'; /* main left by pthread_exit: the others go on */
  out->cpu_ns = (utime + stime) * m6_proc_tick_ns();
  out->start_ns = start * m6_proc_tick_ns();
  return 0;
}

int m6_proc_read(pid_t pid, struct m6_proc *out)
{
  char path[64], text[4096];
  int e = m6_proc_stat(pid, out);
  if (e) return e;
  snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  if (slurp(path, text, sizeof text) <= 0) return errno == ENOENT ? ESRCH : errno;
  const char *uid = strstr(text, "\nUid:");
  if (uid == NULL || sscanf(uid, "\nUid: %u %u", &out->uid, &out->euid) != 2) return EINVAL;
  return 0;
}

int m6_proc_alive(pid_t pid)
{
  struct m6_proc p;
  return m6_proc_read(pid, &p) == 0 && p.state != 'Z' && p.state != 'X';
}

/* What a process calls itself: the last number of its NSpid line, or -1. */
static pid_t own_number(const char *pid)
{
  char path[80], text[4096];
  snprintf(path, sizeof path, "/proc/%.20s/status", pid);
  if (slurp(path, text, sizeof text) <= 0) return -1;
  char *line = strstr(text, "\nNSpid:");
  if (line == NULL) return -1;
  line[1 + strcspn(line + 1, "\n")] = 0;
  const char *last = strrchr(line, '\t');
  return last ? (pid_t)strtol(last, NULL, 10) : -1;
}

pid_t m6_proc_in_namespace(uint64_t pidns, pid_t number)
{
  pid_t found = 0;
  DIR *d = opendir("/proc");
  for (struct dirent *e; d && !found && (e = readdir(d)) != NULL;) {
    char path[80];
    struct stat st;
    if (e->d_name[0] < '1' || e->d_name[0] > '9') continue;
    snprintf(path, sizeof path, "/proc/%.20s/ns/pid", e->d_name);
    if (stat(path, &st) != 0 || st.st_ino != pidns || (number && own_number(e->d_name) != number)) continue;
    found = (pid_t)strtol(e->d_name, NULL, 10);
  }
  if (d) closedir(d);
  return found ? found : d && geteuid() == 0 ? 0 : -1;
}

pid_t m6_proc_speaker(pid_t pid)
{
  char path[64], byte;
  pid_t other = pid;
  snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
  if (readlink(path, &byte, 1) >= 0 || errno != ENOENT) return pid;
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *d = opendir(path);
  for (struct dirent *e; d && other == pid && (e = readdir(d)) != NULL;)
    if (e->d_name[0] >= '1' && e->d_name[0] <= '9') other = (pid_t)strtol(e->d_name, NULL, 10);
  if (d) closedir(d);
  return other;
}

int m6_proc_exe(pid_t pid, uint64_t *device, uint64_t *inode)
{
  char path[64];
  struct stat st;
  snprintf(path, sizeof path, "/proc/%d/exe", (int)m6_proc_speaker(pid));
  if (stat(path, &st) != 0) return errno;
  *device = st.st_dev;
  *inode = st.st_ino;
  return 0;
}

int m6_proc_exe_path(pid_t pid, char *out, size_t room)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/exe", (int)m6_proc_speaker(pid));
  ssize_t n = readlink(path, out, room - 1);
  if (n < 0) return -1;
  out[n] = 0;
  return (int)n;
}

int m6_proc_thread_name(pid_t pid, pid_t tid, char *out, size_t room)
{
  char path[80];
  snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)pid, (int)tid);
  ssize_t n = slurp(path, out, room);
  if (n <= 0) return -1;
  if (out[n - 1] == '\n') out[--n] = 0;
  return (int)n;
}

int m6_proc_module(pid_t pid, uint64_t address, char *out, size_t room)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/maps", (int)m6_proc_speaker(pid));
  FILE *f = fopen(path, "re");
  if (f == NULL) return -1;
  char *line = NULL;
  size_t size = 0;
  int length = -1;
  while (getline(&line, &size, f) > 0) {
    unsigned long long from, to;
    int at = 0;
    if (sscanf(line, "%llx-%llx %*s %*s %*s %*s %n", &from, &to, &at) < 2 || address < from || address >= to) continue;
    if (at > 0 && line[at] == '/') {
      line[strcspn(line, "\n")] = 0;
      length = snprintf(out, room, "%s", line + at);
      if ((size_t)length >= room) length = (int)room - 1;
    }
    break;
  }
  free(line);
  fclose(f);
  return length;
}

int m6_proc_maps(pid_t pid, uint64_t inode)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/maps", (int)m6_proc_speaker(pid));
  FILE *f = fopen(path, "re");
  char *line = NULL;
  size_t size = 0;
  int found = 0, lines = 0;
  while (f && !found && getline(&line, &size, f) > 0) {
    unsigned long long there;
    found = sscanf(line, "%*s %*s %*s %*s %llu", &there) == 1 && there == inode;
    lines++;
  }
  free(line);
  if (f) fclose(f);
  return lines ? found : -1;
}
