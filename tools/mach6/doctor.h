/* doctor.h - what `mach6 doctor` tries: doctor.c drops to each tier in a child and prints; doctor_probes.c knows the
 * features. */
#ifndef MACH6_DOCTOR_H
#define MACH6_DOCTOR_H

#include <stddef.h>
#include <sys/types.h>

#include "../../collector/kernel_fault.h"

#define DOCTOR_FEATURES_MAX 40
struct doctor_feature {
  const char *id;    /* for machines; never changes its meaning */
  const char *group; /* a heading */
  const char *what;  /* for people */
  const char *used;  /* what mach6 does with it */
  enum m6_area area;
  /* Tries it, here and now, and lets go of it: 0, or an errno. *area may be made more exact. */
  int (*attempt)(enum m6_area *area);
};
extern const struct doctor_feature doctor_features[];
extern const size_t doctor_feature_count;
extern pid_t doctor_other; /* a process of another user's; init when nobody sets it */

#endif
