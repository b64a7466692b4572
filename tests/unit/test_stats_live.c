/* test_stats_live.c - the inspectors' library: live stats are found, refreshed, never torn, and never somebody else's. */
/* links: collector/stats_check_kernel.c collector/stats_kernel.c collector/payload_kernel.c */
/* links: collector/stats.c collector/stats_check.c collector/stats_words.c collector/payload.c collector/payload_encode.c collector/payload_report.c collector/payload_govern.c collector/payload_seconds.c collector/payload_sites.c collector/stats_sites.c -ljansson -lmsgpackc -lm */
#include <pthread.h>
#include <sys/stat.h>

#include "shm/clock.h"
#include "shm/seqlock.h"
#include "tests/unit/stats_fixture.h"

/* ---- the live file ----------------------------------------------------------------------------------------------- */

struct live {
  char path[128];
  int fd;
  struct m6_stats_head *head;
  size_t bytes, place;
};

/* pid: a number that no process has, so that tests in parallel and real captures stay apart. */
static void live_make(struct live *l, pid_t pid, uint64_t load, size_t place)
{
  snprintf(l->path, sizeof l->path, M6_SEGMENT_DIR "/" M6_STATS_PREFIX "%d.%llx", (int)pid, (unsigned long long)load);
  unlink(l->path);
  l->place = place;
  l->bytes = M6_STATS_PLACES_OFFSET + 2 * place;
  l->fd = open(l->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  assert_true(l->fd >= 0);
  assert_int_equal(ftruncate(l->fd, (off_t)l->bytes), 0);
  l->head = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
  *l->head = (struct m6_stats_head){.magic = M6_STATS_MAGIC, .version = M6_SNAPSHOT_VERSION, .place_bytes = place};
}
static void live_publish(struct live *l, const struct m6_snapshot *b)
{
  uint32_t to = 1 - l->head->current;
  m6_seqlock_write(&l->head->seq[to], (uint64_t *)((char *)l->head + M6_STATS_PLACES_OFFSET + to * l->place),
                   (const uint64_t *)b, b->bytes);
  m6_publish(&l->head->current, to);
}
static void live_end(struct live *l)
{
  munmap(l->head, l->bytes);
  close(l->fd);
  unlink(l->path);
}
static pid_t nobody(void) { return 0x20000000 + getpid(); }

static void live_stats_are_found_and_refreshed(void **state)
{
  (void)state;
  struct live l, old;
  size_t bytes;
  struct m6_snapshot *b = game(&bytes);
  mach6_stats *s;
  assert_int_equal(mach6_stats_open(nobody(), &s), MACH6_ENOTFOUND);
  live_make(&l, nobody(), 2000, 1u << 20);
  live_make(&old, nobody(), 1000, 1u << 20);
  assert_int_equal(mach6_stats_open(nobody(), &s), MACH6_EBUSY); /* nothing was published yet */
  live_publish(&l, b);
  assert_int_equal(mach6_stats_open(nobody(), &s), MACH6_OK);
  assert_int_equal(mach6_stats_snapshot(s)->presents, 1501);
  assert_int_equal(mach6_stats_ended(s), 0);
  b->presents = 1502;
  live_publish(&l, b);
  assert_int_equal(mach6_stats_snapshot(s)->presents, 1501);
  assert_int_equal(mach6_stats_refresh(s), MACH6_OK);
  assert_int_equal(mach6_stats_snapshot(s)->presents, 1502);
  /* A writer that died at it, garbage, a shrunk file: errors, and the last snapshot stays. */
  m6_poke(&l.head->seq[l.head->current], 3);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EBUSY);
  m6_poke(&l.head->seq[l.head->current], 4);
  b->node_count++;
  live_publish(&l, b);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EINVALID);
  m6_poke(&l.head->version, 9);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EVERSION);
  m6_poke(&l.head->version, M6_SNAPSHOT_VERSION);
  m6_poke(&l.head->current, 77);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EINVALID);
  m6_poke(&l.head->current, 0);
  m6_poke(&l.head->place_bytes, UINT64_MAX);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EINVALID);
  assert_int_equal(ftruncate(l.fd, 5000), 0);
  m6_poke(&l.head->place_bytes, 1u << 20);
  assert_int_equal(mach6_stats_refresh(s), MACH6_EINVALID);
  assert_int_equal(mach6_stats_snapshot(s)->presents, 1502);
  assert_int_equal(mach6_node_stats(mach6_node_find(mach6_stats_root(s), "frame")).count, 1500);
  m6_poke(&l.head->ended, 1);
  live_end(&l);
  assert_int_equal(mach6_stats_ended(s), 1); /* unlinked: nothing newer will come */
  mach6_stats_close(s);
  live_end(&old);
  free(b);
}

