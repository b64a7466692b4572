/* budgets.c - see budgets.h. */
#include "budgets.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW(id, name, unit, kind, cap, what) {name, what, cap, M6_UNIT_##unit, M6_BUDGET_##kind},
const struct m6_budget_row m6_budget_rows[M6_BUDGET_COUNT] = {M6_BUDGETS(ROW)};
#undef ROW
#define CAP(id, name, unit, kind, cap, what) {cap, 0, 0},
static struct {
  uint64_t cap, used, overruns;
} now[M6_BUDGET_COUNT] = {M6_BUDGETS(CAP)};
#undef CAP

/* Whose process uses it: a kind, or LOWER for all that is a session's. */
static uint32_t whose(unsigned id)
{
  uint32_t kind = m6_budget_rows[id].kind;
  return kind == M6_BUDGET_DASHBOARD || kind == M6_BUDGET_ANALYZE ? kind : M6_BUDGET_LOWER;
}

uint64_t m6_budget_cap(enum m6_budget_id id) { return now[id].cap; }
uint64_t m6_budget_used(enum m6_budget_id id) { return now[id].used; }
uint64_t m6_budget_overruns(enum m6_budget_id id) { return now[id].overruns; }
void m6_budget_use(enum m6_budget_id id, uint64_t used) { now[id].used = used; }
void m6_budget_most(enum m6_budget_id id, uint64_t used)
{
  if (used > now[id].used) now[id].used = used;
}
void m6_budget_overrun(enum m6_budget_id id, uint64_t overruns) { now[id].overruns = overruns; }
void m6_budget_overran(enum m6_budget_id id) { now[id].overruns++; }

void m6_budget_begin(void)
{
  for (unsigned i = 0; i < M6_BUDGET_COUNT; i++) now[i].used = now[i].overruns = 0;
}

static struct m6_snap_budget snap(unsigned i)
{
  struct m6_snap_budget b = {.cap = now[i].cap, .used = now[i].used, .overruns = now[i].overruns};
  snprintf(b.name, sizeof b.name, "%s", m6_budget_rows[i].name);
  b.unit = m6_budget_rows[i].unit;
  b.floor = m6_budget_rows[i].kind == M6_BUDGET_FLOOR;
  return b;
}

uint32_t m6_budget_snap(struct m6_snap_budget out[M6_SNAP_BUDGETS])
{
  for (unsigned i = 0; i < M6_BUDGET_COUNT; i++) {
    out[i] = snap(i);
    if (whose(i) != M6_BUDGET_LOWER) out[i].used = M6_BUDGET_ELSEWHERE;
  }
  return M6_BUDGET_COUNT;
}

uint32_t m6_budget_snap_dashboard(struct m6_snap_budget out[M6_SNAP_BUDGETS])
{
  uint32_t n = 0;
  for (unsigned i = 0; i < M6_BUDGET_COUNT; i++)
    if (m6_budget_rows[i].kind == M6_BUDGET_DASHBOARD) out[n++] = snap(i);
  return n;
}

/* ---- the option ---------------------------------------------------------------------------------------------------
 * */

static const struct suffix {
  const char *text;
  uint32_t unit;
  double factor;
} suffixes[] = {{"s", M6_UNIT_MS, 1000}, {"ms", M6_UNIT_MS, 1},        {"%", M6_UNIT_PPM, 10000},
                {"B", M6_UNIT_BYTES, 1}, {"KiB", M6_UNIT_BYTES, 1024}, {"MiB", M6_UNIT_BYTES, 1048576},
                {"Hz", M6_UNIT_HZ, 1},   {"", M6_UNIT_COUNT, 1}};

static const char *units_of(uint32_t unit)
{
  static const char *const t[] = {"a number", "bytes (B, KiB, MiB)", "a time (s, ms)", "a share (%)", "a rate (Hz)"};
  return t[unit];
}

