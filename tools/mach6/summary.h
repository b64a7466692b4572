/* summary.h - a snapshot in a bounded number of bytes, for whoever reads it next: a person, a script, a language model.
 *
 * Promises: plain text, valid UTF-8 without control characters but newlines, whole lines, at most `most` bytes; the
 * most important first, each part with a share of the room that no other can take; the last line says that nothing was
 * left out, or counts what was. The words are the report's. Names are the program's own and may say anything: that is
 * said, and none stands at the margin.
 */
#ifndef M6_SUMMARY_H
#define M6_SUMMARY_H

#include <stdint.h>

#include "../../collector/mach6_stats.h"
#include "text.h"

struct summary {
  char *text; /* malloc'ed, n bytes and a NUL */
  size_t n;
  uint64_t lines_left_out, bytes_left_out;
};

/* For a reader as `like` has (its width, its characters; colour is none). `of`: the file's name; how_it_ended: as for
 * report(). 0, or -1 without memory. */
int summary_make(const struct page *like, const mach6_stats *s, const char *of, const char *how_it_ended, uint64_t most,
                 struct summary *out);

#endif
