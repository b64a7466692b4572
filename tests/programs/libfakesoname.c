/* libfakesoname - a fake graphics library that goes by the usual name. */
/* flags: -fno-semantic-interposition -Wl,-Bsymbolic -Wl,-soname,libEGL.so.1 */
#include "fake_gfx.h"
