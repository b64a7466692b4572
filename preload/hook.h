/* hook.h - the hooked functions of the graphics libraries, as one table, and what a hook may ask of route.c and
 * present.c.
 *
 * Every function hooked here takes at most four integer or pointer arguments and returns at most one word, so one shape
 * serves all: arguments and result pass through as machine words, and nothing of any library's headers is needed. (What
 * a shorter function leaves in the spare argument registers is passed on unread; what it leaves in the result register
 * is passed back, so a void function that becomes bool in a later version of its library still works.)
 *
 * Each function has M6_VARIANTS variants: tiny functions, each bound to one pair (real function, route). Variant 0 is
 * the exported symbol, reached by direct linking, its real function is the next one in line. The others are handed out
 * by dlsym and the proc-address functions: two libEGLs in one process are never mixed up, and a stream knows the route
 * of its presents.
 */
#ifndef M6_HOOK_H
#define M6_HOOK_H

#include "internal.h"

typedef uintptr_t m6_arg;
typedef m6_arg (*m6_function)(m6_arg, m6_arg, m6_arg, m6_arg);

/* How a present's arguments name its stream, and how its result says success. */
enum m6_key { M6_KEY_NONE, M6_KEY_A, M6_KEY_A_B };
enum m6_result { M6_RESULT_VOID, M6_RESULT_BOOLEAN, M6_RESULT_NOT_NEGATIVE, M6_RESULT_VK };

/* X(function, action, kind, x, y). The action is a function of hook.c or vulkan.c; kind, x and y are for it:
 *   m6_on_present   enum m6_symbol, enum m6_key, enum m6_result
 *   m6_on_destroy   0, index of the argument that is destroyed, enum m6_result (for the reader: nothing asks)
 *   m6_on_proc      route of what it hands out, index of the argument that is the name, 0
 *   m6_on_vk_*      know their function; the row says the same for the reader
 * SDL 1.2's and SDL 2's SDL_GL_GetProcAddress are one row. */
#define M6_HOOKS(X)                                                                                                    \
  X(glXSwapBuffers, m6_on_present, M6_SYM_GLX_SWAP_BUFFERS, M6_KEY_A_B, M6_RESULT_VOID)                                \
  X(eglSwapBuffers, m6_on_present, M6_SYM_EGL_SWAP_BUFFERS, M6_KEY_A_B, M6_RESULT_BOOLEAN)                             \
  X(eglSwapBuffersWithDamageEXT, m6_on_present, M6_SYM_EGL_SWAP_DAMAGE_EXT, M6_KEY_A_B, M6_RESULT_BOOLEAN)             \
  X(eglSwapBuffersWithDamageKHR, m6_on_present, M6_SYM_EGL_SWAP_DAMAGE_KHR, M6_KEY_A_B, M6_RESULT_BOOLEAN)             \
  X(SDL_GL_SwapWindow, m6_on_present, M6_SYM_SDL_GL_SWAP_WINDOW, M6_KEY_A, M6_RESULT_VOID)                             \
  X(SDL_RenderPresent, m6_on_present, M6_SYM_SDL_RENDER_PRESENT, M6_KEY_A, M6_RESULT_VOID)                             \
  X(SDL_UpdateWindowSurface, m6_on_present, M6_SYM_SDL_UPDATE_WINDOW_SURFACE, M6_KEY_A, M6_RESULT_NOT_NEGATIVE)        \
  X(SDL_UpdateWindowSurfaceRects, m6_on_present, M6_SYM_SDL_UPDATE_WINDOW_SURFACE_RECTS, M6_KEY_A,                     \
    M6_RESULT_NOT_NEGATIVE)                                                                                            \
  X(SDL_GL_SwapBuffers, m6_on_present, M6_SYM_SDL_GL_SWAP_BUFFERS, M6_KEY_NONE, M6_RESULT_VOID)                        \
  X(SDL_Flip, m6_on_present, M6_SYM_SDL_FLIP, M6_KEY_A, M6_RESULT_NOT_NEGATIVE)                                        \
  X(glfwSwapBuffers, m6_on_present, M6_SYM_GLFW_SWAP_BUFFERS, M6_KEY_A, M6_RESULT_VOID)                                \
  X(vkQueuePresentKHR, m6_on_vk_present, M6_SYM_VK_QUEUE_PRESENT, 0, M6_RESULT_VK)                                     \
  X(vkCreateSwapchainKHR, m6_on_vk_create, 0, 0, M6_RESULT_VK)                                                         \
  X(vkDestroySwapchainKHR, m6_on_vk_destroy, 0, 0, M6_RESULT_VOID)                                                     \
  X(glXDestroyWindow, m6_on_destroy, 0, 1, M6_RESULT_VOID)                                                             \
  X(XDestroyWindow, m6_on_destroy, 0, 1, M6_RESULT_VOID)                                                               \
  X(eglDestroySurface, m6_on_destroy, 0, 1, M6_RESULT_BOOLEAN)                                                         \
  X(SDL_DestroyWindow, m6_on_destroy, 0, 0, M6_RESULT_VOID)                                                            \
  X(SDL_DestroyRenderer, m6_on_destroy, 0, 0, M6_RESULT_VOID)                                                          \
  X(glfwDestroyWindow, m6_on_destroy, 0, 0, M6_RESULT_VOID)                                                            \
  X(glXGetProcAddress, m6_on_proc, M6_ROUTE_GLX_PROC, 0, 0)                                                            \
  X(glXGetProcAddressARB, m6_on_proc, M6_ROUTE_GLX_PROC, 0, 0)                                                         \
  X(eglGetProcAddress, m6_on_proc, M6_ROUTE_EGL_PROC, 0, 0)                                                            \
  X(SDL_GL_GetProcAddress, m6_on_proc, M6_ROUTE_SDL_PROC, 0, 0)                                                        \
  X(glfwGetProcAddress, m6_on_proc, M6_ROUTE_GLFW_PROC, 0, 0)                                                          \
  X(glfwGetInstanceProcAddress, m6_on_proc, M6_ROUTE_GLFW_PROC, 1, 0)                                                  \
  X(vkGetInstanceProcAddr, m6_on_proc, M6_ROUTE_VK_INSTANCE_PROC, 1, 0)                                                \
  X(vkGetDeviceProcAddr, m6_on_proc, M6_ROUTE_VK_DEVICE_PROC, 1, 0)                                                    \
  X(SDL_Vulkan_GetVkGetInstanceProcAddr, m6_on_vk_loader, M6_ROUTE_SDL_PROC, 0, 0)

