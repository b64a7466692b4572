/* sdl_static - sdl_swaps.h with SDL inside: its SDL_GL_SwapWindow is nobody's to see. */
/* links: -Wl,-Bstatic -lSDL2 -Wl,-Bdynamic $(pkg-config --static --libs sdl2 | sed 's/-lSDL2//') */
#include "sdl_swaps.h"
