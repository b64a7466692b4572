/* export_trace.c - a dump as trace events, for viewers of timelines. See export.h for what they can and cannot show.
 *
 * Format: "Trace Event Format" (its document, and Perfetto's page on it: complete events of one track must nest,
 * counters and instants as C and i, names as metadata). What its readers make of it, tests/e2e/trace_valid.jq checks.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/stats_kernel.h"
#include "../../shm/present.h"
#include "dumpfile.h"
#include "export.h"

uint64_t export_self(const mach6_node *n)
{
  uint64_t below = 0;
  for (const mach6_node *c = mach6_node_first_child(n); c; c = mach6_node_next_sibling(c))
    if (__builtin_add_overflow(below, c->raw->time_sum, &below)) return 0;
  return n->raw->time_sum > below ? n->raw->time_sum - below : 0;
}

const mach6_node *export_next(const mach6_node *n, const mach6_node *top)
{
  const mach6_node *next = mach6_node_first_child(n);
  while (!next && n != top) {
    next = mach6_node_next_sibling(n);
    if (!next) n = &n->of->nodes[n->raw->parent];
  }
  return next;
}

/* ---- trace events
 * ---------------------------------------------------------------------------------------------------- */

#define MEAN_PID 1000000000 /* no process has it: the tracks of what is no timeline */
enum track { TRACK_FRAMES = 1, TRACK_STALLS, TRACK_GROWTH, TRACK_SITES };

struct trace {
  FILE *to;
  int pid, any, error;
};

static void event(struct trace *t, json_t *o)
{
  if (t->any++) fputs(",\n", t->to);
  t->error |= !o || json_dumpf(o, t->to, JSON_COMPACT | JSON_REAL_PRECISION(17));
  json_decref(o);
}
static double us(uint64_t ns) { return (double)ns / 1e3; }
/* Perfetto makes whole nanoseconds of times by cutting off, and 1234.567 us is 1234566.99... ns: a slice would begin
 * within the one before, and be dropped. A millionth of a microsecond more, and what is cut is the right nanosecond. */
static double exact_us(uint64_t ns) { return ns ? us(ns) + 1e-6 : 0; }

/* Raw DEL is allowed in JSON, and Perfetto refuses the whole file for one. */
static json_t *words(const char *text)
{
  if (strchr(text, 0x7f) == NULL) return json_string_nocheck(*text ? text : "(no name)");
  char *clean = strdup(text);
  for (char *c = clean; c && *c; c++)
    if (*c == 0x7f) *c = '?';
  json_t *o = clean ? json_string_nocheck(clean) : NULL;
  free(clean);
  return o;
}

static void name(struct trace *t, const char *what, int pid, int tid, const char *text)
{
  event(t, json_pack("{s:s, s:s, s:i, s:i, s:{s:o}}", "ph", "M", "name", what, "pid", pid, "tid", tid, "args", "name",
                     words(text)));
}
static void slice(struct trace *t, int pid, int tid, const char *text, uint64_t at, uint64_t time, json_t *args)
{
  event(t, json_pack("{s:s, s:o, s:i, s:i, s:f, s:f, s:o}", "ph", "X", "name", words(text), "pid", pid, "tid", tid,
                     "ts", exact_us(at), "dur", exact_us(time), "args", args));
}
static void instant(struct trace *t, int tid, const char *text, uint64_t at, json_t *args)
{
  event(t, json_pack("{s:s, s:s, s:o, s:i, s:i, s:f, s:o}", "ph", "i", "s", "t", "name", words(text), "pid", t->pid,
                     "tid", tid, "ts", exact_us(at), "args", args));
}
static void counter(struct trace *t, const char *text, uint64_t at, double v)
{
  if (isfinite(v))
    event(t, json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "ph", "C", "name", text, "pid", t->pid, "ts", exact_us(at),
                       "args", "value", v));
}