#define M6_ENUM_HOOK(name, ...) M6_HOOK_##name,
enum m6_hook { M6_HOOKS(M6_ENUM_HOOK) M6_HOOK_COUNT };
#undef M6_ENUM_HOOK

#define M6_VARIANTS 8
struct m6_variant {
  void *real;       /* published last; NULL: not bound, or (variant 0) not resolved yet */
  uint32_t route;   /* enum m6_route */
  uint32_t claimed; /* somebody binds it, or has */
  uint32_t hook;    /* enum m6_hook */
};
struct m6_hook_row {
  const char *name;
  m6_function thunk[M6_VARIANTS];
  uint32_t kind, x, y;
};
extern const struct m6_hook_row m6_hook_rows[M6_HOOK_COUNT] __attribute__((visibility("hidden")));

/* strcmp(a, b) == 0, for lookups: a sanitizer makes them when its own strcmp, which is first in line, does not work
 * yet. */
static inline int m6_same_name(const char *a, const char *b)
{
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

/* ---- hook.c ----------------------------------------------------------------------------------------------------- */
/* The hook of this name, or -1. Fast for names that are none. */
int m6_hook_find(const char *name) __attribute__((visibility("hidden")));
/* The real function behind a variant; NULL when there is none. caller: whose call it is, for a library that only the
 * caller's own scope can see. */
m6_function m6_variant_real(struct m6_variant *v, const void *caller) __attribute__((visibility("hidden")));
/* What to hand out instead of `found`, which was looked up under the name of `hook` by this route. Never NULL when
 * found is not; `found` itself when every variant is taken (and says so in header.unseen). */
void *m6_variant_for(int hook, void *found, uint32_t route, const void *caller) __attribute__((visibility("hidden")));
/* A definition of `name` in a library that `caller`'s module needs, though it is not in the global scope; or NULL. */
void *m6_find_for_caller(const char *name, const void *caller) __attribute__((visibility("hidden"), cold));

#define M6_ACTION(name)                                                                                                \
  m6_arg name(m6_arg a, m6_arg b, m6_arg c, m6_arg d, struct m6_variant *v, const void *caller)                        \
    __attribute__((visibility("hidden")))
M6_ACTION(m6_on_present);
M6_ACTION(m6_on_destroy);
M6_ACTION(m6_on_proc);
/* ---- vulkan.c --------------------------------------------------------------------------------------------------- */
M6_ACTION(m6_on_vk_present);
M6_ACTION(m6_on_vk_create);
M6_ACTION(m6_on_vk_destroy);
M6_ACTION(m6_on_vk_loader);

/* ---- present.c, beyond internal.h ------------------------------------------------------------------------------- */
/* One more drawable that the present p carried (Vulkan presents several swapchains in one call): counted, no record. */
void m6_present_also(const struct m6_present *p, uint64_t drawable, int ok) __attribute__((visibility("hidden")));
/* As m6_present_destroyed, on one display. */
void m6_present_destroyed_on(uint64_t display, uint64_t drawable) __attribute__((visibility("hidden")));
/* A drawable takes the place of another (a swapchain made from an old one): its presents go on in the same stream. */
void m6_present_replaced(uint64_t display, uint64_t old, uint64_t drawable) __attribute__((visibility("hidden")));

/* What dl.S asks of route.c and versioned.c. */
struct m6_choice {
  void *answer;
  void *jump; /* not NULL: go there instead of answering */
};

#endif
