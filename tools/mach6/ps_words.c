/* ps_words.c - see ps_words.h. */
#include "ps_words.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "../../collector/stats_internal.h"
#include "../../collector/stats_words.h"

const char *target_user(uint32_t uid, char *room, size_t n)
{
  const struct passwd *p = getpwuid(uid);
  if (p) snprintf(room, n, "%s", p->pw_name);
  else snprintf(room, n, "%u", uid);
  return room;
}

const char *target_state(const struct m6_target *t)
{
  static const char *const problems[] = {
    [M6_TARGET_UNREADABLE] = "hidden", [M6_TARGET_UNFINISHED] = "starting", [M6_TARGET_VERSION] = "other version",
    [M6_TARGET_INVALID] = "damaged",   [M6_TARGET_STALE] = "dead",          [M6_TARGET_NAMESPACE] = "other namespace",
  };
  if (t->problem == M6_TARGET_FINE) return m6_state_name(t->state);
  return t->problem < sizeof problems / sizeof *problems && problems[t->problem] ? problems[t->problem] : "?";
}

void target_may_capture(const struct m6_target *t, char *room, size_t n)
{
  char user[64];
  if (t->problem != M6_TARGET_FINE && t->problem != M6_TARGET_UNREADABLE) snprintf(room, n, "nobody");
  else if (t->problem == M6_TARGET_FINE && t->state != M6_COLLECTING && t->sessions_started >= t->sessions_allowed)
    snprintf(room, n, "nobody, session%s over", t->sessions_allowed == 1 ? "" : "s");
  else if (t->mine) snprintf(room, n, "you");
  else snprintf(room, n, "%s%s", target_user(t->uid, user, sizeof user), t->uid ? ", root" : "");
}

int target_presents(const struct m6_target *t, uint64_t *presents)
{
  mach6_stats *s;
  if (t->problem != M6_TARGET_FINE || t->state != M6_COLLECTING || mach6_stats_open(t->pid, &s)) return 0;
  *presents = mach6_stats_snapshot(s)->presents;
  mach6_stats_close(s);
  return 1;
}

const char *target_name(const struct m6_target *t, char room[64])
{
  memcpy(room, t->name, 63);
  room[63] = 0;
  if (!m6_utf8_valid(room, strlen(room)))
    for (char *c = room; *c; c++)
      if (*c & 0x80) *c = '?';
  return *room ? room : "?";
}

json_t *target_json(const struct m6_target *t)
{
  char who[128], user[64], name[64];
  uint64_t presents;
  int fine = t->problem == M6_TARGET_FINE;
  target_may_capture(t, who, sizeof who);
  return json_pack("{s:i, s:o, s:o, s:s, s:s, s:o, s:o, s:s, s:b, s:o, s:o, s:o}", "pid", (int)t->pid, "name",
                   fine ? json_string(target_name(t, name)) : json_null(), "uid", m6_json_u64(t->uid), "user",
                   target_user(t->uid, user, sizeof user), "state", target_state(t), "presents",
                   target_presents(t, &presents) ? m6_json_u64(presents) : json_null(), "collector_pid",
                   t->collector_pid ? m6_json_u64(t->collector_pid) : json_null(), "may_capture", who, "mine",
                   t->mine != 0, "sessions_allowed", fine ? m6_json_u64(t->sessions_allowed) : json_null(),
                   "sessions_started", fine ? m6_json_u64(t->sessions_started) : json_null(), "pointer_bits",
                   fine ? m6_json_u64(t->pointer_bits) : json_null());
}
