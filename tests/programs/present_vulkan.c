/* present_vulkan - presents through the fake library's Vulkan: `present_vulkan MODE [N]`; ends with "real N".
 *
 * The fake library aborts when a device's queue reaches the other device's function. A check that fails says so, exit 3.
 */
/* needs: libfakegfx1.so */
/* flags: -Wl,-rpath,'$ORIGIN' */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_vulkan.h"

typedef void *proc(void *, const char *);
typedef int present(void *, const struct fake_present_info *);
typedef int create(void *, const struct fake_create_info *, const void *, uint64_t *);
typedef void destroy(void *, uint64_t, const void *);
#define CHECK(what) ((what) ? (void)0 : (printf("failed: %s (line %d)\n", #what, __LINE__), exit(3)))
#define OUT_OF_DATE (-1000001004)
#define SUBOPTIMAL 1000001003

static int n = 20;
static void *gfx;
static void *device[2], *queue[2]; /* each starts with its device's dispatch key; the second one's is odd */

static int one(present *p, int d, uint64_t swapchain)
{
  struct fake_present_info info = {.swapchain_count = 1, .swapchains = &swapchain};
  return p(&queue[d], &info);
}

static proc *instance_proc(void) { return (proc *)dlsym(gfx, "vkGetInstanceProcAddr"); }
static proc *device_proc(void) { return (proc *)instance_proc()(NULL, "vkGetDeviceProcAddr"); }

static void by_dlsym(void)
{
  present *p = (present *)dlsym(gfx, "vkQueuePresentKHR");
  for (int i = 0; i < n; i++) CHECK(one(p, i % 2, 0x10) == 0);
}
static void by_instance(void)
{
  present *p = (present *)instance_proc()(NULL, "vkQueuePresentKHR");
  CHECK(p && !instance_proc()(NULL, "vkNothing"));
  for (int i = 0; i < n; i++) CHECK(one(p, 0, 0x10) == 0);
}
static void by_sdl(void)
{
  proc *get = ((proc * (*)(void)) dlsym(gfx, "SDL_Vulkan_GetVkGetInstanceProcAddr"))();
  present *p = (present *)get(NULL, "vkQueuePresentKHR");
  for (int i = 0; i < n; i++) CHECK(one(p, 0, 0x10) == 0);
}

/* Two devices, both with a swapchain of the same handle. */
static void devices(void)
{
  present *p[2];
  for (int d = 0; d < 2; d++) p[d] = (present *)device_proc()(&device[d], "vkQueuePresentKHR");
  CHECK(p[0] != p[1] && p[0] == (present *)device_proc()(&device[0], "vkQueuePresentKHR"));
  CHECK(!device_proc()(&device[0], "vkNothing"));
  for (int i = 0; i < n; i++) {
    CHECK(one(p[0], 0, 0x10) == 0);
    CHECK(one(p[1], 1, 0x10) == 0);
    CHECK(one(p[1], 1, 0x10) == 0);
  }
  ((destroy *)device_proc()(&device[0], "vkDestroySwapchainKHR"))(&device[0], 0x10, NULL);
  for (int i = 0; i < n; i++) CHECK(one(p[1], 1, 0x10) == 0);
}

/* Three swapchains in one call: good, suboptimal, out of date; then the same without results to tell them apart. */
static void several(void)
{
  present *p = (present *)device_proc()(&device[0], "vkQueuePresentKHR");
  uint64_t swapchains[3] = {0x10, 0x20, 0xbad};
  int32_t results[3];
  struct fake_present_info info = {.swapchain_count = 3, .swapchains = swapchains, .results = results};
  for (int i = 0; i < n; i++) CHECK(p(&queue[0], &info) == OUT_OF_DATE && results[1] == SUBOPTIMAL);
  info.swapchain_count = 2;
  info.results = NULL;
  for (int i = 0; i < n; i++) CHECK(p(&queue[0], &info) == SUBOPTIMAL);
  for (int i = 0; i < n; i++) CHECK(one(p, 0, 0xbad) == OUT_OF_DATE);
}

/* A window is resized: a swapchain is made from the old one, which then goes. At last one is made from nothing. */
static void resized(void)
{
  present *p = (present *)device_proc()(&device[0], "vkQueuePresentKHR");
  create *make = (create *)device_proc()(&device[0], "vkCreateSwapchainKHR");
  destroy *end = (destroy *)device_proc()(&device[0], "vkDestroySwapchainKHR");
  struct fake_create_info info = {.surface = 0x999};
  uint64_t now = 0;
  for (int i = 0; i < n; i++) {
    info.old_swapchain = now;
    CHECK(make(&device[0], &info, NULL, &now) == 0);
    CHECK(one(p, 0, now) == 0 && one(p, 0, now) == 0);
    if (info.old_swapchain) end(&device[0], info.old_swapchain, NULL);
  }
  end(&device[0], now, NULL);
  info.old_swapchain = 0;
  CHECK(make(&device[0], &info, NULL, &now) == 0 && one(p, 0, now) == 0);
}

static const struct {
  const char *name;
  void (*run)(void);
} modes[] = {
  {"dlsym", by_dlsym},  {"instance", by_instance}, {"sdl", by_sdl},
  {"devices", devices}, {"several", several},      {"resized", resized},
};

int main(int argc, char **argv)
{
  static const uint64_t tables[2][2] = {{1}, {2}};
  if (argc > 2) n = atoi(argv[2]);
  for (int d = 0; d < 2; d++) device[d] = queue[d] = (char *)&tables[d] + d;
  gfx = dlopen("libfakegfx1.so", RTLD_NOW | RTLD_LOCAL);
  CHECK(gfx);
  for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(argv[1], modes[i].name) != 0) continue;
    modes[i].run();
    int *presents = (int *)dlsym(gfx, "fake_device_presents");
    printf("real %d\n", presents[0] + presents[1]);
    return 0;
  }
  return 2;
}
