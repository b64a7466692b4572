/* sdl_swaps.h - opens a GL window with SDL and swaps it: `sdl_... [N]`; prints the video driver and "real N". */
#include <SDL2/SDL.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
  int n = argc > 1 ? atoi(argv[1]) : 20;
  if (SDL_Init(SDL_INIT_VIDEO) != 0) return printf("SDL_Init: %s\n", SDL_GetError()), 3;
  SDL_Window *window = SDL_CreateWindow("swaps", 0, 0, 64, 64, SDL_WINDOW_OPENGL);
  SDL_GLContext context = window ? SDL_GL_CreateContext(window) : NULL;
  if (!context) return printf("no GL window: %s\n", SDL_GetError()), 3;
  printf("driver %s\n", SDL_GetCurrentVideoDriver());
  for (int i = 0; i < n; i++) SDL_GL_SwapWindow(window);
  SDL_GL_DeleteContext(context);
  SDL_DestroyWindow(window);
  SDL_Quit();
  printf("real %d\n", n);
  return 0;
}
