/* gate.c - mach6 gate FILE --max METRIC=VALUE...: bounds on a recording, for builds that shall fail when one is broken.
 *
 * A bound on what is not known (a percentile of no samples, a leak of too few frames, a node that is not there) is
 * broken: a gate that measures nothing must not pass. One line on stdout for each broken bound; exit status 0, 1, or 2
 * for a wrong use.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../collector/stats_internal.h"
#include "dump_options.h"
#include "dumpfile.h"
#include "text.h"
#include "tool.h"

enum unit { U_SECONDS, U_BYTES, U_COUNT, U_SHARE };
static const struct word {
  const char *word;
  enum unit unit;
  double factor;
} words[] = {
  {"ns", U_SECONDS, 1e-9},   {"us", U_SECONDS, 1e-6}, {"µs", U_SECONDS, 1e-6}, {"ms", U_SECONDS, 1e-3},
  {"s", U_SECONDS, 1},       {"B", U_BYTES, 1},       {"KiB", U_BYTES, 1024},  {"MiB", U_BYTES, 1 << 20},
  {"GiB", U_BYTES, 1 << 30}, {"", U_COUNT, 1},        {"%", U_SHARE, 0.01},    {"", U_SHARE, 1},
};

struct subject {
  const mach6_stats *s;
  const struct m6_snapshot *n;
  const mach6_node *node; /* NULL: the session */
  struct mach6_node_stats stats;
  double frames;
};
static double allocations(const struct subject *x)
{
  double all = 0;
  for (int i = 0; i < M6_ALLOC_KIND_COUNT; i++) all += (double)x->n->allocs[i].count;
  return all;
}
static double known(uint64_t ns, int is_known) { return is_known ? (double)ns / 1e9 : NAN; }

/* One table of metrics. `per_frame`: a value may be followed by "/frame", which it is in any case. Session's metrics
 * have an expression over x->n, a node's over x->node; NAN is "not known". */
#define INTERVAL(member) known(x->n->member, isfinite(x->n->fps) && x->n->interval_max)
#define NODE(expression) (x->node->raw->count ? (double)(expression) : NAN)
#define METRICS(SESSION, OF_NODE)                                                                                      \
  SESSION("time.p50", U_SECONDS, 0, INTERVAL(interval_p50), "frame time, present to present")                          \
  SESSION("time.p90", U_SECONDS, 0, INTERVAL(interval_p90), "")                                                        \
  SESSION("time.p99", U_SECONDS, 0, INTERVAL(interval_p99), "")                                                        \
  SESSION("time.max", U_SECONDS, 0, INTERVAL(interval_max), "")                                                        \
  SESSION("fps", U_COUNT, 0, x->n->fps, "frames over time")                                                            \
  SESSION("low_1pct_fps", U_COUNT, 0, x->n->low_1pct_fps, "of the slowest 1 % of frames")                              \
  SESSION("low_01pct_fps", U_COUNT, 0, x->n->low_01pct_fps, "of the slowest 0.1 %")                                    \
  SESSION("leak", U_BYTES, 1, x->n->leak_per_frame - x->n->leak_ci, "what it surely grows by")                         \
  SESSION("net", U_BYTES, 0, (double)x->n->reading_now - (double)x->n->reading_start, "what the heap changed by")      \
  SESSION("allocs", U_COUNT, 1, allocations(x) / x->frames, "allocations, all, by the number of frames")               \
  SESSION("spikes", U_COUNT, 0, x->n->presents ? (double)x->n->spikes_total : NAN, "frames over the spike threshold")  \
  SESSION("presents", U_COUNT, 0, x->n->presents, "")                                                                  \
  SESSION("lost", U_COUNT, 0, (double)x->n->records_lost + (double)x->n->frames_lost, "records and frames")            \
  SESSION("overhead", U_SHARE, 0, x->n->target_cpu_ns ? (double)x->n->shim_ns / (double)x->n->target_cpu_ns : NAN,     \
          "of the game's CPU time")                                                                                    \
  OF_NODE("time.avg", U_SECONDS, 0, x->stats.time_avg, "of one call")                                                  \
  OF_NODE("time.p10", U_SECONDS, 0, x->stats.time_p10, "")                                                             \
  OF_NODE("time.p50", U_SECONDS, 0, x->stats.time_p50, "")                                                             \
  OF_NODE("time.p90", U_SECONDS, 0, x->stats.time_p90, "")                                                             \
  OF_NODE("time.max", U_SECONDS, 0, x->stats.time_max, "")                                                             \
  OF_NODE("time.total", U_SECONDS, 0, NODE(x->node->raw->time_sum) / 1e9, "")                                          \
  OF_NODE("mem_delta.avg", U_BYTES, 0, x->stats.mem_delta_avg * 1024, "D of one call")                                 \
  OF_NODE("mem_delta.total", U_BYTES, 0, NODE(x->node->raw->d_sum), "")                                                \
  OF_NODE("mem_delta", U_BYTES, 1, NODE(x->node->raw->d_sum) / x->frames, "D, by frame")                               \
  OF_NODE("allocs", U_COUNT, 1, NODE(x->node->raw->allocs) / x->frames, "allocations, by frame")                       \
  OF_NODE("calls", U_COUNT, 1, NODE(x->node->raw->count) / x->frames, "by frame")                                      \
  OF_NODE("count", U_COUNT, 0, (double)x->node->raw->count, "")

