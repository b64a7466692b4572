/* save.h - files that are whole or not there. */
#ifndef M6_SAVE_H
#define M6_SAVE_H

#include <stddef.h>

/* Can `path` be written at the end? Says why not, with a message, before the game is started. "-" is stdout. 0 or
 * -1. */
int save_check(const char *option, const char *path);
/* Is it, or would it be, a file that is replaced by another? Else it is written to directly: "-", a device, a pipe. */
int save_is_file(const char *path);
/* Are both one place, so that the second would take the first one's? A device takes all that comes. */
int save_same(const char *a, const char *b);
/* Writes all of it: to a temporary name beside it, synced, then renamed, so that an older file stays until the new
 * one is whole. Devices, pipes and "-" are written to directly. 0, or -1 after a message. */
int save(const char *option, const char *path, const char *bytes, size_t n);

#endif
