/* kernel_table.h - the threads' entries in the array that the kernel's programs fill and user space has mapped
 * (bpf/counters.h). One thread of user space uses it; the programs write beside it. */
#ifndef M6_KERNEL_TABLE_H
#define M6_KERNEL_TABLE_H

#include "kernel_counters_parts.h"

int m6_table_map(struct m6_counters_inside *in, struct m6_fault *fault); /* 0, or an errno and the fault */
void m6_table_unmap(struct m6_counters_inside *in);

/* The entry of a tid as the programs have it, or NULL. */
struct m6_counters_thread *m6_table_find(const struct m6_counters_inside *in, uint32_t tid);
/* A copy of an entry: 0 when it is nobody's, or not ready. A program that writes is done in less than a microsecond. */
int m6_table_copy(const struct m6_counters_thread *e, struct m6_counters_thread *out);
/* A new entry, unless there is one. */
void m6_table_put(struct m6_counters_inside *in, uint32_t tid, const struct m6_counters_thread *t);
/* Back to nobody. No program may write to it any more: its thread has ended. */
void m6_table_give_back(struct m6_counters_inside *in, struct m6_counters_thread *e);
/* Not the entry that is found for its tid? Then it counts for nothing. */
int m6_table_is_second(struct m6_counters_inside *in, struct m6_counters_thread *place, uint32_t tid, uint64_t now);

#endif
