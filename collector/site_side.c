/* site_side.c - see site_side.h. */
#include "site_side.h"

#include <stdlib.h>
#include <string.h>

#include "../shm/sites.h"
#include "kernel_samples.h"
#include "map_check.h"
#include "site_queue.h"

#define CHECK_MS 200u  /* where ends of mappings are missing the kernel is asked so often at most */
#define MAKE_ROOM 256u /* of a queue that is full so many are worked on at once */
#define REFRESH_MS 10u /* maps are read so often at most */
#define UNSETTLED_EVERY_MS 1u
#define UNSETTLED_PART 2u  /* of the time since then: reading takes 0.4 ms */
#define USELESS_MAX 8u     /* doublings of that */
#define UNSETTLED_MS 1000u /* after a dlopen the mappings change for so long */
#define BURST 4u           /* stacks come in bursts: their place counts as full when it is so full a part */
#define WORK_MS 5u         /* then the rings are drained again: stacks that wait there have little room */
#define WORK_EVERY_US 100u /* the same where every allocation is a sample */
#define QUIET_US 1000u     /* and there only when none has come for so long */
#define KNOWN 4096u
#define NEWS_MS 50u /* what is older than a dlopen is worked on for so long before the mappings are read again */

struct known { /* what a stack's content was unwound to, all the way */
  uint64_t hash, code;
  uint32_t number, whole;
};
struct m6_site_side {
  pid_t pid;
  struct m6_symbols *symbols;
  uint64_t refreshed_ns, loads_ns;
  uint32_t known_loads; /* dlopens before the mappings were last read */
  uint32_t seen_loads;  /* and before what came last; so many bits as M6_SITE_LOADS_MASK has */
  int loads_told;
  uint32_t useless; /* refreshes in a row that found nothing new */
  struct m6_sites sites, maps;
  struct m6_map_ranges *ranges;
  uint64_t map_key; /* the last one's */
  uint64_t ends_checked, checked_ns;
  struct m6_site_shown shown_sites, shown_maps;
  struct m6_site_counts counts, base;
  int based;
  uint64_t deaths_checked;

  struct m6_site_queue queue;
  uint32_t granules;         /* that were given back since the last look */
  struct known known[KNOWN]; /* by a hash of it; until the mappings are read again */
  int news;                  /* something was loaded since the mappings were last read */
  uint64_t came_ns;
  uint64_t unpacked[M6_SITE_STACK_BYTES / 8];

  struct m6_site_stacks stacks;
  struct m6_site_names *names;
  int watched;

  uint8_t age[M6_STACK_GRANULES]; /* looks since which a granule has been taken, and never seen in a record */
  uint64_t looked_ns;
};

struct m6_site_side *m6_site_side_open(pid_t pid, uint32_t interval)
{
  struct m6_site_side *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->pid = pid;
  int e = m6_site_queue_open(&s->queue, interval);
  e |= m6_sites_init(&s->sites);
  e |= m6_sites_init(&s->maps);
  e |= m6_site_stacks_init(&s->stacks);
  s->ranges = m6_map_ranges_open();
  if (!e && s->ranges && (s->names = m6_site_names_open(&s->stacks))) return s;
  m6_site_side_close(s);
  return NULL;
}

void m6_site_side_close(struct m6_site_side *s)
{
  if (!s) return;
  m6_site_names_close(s->names);
  m6_sites_close(&s->sites);
  m6_sites_close(&s->maps);
  m6_map_ranges_close(s->ranges);
  m6_site_stacks_free(&s->stacks);
  m6_site_queue_close(&s->queue);
  m6_symbols_close(s->symbols);
  free(s);
}

/* ---- under the guard: copies
 * ------------------------------------------------------------------------------------------------------ */

/* A stack's place in the segment back to the shim. */
static void give_back(void *segment, uint32_t first, uint32_t n)
{
  if (n == 0 || n > 64 - first % 64) return;
  uint64_t run = (n == 64 ? ~0ull : (1ull << n) - 1) << first % 64;
  m6_shared_and(&m6_site_head(segment)->taken[first / 64], ~run);
}

