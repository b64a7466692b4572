/* libfakeplugin1 - a plugin that is linked with libfakegfx1. */
/* needs: libfakegfx1.so */
/* links: -Lbuild/tests/programs -lfakegfx1 */
/* flags: -Wl,-rpath,'$ORIGIN' */
#include "fake_plugin.h"
