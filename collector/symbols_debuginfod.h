/* symbols_debuginfod.h - debug files that debuginfod servers have, fetched by a thread of its own.
 *
 * Only when DEBUGINFOD_URLS is set and not empty: without it there is no thread, no library is loaded and nobody is
 * asked. The library (libdebuginfod.so.1 of elfutils) is loaded when the first file is asked for; it reads the other
 * DEBUGINFOD_ variables and keeps its cache. A file comes with the one that dwz put its common parts into.
 * Not elfutils' own way there (dwfl_standard_find_debuginfo): that waits in the thread that wants a name, 90 s three
 * times for a server which does not answer, and can't be told to stop.
 *
 *   m6_debuginfod_pending   asks for it the first time, and never waits: is it still to come?
 *   m6_debuginfod_path      waits for it, for as long as the patience lasts
 *
 * Bounds: who waits, waits until a server has been silent for M6_DEBUGINFOD_SILENT_MS (no server is asked again then),
 * or for as long as m6_debuginfod_patience allows: when a session is over, M6_DEBUGINFOD_END_MS for all files together.
 * Any thread, but patience and close: one. Callers: symbols_elf.c, symbols.c, and the collector (outlets.c).
 */
#ifndef M6_SYMBOLS_DEBUGINFOD_H
#define M6_SYMBOLS_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

#define M6_DEBUGINFOD_SILENT_MS 30000 /* some servers unpack a package first */
#define M6_DEBUGINFOD_END_MS 5000     /* of the 20 s that `mach6 run` waits for a report */

int m6_debuginfod_on(void);
/* build_id: hex; nobody is asked for "". */
int m6_debuginfod_pending(const char *build_id);
int m6_debuginfod_path(const char *build_id, char *path, size_t room); /* 1: it is there, in the library's cache */
void m6_debuginfod_hasty(
  void); /* the calling thread never waits there: it holds locks, or is to end soon, and asks `pending` first */
/* From now on whoever waits does so for so long, all together; below zero: as long as a server answers, as at the
 * start. */
void m6_debuginfod_patience(int ms);
void m6_debuginfod_settle(void); /* waits for all that was asked for, as patience allows */
/* Ends the thread, which takes a second at most. Gives how many files had not come, and in *error why no server was
 * asked any more, 0 when that is not so. */
uint32_t m6_debuginfod_close(int *error);

#endif
