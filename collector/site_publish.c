/* site_publish.c - sites as rows of a snapshot: those that lead in anything. See site_publish.h. */
#include "site_publish.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNSHOWN_SHARE 1000u

/* The one place where what is missing widens an interval (sites.h): what found no room, of whichever site, and of every
 * sum. */
struct missing {
  struct m6_site_sum lost, in_frames;
  double ends; /* bytes that may have gone, of whichever site */
};
static struct missing missing_of(uint64_t bytes, uint32_t interval, uint64_t presents)
{
  double most = (double)
    bytes; /* a sample of them has the variance s^2 (1 - p) / p^2 <= interval x what it stands for */
  struct missing m = {.lost = {.bytes = most, .variance = interval > 1 ? most * interval : 0}};
  if (presents) m.in_frames = m.lost;
  return m;
}
static struct m6_snap_amount amount(const struct m6_site_sum *sum, const struct m6_site_sum *lost,
                                    const struct m6_site_sum *untracked, const struct m6_site_sum *late)
{
  const struct m6_site_sum *more[] = {lost, untracked, late};
  struct m6_site_sum all = {0};
  for (int i = 0; i < 3; i++)
    if (more[i]) all.bytes += more[i]->bytes, all.variance += more[i]->variance;
  struct m6_site_range r = m6_site_range_of(sum, &all);
  return (struct m6_snap_amount){sum->bytes, r.low, r.high, sum->blocks, sum->samples};
}

/* Of the moment at which most was seen. */
static struct m6_snap_amount peak_of(double peak, double variance, const struct missing *m,
                                     const struct m6_site_sum *untracked)
{
  struct m6_site_sum sum = {.bytes = peak, .variance = variance};
  return amount(&sum, &m->lost, untracked, NULL);
}

/* ---- which ones
 * --------------------------------------------------------------------------------------------------------------- */

static double by_made(const struct m6_site *s) { return s->made.bytes; }
static double by_frames(const struct m6_site *s) { return s->in_frames.bytes; }
static double by_live(const struct m6_site *s) { return s->live.bytes; }
static double by_peak(const struct m6_site *s) { return s->peak; }
static double by_same_frame(const struct m6_site *s) { return s->same_frame.bytes; }
static double by_blocks(const struct m6_site *s) { return s->in_frames.blocks; }
static double by_leak(const struct m6_site *s) { return s->leak; }
typedef double (*measure)(const struct m6_site *);
static const measure measures[] = {by_made, by_frames, by_live, by_peak, by_same_frame, by_blocks, by_leak};
#define MEASURES (sizeof measures / sizeof *measures)

static measure sorting;
static int larger_first(const void *a, const void *b)
{
  double x = sorting(*(const struct m6_site *const *)a), y = sorting(*(const struct m6_site *const *)b);
  return x < y ? 1 : x > y ? -1 : 0;
}

/* The first ones by each measure in turn, until there are `most`; then by bytes. */
static uint32_t choose(struct m6_sites *s, struct m6_site **shown, uint32_t most)
{
  struct m6_site **order = malloc(s->count * sizeof(void *));
  uint32_t n = 0, each = most / MEASURES;
  if (!order) return 0;
  for (uint32_t i = 0; i < s->count; i++) {
    struct m6_site *site = order[i] = &s->list[i];
    site->rank = 0;
    site->leak = 0;
    if (!m6_sites_lasting(s, site)) continue;
    struct m6_site_growth g = m6_sites_growth(s, site);
    if (g.suspect) site->leak = g.per;
  }
  for (size_t m = 0; m < MEASURES; m++) {
    sorting = measures[m];
    qsort(order, s->count, sizeof(void *), larger_first);
    for (uint32_t i = 0; i < each && i < s->count && sorting(order[i]) > 0; i++) {
      if (order[i]->rank) continue;
      order[i]->rank = 1;
      shown[n++] = order[i];
    }
  }
  sorting = by_made;
  qsort(order, s->count, sizeof(void *), larger_first);
  for (uint32_t i = 0; n < most && i < s->count && sorting(order[i]) > 0; i++)
    if (!order[i]->rank) shown[n++] = order[i];
  free(order);
  qsort(shown, n, sizeof(void *), larger_first);
  return n;
}

/* ---- rows
 * -------------------------------------------------------------------------------------------------------------------------
 * */

