/* main.c - mach6-dashboard, which `mach6 dashboard` becomes: options, its address, how it ends. See dashboard.h. */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../../collector/budgets.h"
#include "../../collector/stats_internal.h"
#include "../../shm/clock.h"
#include "../mach6/tool.h"
#include "dashboard.h"

struct dashboard dashboard;
static volatile int stop;

struct options {
  const char *store;
  int json;
};

static void on_signal(int number)
{
  stop = number;
  serve_wake();
}

/* ---- what it says of itself ---------------------------------------------------------------------------------------
 * */

static double seconds_left(void)
{
  uint64_t ttl = m6_budget_cap(M6_BUDGET_DASHBOARD_TTL) * 1000000u, gone = m6_monotonic_ns() - dashboard.began_ns;
  return gone < ttl ? (double)(ttl - gone) / 1e9 : 0;
}

static json_t *budgets_json(void)
{
  struct m6_snap_budget rows[M6_SNAP_BUDGETS];
  uint64_t cap = m6_budget_cap(M6_BUDGET_DASHBOARD_TTL), used = (m6_monotonic_ns() - dashboard.began_ns) / 1000000u;
  m6_budget_use(M6_BUDGET_DASHBOARD_TTL, used < cap ? used : cap);
  return m6_payload_budgets(rows, m6_budget_snap_dashboard(rows));
}

json_t *dashboard_json(void)
{
  return json_pack("{s:s, s:i, s:b, s:f, s:o, s:o, s:o}", "mach6", MACH6_VERSION, "pid", (int)dashboard.pid, "stores",
                   store_is_open(), "ends_in_s", seconds_left(), "refused", m6_json_u64(dashboard.refused), "stalled",
                   m6_json_u64(dashboard.stalled), "budgets", budgets_json());
}

static void print_json(json_t *o)
{
  json_dumpf(o, stdout, JSON_COMPACT);
  putchar('\n');
  fflush(stdout);
  json_decref(o);
}

static void say_address(const struct options *o)
{
  char url[128];
  snprintf(url, sizeof url, "http://127.0.0.1:%d/?token=%s", dashboard.port, dashboard.token);
  if (o->json) {
    print_json(json_pack("{s:{s:s, s:i, s:s, s:i, s:f}}", "dashboard", "url", url, "port", dashboard.port, "token",
                         dashboard.token, "pid", (int)dashboard.pid, "ttl_s", seconds_left()));
    return;
  }
  printf("%s\n", url);
  fflush(stdout);
  say("open this address in a browser on this machine and press Start; it ends %.0f s after the last Start, or by ^C",
      seconds_left());
}

static void say_end(const struct options *o, int by_time)
{
  if (o->json) {
    print_json(json_pack("{s:{s:s, s:o, s:o, s:o, s:o, s:o}}", "end", "by", by_time ? "its time is over" : "a signal",
                         "pages", m6_json_u64(dashboard.pages), "requests", m6_json_u64(dashboard.requests), "refused",
                         m6_json_u64(dashboard.refused), "stalled", m6_json_u64(dashboard.stalled), "budgets",
                         budgets_json()));
    return;
  }
  struct m6_snap_budget rows[M6_SNAP_BUDGETS];
  char line[512];
  int n = 0;
  uint32_t count = m6_budget_snap_dashboard(rows);
  for (uint32_t i = 0; i < count && n >= 0 && (size_t)n < sizeof line; i++) {
    static const struct {
      double unit;
      const char *name;
    } units[M6_UNITS] = {[M6_UNIT_COUNT] = {1, ""}, [M6_UNIT_BYTES] = {1048576, " MiB"}, [M6_UNIT_MS] = {1000, " s"}};
    double unit = units[rows[i].unit].unit;
    if (!strcmp(rows[i].name, m6_budget_rows[M6_BUDGET_DASHBOARD_TTL].name)) continue; /* that is how it ended */
    n += snprintf(line + n, sizeof line - (size_t)n, "; %s %.4g of %.4g%s", strchr(rows[i].name, '.') + 1,
                  (double)rows[i].used / unit, (double)rows[i].cap / unit, units[rows[i].unit].name);
    if (rows[i].overruns && (size_t)n < sizeof line)
      n += snprintf(line + n, sizeof line - (size_t)n, ", %llu refused", (unsigned long long)rows[i].overruns);
  }
  say("the dashboard is over: %s%s", by_time ? "its time is" : "it was asked to end", line);
}

