/* libcountpresent.so - an independent count of presents, for games that link with what they present by. Shares no code with
 * mach6; goes after the shim in LD_PRELOAD. The counters lie in a file that is mapped shared, $COUNT_DIR/PID.presents: one
 * 64-bit word for each function, in the order of the table.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* X(number, function, result or nothing, parameters, arguments) */
#define TABLE(X)                                                                                                       \
  X(0, glXSwapBuffers, void, (void *a, unsigned long b), (a, b))                                                       \
  X(1, eglSwapBuffers, unsigned, (void *a, void *b), (a, b))                                                           \
  X(2, SDL_GL_SwapWindow, void, (void *a), (a))                                                                        \
  X(3, SDL_RenderPresent, void, (void *a), (a))                                                                        \
  X(4, SDL_GL_SwapBuffers, void, (void), ())                                                                           \
  X(5, SDL_Flip, int, (void *a), (a))                                                                                  \
  X(6, glfwSwapBuffers, void, (void *a), (a))

static uint64_t nowhere[7], *counts = nowhere;

__attribute__((constructor)) static void begin(void)
{
  char path[4096];
  const char *dir = getenv("COUNT_DIR");
  if (!dir) _exit(121);
  snprintf(path, sizeof path, "%s/%d.presents", dir, (int)getpid());
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof nowhere)) _exit(122);
  counts = mmap(NULL, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (counts == MAP_FAILED) _exit(123);
}

/* Counted when it has returned, as a present is. */
static void counted(const uint64_t *one) { __atomic_fetch_add(&counts[*one], 1, __ATOMIC_RELAXED); }

#define DEFINE(n, name, result, parameters, arguments)                                                                 \
  result name parameters;                                                                                              \
  result name parameters                                                                                               \
  {                                                                                                                    \
    static result(*next) parameters;                                                                                   \
    uint64_t one __attribute__((cleanup(counted))) = n;                                                                \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name);                                                              \
    if (!next) abort();                                                                                                \
    return next arguments;                                                                                             \
  }
TABLE(DEFINE)
