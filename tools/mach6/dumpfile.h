/* dumpfile.h - what the commands on dumps share: loading one, and saying how whole it is. */
#ifndef M6_DUMPFILE_H
#define M6_DUMPFILE_H

#include "../../collector/mach6_stats.h"

/* 0 and *s, or an exit status after a message. What is not the whole recording is told on stderr; *status is
 * EXIT_DAMAGED when the file is cut or damaged and *s is what could be saved of it, else EXIT_FINE: the command's
 * status when all else went well. */
int dump_load(const char *path, mach6_stats **s, int *status);

/* "it ended with status 0", when the recording knows; else NULL. Static. */
const char *dump_ending(const mach6_stats *s);
/* The same from waitpid's word. Static. */
const char *ending_words(int status);

/* The labels from below the root down to the node, with '/' between; malloc'ed, NULL without memory. */
char *node_path(const mach6_node *n);

#endif