/* Is it from after more dlopens than these? */
static int ahead(const struct m6_site_queued *q, uint32_t loads)
{
  uint32_t more = ((q->flags >> M6_SITE_LOADS_SHIFT) - loads) & M6_SITE_LOADS_MASK;
  return (q->what == M6_SITE_BORN || q->what == M6_SITE_MAPPED) && more != 0 && more <= M6_SITE_LOADS_MASK / 2;
}

/* What has just come may be the first to be in code that is not known yet. */
static void look_for_news(struct m6_site_side *s, const struct m6_site_queued *q)
{
  uint32_t loads = q->flags >> M6_SITE_LOADS_SHIFT;
  /* The first that says it: whether its dlopens were before the mappings were read is not known. */
  if (!s->loads_told && (q->what == M6_SITE_BORN || q->what == M6_SITE_MAPPED)) {
    s->loads_told = 1;
    s->known_loads = s->seen_loads = loads - 1;
  }
  if (!ahead(q, s->seen_loads)) return;
  s->seen_loads = loads;
  s->news = 1;
  s->queue.slim = 0;
}

static void make_room(struct m6_site_side *s, const struct m6_capture *c);

/* What a record says; where its stack lies. */
static struct m6_site_queued read_record(const struct m6_record *r, uint32_t *granules)
{
  struct m6_site_queued q = {.stack_at = M6_SITE_STACKLESS, .flags = m6_word_flags(r->word)};
  q.scope = q.flags & M6_SITE_SCOPED ? m6_word_label(r->word) : M6_SITE_NO_SCOPE;
  unsigned type = m6_word_type(r->word);
  *granules = 0;
  if (type == M6_REC_FREE) {
    q.what = M6_SITE_DIED;
    q.key = r->live;
    q.frame = (uint32_t)r->count;
  } else if (type == M6_REC_SITE) {
    q.what = M6_SITE_BORN;
    q.key = r->clock;
    q.bytes = r->live & ((1ull << 48) - 1);
    q.frame = (uint32_t)(r->count >> 32);
    q.interval = (uint32_t)r->count;
    *granules = (uint32_t)(r->live >> 48);
  } else {
    struct m6_map_range m = m6_map_range(r->live, r->count);
    q.what = type == M6_REC_MAP ? M6_SITE_MAPPED : M6_SITE_UNMAPPED;
    q.key = m.address;
    q.bytes = m.bytes;
    q.frame = m.frame;
    q.clock = r->clock;
    q.interval = 1;
    if (type == M6_REC_MAP) *granules = m.granules;
  }
  return q;
}

void m6_site_side_record(void *side, struct m6_capture *c, const struct m6_record *r)
{
  struct m6_site_side *s = side;
  uint32_t granules, first = m6_word_depth(r->word);
  if (!s->queue.list) return;
  if (m6_site_queue_full(&s->queue) || m6_site_queue_stacks_full(&s->queue)) make_room(s, c);
  struct m6_site_queued is = read_record(r, &granules), *q = m6_site_queue_add(&s->queue, &is);
  look_for_news(s, q);
  if (!first || !granules) return;
  if (first > M6_STACK_GRANULES || granules > M6_STACK_GRANULES - first + 1 || granules > 64) {
    c->bad++;
    return;
  }
  m6_site_queue_stack(&s->queue, q, m6_site_stack(c->segment, first - 1), granules);
  for (uint32_t i = 0; i < granules; i++) s->age[first - 1 + i] = 0;
  give_back(c->segment, first - 1, granules);
  s->granules += granules;
}

static int in_table(void *table, uint64_t key)
{
  const uint64_t *bucket = (const uint64_t *)table + m6_site_bucket(m6_site_address(key));
  for (uint32_t i = 0; i < M6_SITE_BUCKET; i++)
    if ((m6_peek(&bucket[i]) & ~M6_SITE_HELD) == key) return 1;
  return 0;
}

