/* libfindsclient - finds its sibling by a bare name, through its own $ORIGIN. */
/* needs: libclient.so */
/* flags: -Wl,-rpath,'$ORIGIN' -Wl,--disable-new-dtags */
#include <dlfcn.h>
int sibling_found(void) { return dlopen("libclient.so", RTLD_NOW) != 0; }
