/* forge.c - a segment that no shim wrote, of a process that lives: for tests of whoever reads segments.
 *
 *   forge PID [SETTING...]   makes /dev/shm/mach6.PID.<now> as a shim would leave it that collects, applies the settings in order and prints
 *                            the file's name; the caller removes it
 *   forge --file FILE SETTING...   applies them to a segment that is there
 * Settings: FIELD=VALUE of the header; slot.N.FIELD=VALUE; ring.N.FIELD=VALUE; stream.N.FIELD=VALUE; label.N.FIELD=VALUE; labels.FIELD=VALUE;
 *   random=SEED (all behind the identity); records=SEED (full rings, each record committed, all else in it random);
 *   frames=N (N boundaries in ring 0 with the heap readings of live=VALUE); file=BYTES is its length.
 * Values as strtoull takes them, negative ones too.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shm/clock.h"
#include "shm/label.h"
#include "shm/layout.h"
#include "shm/ring.h"

struct field {
  const char *name;
  size_t offset, bytes;
};
#define F(type, member)                                                                                                \
  {                                                                                                                    \
#member, offsetof(struct type, member), sizeof(((struct type *)0)->member)                                         \
  }
static const struct field header_fields[] = {F(m6_header, magic),
                                             F(m6_header, version),
                                             F(m6_header, pointer_bits),
                                             F(m6_header, size),
                                             F(m6_header, pid),
                                             F(m6_header, uid),
                                             F(m6_header, load_ns),
                                             F(m6_header, run_token),
                                             F(m6_header, pidns),
                                             F(m6_header, header_bytes),
                                             F(m6_header, record_bytes),
                                             F(m6_header, state),
                                             F(m6_header, sessions_allowed),
                                             F(m6_header, sessions_started),
                                             F(m6_header, end_reason),
                                             F(m6_header, start_clock),
                                             F(m6_header, start_mono_ns),
                                             F(m6_header, clock_kind),
                                             F(m6_header, slots_used),
                                             F(m6_header, rings_used),
                                             F(m6_header, unseen),
                                             F(m6_header, start_live),
                                             F(m6_header, exited_clock),
                                             F(m6_header, exec),
                                             F(m6_header, want),
                                             F(m6_header, session),
                                             F(m6_header, heartbeat_ns),
                                             F(m6_header, level),
                                             F(m6_header, collector_pid),
                                             F(m6_header, labels_refused),
                                             F(m6_header, streams_refused),
                                             F(m6_header, slots_refused),
                                             F(m6_header, rings_refused),
                                             F(m6_header, underflows),
                                             F(m6_header, brk_start),
                                             F(m6_header, brk_now),
                                             F(m6_header, preboot_allocs),
                                             F(m6_header, name),
                                             {0}};
static const struct field slot_fields[] = {
  F(m6_slot, live),           F(m6_slot, allocs),        F(m6_slot, bytes),
  F(m6_slot, frees),          F(m6_slot, mapped),        F(m6_slot, maps),
  F(m6_slot, lost),           F(m6_slot, tid),           F(m6_slot, ring),
  F(m6_slot, calloc_.count),  F(m6_slot, calloc_.bytes), F(m6_slot, realloc_.count),
  F(m6_slot, realloc_.bytes), F(m6_slot, aligned.count), F(m6_slot, aligned.bytes),
  F(m6_slot, new_.count),     F(m6_slot, new_.bytes),    {0}};
static const struct field ring_fields[] = {F(m6_ring_head, claimed), F(m6_ring_head, consumed), {0}};
static const struct field label_fields[] = {F(m6_label, hash), F(m6_label, text), {0}};
static const struct field labels_fields[] = {F(m6_labels_head, used), F(m6_labels_head, text_used), {0}};
static const struct field stream_fields[] = {F(m6_stream, display),
                                             F(m6_stream, drawable),
                                             F(m6_stream, presents),
                                             F(m6_stream, first_clock),
                                             F(m6_stream, caller),
                                             F(m6_stream, symbol),
                                             F(m6_stream, route),
                                             F(m6_stream, tid),
                                             F(m6_stream, kind),
                                             F(m6_stream, failed),
                                             {0}};
static const struct array {
  const char *name;
  const struct field *fields;
  size_t offset, stride, count;
} arrays[] = {{"slot", slot_fields, M6_OFF_SLOTS, sizeof(struct m6_slot), M6_SLOTS},
              {"ring", ring_fields, M6_OFF_RING_HEADS, sizeof(struct m6_ring_head), M6_RINGS},
              {"label", label_fields, M6_OFF_LABEL_TABLE, sizeof(struct m6_label), M6_LABELS},
              {"labels", labels_fields, M6_OFF_LABELS, 0, 1},
              {"stream", stream_fields, offsetof(struct m6_header, streams), sizeof(struct m6_stream), M6_STREAMS},
              {"", header_fields, 0, 0, 1}};

static char seg[M6_SEGMENT_BYTES] __attribute__((aligned(4096)));
static off_t file_bytes = M6_SEGMENT_BYTES;
static uint64_t frame_live;

static uint64_t random_state;
static uint64_t rnd(void) /* splitmix64 */
{
  uint64_t z = random_state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

static struct m6_record *ring_at(uint32_t i) { return (struct m6_record *)(seg + m6_ring_offset(i)); }

static void records(void)
{
  struct m6_header *h = (struct m6_header *)seg;
  struct m6_ring_head *heads = (struct m6_ring_head *)(seg + M6_OFF_RING_HEADS);
  h->rings_used = M6_RINGS;
  for (uint32_t i = 0; i < M6_RINGS; i++) {
    heads[i].consumed = 0;
    heads[i].claimed = m6_ring_capacity(i);
    for (uint32_t n = 0; n < m6_ring_capacity(i); n++) {
      /* half of them plausible, so that they get past the first checks */
      unsigned type = (unsigned)(rnd() % 9), depth = (unsigned)(rnd() & 1 ? rnd() % 8 : rnd());
      unsigned label = (unsigned)(rnd() & 1 ? rnd() % 4096 : rnd());
      ring_at(i)[n] = (struct m6_record){rnd() & 1 ? m6_monotonic_ns() : rnd(), rnd() & 1 ? rnd() % 100000 : rnd(),
                                         rnd() & 1 ? rnd() % 100000 : rnd(),
                                         m6_word(1, type, (unsigned)rnd() & 3, label, depth)};
    }
  }
}

static void frames(unsigned count)
{
  struct m6_header *h = (struct m6_header *)seg;
  struct m6_ring_head *heads = (struct m6_ring_head *)(seg + M6_OFF_RING_HEADS);
  h->rings_used = h->rings_used ? h->rings_used : 1;
  for (unsigned f = 1; f <= count; f++) {
    uint64_t clock = h->start_clock + f * 1000000, at = heads[0].claimed;
    struct m6_record *r = ring_at(0);
    r[at] = (struct m6_record){clock, frame_live, f, m6_word(1, M6_REC_FRAME, 0, 0, M6_FRAME_UNITS)};
    r[at + 1] = (struct m6_record){clock + 1000, frame_live, f, m6_word(1, M6_REC_CONTINUED, 0, 0, 0)};
    r[at + 2] = (struct m6_record){f, frame_live, f, m6_word(1, M6_REC_CONTINUED, 0, 0, 0)};
    r[at + 3] = (struct m6_record){0, frame_live, f, m6_word(1, M6_REC_CONTINUED, 0, 0, 0)};
    heads[0].claimed += M6_FRAME_UNITS;
  }
  h->streams[0].presents = count;
  h->streams[0].first_clock = h->start_clock + 1000000;
  h->streams[0].kind = 1;
}

static int set(const char *setting)
{
  const char *equals = strchr(setting, '='), *field = setting;
  if (!equals) return -1;
  uint64_t value = strtoull(equals + 1, NULL, 0);
  size_t n = (size_t)(equals - setting), word = strcspn(setting, ".=");
#define IS(s) (n == strlen(s) && !memcmp(setting, s, n))
  random_state = value;
  if (IS("random")) {
    for (size_t i = 64; i + 8 <= sizeof seg; i += 8) *(uint64_t *)(seg + i) = rnd();
    return 0;
  }
  if (IS("records")) return records(), 0;
  if (IS("live")) return frame_live = value, 0;
  if (IS("frames")) return frames((unsigned)value), 0;
  if (IS("file")) return file_bytes = (off_t)value, 0;
  for (const struct array *a = arrays;; a++) {
    size_t index = 0;
    int whole = !*a->name;
    if (!whole && (word != strlen(a->name) || memcmp(setting, a->name, word) || setting[word] != '.')) continue;
    if (!whole) field = setting + word + 1;
    if (a->stride) {
      char *end;
      index = strtoul(field, &end, 10);
      field = end + 1;
    }
    for (const struct field *f = a->fields; f->name && index < a->count; f++) {
      if (strlen(f->name) != (size_t)(equals - field) || memcmp(f->name, field, strlen(f->name))) continue;
      char *to = seg + a->offset + index * a->stride + f->offset;
      if (f->bytes > 8) strncpy(to, equals + 1, f->bytes);
      else memcpy(to, &value, f->bytes);
      return 0;
    }
    if (whole) return -1;
  }
}

int main(int argc, char **argv)
{
  if (argc < 2) return 2;
  struct m6_header *h = (struct m6_header *)seg;
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  char path[128];
  int there = !strcmp(argv[1], "--file"), fd;
  if (there) {
    snprintf(path, sizeof path, "%s", argc > 2 ? argv[2] : "");
    fd = open(path, O_RDWR);
    if (fd < 0 || pread(fd, seg, sizeof seg, 0) < 0) return perror(path), 1;
  } else {
    struct stat ns;
    h->magic = M6_SEGMENT_MAGIC;
    h->version = M6_LAYOUT_VERSION;
    h->pointer_bits = 64;
    h->size = M6_SEGMENT_BYTES;
    h->pid = (uint32_t)atoi(argv[1]);
    h->uid = geteuid();
    h->load_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    h->pidns = stat("/proc/self/ns/pid", &ns) ? 0 : ns.st_ino;
    h->header_bytes = sizeof *h;
    h->record_bytes = sizeof(struct m6_record);
    h->state = M6_COLLECTING;
    h->sessions_allowed = h->sessions_started = 1;
    h->clock_kind = M6_CLOCK_MONOTONIC;
    h->start_clock = h->start_mono_ns = m6_monotonic_ns();
    h->slots_used = 1;
    strcpy(h->name, "forged");
    snprintf(path, sizeof path, M6_SEGMENT_DIR "/" M6_SEGMENT_PREFIX "%s.%llx", argv[1],
             (unsigned long long)h->load_ns);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return perror(path), 1;
  }
  for (int i = there ? 3 : 2; i < argc; i++)
    if (set(argv[i])) return fprintf(stderr, "forge: no such setting: %s\n", argv[i]), 2;
  size_t n = file_bytes < (off_t)sizeof seg ? (size_t)file_bytes : sizeof seg;
  if (pwrite(fd, seg, n, 0) != (ssize_t)n || ftruncate(fd, file_bytes)) return perror(path), 1;
  puts(path);
  return 0;
}