static void trace_frames(struct trace *t, const struct m6_snapshot *s)
{
  uint64_t end = 0; /* slices of one track must not overlap, whatever a damaged file says */
  for (uint32_t i = 0; i < s->frame_count; i++) {
    const struct m6_snap_frame *f = &m6_snap_frames(s)[i];
    char text[64] = "frame";
    uint64_t at = f->at > end ? f->at : end;
    if (f->at > INT64_MAX / 4 || f->time > INT64_MAX / 4 || f->gap > INT64_MAX / 4) continue;
    if (f->lumped > 1) snprintf(text, sizeof text, "%" PRIu32 " frames (records lost)", f->lumped);
    slice(t, t->pid, TRACK_FRAMES, text, at, f->time,
          json_pack("{s:o, s:I, s:I, s:o, s:b}", "present", m6_json_u64(f->present), "mem_delta_bytes",
                    (json_int_t)f->d, "inverse_mem_bytes", (json_int_t)f->i, "allocs", m6_json_u64(f->allocs), "stall",
                    f->spike != 0));
    end = at + f->time;
    if (f->gap) slice(t, t->pid, TRACK_FRAMES, "present", end, f->gap, json_object());
    end += f->gap;
  }
}

static void trace_events(struct trace *t, const mach6_stats *h)
{
  const struct m6_snapshot *s = h->snap;
  for (uint32_t i = 0; i < s->stall_count; i++) {
    const struct m6_snap_stall *k = &m6_snap_stalls(s)[i];
    char *path = k->node ? node_path(&h->nodes[k->node]) : NULL;
    instant(t, TRACK_STALLS, "stall", k->at,
            json_pack("{s:o, s:f, s:f, s:o, s:f, s:o}", "present", m6_json_u64(k->frame), "ms", us(k->time) / 1e3,
                      "median_ms", us(k->median) / 1e3, "most_time_in", path ? words(path) : json_null(), "its_ms",
                      us(k->node_time) / 1e3, "allocs", m6_json_u64(k->allocs)));
    free(path);
  }
  for (uint32_t i = 0; i < s->growth_count; i++) {
    const struct m6_snap_growth *g = &m6_snap_growths(s)[i];
    instant(t, TRACK_GROWTH, "new high of the heap", g->at,
            json_pack("{s:I, s:I, s:o}", "heap_bytes", (json_int_t)g->live, "growth_bytes", (json_int_t)g->growth,
                      "present", m6_json_u64(g->frame)));
  }
  for (uint32_t i = 0; i < s->bucket_count; i++) {
    const struct m6_snap_bucket *b = &m6_snap_buckets(s)[i];
    if (b->second > INT64_MAX / 4000000000u) continue;
    uint64_t at = b->second * 1000000000u;
    counter(t, "frames a second", at, (double)b->frames);
    counter(t, "longest frame (ms)", at, us(b->time_max) / 1e3);
    counter(t, "allocations a second", at, (double)b->allocs);
    counter(t, "allocated a second (MiB)", at, (double)b->bytes / 1048576);
    counter(t, "frees a second", at, (double)b->frees);
    counter(t, "heap (MiB)", at + 999999999u, (double)b->live / 1048576); /* read at the second's end */
    counter(t, "mapped (MiB)", at + 999999999u, (double)b->mapped / 1048576);
  }
}

#define GAP_NS 3000000000u /* readings are a second apart, or two on a busy machine */

/* What was counted between two readings, which are a second apart or more: by the time between them, but not more than
 * was counted where that was less. A second without a reading has no value of its own, and the one before goes on; but
 * for a gap (the governor's level memory), in all of which the value of the reading at its end stands. */
