/* answer.c - one HTTP request: who is let in, the page, or the refusal.
 *
 * A browser on this machine sends requests for any site that is open in it. So: the token, which no other site knows; a
 * Host that is this machine's own address, or a name that was rebound to it (DNS rebinding) would do; and an Origin,
 * where there is one, that is this page's, because WebSockets are open to every origin otherwise. Clients that are no
 * browsers send no Origin.
 */
#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "dashboard.h"

__asm__(".section .rodata\n"
        "dashboard_page: .incbin \"tools/dashboard/page.html\"\n"
        "dashboard_page_end: .balign 4\n"
        "dashboard_page_bytes: .long dashboard_page_end - dashboard_page\n"
        ".previous\n");
extern const char dashboard_page[];
extern const uint32_t dashboard_page_bytes;

#define NONCE "@NONCE@" /* in the page: what its script and style are known by */
#define NONCE_DIGITS 32

static const struct {
  int code;
  const char *phrase;
} phrases[] = {
  {200, "OK"}, {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"}, {503, "Service Unavailable"}};

/* ---- who is let in ------------------------------------------------------------------------------------------------
 * */

/* "127.0.0.1:PORT" and what else means this server; after `scheme`. */
static int is_here(const char *scheme, const char *text)
{
  static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};
  char want[64];
  for (size_t i = 0; i < sizeof hosts / sizeof *hosts - !dashboard.ipv6; i++) {
    snprintf(want, sizeof want, "%s%s:%d", scheme, hosts[i], dashboard.port);
    if (!strcmp(text, want)) return 1;
  }
  return 0;
}

/* A header that is there once, and not too long to be right. */
static int header(struct lws *wsi, enum lws_token_indexes h, char *out, size_t room)
{
  *out = 0;
  return lws_hdr_copy(wsi, out, (int)room, h) > 0;
}

/* In the same time wherever the first difference is. */
static int is_token(const char *text)
{
  unsigned different = strlen(text) != DASHBOARD_TOKEN;
  for (size_t i = 0; !different && i < DASHBOARD_TOKEN; i++) different |= (unsigned)(text[i] ^ dashboard.token[i]) << 1;
  return !different;
}

const char *answer_refuses(struct lws *wsi, int *code)
{
  char text[128];
  *code = 403;
  dashboard.refused++;
  if (!header(wsi, WSI_TOKEN_HOST, text, sizeof text) || !is_here("", text))
    return "this is not the address that 'mach6 dashboard' printed";
  if (lws_hdr_total_length(wsi, WSI_TOKEN_ORIGIN) > 0 &&
      (!header(wsi, WSI_TOKEN_ORIGIN, text, sizeof text) || !is_here("http://", text)))
    return "requests of other sites are not answered";
  const char *token = lws_get_urlarg_by_name(wsi, "token=", text, sizeof text);
  if (!token || !is_token(token))
    return "the token is missing or wrong: open the address that 'mach6 dashboard' printed, all of it";
  dashboard.refused--;
  if (lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0) return NULL;
  *code = 405;
  return "only GET is answered";
}

/* ---- what is sent -------------------------------------------------------------------------------------------------
 * */

static const char *phrase(int code)
{
  for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
    if (phrases[i].code == code) return phrases[i].phrase;
  return "Error";
}

/* Whole: headers, then n bytes. */
static void send_all(struct lws *wsi, int code, const char *type, const char *policy, const char *body, size_t n)
{
  size_t room = LWS_PRE + 1024 + n;
  char *out = malloc(room);
  if (!out) return;
  char *to = out + LWS_PRE;
  int head = snprintf(
    to, 1024,
    "HTTP/1.1 %d %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n"
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n"
    "Content-Security-Policy: default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'%s\r\n\r\n",
    code, phrase(code), type, n, policy);
  memcpy(to + head, body, n);
  lws_write(wsi, (unsigned char *)to, (size_t)head + n, LWS_WRITE_HTTP_FINAL);
  free(out);
}

void answer_with(struct lws *wsi, int code, const char *text)
{
  char line[256];
  int n = snprintf(line, sizeof line, "mach6 dashboard: %s\n", text);
  send_all(wsi, code, "text/plain", "", line, (size_t)n);
}

void answer_full(int fd)
{
  static const char text[] = "mach6 dashboard: as many requests are in flight as there may be: try again\n";
  char full[512], waste[4096];
  int n = snprintf(full, sizeof full,
                   "HTTP/1.1 503 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n"
                   "Retry-After: 1\r\n\r\n%s",
                   phrase(503), sizeof text - 1, text);
  send(fd, full, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(fd, SHUT_WR);
  while (recv(fd, waste, sizeof waste, MSG_DONTWAIT) > 0) {
  } /* what is unread when it is closed would take the answer back */
}

/* The page with a nonce of its own instead of NONCE, each time. */
static void answer_page(struct lws *wsi)
{
  unsigned char random[NONCE_DIGITS / 2];
  char nonce[NONCE_DIGITS + 1], policy[256], *page = malloc(dashboard_page_bytes + 8 * NONCE_DIGITS);
  if (!page || getrandom(random, sizeof random, 0) != sizeof random) {
    free(page);
    return;
  }
  for (size_t i = 0; i < sizeof random; i++) snprintf(nonce + 2 * i, 3, "%02x", random[i]);
  size_t n = 0, replaced = 0;
  const char *at = dashboard_page, *end = dashboard_page + dashboard_page_bytes, *next;
  for (; replaced < 8 && (next = memmem(at, (size_t)(end - at), NONCE, strlen(NONCE)));
       at = next + strlen(NONCE), replaced++) {
    memcpy(page + n, at, (size_t)(next - at));
    n += (size_t)(next - at);
    memcpy(page + n, nonce, NONCE_DIGITS);
    n += NONCE_DIGITS;
  }
  memcpy(page + n, at, (size_t)(end - at));
  n += (size_t)(end - at);
  snprintf(policy, sizeof policy, "; script-src 'nonce-%s'; style-src 'nonce-%s'; img-src data:; connect-src 'self'",
           nonce, nonce);
  send_all(wsi, 200, "text/html", policy, page, n);
  free(page);
}

void answer(struct lws *wsi, const char *path)
{
  int code;
  const char *why = answer_refuses(wsi, &code);
  if (why) answer_with(wsi, code, why);
  else if (strcmp(path, "/") != 0) answer_with(wsi, 404, "there is no such page");
  else answer_page(wsi);
}
