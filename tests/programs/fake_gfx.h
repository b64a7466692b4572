/* fake_gfx.h - a graphics library that does nothing but count.
 *
 * It has what real ones have: GLX, EGL, Vulkan, SDL and GLFW presents, of which SDL's and GLFW's call the lower ones, found by dlsym
 * in the library itself; proc-address functions, which act as fake_mode says; one optional function (…WithDamageKHR) and one that is missing
 * (…WithDamageEXT). It is linked -Bsymbolic: no call in it is bound to somebody else's symbol.
 * FAKE_BAD as a drawable makes a present fail.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake_vulkan.h"

#define FAKE_BAD 0xbad
#define EXPORT __attribute__((visibility("default")))
typedef void *(*fake_proc)(const char *);

EXPORT int fake_presents; /* presents that succeeded at the bottom; one thread at a time or atomic */
EXPORT int fake_mode; /* proc addresses: 0 from a table, 1 dlsym(RTLD_DEFAULT), 2 dlsym(own handle), 3 dlopen(NULL) */
EXPORT void (*fake_inside)(void); /* called inside of every bottom present */
EXPORT void *fake_keep;           /* a present leaves an allocation here when fake_mode & 16 */

static int bottom(uintptr_t drawable)
{
  if (fake_inside) fake_inside();
  if (drawable == FAKE_BAD) return 0;
  if (fake_mode & 16) *(void **)(fake_keep = malloc(4000)) = NULL;
  __atomic_fetch_add(&fake_presents, 1, __ATOMIC_RELAXED);
  return 1;
}

EXPORT void glXSwapBuffers(void *display, unsigned long drawable)
{
  (void)display;
  bottom(drawable);
}
EXPORT unsigned eglSwapBuffers(void *display, void *surface)
{
  (void)display;
  return (unsigned)bottom((uintptr_t)surface);
}
EXPORT unsigned eglSwapBuffersWithDamageKHR(void *display, void *surface, const int *rects, int n)
{
  (void)display;
  return rects && n == 3 ? (unsigned)bottom((uintptr_t)surface) : 0;
}
EXPORT unsigned eglDestroySurface(void *display, void *surface)
{
  (void)display;
  return surface != NULL;
}
EXPORT void glXDestroyWindow(void *display, unsigned long window)
{
  (void)display;
  (void)window;
}

/* ---- Vulkan: a device is a pointer to its dispatch key, and so is a queue; device 2's key is odd ----------------- */
EXPORT int fake_device_presents[2];

static int queue_present(int device, void **queue, const struct fake_present_info *info)
{
  int32_t worst = 0;
  if (((uintptr_t)*queue & 1) != (uintptr_t)device) abort(); /* the other device's function was called */
  for (uint32_t i = 0; i < info->swapchain_count; i++) {
    int32_t r = info->swapchains[i] == FAKE_BAD ? -1000001004 /* OUT_OF_DATE */
                : i == 1                        ? 1000001003  /* SUBOPTIMAL */
                                                : 0;
    if (info->results) info->results[i] = r;
    if (worst >= 0 && r) worst = r;
    fake_device_presents[device] += r >= 0;
  }
  return worst;
}
static int present_0(void **queue, const struct fake_present_info *info) { return queue_present(0, queue, info); }
static int present_1(void **queue, const struct fake_present_info *info) { return queue_present(1, queue, info); }
EXPORT int vkQueuePresentKHR(void **queue, const struct fake_present_info *info)
{
  return queue_present((int)((uintptr_t)*queue & 1), queue, info);
}
EXPORT int vkCreateSwapchainKHR(void *device, const void *info, const void *allocator, uint64_t *swapchain)
{
  static uint64_t next = 0x1000;
  (void)device;
  (void)info;
  (void)allocator;
  *swapchain = next += 16;
  return 0;
}
EXPORT void vkDestroySwapchainKHR(void *device, uint64_t swapchain, const void *allocator)
{
  (void)device;
  (void)swapchain;
  (void)allocator;
}
EXPORT void *vkGetDeviceProcAddr(void **device, const char *name)
{
  if (strcmp(name, "vkQueuePresentKHR") == 0) return (uintptr_t)*device & 1 ? (void *)present_1 : (void *)present_0;
  if (strcmp(name, "vkDestroySwapchainKHR") == 0) return (void *)vkDestroySwapchainKHR;
  if (strcmp(name, "vkCreateSwapchainKHR") == 0) return (void *)vkCreateSwapchainKHR;
  return NULL;
}
EXPORT void *vkGetInstanceProcAddr(void *instance, const char *name)
{
  (void)instance;
  if (strcmp(name, "vkQueuePresentKHR") == 0) return (void *)vkQueuePresentKHR;
  if (strcmp(name, "vkGetDeviceProcAddr") == 0) return (void *)vkGetDeviceProcAddr;
  return NULL;
}

