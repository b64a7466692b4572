/* vulkan.c - Vulkan's presents: several swapchains in one call, swapchains that replace each other.
 *
 * vkQueuePresentKHR is one boundary a call: the stream of its first swapchain gets the record, every swapchain's stream is
 * counted. A swapchain that is made from an old one (a resize) carries on the old one's stream: it is the same window to whoever
 * looks. Two devices are never mixed up, because each real pointer that a proc-address function gives has a variant of its own; the
 * dispatch key, which a device and its queues share, tells their streams apart. (It could not choose the real function: a
 * layer below, asked by the loader, has the same key and another function.)
 * Vulkan's structs are declared here, as far as they are read: nothing of Vulkan is needed to build this.
 */
#include "hook.h"

#define VK_SUCCESS 0
#define VK_SUBOPTIMAL 1000001003
#define VK_ERROR_INITIALIZATION_FAILED (-3)

struct present_info { /* VkPresentInfoKHR */
  uint32_t type;
  const void *next;
  uint32_t wait_count;
  const uint64_t *waits;
  uint32_t swapchain_count;
  const uint64_t *swapchains;
  const uint32_t *images;
  int32_t *results; /* one for each swapchain; may be NULL */
};
struct create_info { /* VkSwapchainCreateInfoKHR */
  uint32_t type;
  const void *next;
  uint32_t flags;
  uint64_t surface;
  uint32_t images_min, format, color_space, width, height, layers, usage, sharing, family_count;
  const uint32_t *families;
  uint32_t transform, alpha, mode, clipped;
  uint64_t old_swapchain;
};
#if UINTPTR_MAX > UINT32_MAX
M6_AT(struct present_info, swapchain_count, 32);
M6_AT(struct present_info, swapchains, 40);
M6_AT(struct present_info, results, 56);
_Static_assert(sizeof(struct present_info) == 64, "as Vulkan lays it out");
M6_AT(struct create_info, surface, 24);
M6_AT(struct create_info, families, 72);
M6_AT(struct create_info, old_swapchain, 96);
_Static_assert(sizeof(struct create_info) == 104, "as Vulkan lays it out");
#endif

/* A swapchain argument: 64 bits, two words of a 32-bit target. */
static uint64_t swapchain_of(m6_arg low, m6_arg high)
{
#if UINTPTR_MAX > UINT32_MAX
  (void)high;
  return low;
#else
  return (uint64_t)high << 32 | low;
#endif
}

/* What the loader keeps at the start of every dispatchable object: the same for a device and its queues. */
static uint64_t dispatch_key(m6_arg object) { return object ? *(const uintptr_t *)object : 0; }

static int succeeded(int32_t result) { return result == VK_SUCCESS || result == VK_SUBOPTIMAL; }

/* Each swapchain has a result of its own when the game asked for them, else the call's counts for all. */
static int presented(const struct present_info *info, uint32_t i, int32_t result)
{
  return info && info->results ? succeeded(info->results[i]) : succeeded(result);
}

m6_arg m6_on_vk_present(m6_arg a, m6_arg b, m6_arg c, m6_arg d, struct m6_variant *v, const void *caller)
{
  const struct present_info *info = (const struct present_info *)b;
  m6_function real = m6_variant_real(v, caller);
  if (!real) return (m6_arg)VK_ERROR_INITIALIZATION_FAILED;
  uint32_t n = info ? info->swapchain_count : 0;
  struct m6_present p;
  m6_present_enter(&p, M6_SYM_VK_QUEUE_PRESENT, v->route, dispatch_key(a), n ? info->swapchains[0] : 0, caller);
  m6_arg result = real(a, b, c, d);
  m6_present_leave(&p, n ? presented(info, 0, (int32_t)result) : succeeded((int32_t)result));
  for (uint32_t i = 1; i < n && p.outermost; i++)
    m6_present_also(&p, info->swapchains[i], presented(info, i, (int32_t)result));
  return result;
}

m6_arg m6_on_vk_create(m6_arg a, m6_arg b, m6_arg c, m6_arg d, struct m6_variant *v, const void *caller)
{
  const struct create_info *info = (const struct create_info *)b;
  m6_function real = m6_variant_real(v, caller);
  if (!real) return (m6_arg)VK_ERROR_INITIALIZATION_FAILED;
  m6_arg result = real(a, b, c, d);
  if ((int32_t)result == VK_SUCCESS && info && d)
    m6_present_replaced(dispatch_key(a), info->old_swapchain, *(const uint64_t *)d);
  return result;
}

m6_arg m6_on_vk_destroy(m6_arg a, m6_arg b, m6_arg c, m6_arg d, struct m6_variant *v, const void *caller)
{
  m6_function real = m6_variant_real(v, caller);
  if (!real) return 0;
  m6_present_destroyed_on(dispatch_key(a), swapchain_of(b, c));
  return real(a, b, c, d);
}

/* SDL_Vulkan_GetVkGetInstanceProcAddr names nothing: it gives one function. */
m6_arg m6_on_vk_loader(m6_arg a, m6_arg b, m6_arg c, m6_arg d, struct m6_variant *v, const void *caller)
{
  m6_function real = m6_variant_real(v, caller);
  if (!real) return 0;
  m6_arg found = real(a, b, c, d);
  return found ? (m6_arg)m6_variant_for(M6_HOOK_vkGetInstanceProcAddr, (void *)found, M6_ROUTE_SDL_PROC, caller) : 0;
}
