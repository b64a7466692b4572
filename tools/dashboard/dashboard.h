/* dashboard.h - mach6-dashboard: the live stats of a game as a page in a browser on the same machine. What its files
 * share.
 *
 *   main.c     options, the time that it has, the line that it ends with
 *   serve.c    HTTP and WebSocket, by libwebsockets: who may connect, how many, the clock that pushes
 *   answer.c   one HTTP request: who is let in, and the page (page.html)
 *   client.c   one open page: its commands, what is sent to it
 *   live.c     one target as pages see it: its live stats, followed; list of targets
 *   brief.c    a snapshot, cut to what a page shows
 *   store.c    Save: dumps that the target's collector writes, and how much they may be in all
 *
 * An inspector like `mach6 stat`: it reads live stats (collector/mach6_stats.h), never the segment, and never speaks to
 * the game; for a dump it asks the collector, as `mach6 dump` does. Before a page says Start it opens nothing of /proc
 * or of shared memory. Its budgets are dashboard.* of collector/budgets.h. One thread. May use the inspectors' library,
 * tools/mach6's explain.c, reach.c, ps_words.c and say.c, jansson and libwebsockets.
 */
#ifndef M6_DASHBOARD_H
#define M6_DASHBOARD_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DASHBOARD_TICK_MS 250                /* a message, and a look at the live stats */
#define DASHBOARD_MESSAGE_BYTES (256u << 10) /* of one message; what is longer is cut to fewer nodes and sites */
#define DASHBOARD_COMMAND_BYTES 256u         /* of one from a page */
#define DASHBOARD_REQUEST_S 5                /* that a request, headers and answer, may take */
#define DASHBOARD_STALLED_S 10               /* that a page may leave a message unread */
#define DASHBOARD_TOKEN 32                   /* hexadecimal digits */

/* ---- what goes on, in one place (main.c) --------------------------------------------------------------------------
 * */

struct dashboard {
  pid_t pid; /* the target that was named; 0: the page chooses */
  int port, ipv6;
  char token[DASHBOARD_TOKEN + 1];
  uint64_t began_ns; /* of the last Start; before the first one, of the program */
  int started;
  uint64_t pages, requests, refused, stalled; /* in all; refused: without the token, or from elsewhere */
};
extern struct dashboard dashboard;

/* What a page shows of the dashboard itself. */
json_t *dashboard_json(void);

/* ---- serve.c ------------------------------------------------------------------------------------------------------
 * */

struct lws;
/* Listens. 0, or an exit status after a message. */
int serve_open(void);
/* Until *stop, or its time is over: then pages are told, 1. */
int serve_run(const volatile int *stop);
void serve_close(void);
void serve_wake(void); /* from a signal handler: serve_run looks at *stop */

/* ---- answer.c -----------------------------------------------------------------------------------------------------
 * */

/* May this request be answered? NULL; or why not, its status in *code. */
const char *answer_refuses(struct lws *wsi, int *code);
/* Answers it, page or refusal; the connection is to be closed then. */
void answer(struct lws *wsi, const char *path);
void answer_with(struct lws *wsi, int code, const char *text);
/* The same to somebody whose request is not read: 503. */
void answer_full(int fd);

/* ---- client.c -----------------------------------------------------------------------------------------------------
 * */

struct live;
struct client { /* libwebsockets' memory of one connection; zeroed by it */
  struct lws *wsi;
  struct client *next;
  int started, dead, close_code; /* close_code: it is to go, and has not yet; dead: it does not read, and is ended */
  const char *close_why;
  struct live *live;
  uint64_t seen, seen_note; /* serials of what was sent last */
  uint64_t due_ns;          /* since when a message waits for it; 0: none does */
  char said[DASHBOARD_COMMAND_BYTES];
  size_t said_bytes;
};

void client_open(struct client *c, struct lws *wsi);
/* Bytes from it; `last` ends a message. */
void client_hear(struct client *c, const char *bytes, size_t n, int last, int binary);
/* It can take a message. 0, or -1: it is to be closed. */
int client_write(struct client *c);
void client_gone(struct client *c);
/* The clock: every page that was started gets something, what stalls goes. */
void client_tick(uint64_t now);
/* All of them are told why, and closed. */
void client_farewell(const char *why);
unsigned client_count(void);
/* A text that all pages show. */
void client_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- live.c -------------------------------------------------------------------------------------------------------
 * */

struct live *live_take(pid_t pid); /* NULL when memory ran out */
void live_drop(struct live *l);
void live_tick(uint64_t now); /* looks at each that somebody watches */
pid_t live_pid(const struct live *l);
uint64_t live_serial(const struct live *l);     /* changes with the stats */
const char *live_stats(const struct live *l);   /* the last ones, JSON; NULL: there are none */
const char *live_trouble(const struct live *l); /* why there is nothing newer; NULL: nothing is wrong */
uint64_t live_dump_bytes(const struct live *l); /* that a dump of it has at most */
json_t *live_targets(void);

/* brief.c: a reference, or NULL. `part` is 1 for all that a page shows, 2 for half of it, where that is too long. */
struct mach6_stats;
json_t *brief(const struct mach6_stats *s, unsigned part);

/* ---- store.c ------------------------------------------------------------------------------------------------------
 * */

/* 0, or an exit status after a message. */
int store_open(const char *folder);
int store_is_open(void);
/* Asks the target's collector for a dump; what becomes of it is a note. */
void store_save(const struct live *l);
void store_tick(uint64_t now);
void store_close(void);

#endif