/* ---- proc addresses --------------------------------------------------------------------------------------------- */
static void *own_handle(void)
{
  Dl_info info;
  return dladdr((void *)&fake_presents, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}
static void *proc(const char *name)
{
  static const struct {
    const char *name;
    void *function;
  } table[] = {
    {"glXSwapBuffers", (void *)glXSwapBuffers},
    {"eglSwapBuffers", (void *)eglSwapBuffers},
    {"eglSwapBuffersWithDamageKHR", (void *)eglSwapBuffersWithDamageKHR},
    {"eglDestroySurface", (void *)eglDestroySurface},
  };
  switch (fake_mode & 15) {
  case 1: return dlsym(RTLD_DEFAULT, name);
  case 2: return dlsym(own_handle(), name);
  case 3: return dlsym(dlopen(NULL, RTLD_LAZY), name);
  }
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(name, table[i].name) == 0) return table[i].function;
  return NULL;
}
EXPORT void *glXGetProcAddress(const char *name) { return proc(name); }
EXPORT void *glXGetProcAddressARB(const char *name) { return proc(name); }
EXPORT void *eglGetProcAddress(const char *name) { return proc(name); }
EXPORT void *SDL_GL_GetProcAddress(const char *name)
{
  return ((fake_proc)dlsym(own_handle(), "eglGetProcAddress"))(name);
}
EXPORT void *glfwGetProcAddress(const char *name)
{
  return ((fake_proc)dlsym(own_handle(), "glXGetProcAddressARB"))(name);
}
EXPORT void *SDL_Vulkan_GetVkGetInstanceProcAddr(void) { return (void *)vkGetInstanceProcAddr; }

/* ---- presents that contain presents ----------------------------------------------------------------------------- */
EXPORT void *fake_lower; /* the drawable that the upper ones present below; NULL: the one they are given */
static void *below(void *drawable) { return fake_lower ? fake_lower : drawable; }

EXPORT void SDL_GL_SwapWindow(void *window)
{
  unsigned (*swap)(void *, void *) = (unsigned (*)(void *, void *))dlsym(own_handle(), "eglSwapBuffers");
  swap((void *)7, below(window));
}
EXPORT void glfwSwapBuffers(void *window)
{
  void (*swap)(void *, void *) = (void (*)(void *, void *))((fake_proc)dlsym(own_handle(), "glXGetProcAddressARB"))(
    "glXSwapBuffers");
  swap((void *)7, below(window));
}
EXPORT void SDL_RenderPresent(void *renderer) /* a renderer that draws by software: nothing below */
{
  bottom((uintptr_t)renderer);
}
EXPORT int SDL_UpdateWindowSurface(void *window) { return bottom((uintptr_t)window) ? 0 : -1; }
EXPORT int SDL_Flip(void *surface) { return bottom((uintptr_t)surface) ? 0 : -1; }
EXPORT void SDL_GL_SwapBuffers(void) { bottom(1); }
EXPORT void SDL_DestroyWindow(void *window) { (void)window; }
