/* live.c - see dashboard.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/budgets.h"
#include "../../collector/stats_internal.h"
#include "../../collector/stats_targets.h"
#include "../../shm/clock.h"
#include "../mach6/ps_words.h"
#include "../mach6/tool.h"
#include "dashboard.h"

#define AGAIN_MS 1000   /* between two looks for a session where there is none */
#define LEAST_PART 512u /* then nothing of what can be cut is left */

struct live {
  pid_t pid;
  unsigned watchers;
  mach6_stats *stats;
  uint64_t serial, publishes, looked_ns, dump_bytes;
  char *text; /* the last stats, as JSON */
  char trouble[1024];
};
static struct live all[M6_DASHBOARD_CLIENTS]; /* each page may watch another target */

struct live *live_take(pid_t pid)
{
  struct live *l = NULL;
  for (int i = 0; i < M6_DASHBOARD_CLIENTS; i++) {
    if (all[i].watchers && all[i].pid == pid) return all[i].watchers++, &all[i];
    if (!all[i].watchers) l = &all[i];
  }
  if (!l) return NULL;
  *l = (struct live){.pid = pid, .watchers = 1, .serial = l->serial + 1, .dump_bytes = M6_DUMP_BYTES};
  return l;
}

void live_drop(struct live *l)
{
  if (!l || --l->watchers) return;
  mach6_stats_close(l->stats);
  free(l->text);
  l->stats = NULL;
  l->text = NULL;
}

/* ---- looking ------------------------------------------------------------------------------------------------------
 * */

/* What a dump of its session can have: the collector's own bound, in its words. */
static uint64_t dump_bytes(const struct m6_snapshot *n)
{
  for (uint32_t i = 0; i < n->govern.budget_count; i++)
    if (!strcmp(n->govern.budgets[i].name, m6_budget_rows[M6_BUDGET_DUMP].name) &&
        n->govern.budgets[i].cap < M6_DUMP_BYTES)
      return n->govern.budgets[i].cap;
  return M6_DUMP_BYTES;
}

static void take_over(struct live *l)
{
  char *text = NULL;
  size_t bytes = 0;
  int error = MACH6_OK;
  for (unsigned part = 1; part <= LEAST_PART; part *= 2) {
    free(text);
    error = m6_payload_encode(brief(l->stats, part), MACH6_JSON, &text, &bytes);
    if (error || bytes < DASHBOARD_MESSAGE_BYTES) break;
  }
  if (error || bytes >= DASHBOARD_MESSAGE_BYTES) {
    free(text);
    snprintf(l->trouble, sizeof l->trouble, "the stats of process %d %s", (int)l->pid,
             error ? "found no memory" : "are too long for a page: 'mach6 stat' shows them");
    return;
  }
  free(l->text);
  l->text = text;
  l->serial++;
  l->publishes = mach6_stats_snapshot(l->stats)->publishes;
  l->dump_bytes = dump_bytes(mach6_stats_snapshot(l->stats));
}

static void look(struct live *l, uint64_t now)
{
  l->trouble[0] = 0;
  int over = l->stats && mach6_stats_ended(l->stats);
  if (l->stats && !over) {
    int error = mach6_stats_refresh(l->stats);
    if (error && error != MACH6_EBUSY) why_no_stats("dashboard", l->pid, error, l->trouble, sizeof l->trouble);
    const struct m6_snapshot *n = mach6_stats_snapshot(l->stats);
    if (!error && n->publishes != l->publishes) take_over(l);
    if (!l->trouble[0] && now > n->published_ns + M6_HEARTBEAT_LOST_MS * 1000000ull)
      snprintf(l->trouble, sizeof l->trouble,
               "the collector of process %d has been silent for %u s: this is the last that it published", (int)l->pid,
               (unsigned)((now - n->published_ns) / 1000000000u));
    return;
  }
  /* The last one stays until there is a new one. */
  mach6_stats *next;
  int error = mach6_stats_open(l->pid, &next);
  if (!error && mach6_stats_ended(next) && l->stats) {
    mach6_stats_close(next);
    error = MACH6_ENOTFOUND;
  }
  if (!error) {
    mach6_stats_close(l->stats);
    l->stats = next;
    take_over(l);
    return;
  }
  char why[900];
  why_no_stats("dashboard", l->pid, error, why, sizeof why);
  snprintf(l->trouble, sizeof l->trouble, "%s%s", over ? "this session is over; " : "", why);
}

void live_tick(uint64_t now)
{
  for (int i = 0; i < M6_DASHBOARD_CLIENTS; i++) {
    struct live *l = &all[i];
    int idle = !l->stats || mach6_stats_ended(l->stats);
    if (!l->watchers || (idle && l->looked_ns && now < l->looked_ns + AGAIN_MS * 1000000ull)) continue;
    l->looked_ns = now;
    look(l, now);
  }
}

pid_t live_pid(const struct live *l) { return l->pid; }
uint64_t live_serial(const struct live *l) { return l->serial; }
const char *live_stats(const struct live *l) { return l->text; }
const char *live_trouble(const struct live *l) { return l->trouble[0] ? l->trouble : NULL; }
uint64_t live_dump_bytes(const struct live *l) { return l->dump_bytes; }

json_t *live_targets(void)
{
  struct m6_target *list = NULL;
  size_t count = 0;
  json_t *a = json_array();
  if (m6_targets_list(&list, &count)) count = 0;
  for (size_t i = 0; i < count; i++)
    if (list[i].problem != M6_TARGET_STALE) json_array_append_new(a, target_json(&list[i]));
  free(list);
  return a;
}
