/* heap_maps.c - see heap_maps.h. */
#include "heap_maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void begin(struct m6_heap_maps *m, uint64_t start, uint64_t end, const char *mode, uint64_t inode,
                  const char *name)
{
  int next_to = start == m->last_end, file = inode != 0;
  int stack = next_to && m->last_guard && start % M6_ARENA_BYTES != 0, bss = next_to && m->last_file;
  m->counts = 0;
  if (!strncmp(name, "[heap]", 6) || !strncmp(name, "[anon: glibc: malloc", 20)) m->counts = 1;
  else if (!file && !*name && !strncmp(mode, "rw-p", 4)) m->counts = !stack && !bss;
  m->last_end = end;
  m->last_file = file || (bss && !m->counts);
  m->last_guard = !file && !strncmp(mode, "---p", 4);
}

static void add(uint64_t *sum, uint64_t kib)
{
  if (kib < UINT64_MAX / 1024 - *sum / 1024) *sum += kib * 1024;
}

void m6_heap_maps_line(struct m6_heap_maps *m, const char *line)
{
  uint64_t start, end, inode;
  unsigned long long kib;
  char mode[8];
  int at = 0;
  if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*x %*x:%*x %" SCNu64 " %n", &start, &end, mode, &inode, &at) == 4) {
    char name[32];
    snprintf(name, sizeof name, "%.31s", at ? line + at : "");
    name[strcspn(name, "\n")] = 0;
    begin(m, start, end, mode, inode, name);
    return;
  }
  uint64_t *sum = sscanf(line, "Anonymous: %llu kB", &kib) == 1 ? &m->anonymous
                  : sscanf(line, "Swap: %llu kB", &kib) == 1    ? &m->swap
                                                                : NULL;
  if (sum) {
    add(sum, kib);
    if (m->counts) add(&m->held, kib);
  } else if (sscanf(line, "Rss: %llu kB", &kib) == 1) {
    add(&m->rss, kib);
  }
}
