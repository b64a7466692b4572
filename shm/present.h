/* present.h - the words that both sides use for presents: which function, reached by which route.
 *
 * One table each; the shim's hooks, the collector's messages and the JSON's `frame_source` all come from here.
 */
#ifndef M6_PRESENT_H
#define M6_PRESENT_H

#include <stdint.h>

/* X(enum suffix, symbol) */
#define M6_SYMBOLS(X)                                                                                                  \
  X(MACH6_FRAME, "mach6_frame")                                                                                        \
  X(GLX_SWAP_BUFFERS, "glXSwapBuffers")                                                                                \
  X(EGL_SWAP_BUFFERS, "eglSwapBuffers")                                                                                \
  X(EGL_SWAP_DAMAGE_EXT, "eglSwapBuffersWithDamageEXT")                                                                \
  X(EGL_SWAP_DAMAGE_KHR, "eglSwapBuffersWithDamageKHR")                                                                \
  X(VK_QUEUE_PRESENT, "vkQueuePresentKHR")                                                                             \
  X(SDL_GL_SWAP_WINDOW, "SDL_GL_SwapWindow")                                                                           \
  X(SDL_RENDER_PRESENT, "SDL_RenderPresent")                                                                           \
  X(SDL_UPDATE_WINDOW_SURFACE, "SDL_UpdateWindowSurface")                                                              \
  X(SDL_UPDATE_WINDOW_SURFACE_RECTS, "SDL_UpdateWindowSurfaceRects")                                                   \
  X(SDL_GL_SWAP_BUFFERS, "SDL_GL_SwapBuffers")                                                                         \
  X(SDL_FLIP, "SDL_Flip")                                                                                              \
  X(GLFW_SWAP_BUFFERS, "glfwSwapBuffers")                                                                              \
  X(FRAME_SYMBOL, "--frame-symbol")

/* X(enum suffix, name) */
#define M6_ROUTES(X)                                                                                                   \
  X(LINK, "link")                                                                                                      \
  X(DLSYM, "dlsym")                                                                                                    \
  X(GLX_PROC, "glXGetProcAddress")                                                                                     \
  X(EGL_PROC, "eglGetProcAddress")                                                                                     \
  X(SDL_PROC, "SDL_GL_GetProcAddress")                                                                                 \
  X(GLFW_PROC, "glfwGetProcAddress")                                                                                   \
  X(VK_INSTANCE_PROC, "vkGetInstanceProcAddr")                                                                         \
  X(VK_DEVICE_PROC, "vkGetDeviceProcAddr")                                                                             \
  X(SDL_DYNAPI, "SDL_DYNAPI_entry")                                                                                    \
  X(PROBE, "a probe in the kernel")

#define M6_ENUM_SYMBOL(e, s) M6_SYM_##e,
#define M6_ENUM_ROUTE(e, s) M6_ROUTE_##e,
enum m6_symbol { M6_SYMBOLS(M6_ENUM_SYMBOL) M6_SYM_COUNT };
enum m6_route { M6_ROUTES(M6_ENUM_ROUTE) M6_ROUTE_COUNT };

static inline const char *m6_symbol_name(uint32_t s)
{
#define M6_NAME(e, s) s,
  static const char *const names[] = {M6_SYMBOLS(M6_NAME)};
  return s < M6_SYM_COUNT ? names[s] : "?";
}
static inline const char *m6_route_name(uint32_t r)
{
  static const char *const names[] = {M6_ROUTES(M6_NAME)};
#undef M6_NAME
  return r < M6_ROUTE_COUNT ? names[r] : "?";
}

#endif
