/* stats_socket.h - where a collector's control socket is, and who may use it.
 *
 * A socket (SOCK_SEQPACKET: a command is one packet, its answer another) named by the collector's pid, in a folder of
 * its user's own:
 * /run/user/UID/mach6 where there is a /run/user/UID, else /tmp/mach6-UID. The folder is made with mode 0700, and taken
 * only when it is a folder, no link, owned by that user and closed to all others; so only that user and root can reach
 * the socket, and whoever answers at it is that user.
 *
 *   on | off | state | dump PATH      ->      STATUS TEXT      where STATUS is one of the collector's exit statuses
 *
 * Part of the inspectors' library: the collector, `mach6 on|off|dump` and the dashboard share it. Thread-safe.
 */
#ifndef M6_STATS_SOCKET_H
#define M6_STATS_SOCKET_H

#include <stddef.h>
#include <sys/types.h>

#define M6_SOCKET_PATH 108    /* as in struct sockaddr_un */
#define M6_SOCKET_PACKET 8192 /* longest command and longest answer, the NUL included */

/* The folder, made when it is not there and `make` is set. 0 or an errno: EPERM when it is there and must not be
 * trusted. */
int m6_socket_folder(uid_t uid, int make, char out[M6_SOCKET_PATH]);
/* Connects to the socket of a collector that runs as `uid`. A descriptor, or -errno: ENOENT, ECONNREFUSED when nobody
 * answers there. */
int m6_socket_connect(uid_t uid, pid_t collector);
/* Removes this user's sockets whose collector is gone; gives how many. */
size_t m6_socket_reap(void);

#endif