static void trace_kernel_seconds(struct trace *t, const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  int waited[M6_WHY_COUNT] = {0};
  for (uint32_t i = 0; i < k->second_count; i++)
    for (int w = 0; w < M6_WHY_COUNT; w++) waited[w] |= m6_snap_kernel_seconds(s)[i].off_by[w] != 0;
  for (uint32_t i = 0; i < k->second_count; i++) {
    const struct m6_snap_kernel_second *b = &m6_snap_kernel_seconds(s)[i];
    if (b->second > INT64_MAX / 4000000000u || b->covered <= 0) continue;
    uint64_t at = b->second * 1000000000u, end = at + 1000000000u, covered = (uint64_t)b->covered;
    if (covered > GAP_NS) at = covered < end ? end - covered : 0;
    double ns = (double)b->covered, each = ns > 1e9 ? 1e9 / ns : 1;
    if (k->counters) {
      counter(t, "threads on a CPU", at, (double)b->on / ns);
      counter(t, "threads that wait for a CPU", at, (double)b->wait / ns);
      counter(t, "threads off CPU", at, (double)b->off / ns);
      counter(t, "voluntary switches a second", at, (double)b->voluntary * each);
      counter(t, "involuntary switches a second", at, (double)b->involuntary * each);
    }
    for (uint32_t w = 0; w < M6_WHY_COUNT; w++) {
      char text[64];
      snprintf(text, sizeof text, "threads off CPU: %s", m6_why_name(w));
      if (waited[w]) counter(t, text, at, (double)b->off_by[w] / ns);
    }
    if (k->counters == M6_KERNEL_BPF) counter(t, "migrations a second", at, (double)b->migrations * each);
    if (k->syscalls) counter(t, "system calls a second", at, (double)b->calls * each);
    if (k->faults) {
      counter(t, "minor page faults a second", at, (double)b->minor * each);
      counter(t, "major page faults a second", at, (double)b->major * each);
    }
    if (k->samples) counter(t, "CPU samples a second", at, (double)b->samples * each);
  }
}

static void trace_site_seconds(struct trace *t, const struct m6_snapshot *s)
{
  for (uint32_t i = 0; i < s->sites.second_count; i++) {
    const struct m6_snap_site_second *b = &m6_snap_site_seconds(s)[i];
    if (b->second > INT64_MAX / 4000000000u) continue;
    counter(t, "sampled allocations a second", b->second * 1000000000u, (double)b->samples);
    counter(t, "sampled allocations that were dropped", b->second * 1000000000u, (double)b->dropped);
  }
}

/* The heap at the last frame of each group of frames: up to M6_SERIES readings, however short the session was. */
static void trace_series(struct trace *t, const struct m6_snapshot *s)
{
  uint64_t at = s->first_present_ns;
  for (uint32_t i = 0; i < s->series_count; i++) {
    const struct m6_snap_point *p = &s->series[i];
    if (at > INT64_MAX / 4 || p->time_sum > INT64_MAX / 4) return;
    at += p->time_sum;
    if (p->frames) counter(t, "heap at frames (MiB)", at, ((double)s->reading_start + (double)p->live) / 1048576);
  }
}

/* The dump has sums over the session for sites, no series: instants at its end. */
static void trace_sites(struct trace *t, const struct m6_snapshot *s)
{
  for (uint32_t i = 0; i < s->sites.row_count && s->elapsed_ns < INT64_MAX / 4; i++) {
    const struct m6_snap_site *r = &m6_snap_sites_rows(s)[i];
    struct m6_site_line line[40], *l = line;
    int n = m6_site_lines(s, r, line, 40);
    while (l < line + n - 1 && (m6_site_is_allocator(l) || m6_site_is_library(l))) l++;
    char *text = n > 0 && l->function_bytes ? strndup(l->function, (size_t)l->function_bytes) : NULL;
    struct export_value made = {r->made.bytes, r->made.low, r->made.high};
    instant(t, TRACK_SITES, text ? text : "(places without a stack)", s->elapsed_ns,
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "bytes_estimate", m6_json_real(made.value),
                      "low_95", m6_json_real(made.low), "high_95", m6_json_real(made.high), "standard_error",
                      m6_json_real(export_standard_error(export_measure_named("bytes"), made)), "blocks",
                      m6_json_real(r->made.blocks), "live_bytes", m6_json_real(r->live.bytes), "peak_bytes",
                      m6_json_real(r->peak), "growth", m6_json_real(r->growth), "growth_ci",
                      m6_json_real(r->growth_error), "suspect", r->suspect != 0));
    free(text);
  }
}

