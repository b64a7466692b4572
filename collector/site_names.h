/* site_names.h - names for stacks, looked up by a thread of their own: reading a library's debug information may take a second, in
 * which the rings would fill.
 *
 * m6_site_names_text gives a stack's text when it is known, and asks for it otherwise; m6_site_names_wait waits until all that was
 * asked for is known. The text: a line for each function, as snapshot_sites.h has it. Stacks and symbols must outlive it.
 * Called from one thread. Caller: site_side.c.
 */
#ifndef M6_SITE_NAMES_H
#define M6_SITE_NAMES_H

#include "site_stacks.h"

struct m6_site_names;
struct m6_site_names *m6_site_names_open(const struct m6_site_stacks *stacks); /* NULL: no memory, no thread */
void m6_site_names_close(struct m6_site_names *n);
const char *m6_site_names_text(struct m6_site_names *n, struct m6_symbols *symbols, uint32_t stack); /* NULL: not yet */
void m6_site_names_wait(struct m6_site_names *n);

#endif
