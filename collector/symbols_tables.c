/* symbols_tables.c - names that no file holds: the perf map of a JIT compiler, the kernel's table. See symbols.h.
 *
 * A perf map is /tmp/perf-PID.map in the target's file system, PID as the target counts: lines of "START SIZE name",
 * hex. It is foreign text: sizes are capped, a line that is not of this form is skipped, and a file that is not the
 * target's user's is not read.
 */
#include "symbols_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL_SIZE_MAX                                                                                                \
  0x100000u         /* a symbol's size is not in the table: it goes to the next one, but not further than this */
#define OVERLAPS 64 /* entries before an address that are looked at */

void m6_sym_table_free(struct m6_sym_table *t)
{
  free(t->text);
  free(t->entries);
  *t = (struct m6_sym_table){0};
}

static int by_start(const void *a, const void *b)
{
  const struct m6_sym_entry *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return (x->name > y->name) - (x->name < y->name); /* one text: the order in the file */
}

static struct m6_sym_entry *new_entry(struct m6_sym_table *t, uint32_t *room)
{
  if (t->count >= M6_SYM_JIT_MAX) return NULL;
  if (t->count == *room) {
    uint32_t more_room = *room ? *room * 2 : 1024;
    struct m6_sym_entry *more = realloc(t->entries, more_room * sizeof *more);
    if (!more) return NULL;
    t->entries = more, *room = more_room;
  }
  return &t->entries[t->count++];
}

/* The next line, cut off; NULL at the end. */
static char *next_line(char **at)
{
  char *line = *at, *end;
  if (!line || !*line) return NULL;
  end = strchr(line, '\n');
  if (end) *end = 0;
  *at = end ? end + 1 : NULL;
  return line;
}

void m6_sym_read_jit(struct m6_symbols *y)
{
  char path[128];
  struct stat st;
  int fd = -1;
  for (int host = 0; host < 2 && fd < 0; host++) {
    /* When the process has ended, its root is gone, and its /tmp may be ours. */
    snprintf(path, sizeof path, "%s/tmp/perf-%d.map", host ? "" : y->root, y->own_pid);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
  }
  if (fd < 0) return;
  if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (st.st_uid != y->uid && st.st_uid != 0) || st.st_size == y->jit.bytes) {
    close(fd);
    return;
  }
  struct m6_sym_table t = {.bytes = st.st_size};
  size_t n;
  uint32_t room = 0;
  t.text = m6_sym_read_all(fd, M6_SYM_JIT_BYTES, &n);
  close(fd);
  char *at = t.text;
  for (char *line; (line = next_line(&at));) {
    char *p = line, *end;
    uint64_t start = strtoull(p, &end, 16);
    if (end == p || *end != ' ') continue;
    p = end;
    uint64_t size = strtoull(p, &end, 16);
    if (end == p || *end != ' ' || !end[1] || !size || start + size < start) continue;
    struct m6_sym_entry *e = new_entry(&t, &room);
    if (!e) break;
    *e = (struct m6_sym_entry){.start = start, .size = size, .name = end + 1};
  }
  if (t.count) qsort(t.entries, t.count, sizeof *t.entries, by_start);
  m6_sym_table_free(&y->jit);
  y->jit = t;
}

void m6_sym_read_kernel(struct m6_symbols *y)
{
  struct m6_sym_table *t = &y->kernel;
  size_t n;
  uint32_t room = 0;
  if (y->kernel_tried) return;
  y->kernel_tried = 1;
  int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  t->text = m6_sym_read_all(fd, M6_SYM_JIT_BYTES, &n);
  close(fd);
  char *at = t->text;
  for (char *line; (line = next_line(&at));) {
    char *end;
    uint64_t start = strtoull(line, &end, 16);
    /* Zeros: kptr_restrict, or no CAP_SYSLOG. */
    if (!start || end == line || strlen(end) < 4 || !strchr("tTwW", end[1])) continue;
    char *name = end + 3, *module = strchr(name, '\t');
    if (module) *module++ = 0;
    struct m6_sym_entry *e = new_entry(t, &room);
    if (!e) break;
    *e = (struct m6_sym_entry){.start = start, .name = name, .module = module};
  }
  if (!t->entries) return;
  qsort(t->entries, t->count, sizeof *t->entries, by_start);
  for (uint32_t i = 0; i < t->count; i++) {
    uint64_t next = i + 1 < t->count ? t->entries[i + 1].start : UINT64_MAX, size = next - t->entries[i].start;
    t->entries[i].size = size < KERNEL_SIZE_MAX ? size : KERNEL_SIZE_MAX;
  }
}

const struct m6_sym_entry *m6_sym_entry_at(const struct m6_sym_table *t, uint64_t address)
{
  uint32_t low = 0, high = t->count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (t->entries[middle].start <= address) low = middle + 1;
    else high = middle;
  }
  /* Code is thrown away and written anew: of the entries around the address, the one that was written last. */
  const struct m6_sym_entry *best = NULL;
  for (uint32_t i = 0; i < OVERLAPS && low > i; i++) {
    const struct m6_sym_entry *e = &t->entries[low - 1 - i];
    if (address - e->start < e->size && (!best || e->name > best->name)) best = e;
  }
  return best;
}
