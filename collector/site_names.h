/* site_names.h - names for stacks, looked up by a thread of their own: reading a library's debug information may take a
 * second, in which the rings would fill.
 *
 * A name is looked up in two kinds. Brief: function and library by symbol tables alone, which costs the game next to
 * nothing, for as long as it runs. Whole: with the functions that were inlined, files and lines, for whoever keeps it
 * (the report, a dump) or watches: that reads and unpacks debug information, some 50 ms of CPU time for libc's alone,
 * in which the game would have one core less.
 *
 * m6_site_names_ask asks for a stack's text, and never waits; m6_site_names_text gives the best that is known;
 * m6_site_names_wait waits until all that was asked for is known, or for so long. The text: a line for each function,
 * as snapshot_sites.h has it. Stacks and symbols must outlive it. Called from one thread. Caller: site_side.c.
 */
#ifndef M6_SITE_NAMES_H
#define M6_SITE_NAMES_H

#include "site_stacks.h"

enum m6_site_naming { M6_NAMES_BRIEF, M6_NAMES_WHOLE };

struct m6_site_names;
struct m6_site_names *m6_site_names_open(const struct m6_site_stacks *stacks); /* NULL: no memory, no thread */
void m6_site_names_close(struct m6_site_names *n);
void m6_site_names_ask(struct m6_site_names *n, struct m6_symbols *symbols, uint32_t stack, enum m6_site_naming kind);
const char *m6_site_names_text(struct m6_site_names *n, uint32_t stack); /* NULL: none yet */
int m6_site_names_wait(struct m6_site_names *n, unsigned ms);            /* 1: all is known. 0 ms: does not wait */

#endif