/* Granules that are taken for long, and in no record, were left by a thread that ended in the middle. */
static void find_lost(struct m6_site_side *s, struct m6_site_head *h)
{
  for (uint32_t i = 0; i < M6_STACK_GRANULES; i++) {
    if (!(m6_peek(&h->taken[i / 64]) & 1ull << i % 64)) s->age[i] = 0;
    else if (++s->age[i] > M6_GRANULE_LOST_S) {
      m6_shared_and(&h->taken[i / 64], ~(1ull << i % 64));
      s->age[i] = 0;
    }
  }
}

void m6_site_side_look(struct m6_site_side *s, struct m6_capture *c, int rest)
{
  if (!s || !c->segment || m6_peek(&m6_segment_header(c->segment)->sites_used) == 0) return;
  struct m6_site_head *h = m6_site_head(c->segment);
  uint64_t now = m6_monotonic_ns();
  struct m6_site_counts is = s->counts;
  is.samples = m6_peek(&h->samples);
  is.dropped = m6_peek(&h->dropped);
  is.deaths_lost = m6_peek(&h->deaths_lost);
  is.maps = m6_peek(&h->maps);
  is.maps_dropped = m6_peek(&h->maps_dropped);
  is.dropped_bytes = m6_peek(&h->dropped_bytes);
  is.maps_dropped_bytes = m6_peek(&h->maps_dropped_bytes);
  is.unmaps_dropped = m6_peek(&h->unmaps_dropped);
  is.unmaps_dropped_bytes = m6_peek(&h->unmaps_dropped_bytes);
  if (!s->based) {
    s->based = 1;
    if (m6_peek(&m6_segment_header(c->segment)->sessions_started) > 1) s->base = is;
  }
  s->counts.samples = is.samples - s->base.samples;
  s->counts.dropped = is.dropped - s->base.dropped;
  s->counts.deaths_lost = is.deaths_lost - s->base.deaths_lost;
  s->counts.maps = is.maps - s->base.maps;
  s->counts.maps_dropped = is.maps_dropped - s->base.maps_dropped;
  s->counts.dropped_bytes = is.dropped_bytes - s->base.dropped_bytes;
  s->counts.maps_dropped_bytes = is.maps_dropped_bytes - s->base.maps_dropped_bytes;
  s->counts.unmaps_dropped = is.unmaps_dropped - s->base.unmaps_dropped;
  s->counts.unmaps_dropped_bytes = is.unmaps_dropped_bytes - s->base.unmaps_dropped_bytes;
  /* Not while deaths that were recorded wait in the queue: they know their frames. */
  uint64_t lost = s->counts.deaths_lost + s->sites.early_lost;
  if (s->queue.count == 0 && (lost != s->deaths_checked || rest)) {
    s->deaths_checked = lost;
    m6_sites_check(&s->sites, in_table, m6_site_table(c->segment));
  }
  if (now - s->looked_ns < 1000000000u) return;
  s->looked_ns = now;
  find_lost(s, h);
}

/* ---- on copies: stacks to places
 * --------------------------------------------------------------------------------------------------- */

static void refresh(struct m6_site_side *s, uint64_t now)
{
  s->refreshed_ns = now;
  memset(s->known, 0, sizeof s->known);
  if (s->symbols) m6_symbols_refresh(s->symbols);
  else if (s->pid) m6_symbols_open(s->pid, &s->symbols);
  m6_site_queue_code(&s->queue, s->symbols);
}

/* After a dlopen, which is told before it is done, the mappings are read again and again for a second, more and more
 * seldom: a library may come to lie where another was, and every address is known then. Between two batches: those of a
 * batch are older than it. */
static int unsettled(const struct m6_site_side *s, uint64_t now)
{
  uint64_t loaded = now - s->loads_ns, read = now - s->refreshed_ns;
  if (!s->loads_ns || loaded > UNSETTLED_MS * 1000000ull) return 0;
  return read >= UNSETTLED_EVERY_MS * 1000000ull && read >= loaded / UNSETTLED_PART;
}

static void read_again(struct m6_site_side *s)
{
  s->news = 0;
  s->known_loads = s->seen_loads;
  refresh(s, s->loads_ns = m6_monotonic_ns());
}

