/* command.h - the collector's end of its control socket (stats_socket.h): takes commands, gives answers.
 *
 * Promise: only the collector's own user and root are heard (SO_PEERCRED, beside the folder's mode); nothing waits for
 * a client; at most M6_CONTROL_CLIENTS are connected at a time, and one that says nothing for M6_COMMAND_SILENCE_MS is
 * let go. The socket's file is removed by m6_command_close. Callers: outlets.c, session.c. One thread.
 */
#ifndef M6_COMMAND_H
#define M6_COMMAND_H

#include <stdint.h>

#include "../shm/budget.h"
#include "stats_socket.h"

#define M6_COMMAND_SILENCE_MS 2000

enum m6_verb { M6_VERB_NONE, M6_VERB_ON, M6_VERB_OFF, M6_VERB_STATE, M6_VERB_DUMP };
struct m6_client {
  int fd;            /* -1: free */
  enum m6_verb verb; /* what it waits for the end of; M6_VERB_NONE: it has not spoken yet */
  uint64_t since_ns;
  char text[M6_SOCKET_PACKET]; /* what came behind the verb */
};
struct m6_commands {
  int fd; /* -1: nobody can be heard */
  int
    called; /* somebody connects: an accept for nobody makes and drops a socket, which is the dearest call of a turn */
  char path[M6_SOCKET_PATH];
  uint64_t refused; /* clients beyond the budget, or of other users */
  struct m6_client client[M6_CONTROL_CLIENTS];
};

/* 0 or an errno. */
int m6_command_open(struct m6_commands *c);
void m6_command_close(struct m6_commands *c);
/* The next client that has spoken, its verb and text filled; NULL when there is none. Answer it now or later, once. */
struct m6_client *m6_command_next(struct m6_commands *c, uint64_t now_ns);
/* Answers and lets go. */
void m6_command_answer(struct m6_client *k, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
unsigned m6_command_clients(const struct m6_commands *c);

#endif
