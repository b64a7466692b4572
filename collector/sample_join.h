/* sample_join.h - keeps samples, by thread, until the records of their thread have come: the join with scopes.
 *
 * How it is used stands in kernel_samples.h, THE JOIN WITH SCOPES:
 *     m6_samples_poll(samples, m6_join_add, join);                 all that was taken so far
 *     for each thread with records, for each record in order:
 *       while (m6_join_take(join, tid, time of the record, &sample)) credit(scope that is open now, &sample);
 *       apply the record;
 *     while (m6_join_take_any(join, &sample)) credit(scope that is open in sample.tid, or the thread itself, &sample);
 *
 * Promise: each sample is handed out once; of one thread, in the order of time; taking is O(1). At most
 * M6_SAMPLES_RETAINED wait at a time; what comes beyond is counted in refused. No dependence but kernel_samples.h. One
 * thread.
 */
#ifndef M6_SAMPLE_JOIN_H
#define M6_SAMPLE_JOIN_H

#include "kernel_samples.h"

struct m6_join;

struct m6_join *m6_join_new(void); /* NULL without memory */
void m6_join_free(struct m6_join *j);
void m6_join_add(void *join, const struct m6_sample *sample);
/* The thread's next sample that was taken before the time; 0 when there is none. */
int m6_join_take(struct m6_join *j, uint32_t tid, uint64_t before_ns, struct m6_sample *out);
/* When the thread's next sample was taken; UINT64_MAX when none waits. */
uint64_t m6_join_next(struct m6_join *j, uint32_t tid);
/* Any sample that still waits. */
int m6_join_take_any(struct m6_join *j, struct m6_sample *out);
uint64_t m6_join_refused(const struct m6_join *j);

#endif