static uint32_t unwind(struct m6_site_side *s, struct m6_user_state *state, uint64_t *ip, int *whole)
{
  uint64_t now = m6_monotonic_ns(), read = now - s->refreshed_ns;
  if (!s->symbols && read >= REFRESH_MS * 1000000ull) refresh(s, now);
  if (!s->symbols) return 0;
  uint32_t n = m6_symbols_unwind_whole(s->symbols, state, ip, M6_SITE_FRAMES_MAX, whole);
  if (*whole || n == 0 || m6_symbols_covers(s->symbols, ip[n - 1])) return n;
  /* It ended in code that is not known: mapped since? Where that never helps (a JIT compiler's code) it is tried less
   * and less. */
  if (read < (REFRESH_MS << s->useless) * 1000000ull) return n;
  uint64_t last = ip[n - 1];
  refresh(s, now);
  if (m6_symbols_covers(s->symbols, last)) s->useless = 0;
  else if (s->useless < USELESS_MAX) s->useless++;
  return m6_symbols_unwind_whole(s->symbols, state, ip, M6_SITE_FRAMES_MAX, whole);
}

/* The queued sample's stack: its number, and the code of its innermost calls. 0: none. */
static uint32_t stack_of(struct m6_site_side *s, const struct m6_site_queued *q, uint64_t *code)
{
  if (s->news && ahead(q, s->known_loads)) read_again(s);
  uint64_t ip[M6_SITE_FRAMES_MAX];
  struct m6_sym_place place[M6_SITE_FRAMES_MAX];
  struct m6_user_state state;
  int whole = 0;
  *code = 0;
  uint64_t hash = q->stack_at == M6_SITE_STACKLESS ? 0 : m6_site_queue_hash(&s->queue, q);
  struct known *known = &s->known[hash % KNOWN];
  if (q->stack_at != M6_SITE_STACKLESS && known->number && known->hash == hash) {
    s->counts.stacks++;
    s->counts.whole += known->whole;
    *code = known->code;
    return known->number;
  }
  if (q->stack_at == M6_SITE_STACKLESS || !m6_site_queue_unpack(&s->queue, q, s->unpacked, &state)) {
    s->counts.none++;
    return 0;
  }
  uint32_t n = unwind(s, &state, ip, &whole), first = 0;
  s->counts.stacks++;
  memset(place, 0, sizeof place);
  for (uint32_t i = 0; i < n; i++) place[i] = m6_symbols_place(s->symbols, ip[i], i ? M6_SYM_RETURN : 0);
  while (first < n && place[first].file == place[0].file) first++; /* the shim */
  if (first == n) return 0;
  for (uint32_t i = first; i < n && i < first + M6_SITE_DEPTH; i++)
    *code = m6_site_mix(m6_site_mix(*code, (uintptr_t)place[i].file), place[i].offset + 1);
  int fresh;
  uint32_t number = m6_site_stacks_keep(&s->stacks, place + first, n - first, &fresh);
  struct m6_site_stacked *k = s->stacks.list[number];
  if (fresh) k->whole = (uint32_t)whole;
  s->counts.whole += number ? k->whole : (uint32_t)whole;
  if (whole) *known = (struct known){hash, *code, number, number ? k->whole : 1};
  return number;
}

struct mapping { /* that is worked on */
  struct m6_site_side *s;
  uint64_t key; /* 0: an end */
  uint32_t frame;
  uint64_t taken, own[3]; /* bytes of all, and of its own, by why */
};
static void lost(void *arg, uint64_t key, uint64_t bytes, enum m6_map_loss why)
{
  struct mapping *m = arg;
  if (why != M6_MAP_NO_ROOM) m->taken += bytes;
  if (key == m->key) m->own[why] += bytes; /* it is not made yet */
  else if (why == M6_MAP_NO_ROOM) m6_sites_untrack(&m->s->maps, key, bytes);
  else m6_sites_shrank(&m->s->maps, key, bytes, m->frame);
}

/* The books count what is mapped, and what goes, whosever it was; less what a mapping at an address of the caller's
 * replaces. The sites have what was mapped in the session. So they differ by what went that no site had, and by what
 * was placed where none was. */
