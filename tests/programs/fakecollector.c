/* fakecollector.c - keeps a collector's side of the agreement with `mach6 run`, and can break each part of it.
 *
 * FAKE_MODE: "" (well-behaved), dies (before it is ready), silent (never ready, else well-behaved), nothing (no final snapshot),
 * half (a damaged one), talks (to stderr), stays (until it is ended by a signal).
 * FAKE_LOG: a file that gets its arguments and what its descriptors are. FAKE_LEAK: bytes a frame in the snapshot.
 */
/* links: -lm */
#include <dirent.h>
#include <unistd.h>

#include "tests/unit/snapshot_fixture.h"

static const char *value(int argc, char **argv, const char *option)
{
  for (int i = 1; i + 1 < argc; i++)
    if (!strcmp(argv[i], option)) return argv[i + 1];
  return "";
}

static void log_all(const char *path, int argc, char **argv)
{
  FILE *f = fopen(path, "w");
  if (!f) return;
  for (int i = 1; i < argc; i++) fprintf(f, "%s%s", argv[i], i + 1 < argc ? " " : "\n");
  fprintf(f, "leader %d\npreload %s\n", getsid(0) == getpid(), getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "none");
  DIR *d = opendir("/proc/self/fd");
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));)
    n += e->d_name[0] != '.' && atoi(e->d_name) > 5 && atoi(e->d_name) != dirfd(d);
  fprintf(f, "others %d\n", n - 1); /* the log itself */
  fclose(f);
}

int main(int argc, char **argv)
{
  const char *mode = getenv("FAKE_MODE") ? getenv("FAKE_MODE") : "", *log = getenv("FAKE_LOG");
  int final = atoi(value(argc, argv, "--final-fd")), end = atoi(value(argc, argv, "--end-fd")),
      ready = atoi(value(argc, argv, "--ready-fd"));
  char byte;
  if (log) log_all(log, argc, argv);
  if (!strcmp(mode, "dies")) return 1;
  if (!strcmp(mode, "talks")) fputs("mach6-collector: something that people should know\n", stderr);
  if (strcmp(mode, "silent") && write(ready, "", 1) != 1) return 1;
  close(ready);
  while (read(end, &byte, 1) > 0) {}
  if (!strcmp(mode, "stays")) pause();
  if (!strcmp(mode, "nothing")) return 0;
  struct fx f;
  size_t bytes;
  fx_game(&f, 1501, getenv("FAKE_LEAK") ? atoi(getenv("FAKE_LEAK")) : 0);
  f.head.pid = (uint32_t)atoi(value(argc, argv, "--pid"));
  f.head.frame_count = 20;
  struct m6_snapshot *b = fx_block(&f, &bytes);
  if (!strcmp(mode, "half")) bytes /= 2;
  return write(final, b, bytes) != (ssize_t)bytes;
}
