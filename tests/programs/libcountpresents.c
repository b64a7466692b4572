/* libcountpresents - a second count of presents that shares no code with mach6: a preload, for functions that are linked.
 *
 * Writes to the file that COUNT_PRESENTS names (only the process whose program is COUNT_PROGRAM), as shared memory, because
 * many games die by a signal: one pair of 64-bit numbers for each function below, presents entered and presents returned.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GLX, EGL, WINDOW, RENDERER, SDL12, FLIP, GLFW, VK, COUNT };
static uint64_t nowhere[2 * COUNT], *counts = nowhere;
typedef uintptr_t function(uintptr_t, uintptr_t);

__attribute__((constructor)) static void begin(void)
{
  const char *path = getenv("COUNT_PRESENTS"), *program = getenv("COUNT_PROGRAM");
  if (!path || !program || strcmp(program, program_invocation_short_name) != 0) return;
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof nowhere) != 0) abort();
  counts = mmap(NULL, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (counts == MAP_FAILED) abort();
  close(fd);
}

static uintptr_t counted(int which, const char *name, uintptr_t a, uintptr_t b)
{
  static function *next[COUNT];
  if (!next[which]) next[which] = (function *)dlsym(RTLD_NEXT, name);
  __atomic_fetch_add(&counts[2 * which], 1, __ATOMIC_RELAXED);
  uintptr_t result = next[which](a, b);
  __atomic_fetch_add(&counts[2 * which + 1], 1, __ATOMIC_RELAXED);
  return result;
}

#define HOOK(which, name)                                                                                              \
  uintptr_t name(uintptr_t, uintptr_t);                                                                                \
  uintptr_t name(uintptr_t a, uintptr_t b) { return counted(which, #name, a, b); }
HOOK(GLX, glXSwapBuffers)
HOOK(EGL, eglSwapBuffers)
HOOK(WINDOW, SDL_GL_SwapWindow)
HOOK(RENDERER, SDL_RenderPresent)
HOOK(SDL12, SDL_GL_SwapBuffers)
HOOK(FLIP, SDL_Flip)
HOOK(GLFW, glfwSwapBuffers)
HOOK(VK, vkQueuePresentKHR)
