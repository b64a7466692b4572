/* capture.c - opening and closing a capture, boundaries, sampling. See capture.h. */
#include "capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "utf8.h"

static void add(uint64_t *sum, const uint64_t *counter)
{
  if (__builtin_add_overflow(*sum, m6_peek(counter), sum)) *sum = UINT64_MAX;
}

void m6_totals_read(const void *segment, struct m6_totals *out)
{
  memset(out, 0, sizeof *out);
  const struct m6_header *h = segment;
  const struct m6_slot *slots = m6_segment_slots(segment);
  uint32_t used = m6_observe(&h->slots_used);
  if (used > M6_SLOTS) used = M6_SLOTS;
  for (uint32_t i = 0; i < used; i++) {
    const struct m6_slot *s = &slots[i];
    const struct m6_kind *kinds[4] = {&s->calloc_, &s->realloc_, &s->aligned, &s->new_};
    for (int k = 0; k < 4; k++) { /* before the total, as layout.h says */
      add(&out->kind_count[k], &kinds[k]->count);
      add(&out->kind_bytes[k], &kinds[k]->bytes);
    }
    m6_fence_acquire();
    out->live += (int64_t)m6_peek(&s->live);
    add(&out->allocs, &s->allocs);
    add(&out->bytes, &s->bytes);
    add(&out->frees, &s->frees);
    out->mapped += (int64_t)m6_peek(&s->mapped);
    add(&out->maps, &s->maps);
    add(&out->lost, &s->lost);
    if (m6_peek(&s->tid) != 0) out->threads++;
  }
}

static void frame_ended(void *arg, const struct m6_ended *e)
{
  struct m6_capture *c = arg;
  struct m6_frame_seen seen = m6_frames_add(&c->frames, e, c->rate, c->start_clock);
  m6_retained_frame(&c->retained, e, &seen);
}

int m6_capture_open(struct m6_capture *c, void *segment, pid_t pid, const struct m6_totals *base,
                    const uint64_t base_presents[M6_STREAMS])
{
  memset(c, 0, sizeof *c);
  const struct m6_header *h = segment;
  c->segment = segment;
  c->pid = pid;
  c->clock_kind = m6_peek(&h->clock_kind);
  c->start_clock = m6_peek(&h->start_clock);
  if (m6_observe(&h->state) == M6_INERT)
    c->start_clock = m6_clock_read(c->clock_kind); /* it never began, nor will it */
  c->start_mono_ns = m6_peek(&h->start_mono_ns);
  c->start_live = (int64_t)m6_peek(&h->start_live);
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  uint64_t mono = m6_monotonic_ns();
  if (c->start_mono_ns > mono || c->start_mono_ns == 0) c->start_mono_ns = mono;
  c->started_unix_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - (mono - c->start_mono_ns);
  if (base) c->base = *base;
  if (base_presents) memcpy(c->base_presents, base_presents, sizeof c->base_presents);
  c->first = c->base;
  c->first_live = c->start_live;
  memcpy(c->first_presents, c->base_presents, sizeof c->first_presents);
  c->main_stream = -1;
  c->rate = m6_clock_rate(c->clock_kind);
  c->agrees = 1;
  m6_retained_init(&c->retained, &(struct m6_moment){.allocs = c->base.allocs,
                                                     .bytes = c->base.bytes,
                                                     .frees = c->base.frees,
                                                     .live = c->start_live,
                                                     .lost = c->base.lost});
  int e = m6_tree_init(&c->tree);
  if (e == 0) e = m6_frames_init(&c->frames, c->start_live);
  c->labels = calloc(M6_LABELS, sizeof *c->labels);
  c->names = calloc(M6_THREAD_NAMES, sizeof *c->names);
  if (e == 0 && (c->labels == NULL || c->names == NULL)) e = ENOMEM;
  m6_books_open(&c->books, (struct m6_point){c->start_clock, c->start_live, c->base.allocs & M6_COUNT_MASK},
                frame_ended, c);
  if (e) m6_capture_close(c);
  return e;
}

void m6_capture_close(struct m6_capture *c)
{
  for (uint32_t i = 0; i < M6_RINGS; i++) m6_thread_free(c->rings[i].thread);
  while (c->tails) {
    struct m6_thread *t = c->tails;
    c->tails = t->next;
    m6_thread_free(t);
  }
  m6_tree_free(&c->tree);
  m6_frames_free(&c->frames);
  for (uint32_t i = 0; c->labels && i < M6_LABELS; i++) free(c->labels[i].text);
  free(c->labels);
  free(c->names);
  memset(c, 0, sizeof *c);
}