static void work_on_mapping(struct m6_site_side *s, const struct m6_site_queued *q, struct m6_site_sample *a)
{
  struct mapping m = {.s = s, .key = q->what == M6_SITE_MAPPED ? ++s->map_key : 0, .frame = a->frame};
  const struct m6_map_event e = {.start = q->key, .end = q->key + q->bytes, .clock = q->clock, .key = m.key};
  m6_map_ranges_apply(s->ranges, &e, lost, &m);
  int64_t others = (int64_t)(q->bytes - m.taken);
  if (q->what == M6_SITE_UNMAPPED) {
    s->counts.unmapped_elsewhere += others;
    return;
  }
  if (q->flags & M6_SITE_PLACED) s->counts.placed_elsewhere += others;
  else s->counts.unmapped_elsewhere -= (int64_t)m.taken; /* its end is still to come */
  a->key = m.key;
  a->untracked = 0;
  m6_sites_made(&s->maps, a);
  if (m.own[M6_MAP_REPLACED]) m6_sites_shrank(&s->maps, m.key, m.own[M6_MAP_REPLACED], a->frame);
  if (m.own[M6_MAP_NO_ROOM]) m6_sites_untrack(&s->maps, m.key, m.own[M6_MAP_NO_ROOM]);
}

static void work_on(struct m6_site_side *s, const struct m6_site_queued *q, uint64_t base)
{
  uint32_t frame = q->frame - (uint32_t)base;
  if (frame > UINT32_MAX / 2) frame = 0;
  struct m6_site_sample a = {.key = q->key,
                             .bytes = q->bytes,
                             .interval = q->interval,
                             .frame = frame,
                             .scope = q->scope,
                             .untracked = (q->flags & M6_SITE_UNTRACKED) != 0};
  if (q->what == M6_SITE_BORN || q->what == M6_SITE_MAPPED) a.stack = stack_of(s, q, &a.code);
  if (q->what == M6_SITE_DIED) m6_sites_died(&s->sites, q->key, frame);
  else if (q->what != M6_SITE_BORN) work_on_mapping(s, q, &a);
  if (q->what != M6_SITE_BORN) return;
  m6_sites_made(&s->sites, &a);
  double p = m6_site_probability(a.bytes, a.interval);
  struct m6_site_stacked *k = s->stacks.list[a.stack];
  k->samples++;
  if (p > 0) k->blocks += 1 / p, k->bytes += (double)a.bytes / p;
}

/* Presents since the chain's first session began, as births and deaths are numbered. */
static uint32_t frames_until_now(const struct m6_capture *c)
{
  int m = c->main_stream < 0 ? 0 : c->main_stream;
  return (uint32_t)(c->boundaries + c->base_presents[m] - c->first_presents[m]);
}

static void work_on_next(struct m6_site_side *s, const struct m6_capture *c)
{
  work_on(s, m6_site_queue_next(&s->queue), c->first_presents[c->main_stream < 0 ? 0 : c->main_stream]);
  m6_site_queue_done(&s->queue);
}

static void work(struct m6_site_side *s, const struct m6_capture *c, uint64_t until_ns)
{
  while (s->queue.count && m6_monotonic_ns() < until_ns) work_on_next(s, c);
}

/* A few are worked on now; all of them where stacks have no more room, as many may share one. */
static void make_room(struct m6_site_side *s, const struct m6_capture *c)
{
  uint32_t least = m6_site_queue_stacks_full(&s->queue) ? 0 : s->queue.list_max - MAKE_ROOM;
  while (s->queue.count > least) work_on_next(s, c);
}

/* Something was loaded. What came before it is worked on first, for a while, as it may come to lie where other code
 * was; but who knows how long it stays. */
static void look_at_news(struct m6_site_side *s, const struct m6_capture *c)
{
  uint64_t until = m6_monotonic_ns() + NEWS_MS * 1000000ull;
  if (!s->news) return;
  while (s->queue.count && !ahead(m6_site_queue_next(&s->queue), s->known_loads) && m6_monotonic_ns() < until)
    work_on_next(s, c);
  read_again(s);
}

/* Ends of mappings were lost: the kernel knows what is there. Births that are on their way are told later, with clocks
 * of before. */