/* Of what is fixed: why. */
#define LAYOUT "the segment's layout has it, and the game was started with that"
static const char *const reasons[M6_BUDGET_COUNT] = {
  [M6_BUDGET_KERNEL_RING] = "smaller rings would lose frames between two looks; samples.lite and samples.full lower "
                            "what goes into them",
  [M6_BUDGET_HEAP_PENDING] = "one is the least there can be",
  [M6_BUDGET_RING_BYTES] = LAYOUT,
  [M6_BUDGET_RINGS] = LAYOUT,
  [M6_BUDGET_SLOTS] = LAYOUT,
  [M6_BUDGET_STREAMS] = LAYOUT,
};
/* How far an option may go. */
static const struct {
  enum m6_budget_id id;
  uint64_t limit;
  const char *words;
} limits[] = {
  {M6_BUDGET_SESSION_TTL, 1000, "1 s"}, /* it ends at a whole second */
  {M6_BUDGET_MEDIAN_MIN, M6_SPIKE_WINDOW, "frames.median"},
  {M6_BUDGET_SAMPLES_PERIOD, M6_SAMPLES_PERIOD_MAX_MS, "1000 ms"},
  {M6_BUDGET_DUMP_OBJECT, M6_DUMP_OBJECT_BYTES_MIN, "64 KiB"},
  {M6_BUDGET_DASHBOARD_TTL, 1000, "1 s"},
  {M6_BUDGET_ANALYSIS_SUMMARY, 2000, "2000 bytes"}, /* its first and its last lines, and something between */
  {M6_BUDGET_ANALYSIS_TIME, 10, "10 ms"},
};

static int option(const char *text, uint32_t asks, char *why, size_t room)
{
  const char *equals = strchr(text, '='), *value = equals ? equals + 1 : "";
  size_t n = equals ? (size_t)(equals - text) : strlen(text);
  unsigned id = 0;
  while (id < M6_BUDGET_COUNT && (strlen(m6_budget_rows[id].name) != n || memcmp(m6_budget_rows[id].name, text, n)))
    id++;
  if (id == M6_BUDGET_COUNT || !equals) {
    int at = snprintf(why, room, "%s: NAME=VALUE is wanted, where NAME is one of", text);
    for (id = 0; id < M6_BUDGET_COUNT && at > 0 && (size_t)at < room; id++)
      if (m6_budget_rows[id].kind != M6_BUDGET_FIXED && whose(id) == asks)
        at += snprintf(why + at, room - (size_t)at, " %s", m6_budget_rows[id].name);
    return -1;
  }
  const struct m6_budget_row *r = &m6_budget_rows[id];
  if (whose(id) != asks)
    return snprintf(why, room, "%s bounds %s", r->name,
                    whose(id) == M6_BUDGET_DASHBOARD ? "no session: say it to mach6 dashboard"
                    : whose(id) == M6_BUDGET_ANALYZE ? "no session: say it to mach6 analyze"
                                                     : "a session: say it to mach6-collector or mach6 run"),
           -1;
  if (r->kind == M6_BUDGET_FIXED) return snprintf(why, room, "%s is fixed: %s", r->name, reasons[id]), -1;
  char *end;
  errno = 0;
  double v = strtod(value, &end);
  const struct suffix *s = suffixes, *last = suffixes + sizeof suffixes / sizeof *suffixes;
  while (s < last && (s->unit != r->unit || strcmp(s->text, end) != 0)) s++;
  if (end == value || s == last || !isfinite(v) || errno != 0 || !(v > 0) || v * s->factor >= 1e15)
    return snprintf(why, room, "%s takes %s above 0, not '%s'", r->name, units_of(r->unit), value), -1;
  uint64_t cap = (uint64_t)llround(v * s->factor);
  if (cap == 0) cap = 1;
  int floor = r->kind == M6_BUDGET_FLOOR;
  if (floor ? cap < r->cap : cap > r->cap)
    return snprintf(why, room, "%s cannot be %s: its %s is %g%s, and '%s' is beyond it", r->name,
                    floor ? "lowered" : "raised", floor ? "least" : "cap", (double)r->cap / s->factor, s->text, value),
           -1;
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    if (limits[i].id == id && (floor ? cap > limits[i].limit : cap < limits[i].limit))
      return snprintf(why, room, "%s is at %s %s", r->name, floor ? "most" : "least", limits[i].words), -1;
  now[id].cap = cap;
  return 0;
}

int m6_budget_option(const char *text, char *why, size_t room) { return option(text, M6_BUDGET_LOWER, why, room); }
int m6_budget_option_dashboard(const char *text, char *why, size_t room)
{
  return option(text, M6_BUDGET_DASHBOARD, why, room);
}
int m6_budget_option_analyze(const char *text, char *why, size_t room)
{
  return option(text, M6_BUDGET_ANALYZE, why, room);
}