static struct m6_snap_site row_of(const struct m6_sites *s, const struct missing *m, const struct m6_site *site)
{
  struct m6_snap_site row = {.made = amount(&site->made, &m->lost, NULL, NULL),
                             .in_frames = amount(&site->in_frames, &m->in_frames, NULL, NULL),
                             .live = amount(&site->live, &m->lost, &site->untracked, NULL),
                             .same_frame = amount(&site->same_frame, &m->in_frames, &site->untracked, &site->late),
                             .peak = site->peak,
                             .dead_blocks = site->dead_blocks,
                             .dead_frames = site->dead_frames,
                             .oldest = site->oldest,
                             .age = site->live.samples ? (double)site->age_sum / (double)site->live.samples : NAN};
  struct m6_snap_amount peak = peak_of(site->peak, site->peak_variance, m, &site->untracked);
  row.peak_low = peak.low;
  row.peak_high = peak.high;
  if (m->ends > 0) row.live.low = row.live.low > m->ends ? row.live.low - m->ends : 0;
  struct m6_site_growth g = m6_sites_growth(s, site);
  row.growth = g.per;
  row.growth_error = g.error;
  row.suspect = (uint32_t)g.suspect;
  return row;
}

/* Choosing and judging some thousand sites takes milliseconds: then rows stay as they are for so long that this is a
 * thousandth of the time. The last ones, of a session that has ended, are always of now. */
static void show(struct m6_site_shown *to, struct m6_sites *s, const struct missing *m, uint32_t most, int last)
{
  uint64_t begun = m6_monotonic_ns();
  if (!last && to->count && begun - to->at_ns < UNSHOWN_SHARE * to->took_ns) return;
  struct m6_site *shown[M6_SITES_SHOWN];
  m6_sites_settle(s);
  to->count = choose(s, shown, most);
  for (uint32_t i = 0; i < to->count; i++) {
    to->site[i] = shown[i];
    to->row[i] = row_of(s, m, shown[i]);
  }
  to->at_ns = m6_monotonic_ns();
  to->took_ns = to->at_ns - begun;
}

static void put_texts(struct m6_site_side *side, const struct m6_sites *s, const struct m6_capture *c,
                      const struct m6_site *site, const struct m6_site_text *text, struct m6_snap_site *to)
{
  if (site->key.scope < M6_LABELS) {
    const struct m6_label_text *l = &c->labels[site->key.scope];
    const char *name = l->flags & M6_LABEL_KNOWN ? l->text : "(other)";
    to->scope_bytes = (uint32_t)strlen(name);
    to->scope_offset = text->put(text->arg, name, &to->scope_bytes);
  }
  if (site == s->list) return; /* (other) has no place of its own */
  const char *stack = m6_site_side_text(side, site->stack);
  to->unnamed = stack == NULL;
  if (stack) to->stack_offset = text->put(text->arg, stack, &to->stack_bytes);
}

static void ask(struct m6_site_side *side, const struct m6_site_shown *shown, enum m6_site_naming kind)
{
  for (uint32_t i = 0; i < shown->count; i++) m6_site_side_ask(side, shown->site[i]->stack, kind);
}

static uint32_t put_rows(struct m6_site_side *side, struct m6_sites *s, const struct m6_capture *c,
                         const struct m6_snapshot *snap, const struct missing *m, uint32_t most,
                         struct m6_snap_site *rows, const struct m6_site_text *text)
{
  struct m6_site_shown *shown = m6_site_side_shown(side, s);
  int last = snap->state != M6_COLLECTING;
  show(shown, s, m, most, last);
  ask(side, shown, last || m6_site_side_is_watched(side) ? M6_NAMES_WHOLE : M6_NAMES_BRIEF);
  for (uint32_t i = 0; i < shown->count; i++) {
    rows[i] = shown->row[i];
    put_texts(side, s, c, shown->site[i], text, &rows[i]);
  }
  return shown->count;
}

