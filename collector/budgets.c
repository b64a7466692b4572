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

uint64_t m6_budget_cap(enum m6_budget_id id) { return now[id].cap; }
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

uint32_t m6_budget_snap(struct m6_snap_budget out[M6_SNAP_BUDGETS])
{
  for (unsigned i = 0; i < M6_BUDGET_COUNT; i++) {
    memset(&out[i], 0, sizeof out[i]);
    snprintf(out[i].name, sizeof out[i].name, "%s", m6_budget_rows[i].name);
    out[i].cap = now[i].cap;
    out[i].used = now[i].used;
    out[i].overruns = now[i].overruns;
    out[i].unit = m6_budget_rows[i].unit;
    out[i].floor = m6_budget_rows[i].kind == M6_BUDGET_FLOOR;
  }
  return M6_BUDGET_COUNT;
}

/* ---- the option --------------------------------------------------------------------------------------------------- */

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

int m6_budget_option(const char *text, char *why, size_t room)
{
  const char *equals = strchr(text, '='), *value = equals ? equals + 1 : "";
  size_t n = equals ? (size_t)(equals - text) : strlen(text);
  unsigned id = 0;
  while (id < M6_BUDGET_COUNT && (strlen(m6_budget_rows[id].name) != n || memcmp(m6_budget_rows[id].name, text, n)))
    id++;
  if (id == M6_BUDGET_COUNT || !equals) {
    int at = snprintf(why, room, "%s: NAME=VALUE is wanted, where NAME is one of", text);
    for (id = 0; id < M6_BUDGET_COUNT && at > 0 && (size_t)at < room; id++)
      if (m6_budget_rows[id].kind != M6_BUDGET_FIXED)
        at += snprintf(why + at, room - (size_t)at, " %s", m6_budget_rows[id].name);
    return -1;
  }
  const struct m6_budget_row *r = &m6_budget_rows[id];
  if (r->kind == M6_BUDGET_FIXED)
    return snprintf(why, room, "%s is fixed: both processes are built with it", r->name), -1;
  char *end;
  errno = 0;
  double v = strtod(value, &end);
  const struct suffix *s = suffixes, *last = suffixes + sizeof suffixes / sizeof *suffixes;
  while (s < last && (s->unit != r->unit || strcmp(s->text, end) != 0)) s++;
  if (end == value || s == last || !isfinite(v) || errno != 0 || !(v > 0) || v * s->factor >= 1e15)
    return snprintf(why, room, "%s takes %s above 0, not '%s'", r->name, units_of(r->unit), value), -1;
  uint64_t cap = (uint64_t)llround(v * s->factor);
  if (cap == 0) cap = 1;
  if (r->kind == M6_BUDGET_LOWER ? cap > r->cap : cap < r->cap)
    return snprintf(why, room, "%s cannot be %s: its %s is %g%s, and '%s' is beyond it", r->name,
                    r->kind == M6_BUDGET_LOWER ? "raised" : "shortened", r->kind == M6_BUDGET_LOWER ? "cap" : "least",
                    (double)r->cap / s->factor, s->text, value),
           -1;
  if (id == M6_BUDGET_SAMPLES_PERIOD && cap > M6_SAMPLES_PERIOD_MAX_MS)
    return snprintf(why, room, "%s is at most %d ms", r->name, M6_SAMPLES_PERIOD_MAX_MS), -1;
  now[id].cap = cap;
  return 0;
}
