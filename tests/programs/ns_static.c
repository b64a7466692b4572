/* ns_static.c - ns_target without a dynamic linker: no shim can be loaded into it. */
/* flags: -static */
#include "ns_target.c"
