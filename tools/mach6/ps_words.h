/* ps_words.h - what a list of targets says of each. Callers: ps.c, the dashboard. */
#ifndef M6_PS_WORDS_H
#define M6_PS_WORDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "../../collector/stats_targets.h"

const char *target_user(uint32_t uid, char *room, size_t n);
const char *target_state(const struct m6_target *t);
/* Who may start a session: a clause for people. */
void target_may_capture(const struct m6_target *t, char *room, size_t n);
/* Presents so far, when somebody counts them: 1 and *presents. */
int target_presents(const struct m6_target *t, uint64_t *presents);
/* What a target calls itself is foreign bytes: made UTF-8 here. */
const char *target_name(const struct m6_target *t, char room[64]);
/* All of that as one object; NULL when memory ran out. */
json_t *target_json(const struct m6_target *t);

#endif
