/* present_link - presents by functions it is linked with, and by handles and scopes that hold them: `present_link MODE [N]`.
 *
 * Ends with "real N", what the fake library counted. A check that fails says so and exits 3.
 */
/* needs: libfakegfx1.so */
/* links: -Lbuild/tests/programs -lfakegfx1 */
/* flags: -Wl,-rpath,'$ORIGIN' */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void glXSwapBuffers(void *, unsigned long);
unsigned eglSwapBuffers(void *, void *);
unsigned eglDestroySurface(void *, void *);
void SDL_GL_SwapWindow(void *);
void SDL_RenderPresent(void *);
int SDL_Flip(void *);
void SDL_GL_SwapBuffers(void);
void glfwSwapBuffers(void *);
void *eglGetProcAddress(const char *);
extern void mach6_frame(void) __attribute__((weak));

#define CHECK(what) ((what) ? (void)0 : (printf("failed: %s (line %d)\n", #what, __LINE__), exit(3)))
static int n = 20;

static void each(void)
{
  for (int i = 0; i < n; i++) {
    glXSwapBuffers((void *)1, 2);
    CHECK(eglSwapBuffers((void *)1, (void *)3) == 1);
    SDL_GL_SwapWindow((void *)4);
    SDL_RenderPresent((void *)5);
    CHECK(SDL_Flip((void *)6) == 0);
    SDL_GL_SwapBuffers();
    glfwSwapBuffers((void *)7);
  }
}

static void by_default(void)
{
  unsigned (*swap)(void *, void *) = (unsigned (*)(void *, void *))dlsym(RTLD_DEFAULT, "eglSwapBuffers");
  for (int i = 0; i < n; i++) CHECK(swap((void *)1, (void *)2) == 1);
}
static void by_main(void)
{
  unsigned (*swap)(void *, void *) = (unsigned (*)(void *, void *))dlsym(dlopen(NULL, RTLD_NOW), "eglSwapBuffers");
  for (int i = 0; i < n; i++) CHECK(swap((void *)1, (void *)2) == 1);
}
static void by_next(void) /* of the program: whatever comes after it, which is the shim, if it is there */
{
  unsigned (*swap)(void *, void *) = (unsigned (*)(void *, void *))dlsym(RTLD_NEXT, "eglSwapBuffers");
  for (int i = 0; i < n; i++) CHECK(swap((void *)1, (void *)2) == 1);
}
static void by_proc(void)
{
  unsigned (*swap)(void *, void *) = (unsigned (*)(void *, void *))eglGetProcAddress("eglSwapBuffers");
  for (int i = 0; i < n; i++) CHECK(swap((void *)1, (void *)2) == 1);
}

/* 3 threads with 3 windows each; two presents of each window in a loop. */
static void *windows(void *arg)
{
  for (int i = 0; i < n; i++)
    for (int w = 0; w < 3; w++)
      for (int twice = 0; twice < 2; twice++) CHECK(eglSwapBuffers(arg, (void *)(uintptr_t)(0x100 + w)) == 1);
  return NULL;
}
static void threads(void)
{
  pthread_t t[3];
  for (uintptr_t i = 0; i < 3; i++) CHECK(pthread_create(&t[i], NULL, windows, (void *)(0x10 + i)) == 0);
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
}

/* One handle three times: destroyed and used again is another window. */
static void reuse(void)
{
  for (int life = 1; life <= 3; life++) {
    for (int i = 0; i < life * n; i++) CHECK(eglSwapBuffers((void *)1, (void *)2) == 1);
    CHECK(eglDestroySurface((void *)1, (void *)2) == 1);
  }
}

/* More windows than streams. */
static void flood(void)
{
  for (int i = 0; i < n; i++)
    for (uintptr_t w = 1; w <= 60; w++) CHECK(eglSwapBuffers((void *)1, (void *)(w << 8)) == 1);
}

static void *same(void *arg)
{
  for (int i = 0; i < 1000; i++) SDL_RenderPresent(arg);
  return NULL;
}
static void contended(void) /* eight threads on one drawable, from its first present on */
{
  pthread_t t[8];
  for (int i = 0; i < 8; i++) CHECK(pthread_create(&t[i], NULL, same, (void *)0x77) == 0);
  for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
}

/* A child's presents are its own business. */
static void forked(void)
{
  for (int i = 0; i < n; i++) {
    CHECK(eglSwapBuffers((void *)1, (void *)2) == 1);
    if (i % 5) continue;
    pid_t child = fork();
    if (child == 0) {
      for (int k = 0; k < 10; k++) eglSwapBuffers((void *)1, (void *)(uintptr_t)(2 + k % 2));
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
}

static void explicit_frames(void)
{
  for (int i = 0; i < n; i++)
    if (mach6_frame) mach6_frame();
  for (int i = 0; i < n; i++) SDL_GL_SwapBuffers();
}

static const struct {
  const char *name;
  void (*run)(void);
} modes[] = {
  {"each", each},           {"default", by_default},       {"main", by_main},  {"next", by_next},
  {"proc", by_proc},        {"threads", threads},          {"reuse", reuse},   {"flood", flood},
  {"contended", contended}, {"explicit", explicit_frames}, {"forked", forked},
};

int main(int argc, char **argv)
{
  if (argc > 2) n = atoi(argv[2]);
  for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(argv[1], modes[i].name) != 0) continue;
    modes[i].run();
    printf("real %d\n", *(int *)dlsym(dlopen("libfakegfx1.so", RTLD_NOW | RTLD_NOLOAD), "fake_presents"));
    return 0;
  }
  return 2;
}
