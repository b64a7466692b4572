/* page_talk - a page of `mach6 dashboard` without a browser, and a rude one where it is told so. Sockets only.
 *
 *   page_talk PORT PATH WORD...
 *
 * Words, one after the other: `small` (the first: little room for what comes), `header=TEXT` (before open), `open` (upgrade; prints the status line), `say=TEXT` (one message), `part=TEXT` (a part of one),
 * `bytes=HEX` (sent as they are), `zeros=N` (so many), `hear=N` (prints N messages, a line each), `stats=N` (until N had stats, prints these), `until=TEXT` (prints
 * the first message that has it), `note` (the same of a note), `drip=S` (a byte each 100 ms until it is ended or S seconds are over; prints how long that was), `sleep=S`,
 * `end` (reads until it is closed; prints the code and the reason). Exit status 0; 1 when the other side closed before that was asked for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static int fd;
static unsigned char frame[1 << 20];
static char headers[1024];

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* So many bytes, or fewer when it is closed. */
static size_t take(void *to, size_t n)
{
  size_t got = 0;
  while (got < n) {
    struct pollfd p = {fd, POLLIN, 0};
    ssize_t r = poll(&p, 1, PATIENCE_MS) == 1 ? recv(fd, (char *)to + got, n - got, 0) : -1;
    if (r <= 0) break;
    got += (size_t)r;
  }
  return got;
}

/* One frame: its opcode, 0 when it was closed without one. Its length in *n. */
static int hear(size_t *n)
{
  unsigned char head[10];
  if (take(head, 2) != 2) return 0;
  uint64_t length = head[1] & 127;
  int more = length == 126 ? 2 : length == 127 ? 8 : 0;
  if (take(head + 2, (size_t)more) != (size_t)more) return 0;
  if (more) length = 0;
  for (int i = 0; i < more; i++) length = length << 8 | head[2 + i];
  if (length >= sizeof frame || !(head[0] & 0x80))
    return printf("a frame of %llu bytes\n", (unsigned long long)length), 0;
  if (take(frame, length) != length) return 0;
  frame[length] = 0;
  *n = length;
  return head[0] & 15;
}

/* The next message of text; NULL when it is closed. */
static const char *message(void)
{
  size_t n;
  int opcode;
  do opcode = hear(&n);
  while (opcode != 0 && opcode != 1 && opcode != 8);
  if (opcode == 8) printf("closed %d %s\n", n >= 2 ? frame[0] << 8 | frame[1] : 0, n > 2 ? (char *)frame + 2 : "");
  return opcode == 1 ? (char *)frame : NULL;
}

static void send_frame(int first, const char *text)
{
  unsigned char head[8] = {(unsigned char)first};
  size_t n = strlen(text), m = n < 126 ? 2 : 4;
  head[1] = (unsigned char)(0x80 | (n < 126 ? n : 126));
  if (m == 4) head[2] = (unsigned char)(n >> 8), head[3] = (unsigned char)n;
  send(fd, head, m, MSG_NOSIGNAL);
  send(fd, "\0\0\0\0", 4, MSG_NOSIGNAL); /* a mask of zeros is a mask */
  send(fd, text, n, MSG_NOSIGNAL);
}

static void open_it(int port, const char *path)
{
  char line[4096];
  size_t n = 0;
  if (!strstr(headers, "Host:"))
    snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "Host: 127.0.0.1:%d\r\n", port);
  snprintf(line, sizeof line,
           "GET %s HTTP/1.1\r\n%sUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", /* the example of RFC 6455, whose answer is known */
           path, headers);
  send(fd, line, strlen(line), MSG_NOSIGNAL);
  memset(line, 0, sizeof line);
  while (n < sizeof line - 1 && !strstr(line, "\r\n\r\n") && take(line + n, 1) == 1) n++;
  printf("%.*s%s\n", (int)strcspn(line, "\r"), line, strstr(line, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") ? " accepted" : "");
  fflush(stdout);
}

static void bytes(const char *hex)
{
  unsigned char out[4096];
  size_t n = 0;
  for (unsigned b; n < sizeof out && sscanf(hex + 2 * n, "%2x", &b) == 1; n++) out[n] = (unsigned char)b;
  send(fd, out, n, MSG_NOSIGNAL);
}

/* Answers that come meanwhile are not read: only whether it is closed is looked at. */
static void drip(double seconds)
{
  double from = now();
  char c;
  while (now() - from < seconds) {
    if (send(fd, "x", 1, MSG_NOSIGNAL) < 0 || recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) == 0) break;
    usleep(100000);
  }
  printf("%.1f\n", now() - from);
}

static int word(const char *w, int port, const char *path)
{
  const char *v = strchr(w, '=') ? strchr(w, '=') + 1 : "", *m = "";
  size_t n = strcspn(w, "=");
#define IS(text) (n == strlen(text) && !strncmp(w, text, n))
  if (IS("small")) return 0;
  if (IS("header")) snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "%s\r\n", v);
  else if (IS("open")) open_it(port, path);
  else if (IS("say")) send_frame(0x81, v);
  else if (IS("part")) send_frame(0x01, v);
  else if (IS("bytes")) bytes(v);
  else if (IS("drip")) drip(atof(v));
  else if (IS("sleep")) usleep((useconds_t)(atof(v) * 1e6));
  else if (IS("zeros"))
    for (long i = atol(v);
         i > 0 && send(fd, frame, sizeof frame < (size_t)i ? sizeof frame : (size_t)i, MSG_NOSIGNAL) > 0;
         i -= sizeof frame) {}
  else if (IS("hear") || IS("stats"))
    for (long i = atol(v); i > 0 && (m = message());) {
      if (IS("stats") && !strstr(m, "\"stats\":{")) continue;
      puts(m);
      i--;
    }
  else if (IS("until") || IS("note")) {
    while ((m = message()) && !strstr(m, IS("note") ? "\"note\":" : v)) {}
    if (m) puts(m);
  } else if (IS("end")) {
    while (message()) {}
  } else return fprintf(stderr, "page_talk: %s?\n", w), 2;
  fflush(stdout);
  return m ? 0 : 1;
}

int main(int argc, char **argv)
{
  if (argc < 3) return 2;
  signal(SIGPIPE, SIG_IGN);
  struct sockaddr_in a = {
    .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  fd = socket(AF_INET, SOCK_STREAM, 0);
  if (argc > 3 && !strcmp(argv[3], "small")) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
  if (connect(fd, (struct sockaddr *)&a, sizeof a)) return perror("page_talk: connect"), 2;
  int status = 0;
  for (int i = 3; i < argc && !status; i++) status = word(argv[i], atoi(argv[1]), argv[2]);
  return status;
}
