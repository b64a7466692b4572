/* calibrate.h - what the shim's operations cost on this machine.
 *
 * The collector starts itself once more, with the shim preloaded, as a small process that measures a malloc+free pair
 * inert and collecting, a scope and a frame boundary, for about 20 ms; and then the kernel side's events
 * (calibrate_kernel.h). Nothing waits for it: the prices are NaN until it has answered, and stay so when it can't (no
 * shim found, no memory, no time). The shim is sought in MACH6_SHIM, beside the executable, in ../lib and ../lib/mach6.
 */
#ifndef M6_CALIBRATE_H
#define M6_CALIBRATE_H

#include <sys/types.h>

#include "kernel_side.h"
#include "publish.h"

#define M6_CALIBRATE_OPTION "--calibrate" /* not for people */

struct m6_calibration {
  struct m6_price price;
  struct m6_kernel_measured kernel;
  pid_t child; /* 0: none runs */
  int pipe;
  char text[256];
  size_t got;
};
/* `kernel`: the kernel side is used, and so its events are measured, too. */
void m6_calibrate_start(struct m6_calibration *c, int kernel);
/* Takes the answer when it is there; waits up to `ms` for it. */
void m6_calibrate_poll(struct m6_calibration *c, int ms);
void m6_calibrate_stop(struct m6_calibration *c);

/* The other side: measures, prints its numbers; an exit status. */
int m6_calibrate_main(void);

#endif
