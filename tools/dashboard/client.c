/* client.c - one open page. A message is made at the moment when it can be sent, so that a page which reads slowly gets
 * the latest, and nothing piles up; one that leaves a message unread for DASHBOARD_STALLED_S is let go.
 *
 * Commands are one JSON object each: {"start": true}, {"start": true, "pid": N} where no target was named, {"stop":
 * true}, {"save": true}.
 */
#include <libwebsockets.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/budgets.h"
#include "../../collector/stats_internal.h"
#include "../../shm/clock.h"
#include "dashboard.h"

#define CLOSE_TRY_AGAIN 1013 /* IANA's registry of close codes; libwebsockets has no name for it */
#define CLOSE_NOT_TEXT 1003
#define CLOSE_NOT_UTF8 1007
#define CLOSE_TOO_LONG 1009
#define CLOSE_AWAY 1001
#define TARGETS_EVERY 8 /* ticks between two lists: they look through all of /proc */

static struct client *clients;
static unsigned count;
static struct {
  uint64_t serial;
  char text[2048];
} note;
static char *targets; /* JSON */
static uint64_t ticks;

unsigned client_count(void) { return count; }

void client_note(const char *format, ...)
{
  va_list a;
  va_start(a, format);
  vsnprintf(note.text, sizeof note.text, format, a);
  va_end(a);
  note.serial++;
}

static void leave(struct client *c, int code, const char *why)
{
  if (c->close_code) return;
  c->close_code = code;
  c->close_why = why;
  lws_callback_on_writable(c->wsi);
}

/* ---- it comes, it goes --------------------------------------------------------------------------------------------
 * */

void client_open(struct client *c, struct lws *wsi)
{
  c->wsi = wsi;
  if (count >= m6_budget_cap(M6_BUDGET_DASHBOARD_CLIENTS)) {
    m6_budget_overran(M6_BUDGET_DASHBOARD_CLIENTS);
    return leave(c, CLOSE_TRY_AGAIN, "as many pages are open as there may be: close one");
  }
  c->next = clients;
  clients = c;
  c->seen_note = note.serial;
  m6_budget_most(M6_BUDGET_DASHBOARD_CLIENTS, ++count);
  dashboard.pages++;
  c->due_ns = m6_monotonic_ns(); /* what it is, before anything is read */
  lws_callback_on_writable(wsi);
}

void client_gone(struct client *c)
{
  for (struct client **at = &clients; *at; at = &(*at)->next)
    if (*at == c) {
      *at = c->next;
      count--;
      break;
    }
  live_drop(c->live);
  c->live = NULL;
}

void client_farewell(const char *why)
{
  for (struct client *c = clients; c; c = c->next) leave(c, CLOSE_AWAY, why);
}

/* ---- what it says -------------------------------------------------------------------------------------------------
 * */

static void start(struct client *c, json_t *pid)
{
  json_int_t chosen = c->live ? live_pid(c->live) : dashboard.pid;
  json_int_t wanted = json_is_integer(pid) ? json_integer_value(pid) : chosen;
  if ((pid && !json_is_integer(pid)) || wanted < 0 || wanted > INT_MAX || (dashboard.pid && wanted != dashboard.pid))
    return client_note(dashboard.pid ? "this dashboard is process %d's" : "that is no process number",
                       (int)dashboard.pid);
  dashboard.started = c->started = 1;
  dashboard.began_ns = m6_monotonic_ns();
  if (c->live && live_pid(c->live) == (pid_t)wanted) return;
  live_drop(c->live);
  c->live = wanted ? live_take((pid_t)wanted) : NULL;
  c->seen = 0;
}

static void obey(struct client *c)
{
  json_t *o = json_loadb(c->said, c->said_bytes, JSON_REJECT_DUPLICATES, NULL);
  if (json_is_true(json_object_get(o, "start"))) {
    start(c, json_object_get(o, "pid"));
  } else if (json_is_true(json_object_get(o, "stop"))) {
    live_drop(c->live);
    c->live = NULL;
    c->started = 0;
  } else if (json_is_true(json_object_get(o, "save")) && c->live) {
    store_save(c->live);
  } else {
    client_note("not understood");
  }
  json_decref(o);
}