struct metric {
  const char *name;
  enum unit unit;
  int of_node, per_frame;
  const char *what;
};
#define ROW_SESSION(name, unit, per_frame, expression, what) {name, unit, 0, per_frame, what},
#define ROW_NODE(name, unit, per_frame, expression, what) {name, unit, 1, per_frame, what},
static const struct metric metrics[] = {METRICS(ROW_SESSION, ROW_NODE)};
#define METRIC_COUNT (sizeof metrics / sizeof *metrics)

static double value_of(size_t metric, const struct subject *x)
{
  size_t i = 0;
#define PICK(name, unit, per_frame, expression, what)                                                                  \
  if (i++ == metric) return expression;
#define PICK_NODE(name, unit, per_frame, expression, what)                                                             \
  if (i++ == metric) return x->node ? (expression) : NAN;
  METRICS(PICK, PICK_NODE)
  return NAN;
}

struct bound {
  int is_min;
  const char *text, *path; /* path: malloc'ed; NULL: the session */
  size_t metric;
  double value;
};
struct options {
  const char *file;
  struct bound *bound;
  size_t count;
};

/* ---- reading bounds
 * ---------------------------------------------------------------------------------------------------- */

/* "16.6ms", "1KiB/frame", "2%": 0 when it makes no sense for that metric. */
static int parse_value(const char *text, const struct metric *m, double *out)
{
  char *end;
  double v = strtod(text, &end);
  if (end == text || !isfinite(v)) return 0;
  while (*end == ' ') end++;
  size_t n = strlen(end);
  if (n >= 6 && !strcmp(end + n - 6, "/frame")) {
    if (!m->per_frame) return 0;
    n -= 6;
  }
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i].unit == m->unit && strlen(words[i].word) == n && !memcmp(words[i].word, end, n)) {
      *out = v * words[i].factor;
      return 1;
    }
  if (v == 0 && n == 0) return *out = 0, 1; /* nothing is nothing in every unit */
  return 0;
}

static const char *units_of(enum unit u)
{
  static const char *const text[] = {"a time (ns, us, ms, s)", "bytes (B, KiB, MiB, GiB)", "a number",
                                     "a share (0.01, 1%)"};
  return text[u];
}

static void add_bound(struct options *o, struct argp_state *state, const char *arg, int is_min)
{
  const char *option = is_min ? "--min" : "--max", *equals = strrchr(arg, '=');
  if (!equals || equals == arg) argp_error(state, "%s takes [NODE:]METRIC=VALUE, not '%s'", option, arg);
  const char *colon = memrchr(arg, ':', (size_t)(equals - arg)), *name = colon ? colon + 1 : arg;
  size_t m = 0, n = (size_t)(equals - name);
  while (m < METRIC_COUNT &&
         !(metrics[m].of_node == (colon != NULL) && strlen(metrics[m].name) == n && !memcmp(metrics[m].name, name, n)))
    m++;
  if (m == METRIC_COUNT)
    argp_error(state, "%s has no metric '%.*s'%s; --help lists them", colon ? "a node" : "the session", (int)n, name,
               colon ? "" : " (NODE:METRIC for one of a node)");
  struct bound b = {
    .is_min = is_min, .text = arg, .metric = m, .path = colon ? strndup(arg, (size_t)(colon - arg)) : NULL};
  if (!parse_value(equals + 1, &metrics[m], &b.value))
    argp_error(state, "%s %s: the value is %s%s, not '%s'", option, arg, units_of(metrics[m].unit),
               metrics[m].per_frame ? ", with /frame after it if you like" : "", equals + 1);
  struct bound *more = realloc(o->bound, (o->count + 1) * sizeof *more);
  if (!more) {
    argp_error(state, "out of memory");
    return;
  }
  o->bound = more;
  o->bound[o->count++] = b;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  switch (key) {
  case 'M':
  case 'm': add_bound(o, state, arg, key == 'm'); return 0;
  case ARGP_KEY_END:
    if (o->file && !o->count) argp_error(state, "which bounds?  --max time.p90=16.6ms, for one");
    break;
  default: break;
  }
  return dump_option(key, arg, state, &o->file, 1);
}

