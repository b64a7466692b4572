/* profile.h - what CPU samples say: a table of self and total by function, and folded stacks.
 *
 *   struct m6_profile *p = m6_profile_new(symbols);
 *   m6_profile_add(p, "main", user, n, kernel, k, count);          for each thread and pair of stacks
 *   const struct m6_profile_row *rows = m6_profile_rows(p, &n);
 *   m6_profile_folded(p, file);
 *
 * One profile for the whole session; one more for each scope or thread that is looked at by itself: they share the
 * symbols. Self: samples whose innermost frame the function was, inlined functions counting as functions. Total:
 * samples in which it was anywhere, once each, however often it recursed. Shares are of m6_profile_sum.samples.
 * A stack is cut where its next frame cannot be a return address (code without frame pointers): callers that are shown
 * were verified to be preceded by a call, and sum.cut says how many samples ended like that above their thread's first
 * frame.
 *
 * Memory is O(different stacks). One thread. May use symbols.h; nothing else of the collector.
 */
#ifndef M6_PROFILE_H
#define M6_PROFILE_H

#include <stdint.h>
#include <stdio.h>

#include "symbols.h"

struct m6_profile_row {
  const char *function, *module; /* never NULL */
  const char *file;              /* of the line with most of the function's samples; NULL when not known */
  uint32_t line;
  uint64_t self, total; /* samples */
  int inlined;          /* it was seen inlined, and in no other way */
};
struct m6_profile_sum {
  uint64_t samples;
  uint64_t kernel; /* whose innermost frame was the kernel's */
  uint64_t cut;    /* whose callers were lost */
  uint64_t bare;   /* that had no stack at all */
};

struct m6_profile;

struct m6_profile *m6_profile_new(struct m6_symbols *y); /* NULL without memory */
void m6_profile_free(struct m6_profile *p);
/* Stacks innermost first, as m6_samples_stack gives them; NULL and 0 for none. 0 or ENOMEM. */
int m6_profile_add(struct m6_profile *p, const char *thread, const uint64_t *user, uint32_t user_frames,
                   const uint64_t *kernel, uint32_t kernel_frames, uint64_t count);
/* By self, largest first, then by total, then by name. Holds until the next add or free. */
const struct m6_profile_row *m6_profile_rows(struct m6_profile *p, uint32_t *count);
struct m6_profile_sum m6_profile_sum(const struct m6_profile *p);
/* "thread;outermost;...;innermost COUNT" a line, kernel functions with "_[k]": what flame graph tools read. What would
 * break the format (';', control characters, bytes that are no UTF-8) becomes '?'. 0 or an errno. */
int m6_profile_folded(struct m6_profile *p, FILE *to);
/* The table as text: a heading and at most `most` rows. 0 or an errno. */
int m6_profile_print(struct m6_profile *p, FILE *to, uint32_t most);

#endif
