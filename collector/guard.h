/* guard.h - touching foreign memory that may vanish: a truncated segment costs its target, not the collector.
 *
 * m6_guarded runs fn(arg) and gives 0, or -1 when a SIGBUS hit [memory, memory + bytes) meanwhile; fn was then left in
 * the middle. So fn keeps its own structures consistent between two foreign accesses: copy, then check, then use.
 * A fault anywhere else is ours, and kills the process as it should. Not nested, one thread.
 */
#ifndef M6_GUARD_H
#define M6_GUARD_H

#include <stddef.h>

int m6_guarded(void (*fn)(void *), void *arg, const void *memory, size_t bytes);

#endif