void m6_capture_follow(struct m6_capture *c, const struct m6_capture *before)
{
  struct m6_point from = before->books.last.ret;
  uint64_t ago = m6_ticks_to_ns(before->rate, m6_ticks_since(before->now_clock, from.clock));
  c->rate = before->rate;
  c->start_clock = from.clock;
  c->start_live = c->frames.reading_start = from.live;
  c->start_mono_ns = before->now_mono_ns > ago ? before->now_mono_ns - ago : before->now_mono_ns;
  c->started_unix_ns = before->started_unix_ns + (c->start_mono_ns - before->start_mono_ns);
  c->main_stream = before->main_stream;
  c->maps = before->maps;
  c->sites = before->sites;
  c->first = before->first;
  c->first_live = before->first_live;
  memcpy(c->first_presents, before->first_presents, sizeof c->first_presents);
  for (uint32_t i = 0; i < M6_RINGS; i++) {
    c->rings[i].at = before->rings[i].at;
    c->rings[i].seen = before->rings[i].seen;
  }
  c->retained.sites_then = before->retained.sites_then;
  m6_books_open(&c->books, from, frame_ended, c);
}

/* ---- boundaries -------------------------------------------------------------------------------------------------- */

/* The stream that presented first, of those that presented in this session; -1 when none did. */
static int first_stream(const struct m6_stream *streams, const uint64_t *base)
{
  int best = -1;
  uint64_t best_clock = 0;
  for (int i = 0; i < (int)M6_STREAMS; i++) {
    if (m6_peek(&streams[i].presents) == base[i]) continue;
    uint64_t clock = m6_peek(&streams[i].first_clock);
    if (best >= 0 && clock >= best_clock) continue;
    best = i;
    best_clock = clock;
  }
  return best;
}

static void offer(struct m6_cause cause[M6_CAUSES], struct m6_cause one)
{
  uint32_t at = M6_CAUSES - 1;
  if (one.time <= cause[at].time) return;
  for (; at > 0 && one.time > cause[at - 1].time; at--) cause[at] = cause[at - 1];
  cause[at] = one;
}

/* A loop's own scope is open when the loop presents: each open scope's part of the frame that ends at `clock`, without
 * what is open or was closed inside of it. */
static void open_causes(struct m6_tree *tree, const struct m6_thread *t, uint64_t clock,
                        struct m6_cause cause[M6_CAUSES])
{
  for (uint32_t i = t->height; i > 0; i--) {
    const struct m6_open *o = &t->stack[i - 1];
    if (o->node == 0 || o->uncertain) return; /* since when is not known */
    int older = o->frame != t->frame;         /* what began in this frame is then no child of it, but top-level */
    uint64_t from = older || o->clock < t->frame_clock ? t->frame_clock : o->clock;
    uint64_t inside = older ? t->top_time : o->child_time;
    uint32_t home = m6_tree_home(tree, o->node, older && o->frame == 0 ? t->first_top : tree->frame);
    if (clock > from && clock - from > inside) offer(cause, (struct m6_cause){home, 1, clock - from - inside, 0});
    if (older) return;
    clock = from;
  }
}

/* The three scopes in which most of this frame's time was spent, their children's left out. */
static void find_causes(struct m6_tree *t, const struct m6_thread *thread, uint64_t clock,
                        struct m6_cause cause[M6_CAUSES])
{
  for (uint32_t n = t->nodes[thread->top].touched_next; n != 0; n = t->nodes[n].touched_next) {
    const struct m6_node *x = &t->nodes[n];
    offer(cause,
          (struct m6_cause){n, x->count > UINT32_MAX ? UINT32_MAX : (uint32_t)x->count, x->own_time, x->own_allocs});
  }
  for (uint32_t i = 0; i < M6_CAUSES; i++)
    if (cause[i].node != 0) cause[i].node = m6_tree_home(t, cause[i].node, t->frame);
  open_causes(t, thread, clock, cause);
}

