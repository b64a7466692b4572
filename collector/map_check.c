/* map_check.c - see map_check.h. Reads /proc/PID/maps, which leaves nothing out that is mapped all the while. */
#include "map_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "stats_proc.h"

int m6_map_check(struct m6_map_ranges *r, pid_t pid, uint64_t clock, m6_map_lost *lost, void *arg)
{
  char path[64], line[512];
  struct m6_map_event hole = {.clock = clock};
  int whole = 1;
  snprintf(path, sizeof path, "/proc/%d/maps", (int)m6_proc_speaker(pid));
  FILE *f = fopen(path, "re");
  if (f == NULL) return errno;
  uint64_t lines = 0;
  while (fgets(line, sizeof line, f)) {
    uint64_t start, end;
    int begins = whole;
    size_t n = 0;
    while (line[n]) n++;
    whole = n > 0 && line[n - 1] == '\n'; /* else a long name goes on */
    if (!begins || sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2) continue;
    hole.end = start;
    m6_map_ranges_apply(r, &hole, lost, arg);
    hole.start = end;
    lines++;
  }
  int error = ferror(f) ? EIO : lines == 0 ? ESRCH : 0; /* it has just ended */
  fclose(f);
  if (error) return error;
  hole.end = UINT64_MAX;
  m6_map_ranges_apply(r, &hole, lost, arg);
  return 0;
}
