/* stats_elsewhere.c - segments in a /dev/shm that is not ours: a container's, or one that the game's launcher has
 * mounted.
 *
 * They are reached through /proc/PID/root, which takes the right to look into that process: root, or the same user.
 * What is found there is treated as what is found here, byte by byte; a link in there that leads out here leads to
 * nothing that could not be named directly. See stats_targets.h.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "stats_targets.h"

#define FOLDERS_MAX 256 /* different ones; what is beyond is not looked into */

static void folder_of(pid_t pid, char path[64]) { snprintf(path, 64, "/proc/%d/root" M6_SEGMENT_DIR, (int)pid); }

int m6_shm_elsewhere(pid_t pid)
{
  char path[64];
  struct stat ours, theirs;
  folder_of(pid, path);
  if (stat(path, &theirs) != 0) return errno == EACCES || errno == EPERM ? -1 : 0;
  return stat(M6_SEGMENT_DIR, &ours) != 0 || ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino;
}

static void visit_folder(pid_t via, void (*visit)(void *arg, const char *file, pid_t via), void *arg)
{
  char path[64];
  folder_of(via, path);
  DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
    pid_t pid;
    uint64_t load;
    if (m6_target_parse(e->d_name, &pid, &load)) visit(arg, e->d_name, via);
  }
  if (d) closedir(d);
}

void m6_targets_elsewhere(void (*visit)(void *arg, const char *file, pid_t via), void *arg)
{
  struct stat seen[FOLDERS_MAX], st;
  size_t count = stat(M6_SEGMENT_DIR, &seen[0]) == 0;
  DIR *d = opendir("/proc");
  for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
    char path[64];
    pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
    size_t n = 0;
    folder_of(pid, path);
    if (pid <= 0 || stat(path, &st) != 0) continue;
    while (n < count && (seen[n].st_dev != st.st_dev || seen[n].st_ino != st.st_ino)) n++;
    if (n < count) continue;
    if (count == FOLDERS_MAX) continue;
    seen[count++] = st;
    visit_folder(pid, visit, arg);
  }
  if (d) closedir(d);
}
