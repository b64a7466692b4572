/* stats_refuse.c - see stats_refuse.h. */
#include "stats_refuse.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "stats_internal.h"
#include "stats_proc.h"

struct words {
  char *why;
  size_t room;
};

static int __attribute__((format(printf, 3, 4))) refuse(struct words w, int status, const char *format, ...)
{
  va_list a;
  va_start(a, format);
  vsnprintf(w.why, w.room, format, a);
  va_end(a);
  return status;
}

static int another_users(struct words w, pid_t pid, const char *name, uint32_t uid)
{
  return refuse(w, M6_EXIT_NOT_PERMITTED, "process %d%s is another user's (uid %u): say this as that user, or as root",
                (int)pid, name, uid);
}

/* ---- a process without a segment -----------------------------------------------------------------------------------
 * */

/* No loader is named in it, so nothing is preloaded into it. 0 also for what is no ELF program, or cannot be read. */
static int is_static(int fd)
{
  union {
    Elf32_Ehdr narrow;
    Elf64_Ehdr wide;
  } h;
  if (pread(fd, &h, sizeof h, 0) != (ssize_t)sizeof h || memcmp(h.narrow.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  int wide = h.narrow.e_ident[EI_CLASS] == ELFCLASS64;
  off_t at = wide ? (off_t)h.wide.e_phoff : (off_t)h.narrow.e_phoff;
  unsigned count = wide ? h.wide.e_phnum : h.narrow.e_phnum, each = wide ? h.wide.e_phentsize : h.narrow.e_phentsize;
  for (unsigned i = 0; i < count; i++) {
    uint32_t type; /* the first word of a program header in both classes */
    if (pread(fd, &type, sizeof type, at + (off_t)i * each) != (ssize_t)sizeof type || type == PT_INTERP) return 0;
  }
  return count > 0;
}

/* What keeps a preload out of its executable, with what to do; NULL: nothing that can be seen. */
static const char *unattachable(pid_t pid)
{
  char path[64], capability[64];
  struct stat st;
  snprintf(path, sizeof path, "/proc/%d/exe", (int)m6_proc_speaker(pid));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  int privileged = (fstat(fd, &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID))) ||
                   fgetxattr(fd, "security.capability", capability, sizeof capability) > 0;
  const char *why = privileged ? "setuid, setgid or has capabilities, so the loader ignores LD_PRELOAD; run a copy "
                                 "without them"
                    : is_static(fd) ? "statically linked, so no preload is loaded into it; link it dynamically, or "
                                      "take its frames from the calls of a function ('mach6 run --frame-symbol')"
                                    : NULL;
  close(fd);
  return why;
}

/* The shim is in it, under the name that it is installed by. 0 also where its maps cannot be read. */
static int is_loaded(pid_t pid)
{
  char path[64], *line = NULL;
  size_t size = 0;
  int found = 0;
  snprintf(path, sizeof path, "/proc/%d/maps", (int)m6_proc_speaker(pid));
  FILE *f = fopen(path, "re");
  while (f && !found && getline(&line, &size, f) > 0) found = strstr(line, "/libmach6.so") != NULL;
  free(line);
  if (f) fclose(f);
  return found;
}

static int refuse_process(pid_t pid, struct words w)
{
  struct m6_proc p;
  int error = m6_proc_read(pid, &p);
  if (error == ESRCH && kill(pid, 0) != 0 && errno == EPERM) /* this /proc shows one's own processes alone */
    return refuse(w, M6_EXIT_NOT_PERMITTED, "process %d is another user's: say this as that user, or as root",
                  (int)pid);
  if (error == ESRCH)
    return refuse(w, M6_EXIT_NO_TARGET, M6_NO_PROCESS ": 'mach6 ps' lists those that can be captured", (int)pid);
  if (error)
    return refuse(w, M6_EXIT_OTHER, "cannot read /proc/%d/stat: %s; mach6 needs /proc to be sure which process it is",
                  (int)pid, strerror(error));
  char name[sizeof p.comm + 4];
  int utf8 = m6_utf8_valid(p.comm, strnlen(p.comm, sizeof p.comm));
  for (unsigned char *c = (unsigned char *)p.comm; *c; c++)
    if (*c < 0x20 || *c == 0x7f || (*c >= 0x80 && !utf8)) *c = '?';
  snprintf(name, sizeof name, " (%s)", p.comm);
  if (p.state == 'Z') return refuse(w, M6_EXIT_NO_TARGET, "process %d%s has ended already", (int)pid, name);
  const char *closed = unattachable(pid);
  if (closed)
    return refuse(w, M6_EXIT_UNATTACHABLE, "process %d%s cannot be attached: its program is %s", (int)pid, name,
                  closed);
  if (geteuid() != 0 && p.uid != geteuid() && p.euid != geteuid()) return another_users(w, pid, name, p.uid);
  if (m6_shm_elsewhere(pid) < 0)
    return refuse(w, M6_EXIT_NOT_LOADED,
                  "process %d%s has no segment here, and may have a /dev/shm of its own, into which this user may not "
                  "look: %s" M6_HOW_TO_LOAD,
                  (int)pid, name, geteuid() ? "say this as root; or " : "");
  if (is_loaded(pid))
    return refuse(w, M6_EXIT_NOT_LOADED,
                  "process %d%s has loaded the shim, but there is nothing to capture: it has had its session under "
                  "'mach6 run', or found no room in /dev/shm (MACH6_VERBOSE=1 says why); restart it",
                  (int)pid, name);
  return refuse(w, M6_EXIT_NOT_LOADED, "process %d%s has not loaded the shim: " M6_HOW_TO_LOAD, (int)pid, name);
}

/* ---- a segment that is no good --------------------------------------------------------------------------------------
 * */

int m6_refuse_target(const struct m6_target *t, char *why, size_t room)
{
  struct words w = {why, room};
  switch (t->problem) {
  case M6_TARGET_UNREADABLE:
    if (t->error == EACCES || t->error == EPERM) return another_users(w, t->pid, "", t->uid);
    return refuse(w, t->error == ENOENT ? M6_EXIT_NO_TARGET : M6_EXIT_OTHER, "cannot open " M6_SEGMENT_DIR "/%s: %s",
                  t->file, strerror(t->error));
  case M6_TARGET_UNFINISHED:
    return refuse(w, M6_EXIT_NOT_LOADED,
                  "the shim in process %d has not finished its segment (%s): try again, or " M6_HOW_TO_LOAD,
                  (int)t->pid, t->file);
  case M6_TARGET_VERSION:
    return refuse(w, M6_EXIT_VERSION,
                  "process %d has loaded a shim of another version (layout %u, this mach6 reads %u): restart it with "
                  "the libmach6.so that belongs to this mach6 (%s)",
                  (int)t->pid, t->version, M6_LAYOUT_VERSION, MACH6_VERSION);
  case M6_TARGET_STALE:
    return refuse(w, M6_EXIT_NO_TARGET, "segment %s belongs to a process that is gone; 'mach6 ps' removes it", t->file);
  case M6_TARGET_NAMESPACE:
    return refuse(w, M6_EXIT_NO_TARGET, "segment %s was made in another pid namespace: say this inside of it", t->file);
  case M6_TARGET_INVALID:
    return refuse(w, M6_EXIT_INVALID,
                  "segment " M6_SEGMENT_DIR "/%s is not what a shim writes (size, owner or identity are wrong): "
                  "remove it and restart the program",
                  t->file);
  }
  return refuse(w, M6_EXIT_OTHER, "segment %s cannot be used", t->file);
}

int m6_refuse_find(pid_t pid, struct m6_target *out, char *why, size_t room)
{
  struct m6_target *list;
  size_t count;
  struct words w = {why, room};
  int error = m6_targets_list(&list, &count), status = -1;
  if (error) return refuse(w, M6_EXIT_OTHER, "cannot list " M6_SEGMENT_DIR ": %s", strerror(error));
  const struct m6_target *bad = NULL;
  for (size_t i = 0; i < count && status < 0; i++) {
    if (list[i].pid != pid) continue;
    if (list[i].problem == M6_TARGET_FINE) *out = list[i], status = 0;
    else if (bad == NULL && list[i].problem != M6_TARGET_STALE) bad = &list[i];
  }
  /* What the dead have left tells less than that they are dead; in another namespace, this number is no process of
   * here. */
  if (bad && bad->problem != M6_TARGET_NAMESPACE && !bad->alive && !m6_proc_alive(pid)) bad = NULL;
  if (status < 0) status = bad ? m6_refuse_target(bad, why, room) : refuse_process(pid, w);
  free(list);
  return status;
}

int m6_refuse_grant(pid_t pid, uint32_t allowed, uint32_t started, char *why, size_t room)
{
  struct words w = {why, room};
  if (allowed == 0)
    return refuse(w, M6_EXIT_NOT_PERMITTED, "process %d allows no session (MACH6_SESSIONS=0): restart it without that",
                  (int)pid);
  if (started < allowed) return 0;
  return refuse(w, M6_EXIT_NOT_PERMITTED,
                "process %d allowed %u session%s, and has had %s: restart it, or start it with MACH6_SESSIONS=n for "
                "more",
                (int)pid, allowed, allowed == 1 ? "" : "s", allowed == 1 ? "it" : "them");
}