static void look_for_ends(struct m6_site_side *s, const struct m6_capture *c, uint64_t now)
{
  if (s->counts.unmaps_dropped == s->ends_checked || now - s->checked_ns < CHECK_MS * 1000000ull || !s->pid) return;
  uint64_t missing = s->counts.unmaps_dropped, bytes = s->counts.unmaps_dropped_bytes;
  struct mapping m = {.s = s, .frame = frames_until_now(c)};
  s->checked_ns = now;
  if (m6_map_check(s->ranges, s->pid, m6_clock_read(c->clock_kind), lost, &m)) return;
  s->ends_checked = missing;
  s->counts.unmaps_found_bytes = bytes;
}

/* Where every allocation is a sample rings and stacks are full within a quarter of a millisecond: as long as any come
 * they are only copied, until there is no more room for copies. */
uint32_t m6_site_side_work(struct m6_site_side *s, const struct m6_capture *c, int every, int came)
{
  if (!s) return 0;
  uint64_t begun = m6_monotonic_ns();
  int crowded = s->queue.count > s->queue.list_max / 2 || s->queue.words > s->queue.stacks_max / 2;
  if (every && !s->symbols && begun - s->refreshed_ns >= REFRESH_MS * 1000000ull) refresh(s, begun);
  look_at_news(s, c);
  if (came) s->came_ns = begun;
  if (every && begun - s->came_ns >= QUIET_US * 1000ull) work(s, c, begun + WORK_EVERY_US * 1000ull);
  else if (!every) work(s, c, crowded ? UINT64_MAX : begun + WORK_MS * 1000000ull);
  uint64_t now = m6_monotonic_ns();
  if (s->symbols && unsettled(s, now)) refresh(s, now);
  look_for_ends(s, c, now);
  uint32_t percent = s->queue.count ? 100 : s->granules * 100 / (M6_STACK_GRANULES / BURST);
  s->granules = 0;
  m6_sites_tick(&s->sites, frames_until_now(c), now);
  m6_sites_tick(&s->maps, frames_until_now(c), now);
  return percent > 100 ? 100 : percent;
}

void m6_site_side_finish(struct m6_site_side *s, const struct m6_capture *c)
{
  if (!s || !s->queue.count) return;
  look_at_news(s, c);
  work(s, c, UINT64_MAX);
}

void m6_site_side_ended(struct m6_site_side *s, const struct m6_capture *c)
{
  if (!s) return;
  m6_site_side_finish(s, c);
  m6_site_queue_close(&s->queue);
}

/* ---- asked from outside
 * -------------------------------------------------------------------------------------------------------------- */

struct m6_sites *m6_site_side_sites(struct m6_site_side *s) { return &s->sites; }
struct m6_sites *m6_site_side_maps(struct m6_site_side *s) { return &s->maps; }
void m6_site_side_forget_rows(struct m6_site_side *s)
{
  if (s) s->shown_sites.count = s->shown_maps.count = 0;
}
struct m6_site_shown *m6_site_side_shown(struct m6_site_side *s, const struct m6_sites *which)
{
  return which == &s->sites ? &s->shown_sites : &s->shown_maps;
}
struct m6_site_counts m6_site_side_counts(const struct m6_site_side *s) { return s->counts; }

void m6_site_side_modules(const struct m6_site_side *s, void (*each)(void *, const struct m6_sym_module *), void *arg)
{
  if (s && s->symbols) m6_symbols_met(s->symbols, each, arg);
}

void m6_site_side_watched(struct m6_site_side *s, int watched)
{
  if (s) s->watched = watched;
}
int m6_site_side_is_watched(const struct m6_site_side *s) { return s->watched; }

void m6_site_side_ask(struct m6_site_side *s, uint32_t stack, enum m6_site_naming kind)
{
  if (stack && s->symbols) m6_site_names_ask(s->names, s->symbols, stack, kind);
}

const char *m6_site_side_text(struct m6_site_side *s, uint32_t stack)
{
  return stack && s->symbols ? m6_site_names_text(s->names, stack) : "";
}

int m6_site_side_wait(struct m6_site_side *s, unsigned ms) { return !s || m6_site_names_wait(s->names, ms); }
