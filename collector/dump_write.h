/* dump_write.h - a dump, written while the collector goes on draining: whole under its name, or not there at all.
 *
 *   struct m6_dump *d;
 *   int e = m6_dump_begin(block, &(struct m6_dump_options){.path = "game.mach6"}, &d);
 *   ...                                    each turn of the drain loop:
 *   if (m6_dump_poll(d) != M6_DUMP_BUSY)   done, or failed: see m6_dump_error
 *     m6_dump_end(d);
 *
 * The block goes to a file without a name in the target's folder (O_TMPFILE), or to .NAME.mach6-XXXXXX beside it where
 * the file system has none; that is synced, gets a name, is renamed to its target, and the folder is synced. So an
 * older file of that name stays until the new one is whole and on the disk, and whatever ends the collector leaves
 * nothing half under that name. A collector that is killed between naming and renaming leaves the temporary name; the
 * next dump of the same name removes what nobody holds a lock on. A link is followed: what it points to is replaced.
 * Only regular files are replaced.
 *
 * Promise: begin and poll do not wait for the disk; one turn encodes at most one object (a few ms). Memory: two
 * objects. Errors are errnos. One thread. Calls: dump.h (encode), dump_io.h.
 */
#ifndef M6_DUMP_WRITE_H
#define M6_DUMP_WRITE_H

#include "../shm/snapshot.h"

struct m6_dump;
struct m6_dump_options {
  const char *path;
  uint64_t most;   /* bytes; 0 or more than that: M6_DUMP_BYTES */
  uint64_t object; /* of one object; 0 or more than that: M6_DUMP_OBJECT_BYTES */
  int plain;       /* without io_uring */
};
enum m6_dump_state { M6_DUMP_BUSY, M6_DUMP_DONE, M6_DUMP_FAILED };

/* Can a dump be written there? 0, or the errno that it would end with. Leaves nothing behind. */
int m6_dump_check(const char *path);
/* The block stays the caller's and must not change until the end. */
int m6_dump_begin(const struct m6_snapshot *block, const struct m6_dump_options *o, struct m6_dump **out);
enum m6_dump_state m6_dump_poll(struct m6_dump *d);
/* Polls until it is done; gives up when `stop` (may be NULL) says so. */
enum m6_dump_state m6_dump_finish(struct m6_dump *d, int (*stop)(void *), void *arg);
/* After FAILED: the errno, and what was tried ("write", "sync", "rename"). */
int m6_dump_error(const struct m6_dump *d, const char **tried);
uint64_t m6_dump_bytes(const struct m6_dump *d);   /* written so far */
uint64_t m6_dump_largest(const struct m6_dump *d); /* bytes of the largest object so far */
uint64_t m6_dump_lacking(const struct m6_dump *d); /* rows that did not fit */
int m6_dump_refused(const struct m6_dump *d); /* the errno that closed io_uring; 0: it is used, or was not asked for */
/* At any time: what is not done is given up, and leaves nothing. */
void m6_dump_end(struct m6_dump *d);

#endif