static void stats_of_a_pid_s_former_owner_are_not_taken(void **state)
{
  (void)state;
  struct live l;
  size_t bytes;
  struct m6_snapshot *b = game(&bytes);
  mach6_stats *s;
  live_make(&l, getpid(), 1000, 1u << 20); /* written 1 us after the machine's start: not this process */
  live_publish(&l, b);
  assert_int_equal(mach6_stats_open(getpid(), &s), MACH6_ENOTFOUND);
  live_end(&l);
  live_make(&l, getpid(), UINT64_MAX / 2, 1u << 20);
  live_publish(&l, b);
  assert_int_equal(mach6_stats_open(getpid(), &s), MACH6_OK);
  mach6_stats_close(s);
  /* A name is not followed when it is a link, and not opened when it is a pipe. */
  char path[128];
  snprintf(path, sizeof path, "/tmp/mach6-test-stats.%d", (int)getpid());
  assert_int_equal(rename(l.path, "/dev/shm/mach6-test-elsewhere"), 0);
  assert_int_equal(symlink("/dev/shm/mach6-test-elsewhere", l.path), 0);
  assert_int_equal(mach6_stats_open(getpid(), &s), MACH6_ENOTFOUND);
  unlink(l.path);
  assert_int_equal(mkfifo(l.path, 0600), 0);
  assert_int_equal(mach6_stats_open(getpid(), &s), MACH6_ENOTFOUND);
  live_end(&l);
  unlink("/dev/shm/mach6-test-elsewhere");
  free(b);
}

struct writer {
  struct live *l;
  struct m6_snapshot *b;
  uint32_t stop;
};
static void *writes(void *p)
{
  struct writer *w = p;
  for (uint64_t i = 1; !m6_peek(&w->stop); i++) {
    /* All words that are only printed say the same number: a torn copy would show. */
    w->b->presents = w->b->records = w->b->frees = w->b->publishes = i;
    for (int k = 0; k < M6_HIST_BUCKETS; k++) w->b->histogram[k] = (uint32_t)i;
    live_publish(w->l, w->b);
    usleep(50);
  }
  return NULL;
}

static void snapshots_are_never_torn(void **state)
{
  (void)state;
  struct live l;
  size_t bytes;
  struct m6_snapshot *b = game(&bytes);
  live_make(&l, nobody() + 1, 2000, 1u << 20);
  live_publish(&l, b);
  struct writer w = {&l, b, 0};
  pthread_t t;
  mach6_stats *s;
  uint64_t last = 0, changes = 0;
  assert_int_equal(mach6_stats_open(nobody() + 1, &s), MACH6_OK);
  assert_int_equal(pthread_create(&t, NULL, writes, &w), 0);
  for (int i = 0; i < 1500; i++) {
    int error = mach6_stats_refresh(s);
    assert_true(error == MACH6_OK || error == MACH6_EBUSY);
    const struct m6_snapshot *n = mach6_stats_snapshot(s);
    if (n->publishes != n->presents || n->records != n->presents || n->frees != n->presents) {
      if (n->presents != 1501)
        fail_msg("torn: %llu %llu", (unsigned long long)n->presents, (unsigned long long)n->records);
      continue;
    }
    for (int k = 0; k < M6_HIST_BUCKETS; k++) assert_int_equal(n->histogram[k], (uint32_t)n->presents);
    changes += n->presents != last;
    last = n->presents;
  }
  m6_poke(&w.stop, 1);
  pthread_join(t, NULL);
  assert_true(changes > 20);
  mach6_stats_close(s);
  live_end(&l);
  free(b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(live_stats_are_found_and_refreshed),
    cmocka_unit_test(stats_of_a_pid_s_former_owner_are_not_taken),
    cmocka_unit_test(snapshots_are_never_torn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
