/* probe.h - `mach6 probe`. Exit status: 0, 1 = it could not be done (the reason is on stderr), 2 = wrong use. */
#ifndef MACH6_PROBE_H
#define MACH6_PROBE_H

int mach6_probe_main(int argc, char **argv); /* argv[0] is "probe" */

#endif
