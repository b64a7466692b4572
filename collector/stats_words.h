/* stats_words.h - the numbers of a snapshot in words, once, for JSON and for people: in reports and in the collector's
 * messages.
 *
 * `*_name` are short and stable (JSON values); `*_text` are sentences. Never NULL: what is out of range is "?".
 */
#ifndef M6_STATS_WORDS_H
#define M6_STATS_WORDS_H

#include <stdint.h>

const char *m6_state_name(uint32_t state) __attribute__((visibility("hidden")));
const char *m6_end_name(uint32_t end) __attribute__((visibility("hidden")));
/* Why the shim was lost (enum m6_lost): a word, and a clause that says what can be done. */
const char *m6_lost_name(uint32_t why) __attribute__((visibility("hidden")));
const char *m6_lost_text(uint32_t why) __attribute__((visibility("hidden")));
const char *m6_end_text(uint32_t end) __attribute__((visibility("hidden"))); /* what ended the session, as a clause */
const char *m6_level_name(uint32_t level) __attribute__((visibility("hidden")));
const char *m6_clock_name(uint32_t clock) __attribute__((visibility("hidden")));
const char *m6_verdict_name(int32_t verdict) __attribute__((visibility("hidden")));
const char *m6_node_kind_name(uint32_t kind) __attribute__((visibility("hidden")));
const char *m6_alloc_kind_name(uint32_t kind) __attribute__((visibility("hidden")));

/* Bit `i` of M6_UNSEEN_*: 0 when there is none such. */
struct m6_unseen_word {
  uint32_t bit;
  const char *code, *text;
};
const struct m6_unseen_word *m6_unseen_words(unsigned *count) __attribute__((visibility("hidden")));

/* Losses: each a counter of the snapshot, its JSON key, and what was lost: a noun, before a colon and a number. */
struct m6_snapshot;
struct m6_loss_word {
  const char *key, *text;
  uint32_t offset; /* of the uint64_t in struct m6_snapshot */
};
const struct m6_loss_word *m6_loss_words(unsigned *count) __attribute__((visibility("hidden")));
uint64_t m6_loss_of(const struct m6_snapshot *s, const struct m6_loss_word *w) __attribute__((visibility("hidden")));

#endif