void m6_site_publish_ask(struct m6_site_side *side, const struct m6_capture *c, uint64_t presents)
{
  if (!side) return;
  struct m6_site_counts n = m6_site_side_counts(side);
  const struct missing m[] = {missing_of(n.dropped_bytes, c->head.site_interval, presents),
                              missing_of(n.maps_dropped_bytes, 1, presents)};
  struct m6_sites *const of[] = {m6_site_side_sites(side), m6_site_side_maps(side)};
  static const uint32_t most[] = {M6_SITES_SHOWN, M6_SITE_MAPS_SHOWN};
  for (int i = 0; i < 2; i++) {
    struct m6_site_shown *shown = m6_site_side_shown(side, of[i]);
    show(shown, of[i], &m[i], most[i], 1);
    ask(side, shown, M6_NAMES_WHOLE);
  }
}

uint32_t m6_site_publish(void *arg, const struct m6_capture *c, struct m6_snapshot *snap, struct m6_snap_site *rows,
                         const struct m6_site_text *text)
{
  struct m6_site_side *side = arg;
  struct m6_sites *s = m6_site_side_sites(side);
  struct m6_site_counts n;
  struct m6_snap_sites *to = &snap->sites;
  if (snap->state != M6_COLLECTING) {
    m6_site_side_finish(side, c);
    m6_site_publish_ask(side, c, snap->presents);
    m6_site_side_wait(side, M6_SITE_NAMES_END_MS);
  }
  n = m6_site_side_counts(side);
  struct missing m = missing_of(n.dropped_bytes, c->head.site_interval, snap->presents);
  struct m6_snap_amount peak = peak_of(s->peak, s->peak_variance, &m, &s->untracked);
  *to = (struct m6_snap_sites){.interval = c->head.site_interval,
                               .sites = s->count - 1,
                               .per_second = snap->presents < 2,
                               .made = amount(&s->made, &m.lost, NULL, NULL),
                               .in_frames = amount(&s->in_frames, &m.in_frames, NULL, NULL),
                               .live = amount(&s->live, &m.lost, &s->untracked, NULL),
                               .exact_live = snap->reading_now - c->first_live,
                               .same_frame = amount(&s->same_frame, &m.in_frames, &s->untracked, &s->late),
                               .peak = s->peak,
                               .peak_low = peak.low,
                               .peak_high = peak.high,
                               .samples = n.samples,
                               .dropped = n.dropped,
                               .dropped_bytes = n.dropped_bytes,
                               .stackless = n.none,
                               .untracked = s->untracked.samples,
                               .deaths_lost = n.deaths_lost,
                               .refused = s->refused,
                               .stacks = n.stacks,
                               .stacks_whole = n.whole};
  for (int i = 0; i < M6_ALLOC_KIND_COUNT; i++) {
    to->exact_bytes += snap->allocs[i].bytes;
    to->exact_count += snap->allocs[i].count;
  }
  /* And those of the sessions before, in a chain: the kinds of a session are what its totals rose by. */
  to->exact_bytes += c->base.bytes - c->first.bytes;
  to->exact_count += c->base.allocs - c->first.allocs;
  if (to->interval == 0) to->interval = 1; /* it was switched off meanwhile; what there is stays */
  return to->row_count = put_rows(side, s, c, snap, &m, M6_SITES_SHOWN, rows, text);
}

uint32_t m6_site_publish_maps(void *arg, const struct m6_capture *c, struct m6_snapshot *snap,
                              struct m6_snap_site *rows, const struct m6_site_text *text)
{
  struct m6_site_side *side = arg;
  struct m6_sites *s = m6_site_side_maps(side);
  struct m6_site_counts n = m6_site_side_counts(side);
  struct m6_snap_sites *to = &snap->sites;
  struct missing m = missing_of(n.maps_dropped_bytes, 1, snap->presents);
  m.ends = (double)(n.unmaps_dropped_bytes - n.unmaps_found_bytes);
  to->map_sites = s->count - 1;
  to->maps = n.maps;
  to->maps_dropped = n.maps_dropped;
  to->maps_dropped_bytes = n.maps_dropped_bytes;
  to->maps_made = s->made.bytes;
  to->maps_live = s->live.bytes;
  to->unmaps_dropped = n.unmaps_dropped;
  to->unmaps_dropped_bytes = n.unmaps_dropped_bytes;
  to->maps_untracked = s->untracked.bytes;
  to->unmapped_elsewhere = n.unmapped_elsewhere;
  to->placed_elsewhere = n.placed_elsewhere;
  return to->map_count = put_rows(side, s, c, snap, &m, M6_SITE_MAPS_SHOWN, rows, text);
}