/* ---- options ------------------------------------------------------------------------------------------------------
 * */

static long number(struct argp_state *state, const char *what, const char *arg, long least, long most)
{
  char *end;
  errno = 0;
  long n = strtol(arg, &end, 10);
  if (errno || end == arg || *end || n < least || n > most)
    argp_error(state, "%s takes %ld to %ld, not '%s'", what, least, most, arg);
  return n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  char why[1024], text[64];
  switch (key) {
  case 'p': dashboard.port = (int)number(state, "--port", arg, 1, 65535); break;
  case '6': dashboard.ipv6 = 1; break;
  case 't':
    snprintf(text, sizeof text, "dashboard.ttl=%lds", number(state, "--ttl", arg, 1, M6_DASHBOARD_TTL_S));
    m6_budget_option_dashboard(text, why, sizeof why);
    break;
  case 's': o->store = arg; break;
  case 'b':
    if (m6_budget_option_dashboard(arg, why, sizeof why)) argp_error(state, "--budget %s", why);
    break;
  case 'j': o->json = 1; break;
  case ARGP_KEY_ARG:
    if (dashboard.pid) argp_error(state, "one process at a time");
    if (!*arg || strspn(arg, "0123456789") != strlen(arg))
      argp_error(state, "'%s' is no process number; 'mach6 ps' lists them", arg);
    dashboard.pid = (pid_t)number(state, "PID", arg, 1, INT_MAX);
    break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static int make_token(void)
{
  unsigned char random[DASHBOARD_TOKEN / 2];
  if (getrandom(random, sizeof random, 0) != sizeof random) return -1;
  for (size_t i = 0; i < sizeof random; i++) snprintf(dashboard.token + 2 * i, 3, "%02x", random[i]);
  return 0;
}

int main(int argc, char **argv)
{
  static const struct argp_option table[] = {
    {"port", 'p', "N", 0, "The port (one that is free)", 0},
    {"ipv6", '6', 0, 0, "Listen on ::1, too", 0},
    {"ttl", 't', "SECONDS", 0, "End so long after the last Start (300)", 0},
    {"store", 's', "DIR", 0, "Let the page save dumps here", 0},
    {"budget", 'b', "NAME=VALUE", 0,
     "Lower a budget: dashboard.clients, dashboard.requests, dashboard.ttl, dashboard.stored", 0},
    {"json", 'j', 0, 0, "A line of JSON at the start and at the end", 0},
    {0},
  };
  static const struct argp argp = {
    table,
    parse,
    "[PID]",
    "Show the live statistics of a process that is captured as a page in a browser on this machine."
    "\vThe address that it prints has a token, without which nobody is answered. Nothing is read before Start is "
    "pressed in the page; "
    "without PID, the page then lists the processes to choose from.",
    NULL,
    NULL,
    NULL};
  struct options o = {0};
  argv[0] = (char *)"mach6 dashboard";
  argp_err_exit_status = EXIT_USAGE;
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  if (make_token()) return say("no random numbers for the token: %s", strerror(errno)), EXIT_OTHER;
  int status = o.store ? store_open(o.store) : 0;
  if (status) return status;

  struct sigaction act = {.sa_handler = on_signal}, old;
  sigaction(SIGINT, &act, NULL);
  sigaction(SIGTERM, &act, NULL);
  if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(SIGHUP, &act, NULL); /* nohup's wish */
  signal(SIGPIPE, SIG_IGN);
  dashboard.began_ns = m6_monotonic_ns();
  status = serve_open();
  if (!status) {
    say_address(&o);
    int by_time = serve_run(&stop);
    say_end(&o, by_time);
  }
  serve_close();
  store_close();
  return status;
}
