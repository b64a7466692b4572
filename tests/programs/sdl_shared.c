/* sdl_shared - sdl_swaps.h, linked with SDL. */
/* links: -lSDL2 */
#include "sdl_swaps.h"
