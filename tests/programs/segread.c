/* segread - a target's segment as `key value` lines, for tests that need no collector.
 *
 *   segread FILE             header, sums over all slots, records by type
 *   segread FILE records     then each record that is still in its ring, oldest first:
 *                            record RING INDEX TYPE LABEL DEPTH FLAGS CLOCK LIVE COUNT
 *   segread --find TOKEN [NAME]   the files in /dev/shm whose run token (hex) and name are these
 * Read with read(2), never mapped: looking must not reserve what the target did not. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/label.h"
#include "shm/layout.h"
#include "shm/ring.h"

static char *load(const char *path, size_t bytes)
{
  char *data = calloc(1, M6_SEGMENT_BYTES);
  int fd = open(path, O_RDONLY);
  size_t at = 0;
  ssize_t n;
  if (fd < 0 || !data) return NULL;
  while (at < bytes && (n = read(fd, data + at, bytes - at)) > 0) at += (size_t)n;
  close(fd);
  return at == bytes ? data : NULL;
}

static int find(uint64_t token, const char *name)
{
  DIR *d = opendir(M6_SEGMENT_DIR);
  int found = 0;
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[300];
    if (strncmp(e->d_name, M6_SEGMENT_PREFIX, 6)) continue;
    snprintf(path, sizeof path, M6_SEGMENT_DIR "/%s", e->d_name);
    struct m6_header *h = (struct m6_header *)load(path, sizeof *h);
    if (h && h->magic == M6_SEGMENT_MAGIC && h->run_token == token && (!name || !strcmp(h->name, name))) {
      puts(path);
      found = 1;
    }
    free(h);
  }
  if (d) closedir(d);
  return !found;
}

static void records(char *base, int each)
{
  static const char *const types[] = {"none",  "mark", "done", "frame", "continued",
                                      "start", "end",  "loss", "site",  "free"};
  struct m6_header *h = (struct m6_header *)base;
  struct m6_ring_head *heads = (struct m6_ring_head *)(base + M6_OFF_RING_HEADS);
  uint64_t by_type[10] = {0}, holes = 0, claimed = 0, backwards = 0, deepest = 0;
  for (uint32_t r = 0; r < h->rings_used && r < M6_RINGS; r++) {
    uint32_t capacity = m6_ring_capacity(r);
    struct m6_record *ring = (struct m6_record *)(base + m6_ring_offset(r)), out;
    uint64_t end = heads[r].claimed, i = end > capacity ? end - capacity : 0, clock = 0;
    claimed += end;
    for (; i < end; i++) {
      if (m6_ring_read(&heads[r], ring, capacity, i, &out) != M6_RING_RECORD) {
        holes++;
        continue;
      }
      unsigned type = m6_word_type(out.word) % 10;
      by_type[type]++;
      if (type != M6_REC_CONTINUED && type != M6_REC_SITE) {
        if (out.clock < clock) backwards++;
        clock = out.clock;
      }
      if (type == M6_REC_MARK && m6_word_depth(out.word) > deepest) deepest = m6_word_depth(out.word);
      if (!each) continue;
      char label[M6_LABEL_BYTES_MAX + 1];
      int cut;
      if (m6_label_copy(m6_labels_at(base), m6_word_label(out.word), label, &cut) < 0) strcpy(label, "-");
      for (char *c = label; *c; c++)
        if (*c <= ' ' || *c > '~') *c = '_';
      printf("record %u %" PRIu64 " %s %s %u %u %" PRIu64 " %" PRId64 " %" PRIu64 "\n", r, i, types[type], label,
             m6_word_depth(out.word), m6_word_flags(out.word), out.clock, (int64_t)out.live,
             (uint64_t)(out.count & M6_COUNT_MASK));
    }
  }
  for (int t = 1; t < 10; t++) printf("records_%s %" PRIu64 "\n", types[t], by_type[t]);
  printf("records %" PRIu64 "\nholes %" PRIu64 "\nclocks_backwards %" PRIu64 "\ndeepest %" PRIu64 "\n", claimed, holes,
         backwards, deepest);
}

int main(int argc, char **argv)
{
  if (argc >= 3 && !strcmp(argv[1], "--find")) return find(strtoull(argv[2], NULL, 16), argc > 3 ? argv[3] : NULL);
  char *base = argc >= 2 ? load(argv[1], M6_SEGMENT_BYTES) : NULL;
  if (!base) {
    fprintf(stderr, "segread: cannot read the segment\n");
    return 1;
  }
  struct m6_header *h = (struct m6_header *)base;
  if (h->magic != M6_SEGMENT_MAGIC || h->version != M6_LAYOUT_VERSION) {
    fprintf(stderr, "segread: no segment of this version\n");
    return 1;
  }
#define SHOW(field) printf(#field " %" PRIu64 "\n", (uint64_t)h->field)
  SHOW(pid);
  printf("name %s\n", h->name);
  SHOW(pointer_bits);
  SHOW(state);
  SHOW(end_reason);
  SHOW(sessions_started);
  SHOW(slots_used);
  SHOW(rings_used);
  SHOW(unseen);
  SHOW(labels_refused);
  SHOW(slots_refused);
  SHOW(rings_refused);
  SHOW(underflows);
  SHOW(preboot_allocs);
  SHOW(clock_kind);
  printf("start_live %" PRId64 "\nbrk %" PRId64 "\nexited %d\n", h->start_live, (int64_t)(h->brk_now - h->brk_start),
         h->exited_clock != 0);
  struct m6_slot sum = {0}, *slots = (struct m6_slot *)(base + M6_OFF_SLOTS);
  uint64_t owned = 0;
  for (uint32_t i = 0; i < M6_SLOTS; i++) {
    const uint64_t *from = (const uint64_t *)&slots[i];
    for (size_t w = 0; w < sizeof sum / 8; w++) ((uint64_t *)&sum)[w] += from[w];
    owned += slots[i].tid != 0;
  }
#define SUM(field) printf(#field " %" PRId64 "\n", (int64_t)sum.field)
  SUM(live);
  SUM(allocs);
  SUM(bytes);
  SUM(frees);
  SUM(mapped);
  SUM(maps);
  SUM(lost);
#define KIND(name, k) printf(#name " %" PRIu64 "\n" #name "_bytes %" PRIu64 "\n", sum.k.count, sum.k.bytes)
  KIND(calloc, calloc_);
  KIND(realloc, realloc_);
  KIND(aligned, aligned);
  KIND(new, new_);
  printf("malloc %" PRIu64 "\n",
         sum.allocs - sum.calloc_.count - sum.realloc_.count - sum.aligned.count - sum.new_.count);
  printf("slots_owned %" PRIu64 "\ntids", owned);
  for (uint32_t i = 0; i < M6_SLOTS; i++)
    if (slots[i].tid) printf(" %u", slots[i].tid);
  printf("\n");
  struct m6_labels_head *labels = (struct m6_labels_head *)(base + M6_OFF_LABELS);
  printf("labels %u\nlabel_text %u\n", labels->used, labels->text_used);
  uint64_t presents = 0;
  for (uint32_t i = 0; i < M6_STREAMS; i++) presents += h->streams[i].presents;
  printf("presents %" PRIu64 "\n", presents);
  records(base, argc > 2 && !strcmp(argv[2], "records"));
  return 0;
}