void m6_capture_boundary(struct m6_capture *c, struct m6_thread *t, const struct m6_record unit[M6_FRAME_UNITS])
{
  const struct m6_stream *streams = m6_segment_header(c->segment)->streams;
  uint32_t stream = m6_word_label(unit[0].word);
  if (stream >= M6_STREAMS || m6_word_depth(unit[0].word) != M6_FRAME_UNITS) {
    c->bad++;
    return;
  }
  if (c->main_stream < 0) {
    int first = first_stream(streams, c->base_presents);
    c->main_stream = first < 0 ? (int)stream : first;
    m6_poke(&m6_segment_header(c->segment)->main_stream, (uint32_t)c->main_stream);
  }
  if ((int)stream != c->main_stream) return;
  uint64_t number = unit[2].clock - c->base_presents[stream];
  uint64_t counted = m6_peek(&streams[stream].presents) - c->base_presents[stream];
  if (number == 0 || number > counted + M6_PRESENTS_AHEAD || number <= t->number) {
    c->bad++;
    return;
  }
  struct m6_boundary b;
  memset(&b, 0, sizeof b);
  b.number = number;
  b.entry = (struct m6_point){unit[0].clock, (int64_t)unit[0].live, unit[0].count & M6_COUNT_MASK};
  b.ret = (struct m6_point){unit[1].clock, (int64_t)unit[1].live, unit[1].count & M6_COUNT_MASK};
  if (t->presenting) {
    b.previous = t->number;
    b.d_scopes = t->d_scopes;
    b.d_thread = (__int128)(int64_t)unit[2].live - t->present_live;
    find_causes(&c->tree, t, unit[0].clock, b.cause);
  }
  m6_capture_present(c, t);
  t->number = number;
  t->present_live = (int64_t)unit[3].live;
  t->d_scopes = 0;
  t->top_time = 0;
  t->frame_clock = unit[1].clock;
  t->frame++;
  t->last_clock = unit[1].clock;
  t->last_live = unit[3].live;
  t->last_allocs = unit[3].count & M6_COUNT_MASK;
  c->boundaries++;
  if (c->credit.presented)
    c->credit.presented(c->credit.arg, c, t->tid, stream, number + c->base_presents[stream], unit[0].clock);
  m6_books_boundary(&c->books, &b);
}

/* ---- what is not in records -------------------------------------------------------------------------------------- */

static void sample_labels(struct m6_capture *c)
{
  struct m6_labels l = m6_labels_at(c->segment);
  char raw[M6_LABEL_BYTES_MAX + 1], clean[3 * M6_LABEL_BYTES_MAX];
  for (uint32_t i = 1; i < c->tree.bump; i++) {
    uint32_t id = c->tree.nodes[i].key.label;
    if (id == M6_LABEL_OTHER || id >= M6_LABELS || c->labels[id].flags & M6_LABEL_KNOWN) continue;
    int cut = 0, replaced = 0, n = m6_label_copy(l, id, raw, &cut);
    if (n < 0) continue;
    if (cut) /* not in the middle of a character */
      for (int back = 1; back <= 3 && back <= n; back++)
        if ((raw[n - back] & 0xc0) != 0x80) {
          unsigned char lead = (unsigned char)raw[n - back];
          int length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
          if (length > back) n -= back;
          break;
        }
    size_t bytes = m6_utf8_clean(raw, (size_t)n, clean, sizeof clean, &replaced);
    char *text = malloc(bytes + 1);
    if (text == NULL) return;
    memcpy(text, clean, bytes);
    text[bytes] = 0;
    c->labels[id] = (struct m6_label_text){
      text, (uint32_t)bytes, M6_LABEL_KNOWN | (cut ? M6_LABEL_CUT : 0) | (replaced ? M6_LABEL_REPLACED : 0)};
  }
}

static void sample_threads(struct m6_capture *c)
{
  const struct m6_slot *slots = m6_segment_slots(c->segment);
  uint32_t used = m6_peek(&m6_segment_header(c->segment)->slots_used);
  for (uint32_t i = 1; i < used && i < M6_SLOTS; i++) {
    uint32_t tid = m6_peek(&slots[i].tid);
    if (tid == 0 || tid == c->slot_tid[i]) continue;
    int known = 0;
    for (uint32_t r = 0; r < M6_RINGS && !known; r++) known = c->rings[r].thread && c->rings[r].thread->tid == tid;
    c->slot_tid[i] = tid;
    if (!known) c->threads_seen++;
  }
}

void m6_capture_sample(struct m6_capture *c, int rest)
{
  memcpy(&c->head, c->segment, sizeof c->head);
  c->head.name[sizeof c->head.name - 1] = 0;
  m6_totals_read(c->segment, &c->now);
  if (rest) {
    struct m6_totals again;
    m6_totals_read(c->segment, &again);
    c->agrees = again.live == c->now.live && again.allocs == c->now.allocs;
  }
  c->now_clock = m6_clock_read(c->clock_kind);
  c->now_mono_ns = m6_monotonic_ns();
  int stream = c->main_stream >= 0 ? c->main_stream : first_stream(c->head.streams, c->base_presents);
  c->presents = stream < 0 ? 0 : c->head.streams[stream].presents - c->base_presents[stream];
  sample_threads(c);
  sample_labels(c);
  m6_retained_sample(&c->retained,
                     &(struct m6_moment){m6_ticks_since(c->now_mono_ns, c->start_mono_ns), c->now.allocs, c->now.bytes,
                                         c->now.frees, c->now.live, c->now.mapped - c->base.mapped, c->records,
                                         c->now.lost, c->now.threads});
}

void m6_capture_finish(struct m6_capture *c)
{
  m6_books_poll(&c->books, 1);
  m6_capture_settle_last(c);
}
