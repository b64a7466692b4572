/* store.c - Save: the target's collector writes a dump into the folder that was given, and all such dumps there are
 * within dashboard.stored together, whichever dashboard made them.
 *
 * How long a dump will be is not known before it is there; so one is asked for only where the longest that its session
 * can have (dump.bytes) would still fit. The folder is locked meanwhile: two dashboards do not spend the same room. One
 * at a time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../collector/budgets.h"
#include "../../collector/stats_targets.h"
#include "../../shm/clock.h"
#include "../mach6/reach.h"
#include "../mach6/tool.h"
#include "dashboard.h"

#define PREFIX "mach6-dashboard-"
#define SUFFIX ".dump"
#define PATIENCE_S 30

static struct {
  char folder[PATH_MAX], name[96];
  int fd;        /* of the folder, locked while a dump is under way; -1: nothing is stored */
  int collector; /* whose answer is waited for; -1 */
  pid_t pid;
  uint64_t asked_ns;
} store = {.fd = -1, .collector = -1};

/* How much is there already; and the number of the next file. */
static uint64_t stored(unsigned *next)
{
  uint64_t sum = 0;
  int again = openat(store.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = again < 0 ? NULL : fdopendir(again);
  if (!d && again >= 0) close(again);
  *next = 1;
  for (struct dirent *e; d && (e = readdir(d));) {
    struct stat st;
    size_t n = strlen(e->d_name), p = strlen(PREFIX), q = strlen(SUFFIX);
    if (n <= p + q || strncmp(e->d_name, PREFIX, p) != 0 || strcmp(e->d_name + n - q, SUFFIX) != 0) continue;
    if (fstatat(store.fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)) continue;
    sum += (uint64_t)st.st_size;
    unsigned number = (unsigned)strtoul(e->d_name + p, NULL, 10);
    if (number >= *next && number < UINT_MAX) *next = number + 1;
  }
  if (d) closedir(d);
  m6_budget_use(M6_BUDGET_DASHBOARD_STORED, sum);
  return sum;
}

int store_open(const char *folder)
{
  unsigned next;
  if (!realpath(folder, store.folder) || (store.fd = open(store.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
    return say("--store %s: %s; name a folder that is there", folder, strerror(errno)), EXIT_USAGE;
  if (faccessat(store.fd, ".", W_OK | X_OK, 0))
    return say("--store %s: %s; name a folder that can be written to", folder, strerror(errno)), EXIT_USAGE;
  stored(&next);
  return 0;
}

int store_is_open(void) { return store.fd >= 0; }

static void done(void)
{
  unsigned next;
  if (store.collector >= 0) close(store.collector);
  store.collector = -1;
  stored(&next);
  flock(store.fd, LOCK_UN);
}

static void ask(pid_t pid, unsigned number)
{
  char why[1024], command[PATH_MAX + 128];
  struct m6_target t;
  if (m6_refuse_find(pid, &t, why, sizeof why) || (!t.collector_pid && why_no_capture(&t, why, sizeof why))) {
    client_note("not saved: %s", why);
    return;
  }
  store.collector = reach_collector((pid_t)t.collector_pid);
  if (store.collector < 0) {
    client_note("not saved: collector %u of process %d does not answer: %s", t.collector_pid, (int)pid,
                strerror(-store.collector));
    return;
  }
  snprintf(store.name, sizeof store.name, PREFIX "%04u-%d" SUFFIX, number, (int)pid);
  snprintf(command, sizeof command, "dump %s/%s", strcmp(store.folder, "/") ? store.folder : "", store.name);
  store.pid = pid;
  store.asked_ns = m6_monotonic_ns();
  if (reach_send(store.collector, command))
    client_note("not saved: collector %u: %s", t.collector_pid, strerror(errno)), done();
}

void store_save(const struct live *l)
{
  unsigned next;
  uint64_t cap = m6_budget_cap(M6_BUDGET_DASHBOARD_STORED), most = live_dump_bytes(l);
  if (store.fd < 0) return client_note("not saved: start mach6 dashboard with --store FOLDER");
  if (store.collector >= 0) return client_note("not saved: a dump is under way");
  if (flock(store.fd, LOCK_EX | LOCK_NB))
    return client_note("not saved: another dashboard saves in %s at this moment", store.folder);
  uint64_t sum = stored(&next);
  if (most > cap || sum > cap - most) {
    m6_budget_overran(M6_BUDGET_DASHBOARD_STORED);
    client_note(
      "not saved: %.1f MiB are stored in %s, and a dump can have %.1f MiB more; %.1f MiB are the most: remove some, or "
      "name another folder",
      (double)sum / 1048576, store.folder, (double)most / 1048576, (double)cap / 1048576);
  } else {
    ask(live_pid(l), next);
  }
  if (store.collector < 0) flock(store.fd, LOCK_UN);
}

void store_tick(uint64_t now)
{
  if (store.collector < 0) return;
  char text[M6_SOCKET_PACKET];
  struct pollfd p = {store.collector, POLLIN, 0};
  struct stat st;
  if (poll(&p, 1, 0) <= 0) {
    if (now < store.asked_ns + PATIENCE_S * 1000000000ull) return;
    client_note("not saved: the collector of process %d does not answer", (int)store.pid);
    return done();
  }
  int status = reach_answer(store.collector, text);
  if (status < 0) client_note("not saved: the collector of process %d ended without an answer", (int)store.pid);
  else if (status > 0) client_note("not saved: process %d: %s", (int)store.pid, text);
  else if (fstatat(store.fd, store.name, &st, AT_SYMLINK_NOFOLLOW))
    client_note("not saved: %s: %s", store.name, strerror(errno));
  else
    client_note("saved %s/%s, %.0f KiB: 'mach6 report' shows it", store.folder, store.name, (double)st.st_size / 1024);
  done();
}

void store_close(void)
{
  if (store.collector >= 0) close(store.collector);
  if (store.fd >= 0) close(store.fd);
}