void client_hear(struct client *c, const char *bytes, size_t n, int last, int binary)
{
  if (c->close_code) return;
  if (binary) return leave(c, CLOSE_NOT_TEXT, "commands are text");
  if (n > sizeof c->said - c->said_bytes) return leave(c, CLOSE_TOO_LONG, "no command is that long");
  if (n) memcpy(c->said + c->said_bytes, bytes, n);
  c->said_bytes += n;
  if (!last) return;
  if (!m6_utf8_valid(c->said, c->said_bytes)) return leave(c, CLOSE_NOT_UTF8, "commands are UTF-8");
  obey(c);
  c->said_bytes = 0;
}

/* ---- what it is told ----------------------------------------------------------------------------------------------
 * */

/* What the system or a collector said may be cut within a character. */
static json_t *words(const char *text)
{
  json_t *o = json_string(text);
  return o ? o : json_string("(a message that is no UTF-8)");
}

/* The object, with the stats, which are text already, as its last member. NULL without memory. */
static char *message(struct client *c, size_t *bytes)
{
  json_t *o = json_pack("{s:o, s:b}", "dashboard", dashboard_json(), "started", c->started);
  const char *stats = NULL, *list = NULL;
  if (c->started && c->live) {
    const char *trouble = live_trouble(c->live);
    json_object_set_new(o, "target", json_integer(live_pid(c->live)));
    json_object_set_new(o, "trouble", trouble ? words(trouble) : json_null());
    if (live_serial(c->live) != c->seen) stats = live_stats(c->live);
    c->seen = live_serial(c->live);
  } else if (c->started) {
    list = targets;
  }
  if (note.serial != c->seen_note) json_object_set_new(o, "note", words(note.text));
  c->seen_note = note.serial;
  char *head = o ? json_dumps(o, JSON_COMPACT) : NULL;
  json_decref(o);
  if (!head) return NULL;
  const char *more = stats ? stats : list;
  size_t n = strlen(head), room = LWS_PRE + n + 16 + (more ? strlen(more) : 0) + 1;
  char *out = malloc(room);
  if (out && more)
    *bytes = (size_t)snprintf(out + LWS_PRE, room - LWS_PRE, "%.*s,\"%s\":%s}", (int)n - 1, head,
                              stats ? "stats" : "targets", more);
  else if (out) *bytes = (size_t)snprintf(out + LWS_PRE, room - LWS_PRE, "%s", head);
  free(head);
  return out;
}

int client_write(struct client *c)
{
  if (c->close_code) {
    lws_close_reason(c->wsi, (enum lws_close_status)c->close_code, (unsigned char *)c->close_why, strlen(c->close_why));
    return -1;
  }
  if (!c->due_ns) return 0;
  size_t bytes = 0;
  char *text = message(c, &bytes);
  c->due_ns = 0;
  if (!text) return -1;
  int sent = lws_write(c->wsi, (unsigned char *)text + LWS_PRE, bytes, LWS_WRITE_TEXT);
  free(text);
  return sent < 0 ? -1 : 0;
}

static void list_targets(void)
{
  int wanted = 0;
  for (struct client *c = clients; c; c = c->next) wanted |= c->started && !c->live;
  if (!wanted || (targets && ticks % TARGETS_EVERY)) return;
  json_t *list = live_targets();
  free(targets);
  targets = json_dumps(list, JSON_COMPACT);
  json_decref(list);
}

void client_tick(uint64_t now)
{
  list_targets();
  ticks++;
  for (struct client *c = clients; c; c = c->next) {
    if (c->dead) continue;
    if (c->due_ns && now > c->due_ns + DASHBOARD_STALLED_S * 1000000000ull) {
      dashboard.stalled++;
      c->dead = 1;
      lws_set_timeout(c->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
      continue;
    }
    if (!c->started && note.serial == c->seen_note) continue;
    if (!c->due_ns) c->due_ns = now;
    lws_callback_on_writable(c->wsi);
  }
}