/* One mean frame (or session of a thread): each scope after the other, as long as it took on average in one of its
 * part's. Iterative, as trees may be deep: `at` is where the next child of each open node begins. */
static void trace_mean(struct trace *t, const mach6_node *part, int tid)
{
  double n = part->raw->count ? (double)part->raw->count : 1;
  struct place {
    double at, end;
  } *place = calloc(part->of->snap->node_count, sizeof *place);
  if (!place) {
    t->error = 1;
    return;
  }
  for (const mach6_node *x = part; x; x = export_next(x, part)) {
    struct place *own = &place[x - x->of->nodes], *above = x == part ? NULL : &place[x->raw->parent];
    double from = above ? above->at : 0, end = from + (double)x->raw->time_sum / n;
    if (above && end > above->end) end = above->end; /* children that were still open say more than their parent */
    *own = (struct place){from, end};
    if (above) above->at = end;
    if (end - from > 9e15) continue;
    struct mach6_node_stats st = mach6_node_stats(x);
    slice(t, MEAN_PID, tid, x->label, (uint64_t)from, (uint64_t)(end - from),
          json_pack("{s:f, s:o, s:o, s:o, s:o}", "calls", (double)x->raw->count / n, "ms_p50",
                    m6_json_real(st.time_p50 * 1e3), "ms_p90", m6_json_real(st.time_p90 * 1e3), "ms_max",
                    m6_json_real(st.time_max * 1e3), "allocs", m6_json_real((double)x->raw->allocs / n)));
  }
  free(place);
}

int export_chrome(const mach6_stats *h, FILE *to)
{
  const struct m6_snapshot *s = h->snap;
  char why[512], program[512];
  struct trace t = {.to = to, .pid = (int)(s->pid < MEAN_PID ? s->pid : 0)};
  int part = m6_stats_not_whole(h, why, sizeof why), tid = 0;
  json_t *other = json_pack("{s:s, s:b, s:s}", "mach6", MACH6_VERSION, "whole_recording", !part, "note", why);
  fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":", to);
  t.error |= json_dumpf(other, to, JSON_COMPACT);
  json_decref(other);
  fputs(",\"traceEvents\":[\n", to);
  snprintf(program, sizeof program, "%.*s%s", (int)(s->name_bytes < 400 ? s->name_bytes : 400),
           m6_snap_text(s) + s->name_offset, part ? " (not the whole recording)" : "");
  if (!m6_utf8_valid(program, strlen(program))) strcpy(program, "program"); /* a name that was cut within a character */
  name(&t, "process_name", t.pid, 0, program);
  name(&t, "thread_name", t.pid, TRACK_FRAMES, "frames, mark to done, and presents");
  name(&t, "thread_name", t.pid, TRACK_STALLS, "stalls");
  name(&t, "thread_name", t.pid, TRACK_GROWTH, "memory growth");
  trace_frames(&t, s);
  trace_events(&t, h);
  trace_kernel_seconds(&t, s);
  trace_site_seconds(&t, s);
  trace_series(&t, s);
  if (s->sites.row_count)
    name(&t, "thread_name", t.pid, TRACK_SITES, "sites of allocations: sums over the session, no timeline");
  trace_sites(&t, s);
  name(&t, "process_name", MEAN_PID, 0, "mean frame: totals over the session, no timeline");
  for (const mach6_node *c = mach6_node_first_child(h->nodes); c; c = mach6_node_next_sibling(c)) {
    if (!c->raw->first_child && c->raw->kind != M6_NODE_FRAME) continue;
    name(&t, "thread_name", MEAN_PID, ++tid, c->label);
    trace_mean(&t, c, tid);
  }
  fputs("\n]}\n", to);
  return t.error ? EIO : 0;
}
