/* kernel_side_view.c - the kernel side as the last part of a snapshot. See kernel_side.h, snapshot_kernel.h.
 *
 * m6_kernel_view makes rows and their texts; publish.c then asks for the text, and, when nodes, spikes and frames have
 * their place, for the rest. Rows that find no room are left out and counted.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_side.h"
#include "symbols_debuginfod.h"
#include "utf8.h"

#define NAMING_NS 8000000000ull /* mach6 run waits 20 s for a report: what is not named by then stays without names */
#define NAME_MAX_BYTES 600u     /* of a function: some templates' names fill pages */

static const char *const call_names[] = {
#include "syscall_names.h"
};

struct m6_kernel_view {
  struct m6_kernel_side *k;
  struct m6_appendix appendix;
  struct m6_snap_kernel head;
  char *text;
  uint32_t text_bytes, text_room;
  struct m6_snap_refusal refusals[M6_KERNEL_REFUSALS_MAX];
  struct m6_snap_thread *threads;
  struct m6_snap_call calls[M6_KERNEL_CALLS_MAX];
  struct m6_snap_function *functions;
  uint64_t naming_ns; /* when it began */
  char *folded;
  size_t folded_bytes;
};

void m6_kernel_view_free(struct m6_kernel_view *v)
{
  if (v == NULL) return;
  free(v->text);
  free(v->threads);
  free(v->functions);
  free(v->folded);
  free(v);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put(struct m6_kernel_view *v, const char *s, uint32_t *offset, uint32_t *bytes)
{
  char clean[3 * NAME_MAX_BYTES];
  int replaced;
  size_t n = m6_utf8_clean(s, strnlen(s, NAME_MAX_BYTES), clean, sizeof clean, &replaced);
  *offset = v->text_bytes;
  *bytes = 0;
  if (v->text_bytes + n > v->text_room) {
    uint32_t room = 2 * v->text_room + (1u << 16);
    char *more = realloc(v->text, room);
    if (more == NULL) return;
    v->text = more;
    v->text_room = room;
  }
  memcpy(v->text + v->text_bytes, clean, n);
  v->text_bytes += (uint32_t)n;
  *bytes = (uint32_t)n;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void put_refusals(struct m6_kernel_view *v)
{
  const struct m6_kernel_side *k = v->k;
  for (uint32_t i = 0; i < k->refused_count; i++) {
    struct m6_snap_refusal *r = &v->refusals[v->head.refusal_count++];
    r->part = k->refused[i].part;
    r->error = k->refused[i].error;
    put(v, k->refused[i].what, &r->what_offset, &r->what_bytes);
    put(v, k->refused[i].hint.setting, &r->closed_offset, &r->closed_bytes);
    put(v, k->refused[i].hint.command, &r->opened_offset, &r->opened_bytes);
  }
}

static int busiest_first(const void *a, const void *b)
{
  const struct m6_snap_thread *x = a, *y = b;
  if (x->on != y->on) return x->on < y->on ? 1 : -1;
  return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void put_threads(struct m6_kernel_view *v)
{
  const struct m6_kernel_side *k = v->k;
  uint32_t count;
  const struct m6_thread_counters *rows = m6_kernel_threads(v->k, &count);
  free(v->threads);
  v->threads = calloc(count + 1, sizeof *v->threads);
  if (v->threads == NULL) return;
  for (uint32_t i = 0; i < count; i++) {
    const struct m6_thread_counters *c = &rows[i];
    struct m6_snap_thread *t = &v->threads[i];
    *t = (struct m6_snap_thread){.tid = (uint32_t)c->tid,
                                 .lives = c->lives,
                                 .elapsed = c->elapsed_ns,
                                 .on = c->on_ns,
                                 .off = c->off_ns,
                                 .wait = c->wait_ns,
                                 .calls = c->calls,
                                 .call_ns = c->call_on_ns,
                                 .voluntary = c->counted[M6_VOLUNTARY],
                                 .involuntary = c->counted[M6_INVOLUNTARY],
                                 .minor = c->counted[M6_MINOR],
                                 .major = c->counted[M6_MAJOR],
                                 .migrations = c->counted[M6_MIGRATIONS],
                                 .slices = c->counted[M6_SLICES],
                                 .waits = c->waits};
    _Static_assert(sizeof t->latency == sizeof c->latency, "one histogram");
    memcpy(t->latency, c->latency, sizeof t->latency);
    memcpy(t->off_by, c->off_by, sizeof c->off_by);
    if (k->switching.switches) m6_kernel_unname(t->off_by);
    v->head.minor += t->minor;
    v->head.major += t->major;
    t->samples = m6_kernel_samples(k, (uint32_t)c->own_tid);
  }
  qsort(v->threads, count, sizeof *v->threads, busiest_first);
  v->head.thread_count = count < M6_KERNEL_THREADS_MAX ? count : M6_KERNEL_THREADS_MAX;
  v->head.thread_more = count - v->head.thread_count;
}

/* Those that are shown. */
static void name_threads(struct m6_kernel_view *v)
{
  for (uint32_t i = 0; i < v->head.thread_count; i++) {
    struct m6_snap_thread *t = &v->threads[i];
    put(v, m6_kernel_name(v->k, t->tid), &t->name_offset, &t->name_bytes);
  }
}

static int longest_first(const void *a, const void *b)
{
  const struct m6_snap_call *x = a, *y = b;
  if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
  return x->number < y->number ? -1 : x->number > y->number;
}

static void put_calls(struct m6_kernel_view *v)
{
  const struct m6_counters *c = v->k->counters;
  memset(v->calls, 0, sizeof v->calls);
  for (uint32_t i = 0; c && i < c->call_count; i++) {
    const struct m6_call_counters *from = &c->calls[i];
    uint32_t at = from->number < M6_KERNEL_CALLS_MAX - 1 ? from->number
                                                         : M6_KERNEL_CALLS_MAX - 1; /* numbers that none has */
    struct m6_snap_call *to = &v->calls[at];
    to->number = from->number;
    to->threads++;
    to->count += from->count;
    to->ns += from->ns;
    if (from->max_ns > to->max_ns) to->max_ns = from->max_ns;
  }
  qsort(v->calls, M6_KERNEL_CALLS_MAX, sizeof v->calls[0], longest_first);
  uint32_t n = 0;
  for (uint32_t i = 0; i < M6_KERNEL_CALLS_MAX; i++) {
    struct m6_snap_call *to = &v->calls[i];
    if (to->count == 0) continue;
    size_t known = sizeof call_names / sizeof call_names[0];
    const char *name = to->number < known && call_names[to->number] ? call_names[to->number] : "";
    v->calls[n] = *to;
    put(v, name, &v->calls[n].name_offset, &v->calls[n].name_bytes);
    n++;
  }
  v->head.call_count = n;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static void add_total(void *arg, const struct m6_sample_total *t)
{
  struct m6_kernel_view *v = arg;
  struct m6_kernel_side *k = v->k;
  uint32_t n, kn;
  if (m6_monotonic_ns() - v->naming_ns > NAMING_NS) {
    v->head.unnamed += (uint32_t)t->count;
    return;
  }
  const uint64_t *user = m6_samples_stack(k->samples, t->user, &n),
                 *kernel = m6_samples_stack(k->samples, t->kernel, &kn);
  m6_profile_add(k->profile, m6_samples_thread(k->samples, t->tid), user, n, kernel, kn, t->count);
}

static void put_functions(struct m6_kernel_view *v)
{
  struct m6_profile *p = v->k->profile;
  uint32_t count;
  const struct m6_profile_row *rows = p ? m6_profile_rows(p, &count) : NULL;
  if (rows == NULL) return;
  uint32_t n = count < M6_KERNEL_FUNCTIONS_MAX ? count : M6_KERNEL_FUNCTIONS_MAX;
  free(v->functions);
  v->functions = calloc(n + 1, sizeof *v->functions);
  if (v->functions == NULL) return;
  for (uint32_t i = 0; i < n; i++) {
    struct m6_snap_function *f = &v->functions[i];
    const struct m6_profile_row *r = &rows[i];
    *f = (struct m6_snap_function){
      .line = r->line, .inlined = (uint32_t)r->inlined, .self = r->self, .total = r->total};
    put(v, r->function, &f->function_offset, &f->function_bytes);
    put(v, r->module, &f->module_offset, &f->module_bytes);
    if (r->file) put(v, r->file, &f->file_offset, &f->file_bytes);
  }
  v->head.function_count = n;
  v->head.function_more = count - n;
  struct m6_profile_sum sum = m6_profile_sum(p);
  v->head.profile_samples = sum.samples;
  v->head.profile_kernel = sum.kernel;
  v->head.profile_cut = sum.cut;
  v->head.profile_bare = sum.bare;
}

static void put_folded(struct m6_kernel_view *v)
{
  free(v->folded);
  v->folded = NULL;
  FILE *f = open_memstream(&v->folded, &v->folded_bytes);
  if (f == NULL) return;
  int e = m6_profile_folded(v->k->profile, f);
  fclose(f);
  if (e || v->folded_bytes > M6_KERNEL_FOLDED_MAX) {
    v->head.folded_more = 1;
    v->folded_bytes = 0;
  }
}

static void put_samples(struct m6_kernel_view *v, int final)
{
  struct m6_kernel_side *k = v->k;
  if (k->samples == NULL) return;
  m6_samples_status(k->samples, &k->sampling);
  v->head.samples_taken = k->sampling.samples;
  v->head.samples_periods = k->sampling.periods;
  v->head.samples_lost = k->sampling.lost;
  v->head.stacks_lost = k->sampling.lost_stacks;
  v->head.samples_late = k->sampling.lost_retained + (k->join ? m6_join_refused(k->join) : 0);
  v->head.sampled_cpu_ns = k->sampling.cpu_ns;
  v->head.samples_in_presents = k->in_presents;
  v->head.samples_elsewhere = k->elsewhere;
  if (!final || k->symbols == NULL || (k->profile = m6_profile_new(k->symbols)) == NULL) return;
  m6_debuginfod_settle();
  v->naming_ns = m6_monotonic_ns();
  m6_samples_totals(k->samples, add_total, v);
  put_functions(v);
  put_folded(v);
}

/* ---- into the block ---------------------------------------------------------------------------------------------- */

static const char *text_of(void *arg, uint32_t *bytes)
{
  struct m6_kernel_view *v = arg;
  *bytes = v->text_bytes;
  return v->text ? v->text : "";
}

struct block {
  char *base;
  size_t at, room;
};
/* A place for `count` things; NULL when there is no room, or nothing to put there. */
static void *place(struct block *b, uint64_t *offset, uint32_t count, size_t size)
{
  *offset = b->at;
  if (count == 0 || count > (b->room - b->at) / size) return NULL;
  void *to = b->base + b->at;
  b->at += count * size;
  return to;
}

static void put_sections(const struct m6_kernel_view *v, struct m6_snap_kernel *h, struct block *b, uint32_t text_at)
{
  struct m6_snap_refusal *r = place(b, &h->refusals_offset, h->refusal_count, sizeof *r);
  if (r == NULL) h->refusal_count = 0;
  for (uint32_t i = 0; i < h->refusal_count; i++) {
    r[i] = v->refusals[i];
    r[i].what_offset += text_at, r[i].closed_offset += text_at, r[i].opened_offset += text_at;
  }
  struct m6_snap_thread *t = place(b, &h->threads_offset, h->thread_count, sizeof *t);
  if (t == NULL) h->thread_more += h->thread_count, h->thread_count = 0;
  for (uint32_t i = 0; i < h->thread_count; i++) {
    t[i] = v->threads[i];
    t[i].name_offset += text_at;
  }
  struct m6_snap_call *c = place(b, &h->calls_offset, h->call_count, sizeof *c);
  if (c == NULL) h->call_more += h->call_count, h->call_count = 0;
  for (uint32_t i = 0; i < h->call_count; i++) {
    c[i] = v->calls[i];
    c[i].name_offset += text_at;
  }
  struct m6_snap_function *f = place(b, &h->functions_offset, h->function_count, sizeof *f);
  if (f == NULL) h->function_more += h->function_count, h->function_count = 0;
  for (uint32_t i = 0; i < h->function_count; i++) {
    f[i] = v->functions[i];
    f[i].function_offset += text_at, f[i].module_offset += text_at, f[i].file_offset += text_at;
  }
}

static void put_node_samples(const struct m6_kernel_side *k, struct m6_capture *c, const struct m6_snapshot *s,
                             struct m6_snap_kernel *h, struct block *b)
{
  struct m6_tree *t = &c->tree;
  h->sample_count = k->samples ? s->node_count : 0;
  uint64_t *to = place(b, &h->samples_offset, h->sample_count, sizeof *to);
  if (to == NULL) {
    h->sample_count = 0;
    return;
  }
  memset(to, 0, h->sample_count * sizeof *to);
  for (uint32_t i = 0; i < t->bump; i++)
    if ((i == 0 || t->nodes[i].out != 0) && t->nodes[i].out < s->node_count) to[t->nodes[i].out] += t->nodes[i].samples;
  struct m6_thread *p = c->presenter; /* the open frame's: as m6_put_open */
  if (p == NULL || !p->presenting) return;
  to[t->nodes[t->frame].out] += t->nodes[p->top].samples;
  for (uint32_t i = t->nodes[p->top].touched_next; i != 0; i = t->nodes[i].touched_next) {
    uint32_t out = t->nodes[m6_tree_home(t, i, t->frame)].out;
    if (out != 0 && out < s->node_count) to[out] += t->nodes[i].samples;
  }
}

static void put_causes(const struct m6_kernel_side *k, const struct m6_snapshot *s, struct m6_snap_kernel *h,
                       struct block *b)
{
  const struct m6_snap_spike *spikes = (const void *)(b->base + s->spikes_offset);
  const struct m6_snap_frame *frames = (const void *)(b->base + s->frames_offset);
  h->spike_cause_count = k->frames ? s->spike_count : 0;
  h->frame_cause_count = k->frames ? s->frame_count : 0;
  struct m6_snap_causes none = {0}, *to = place(b, &h->spike_causes_offset, h->spike_cause_count, sizeof *to);
  if (to == NULL) h->spike_cause_count = 0;
  for (uint32_t i = 0; i < h->spike_cause_count; i++) {
    const struct m6_snap_causes *c = m6_kernel_causes(k, spikes[i].frame);
    to[i] = c ? *c : none;
  }
  to = place(b, &h->frame_causes_offset, h->frame_cause_count, sizeof *to);
  if (to == NULL) h->frame_cause_count = 0;
  for (uint32_t i = 0; i < h->frame_cause_count; i++) {
    const struct m6_snap_causes *c = m6_kernel_causes(k, frames[i].present);
    to[i] = c ? *c : none;
  }
}

static void put_seconds(const struct m6_capture *c, struct m6_snap_kernel *h, struct block *b)
{
  int counted = h->counters != M6_KERNEL_NONE || h->faults != M6_KERNEL_NONE || h->samples != M6_KERNEL_NONE;
  struct m6_snap_kernel_second *to;
  to = place(b, &h->seconds_offset, counted ? m6_retained_seconds(&c->retained) : 0, sizeof *to);
  h->second_count = to ? m6_retained_kernel_put(&c->retained, to) : 0;
}

static size_t append(void *arg, struct m6_capture *c, struct m6_snapshot *s, uint32_t text_at, size_t at, size_t room)
{
  struct m6_kernel_view *v = arg;
  struct m6_snap_kernel *h = &s->kernel;
  struct block b = {(char *)s, at, room};
  *h = v->head;
  put_sections(v, h, &b, text_at);
  put_node_samples(v->k, c, s, h, &b);
  put_causes(v->k, s, h, &b);
  put_seconds(c, h, &b);
  h->folded_offset = b.at;
  h->folded_bytes = 0;
  size_t padded = (v->folded_bytes + 7) & ~(size_t)7;
  if (v->folded_bytes && padded <= b.room - b.at) {
    memset(b.base + b.at, 0, padded);
    memcpy(b.base + b.at, v->folded, v->folded_bytes);
    h->folded_bytes = (uint32_t)v->folded_bytes;
    b.at += padded;
  } else if (v->folded_bytes) {
    h->folded_more = 1;
  }
  return b.at;
}

const struct m6_appendix *m6_kernel_view(struct m6_kernel_side *k, struct m6_capture *c, int final)
{
  if (k == NULL || k->opening || (k->view == NULL && (k->view = calloc(1, sizeof *k->view)) == NULL)) return NULL;
  struct m6_kernel_view *v = k->view;
  v->k = k;
  v->appendix = (struct m6_appendix){v, text_of, append};
  v->text_bytes = 0;
  v->folded_bytes = 0;
  v->head = (struct m6_snap_kernel){.counters = k->counters             ? M6_KERNEL_BPF
                                                : k->switching.switches ? M6_KERNEL_PERF
                                                : k->proc               ? M6_KERNEL_PROC
                                                                        : M6_KERNEL_NONE,
                                    .frames = k->have_frames          ? M6_KERNEL_BPF
                                              : k->switching.switches ? M6_KERNEL_PERF
                                                                      : M6_KERNEL_NONE,
                                    .syscalls = k->counters && k->level == M6_LEVEL_FULL};
  if (k->samples) {
    v->head.samples = k->sampling.tier == M6_SAMPLES_BPF ? M6_KERNEL_BPF : M6_KERNEL_PERF;
    v->head.kernel_mode = (uint32_t)k->sampling.kernel_mode;
    v->head.unwound = (uint32_t)k->sampling.unwound;
    v->head.period_us = k->sampling.period_us;
  }
  if (c && k->opened_ns > c->start_mono_ns) v->head.began_ns = k->opened_ns - c->start_mono_ns;
  put_refusals(v);
  put_threads(v);
  put_calls(v);
  put_samples(v, final);
  name_threads(v);
  v->head.kernel_ns = m6_kernel_cost(k, v->head.samples_taken, v->head.unwound != 0);
  struct m6_kernel_price price = m6_kernel_prices(&k->measured, v->head.unwound != 0);
  v->head.price_switch_ns = k->counters ? price.switch_ns : k->switching.switches ? price.record_ns * 2 : NAN;
  v->head.price_call_ns = v->head.syscalls ? price.call_ns : NAN;
  v->head.price_boundary_ns = k->have_frames ? price.boundary_ns : NAN;
  v->head.price_sample_ns = k->samples ? price.sample_ns : NAN;
  v->head.prices_measured = (k->measured.record > 0) + (k->measured.sample > 0) + (k->measured.stack > 0) +
                            (k->measured.probe > 0);
  v->head.faults = k->counters      ? M6_KERNEL_BPF
                   : k->have_faults ? M6_KERNEL_PERF
                   : k->proc        ? M6_KERNEL_PROC
                                    : M6_KERNEL_NONE;
  if (k->have_faults) {
    v->head.minor = k->minor;
    v->head.major = k->major;
    v->head.faults_user_only = (uint32_t)k->faults.user_only;
  }
  if (k->counters)
    for (int i = 0; i < M6_COUNTERS_LOSSES; i++)
      if (i != M6_LOST_FRAMES) v->head.counters_lost += k->counters->lost[i]; /* those are told by themselves */
  if (k->have_frames) v->head.frames_lost = m6_counters_frames_lost(k->counters);
  if (k->switching.switches) {
    v->head.frames_lost = k->switching.lost;
    v->head.counters_lost += m6_switches_lost(k->switching.switches);
  }
  if (c) m6_kernel_seconds(k, c, c->now_mono_ns);
  return &v->appendix;
}
