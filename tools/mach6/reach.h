/* reach.h - speaks to the collector of a process, at its control socket (collector/stats_socket.h). Callers: drive.c,
 * the dashboard. */
#ifndef M6_REACH_H
#define M6_REACH_H

#include <sys/types.h>

#include "../../collector/stats_socket.h"

/* A connection to it, and to nobody else; or -errno, and ENOENT when there is none. */
int reach_collector(pid_t collector);
/* Sends a command; 0 or -1. */
int reach_send(int fd, const char *command);
/* The answer to it, of which no part comes alone, when it is there: its status, the text in `text`; -1 when none came.
 * */
int reach_answer(int fd, char text[M6_SOCKET_PACKET]);
/* Sends one and waits for its answer. */
int reach_ask(int fd, const char *command, char text[M6_SOCKET_PACKET]);

#endif
