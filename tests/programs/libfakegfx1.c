/* libfakegfx1 - a fake graphics library (fake_gfx.h). */
/* flags: -fno-semantic-interposition -Wl,-Bsymbolic */
#include "fake_gfx.h"
