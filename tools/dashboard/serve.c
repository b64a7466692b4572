/* serve.c - HTTP and WebSocket on this machine's own address, by libwebsockets: who is connected, how many may be, the
 * clock.
 *
 * A connection is a request in flight until it is a page's WebSocket. The ones that are too many are answered 503
 * before they are read, so that eight that never end their headers cannot keep others waiting; what takes longer than
 * DASHBOARD_REQUEST_S is ended, however busily it sends. Each request is answered on a connection of its own.
 */
#include <libwebsockets.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "../../collector/budgets.h"
#include "../../shm/clock.h"
#include "../mach6/tool.h"
#include "dashboard.h"

#define HEADER_BYTES (16 << 10) /* of one request: browsers send the cookies of every server on this address */
#define SEND_BUFFER (64 << 10)  /* of a page that does not read, the kernel keeps no more */
#define PEERS (M6_DASHBOARD_REQUESTS + M6_DASHBOARD_CLIENTS)

static struct lws_context *context;
static lws_sorted_usec_list_t timer;
static struct peer {
  struct lws *wsi;
  uint64_t since;
  int page; /* one of the WebSocket clients that stay */
} peers[PEERS];

static struct peer *peer_of(const struct lws *wsi)
{
  for (int i = 0; i < PEERS; i++)
    if (peers[i].wsi == wsi) return &peers[i];
  return NULL;
}

static unsigned in_flight(void)
{
  unsigned n = 0;
  for (int i = 0; i < PEERS; i++) n += peers[i].wsi && !peers[i].page;
  return n;
}

/* ---- what libwebsockets tells -------------------------------------------------------------------------------------
 * */

/* Its socket is accepted and nothing of it read. */
static int connects(int fd)
{
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){SEND_BUFFER}, sizeof(int));
  if (in_flight() < m6_budget_cap(M6_BUDGET_DASHBOARD_REQUESTS) && peer_of(NULL)) return 0;
  m6_budget_overran(M6_BUDGET_DASHBOARD_REQUESTS);
  answer_full(fd);
  return -1;
}

static int connected(struct lws *wsi)
{
  struct peer *p = peer_of(NULL);
  if (!p) return -1;
  *p = (struct peer){wsi, m6_monotonic_ns(), 0};
  m6_budget_most(M6_BUDGET_DASHBOARD_REQUESTS, in_flight());
  return 0;
}

/* A request to become something else than HTTP: pages become WebSockets, and nothing else does. */
static int upgrades(struct lws *wsi, const char *to)
{
  char path[16] = "";
  int code;
  dashboard.requests++;
  const char *why = answer_refuses(wsi, &code);
  if (!why && (strcmp(to, "websocket") != 0 || lws_hdr_copy(wsi, path, sizeof path, WSI_TOKEN_GET_URI) < 0 ||
               strcmp(path, "/live") != 0))
    code = 404, why = "there is no such page";
  if (!why) return 0;
  answer_with(wsi, code, why);
  return -1;
}

static int happens(struct lws *wsi, enum lws_callback_reasons what, void *user, void *in, size_t n)
{
  struct client *c = user;
  struct peer *p;
  switch (what) {
  case LWS_CALLBACK_FILTER_NETWORK_CONNECTION: return connects((int)(intptr_t)in);
  case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED: return connected(wsi);
  case LWS_CALLBACK_WSI_DESTROY:
    if (wsi && (p = peer_of(wsi))) *p = (struct peer){0};
    return 0;
  case LWS_CALLBACK_HTTP:
    dashboard.requests++;
    answer(wsi, in);
    return -1;
  case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: return upgrades(wsi, in);
  case LWS_CALLBACK_ESTABLISHED:
    client_open(c, wsi);
    if ((p = peer_of(wsi))) p->page = !c->close_code;
    return 0;
  case LWS_CALLBACK_RECEIVE:
    client_hear(c, in, n, lws_is_final_fragment(wsi) && !lws_remaining_packet_payload(wsi), lws_frame_is_binary(wsi));
    return 0;
  case LWS_CALLBACK_SERVER_WRITEABLE: return client_write(c);
  case LWS_CALLBACK_CLOSED: return client_gone(c), 0;
  default: return 0; /* lws_callback_http_dummy would answer what is not asked here */
  }
}

