/* mksnapshot.c - writes a snapshot of a game that never ran, to look at reports and to test their readers.
 *
 *   mksnapshot SCENE FILE          the plain block, as a final snapshot is
 *   mksnapshot SCENE --live PID    /dev/shm/mach6-stats.PID.<hex>, as a collector's; prints the file's name; the caller removes it
 *
 * Scenes: game, leak, short (2 presents), none (no presents), losses, hostile (labels), wide (1,640 nodes with long labels), kernel (level full), empty (nothing at all), version, damaged.
 */
/* links: -lm */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shm/clock.h"
#include "shm/order.h"
#include "tests/unit/snapshot_fixture.h"

static void hostile(struct fx *f)
{
  static const char *const labels[] = {FX_HOSTILE, "combining e\xcc\x81 and \xe2\x80\xae right to left"};
  uint32_t frame = 3;
  for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
    uint32_t n = fx_node(f, frame, M6_NODE_SCOPE, labels[i]);
    fx_fill(f, n, 100 + i, 10 * (double)(i + 1), 900, (int64_t)i * 100 - 500, i);
  }
  char long_label[600];
  memset(long_label, 'x', sizeof long_label);
  fx_fill(f, fx_node_n(f, frame, M6_NODE_SCOPE, long_label, sizeof long_label), 1, 5, 5, 0, 0);
}

/* The later the longer. */
static void wide(struct fx *f)
{
  char label[3 * M6_LABEL_BYTES_MAX];
  memset(label, 'w', sizeof label);
  for (int i = 0; i < 40; i++) {
    uint32_t n = fx_node_n(f, 3, M6_NODE_SCOPE, label, sizeof label);
    fx_fill(f, n, 100, 1000 + i, 2000, 0, 0);
    for (int k = 0; k < 40; k++)
      fx_fill(f, fx_node_n(f, n, M6_NODE_SCOPE, label, sizeof label), 1, 1000 + i, 2000, 0, 0);
  }
}

static void scene(struct fx *f, const char *name)
{
  if (!strcmp(name, "leak")) return fx_game(f, 1501, 96);
  if (!strcmp(name, "short")) return fx_game(f, 2, 0);
  if (!strcmp(name, "none")) return fx_game(f, 0, 0);
  if (!strcmp(name, "empty")) return fx_init(f, "empty");
  fx_game(f, 1501, 0);
  if (!strcmp(name, "kernel")) fx_kernel(f);
  if (!strcmp(name, "hostile")) hostile(f);
  if (!strcmp(name, "wide")) wide(f);
  if (!strcmp(name, "version")) f->head.version++;
  if (!strcmp(name, "damaged")) f->nodes[2].first_child = 1;
  if (strcmp(name, "losses")) return;
  struct m6_snapshot *h = &f->head;
  h->records_lost = 1234, h->frames_lost = 7, h->abandoned = 3, h->underflows = 1, h->rings_refused = 2,
  h->labels_refused = 55;
  h->unseen = M6_UNSEEN_DEEPBIND | M6_UNSEEN_OWN_NEW;
  h->images_other = 2, h->images_other_allocs = 4310;
  h->end_reason = M6_END_TTL;
  h->frame_count = 100;
  for (uint32_t i = 0; i < h->frame_count; i++)
    f->frames[i] = (struct m6_snap_frame){i + 2, i * 16660000, 14000000, 2660000, 2048, -2048, 413, i == 50, 1};
}

int main(int argc, char **argv)
{
  struct fx f;
  size_t bytes;
  if (argc < 3) return 2;
  scene(&f, argv[1]);
  struct m6_snapshot *b;
  char path[128];
  if (argc == 3) {
    b = fx_block(&f, &bytes);
    FILE *out = fopen(argv[2], "w");
    return !out || fwrite(b, 1, bytes, out) != bytes || fclose(out);
  }
  f.head.pid = (uint32_t)atoi(argv[3]);
  f.head.published_ns = m6_monotonic_ns();
  f.head.state = M6_COLLECTING;
  f.head.end_reason = M6_END_NONE;
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  snprintf(path, sizeof path, M6_SEGMENT_DIR "/" M6_STATS_PREFIX "%s.%llx", argv[3],
           (unsigned long long)t.tv_sec * 1000000000ull + (unsigned long long)t.tv_nsec);
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  b = fx_block(&f, &bytes);
  struct m6_stats_head head = {M6_STATS_MAGIC, M6_SNAPSHOT_VERSION, 1, (bytes + 4095) & ~4095ull,
                               {0, 2},         (uint32_t)getpid(),  0, {0, 0}};
  off_t at = (off_t)(M6_STATS_PLACES_OFFSET + head.place_bytes);
  if (fd < 0 || ftruncate(fd, at + (off_t)head.place_bytes) || pwrite(fd, b, bytes, at) != (ssize_t)bytes ||
      pwrite(fd, &head, sizeof head, 0) != sizeof head)
    return 1;
  puts(path);
  return 0;
}
