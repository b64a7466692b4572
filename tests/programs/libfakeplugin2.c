/* libfakeplugin2 - a plugin that is linked with libfakegfx2. */
/* needs: libfakegfx2.so */
/* links: -Lbuild/tests/programs -lfakegfx2 */
/* flags: -Wl,-rpath,'$ORIGIN' */
#include "fake_plugin.h"