/* ---- the clock ----------------------------------------------------------------------------------------------------
 * */

static void tick(lws_sorted_usec_list_t *unused)
{
  (void)unused;
  uint64_t now = m6_monotonic_ns();
  for (int i = 0; i < PEERS; i++)
    if (peers[i].wsi && !peers[i].page && now > peers[i].since + DASHBOARD_REQUEST_S * 1000000000ull)
      lws_set_timeout(peers[i].wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
  live_tick(now);
  store_tick(now);
  client_tick(now);
  lws_sul_schedule(context, 0, &timer, tick, DASHBOARD_TICK_MS * 1000);
}

/* ---- from beginning to end ----------------------------------------------------------------------------------------
 * */

static const struct lws_protocols protocols[] = {
  {.name = "mach6", .callback = happens, .per_session_data_size = sizeof(struct client), .rx_buffer_size = 1024},
  {0},
};

static struct lws_vhost *listen_on(const char *address, int port, int *bound)
{
  struct lws_context_creation_info info = {
    .port = port,
    .iface = address,
    .protocols = protocols,
    .vhost_name = address,
    .timeout_secs = DASHBOARD_REQUEST_S,
    .options = LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND |
               (strchr(address, ':') ? LWS_SERVER_OPTION_IPV6_V6ONLY_MODIFY | LWS_SERVER_OPTION_IPV6_V6ONLY_VALUE
                                     : LWS_SERVER_OPTION_DISABLE_IPV6)};
  struct lws_vhost *v = lws_create_vhost(context, &info);
  if (v) *bound = lws_get_vhost_listen_port(v);
  return v;
}

int serve_open(void)
{
  struct lws_context_creation_info info = {.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                                                      LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME,
                                           .gid = (gid_t)-1,
                                           .uid = (uid_t)-1,
                                           .port = CONTEXT_PORT_NO_LISTEN,
                                           .max_http_header_data = HEADER_BYTES,
                                           .fd_limit_per_thread = 64};
  lws_set_log_level(0, NULL);
  context = lws_create_context(&info);
  if (!context) return say("the dashboard cannot start: libwebsockets refuses, or memory ran out"), EXIT_OTHER;
  int wanted = dashboard.port;
  if (!listen_on("127.0.0.1", wanted, &dashboard.port) || dashboard.port <= 0)
    return say("port %d of 127.0.0.1 cannot be had, another program may use it: leave --port out for one that is free",
               wanted),
           EXIT_OTHER;
  int same = dashboard.port;
  if (dashboard.ipv6 && (!listen_on("::1", dashboard.port, &same) || same <= 0))
    return say("port %d of ::1 cannot be had: leave --ipv6 out, or name another --port", dashboard.port), EXIT_OTHER;
  lws_sul_schedule(context, 0, &timer, tick, DASHBOARD_TICK_MS * 1000);
  return 0;
}

int serve_run(const volatile int *stop)
{
  uint64_t ttl = m6_budget_cap(M6_BUDGET_DASHBOARD_TTL) * 1000000u, farewell = 0;
  while (!*stop) {
    uint64_t now = m6_monotonic_ns();
    if (!farewell && now - dashboard.began_ns >= ttl) {
      m6_budget_overran(M6_BUDGET_DASHBOARD_TTL);
      client_farewell("its time is over; 'mach6 dashboard' starts it again");
      farewell = now;
    }
    if (farewell && (!client_count() || now - farewell > 1000000000u)) break;
    if (lws_service(context, 0) < 0) break;
  }
  return farewell != 0;
}

void serve_wake(void)
{
  if (context) lws_cancel_service(context);
}

void serve_close(void)
{
  if (context) lws_context_destroy(context);
  context = NULL;
}