static void put_help(FILE *f)
{
  for (int of_node = 0; of_node < 2; of_node++) {
    fputs(of_node ? "Metrics of a node, NODE:METRIC (a node by its labels: frame/simulate):\n"
                  : "Metrics of the session:\n",
          f);
    for (size_t i = 0; i < METRIC_COUNT; i++)
      if (metrics[i].of_node == of_node)
        fprintf(f, "  %-16s%s%s%s\n", metrics[i].name, units_of(metrics[i].unit), *metrics[i].what ? "; " : "",
                metrics[i].what);
  }
  fputs("What is not known breaks its bound.\nExit status: 0 all hold, 1 one is broken, 2 wrong use or no such file,\n"
        "6 another version's file, 7 a damaged one.\n",
        f);
}
static char *help(int key, const char *text, void *input) { return (void)input, dump_help(key, text, put_help); }

/* ---- judging
 * ------------------------------------------------------------------------------------------------------------ */

/* A node by its labels; they may hold slashes themselves, so every way to split the path is tried. */
static const mach6_node *find(const mach6_node *parent, const char *path)
{
  for (const mach6_node *c = mach6_node_first_child(parent); c; c = mach6_node_next_sibling(c)) {
    size_t n = strlen(c->label);
    if (strncmp(c->label, path, n) != 0) continue;
    if (path[n] == 0) return c;
    const mach6_node *below = path[n] == '/' ? find(c, path + n + 1) : NULL;
    if (below) return below;
  }
  return NULL;
}

static const char *in_words(double v, enum unit u)
{
  static const struct page plain = {0};
  static char text[2][32];
  static int next;
  if (u == U_SECONDS) return t_time(&plain, v);
  if (u == U_BYTES) return t_bytes(v);
  if (u == U_SHARE) return t_ratio(v);
  next = !next;
  snprintf(text[next], sizeof text[next], "%.6g", v);
  return text[next];
}

/* 1 when it holds; else a line. */
static int holds(const struct bound *b, const mach6_stats *s)
{
  const struct metric *m = &metrics[b->metric];
  struct subject x = {.s = s, .n = s->snap, .frames = s->snap->presents > 1 ? (double)(s->snap->presents - 1) : NAN};
  if (b->path && !(x.node = find(s->nodes, b->path))) {
    printf("broken: %s: there is no such node in the recording\n", b->text);
    return 0;
  }
  if (x.node) x.stats = mach6_node_stats(x.node);
  double v = value_of(b->metric, &x);
  if (b->is_min ? v >= b->value : v <= b->value) return 1;
  if (isnan(v)) printf("broken: %s: it is not known: too few frames or calls, or none\n", b->text);
  else
    printf("broken: %s: it is %s%s, %s than %s\n", b->text, in_words(v, m->unit), m->per_frame ? "/frame" : "",
           b->is_min ? "less" : "more", in_words(b->value, m->unit));
  return 0;
}

int m6_gate(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"max", 'M', "[NODE:]METRIC=VALUE", 0, "It must not be more than that", 0},
    {"min", 'm', "[NODE:]METRIC=VALUE", 0, "It must not be less than that", 0},
    {0},
  };
  static const struct argp argp = {
    table, parse, "FILE", "Check a recording against bounds: one line for each that is broken.\v", NULL, help, NULL};
  struct options o = {0};
  mach6_stats *s;
  int status, broken = 0;
  dump_parse(&argp, "mach6 gate", argc, argv, &o);
  int error = dump_load(o.file, &s, &status);
  if (!error) {
    for (size_t i = 0; i < o.count; i++) broken += !holds(&o.bound[i], s);
    mach6_stats_close(s);
  }
  for (size_t i = 0; i < o.count; i++) free((char *)o.bound[i].path);
  free(o.bound);
  if (error) return error;
  if (fflush(stdout) || ferror(stdout)) return say("the verdict could not be written"), EXIT_USAGE;
  return broken ? EXIT_OTHER : status;
}
