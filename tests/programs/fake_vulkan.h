/* fake_vulkan.h - the two Vulkan structs that the fake library and its caller pass: as the specification lays them out. */
#ifndef FAKE_VULKAN_H
#define FAKE_VULKAN_H
#include <stdint.h>

struct fake_present_info { /* VkPresentInfoKHR */
  uint32_t type;
  const void *next;
  uint32_t wait_count;
  const uint64_t *waits;
  uint32_t swapchain_count;
  const uint64_t *swapchains;
  const uint32_t *images;
  int32_t *results;
};
struct fake_create_info { /* VkSwapchainCreateInfoKHR */
  uint32_t type;
  const void *next;
  uint32_t flags;
  uint64_t surface;
  uint32_t min_images, format, color_space, extent[2], layers, usage, sharing, families;
  const uint32_t *family;
  uint32_t transform, alpha, mode, clipped;
  uint64_t old_swapchain;
};
#endif
