/* present_routes - presents through the fake libraries by one route: `present_routes MODE [N]`, and says what really arrived.
 *
 * It is linked with none of them: everything is found at run time. Its folder holds them. The last line is "real N", what the fake
 * library counted. A check that fails says so and exits 3.
 */
/* needs: libfakegfx1.so libfakegfx2.so libfakeplugin1.so libfakeplugin2.so libfakesoname.so libfakeunder.so */
/* needs: libfakeversioned.so */
/* flags: -Wl,-rpath,'$ORIGIN' -rdynamic */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void swap2(void *, void *);
typedef unsigned eglswap(void *, void *);
typedef void *proc(const char *);
static const char *folder;
static int n = 20;

#define CHECK(what) ((what) ? (void)0 : (printf("failed: %s (line %d)\n", #what, __LINE__), exit(3)))

static void *open_in(const char *name, int flags)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  void *handle = dlopen(path, flags);
  if (!handle) printf("failed: %s\n", dlerror()), exit(3);
  return handle;
}
static int *number(void *library, const char *name) { return (int *)dlsym(library, name); }
static void report(void *library) { printf("real %d\n", *number(library, "fake_presents")); }

static void by_dlsym(void)
{
  void *gfx = open_in("libfakegfx1.so", RTLD_NOW | RTLD_LOCAL);
  eglswap *swap = (eglswap *)dlsym(gfx, "eglSwapBuffers");
  CHECK(swap && swap == (eglswap *)dlsym(gfx, "eglSwapBuffers"));
  for (int i = 0; i < n; i++) CHECK(swap((void *)1, (void *)2) == 1);
  report(gfx);
}

/* By version: each is the function that was asked for, and what is not there in that version stays missing. */
static void by_version(void)
{
  void *gfx = open_in("libfakeversioned.so", RTLD_NOW | RTLD_LOCAL);
  eglswap *old = (eglswap *)dlvsym(gfx, "eglSwapBuffers", "FAKE_1"),
          *new = (eglswap *)dlvsym(gfx, "eglSwapBuffers", "FAKE_2");
  CHECK(old && new &&old != new && !dlerror());
  CHECK(!dlvsym(gfx, "eglSwapBuffers", "FAKE_9") && dlerror() && !dlerror());
  CHECK(!dlvsym(gfx, "glXSwapBuffers", "FAKE_1") && dlerror());
  CHECK(!dlvsym(RTLD_DEFAULT, "eglSwapBuffers", "FAKE_1") && dlerror());
  CHECK(!dlvsym(RTLD_NEXT, "eglSwapBuffers", "FAKE_1") && dlerror() && !dlerror());
  CHECK(!dlvsym(gfx, "no_such_thing", "FAKE_1") && dlerror());
  CHECK(dlvsym(gfx, "fake_old", "FAKE_2") == dlsym(gfx, "fake_old") && !dlerror());
  for (int i = 0; i < n; i++) CHECK(old((void *)1, (void *)2) == 2);
  for (int i = 0; i < 2 * n; i++) CHECK(new ((void *)1, (void *)2) == 1);
  CHECK(*number(gfx, "fake_old") == n);
  report(gfx);
}

/* Two libraries with the same function: each gets what was meant for it. */
static void two(void)
{
  void *a = open_in("libfakegfx1.so", RTLD_NOW | RTLD_LOCAL), *b = open_in("libfakegfx2.so", RTLD_NOW | RTLD_LOCAL);
  eglswap *in_a = (eglswap *)dlsym(a, "eglSwapBuffers");
  eglswap *in_b = (eglswap *)((proc *)dlsym(b, "eglGetProcAddress"))("eglSwapBuffers");
  for (int i = 0; i < n; i++) in_a((void *)1, (void *)2);
  for (int i = 0; i < 2 * n; i++) in_b((void *)1, (void *)3);
  CHECK(*number(a, "fake_presents") == n && *number(b, "fake_presents") == 2 * n);
  report(a);
}

/* A plugin that is linked with the library, loaded RTLD_LOCAL: only its own scope has the real function. */
static void plugin(void)
{
  void *a = open_in("libfakeplugin1.so", RTLD_NOW | RTLD_LOCAL),
       *b = open_in("libfakeplugin2.so", RTLD_NOW | RTLD_LOCAL);
  int (*present_a)(void *, void *) = (int (*)(void *, void *))dlsym(a, "plugin_present");
  int (*present_b)(void *, void *) = (int (*)(void *, void *))dlsym(b, "plugin_present");
  for (int i = 0; i < n; i++) CHECK(present_a((void *)1, (void *)2) == 1);
  for (int i = 0; i < 2 * n; i++) CHECK(present_b((void *)1, (void *)3) == 1);
  CHECK(*number(open_in("libfakegfx2.so", RTLD_NOW), "fake_presents") == 2 * n);
  report(open_in("libfakegfx1.so", RTLD_NOW));
}

/* The same by a tail call, which leaves no trace of the plugin on the stack. */
static void plugin_tail(void)
{
  void *a = open_in("libfakeplugin1.so", RTLD_NOW | RTLD_LOCAL);
  int (*present)(void *, void *) = (int (*)(void *, void *))dlsym(a, "plugin_present_tail");
  for (int i = 0; i < n; i++) CHECK(present((void *)1, (void *)2) == 1);
  report(open_in("libfakegfx1.so", RTLD_NOW));
}

/* RTLD_DEFAULT asked from the plugin: it sees what it is linked with. */
static void plugin_default(void)
{
  void *a = open_in("libfakeplugin1.so", RTLD_NOW | RTLD_LOCAL);
  void *(*look)(const char *) = (void *(*)(const char *))dlsym(a, "plugin_look");
  eglswap *swap = (eglswap *)look("eglSwapBuffers");
  CHECK(swap && !look("SDL_RenderPresentNot") && !look("eglSwapBuffersWithDamageEXT"));
  for (int i = 0; i < n; i++) CHECK(swap((void *)1, (void *)2) == 1);
  report(open_in("libfakegfx1.so", RTLD_NOW));
}

/* Nobody says what is meant, but a library of the usual name is loaded. */
static void known_name(void)
{
  void *gfx = open_in("libfakesoname.so", RTLD_NOW | RTLD_LOCAL),
       *under = open_in("libfakeunder.so", RTLD_LAZY | RTLD_LOCAL);
  unsigned (*present)(void *, void *) = (unsigned (*)(void *, void *))dlsym(under, "under_present");
  for (int i = 0; i < n; i++) CHECK(present((void *)1, (void *)2) == 1);
  report(gfx);
}

static void by_proc(const char *getter, const char *name, int how)
{
  void *gfx = open_in("libfakegfx1.so", RTLD_NOW | (how == 1 || how == 3 ? RTLD_GLOBAL : RTLD_LOCAL));
  *number(gfx, "fake_mode") = how;
  proc *get = (proc *)dlsym(gfx, getter);
  CHECK(get && !get("eglSwapBuffersWithDamageEXT") && !get("glXNothing"));
  swap2 *swap = (swap2 *)get(name);
  CHECK(swap);
  for (int i = 0; i < n; i++) swap((void *)1, (void *)2);
  report(gfx);
}
static void egl_proc(void) { by_proc("eglGetProcAddress", "eglSwapBuffers", 0); }
static void egl_proc_default(void) { by_proc("eglGetProcAddress", "eglSwapBuffers", 1); }
static void egl_proc_handle(void) { by_proc("eglGetProcAddress", "eglSwapBuffers", 2); }
static void egl_proc_main(void) { by_proc("eglGetProcAddress", "eglSwapBuffers", 3); }
static void glx_proc(void) { by_proc("glXGetProcAddress", "glXSwapBuffers", 0); }
static void glx_proc_arb(void) { by_proc("glXGetProcAddressARB", "glXSwapBuffers", 2); }
static void sdl_proc(void) { by_proc("SDL_GL_GetProcAddress", "eglSwapBuffers", 0); }
static void glfw_proc(void) { by_proc("glfwGetProcAddress", "glXSwapBuffers", 0); }

/* What is not there stays NULL, with an error; what is no hooked name is untouched. */
static void missing(void)
{
  void *gfx = open_in("libfakegfx1.so", RTLD_NOW | RTLD_LOCAL), *self = dlopen(NULL, RTLD_LAZY);
  static const char *const absent[] = {"eglSwapBuffersWithDamageEXT", "SDL_UpdateWindowSurfaceRects", "XDestroyWindow"};
  for (int i = 0; i < 3; i++) {
    dlerror();
    CHECK(!dlsym(gfx, absent[i]) && dlerror());
    CHECK(!dlsym(self, absent[i]) && dlerror());
    CHECK(!dlsym(RTLD_DEFAULT, absent[i]) && dlerror());
    CHECK(!dlsym(RTLD_NEXT, absent[i]) && dlerror());
  }
  CHECK(!dlsym(gfx, "no_such_thing") && dlerror() && !dlerror());
  CHECK(dlsym(gfx, "fake_presents") && !dlerror());
  CHECK(dlsym(self, "main") && dlsym(RTLD_DEFAULT, "malloc") && !dlerror());
  int rect[4] = {0};
  unsigned (*with)(void *, void *, int *,
                   int) = (unsigned (*)(void *, void *, int *, int))dlsym(gfx, "eglSwapBuffersWithDamageKHR");
  for (int i = 0; i < n; i++) CHECK(with((void *)1, (void *)2, rect, 3) == 1);
  report(gfx);
}

/* More libraries than variants: each still works, and the segment says that something goes unseen. */
static void copy(const char *from, const char *to)
{
  static char buffer[1 << 20];
  FILE *in = fopen(from, "r"), *out_file = fopen(to, "w");
  CHECK(in && out_file);
  size_t bytes = fread(buffer, 1, sizeof buffer, in);
  CHECK(feof(in) && fwrite(buffer, 1, bytes, out_file) == bytes && fclose(out_file) == 0);
  fclose(in);
}
static void many(void)
{
  char from[4096], to[32];
  int total = 0;
  snprintf(from, sizeof from, "%s/libfakegfx1.so", folder);
  for (int i = 0; i < 10; i++) {
    snprintf(to, sizeof to, "./many%d.so", i);
    copy(from, to);
    void *gfx = dlopen(to, RTLD_NOW | RTLD_LOCAL);
    CHECK(gfx);
    eglswap *swap = (eglswap *)dlsym(gfx, "eglSwapBuffers");
    for (int k = 0; k < n; k++) CHECK(swap((void *)1, (void *)2) == 1);
    CHECK(*number(gfx, "fake_presents") == n);
    total += n;
  }
  printf("real %d\n", total);
}

/* Failures are handed back and are no frames, also when the outer present returns nothing; errno is untouched. */
static void failing(void)
{
  void *gfx = open_in("libfakegfx1.so", RTLD_NOW | RTLD_LOCAL);
  eglswap *egl = (eglswap *)dlsym(gfx, "eglSwapBuffers");
  swap2 *sdl = (swap2 *)dlsym(gfx, "SDL_GL_SwapWindow");
  int (*surface)(void *) = (int (*)(void *))dlsym(gfx, "SDL_UpdateWindowSurface");
  void *bad = (void *)0xbad;
  errno = 777;
  for (int i = 0; i < n; i++) {
    CHECK(egl((void *)1, i % 2 ? bad : (void *)2) == (unsigned)!(i % 2));
    sdl(i % 4 ? bad : (void *)3, NULL);
    CHECK(surface(i % 5 ? (void *)4 : bad) == (i % 5 ? 0 : -1));
  }
  CHECK(errno == 777);
  report(gfx);
}

/* A window library that swaps once by itself below, then by its own function; then its window is made anew below. */
static void window_library(void)
{
  void *gfx = open_in("libfakegfx1.so", RTLD_NOW | RTLD_LOCAL);
  void **lower = (void **)dlsym(gfx, "fake_lower");
  swap2 *glx = (swap2 *)((proc *)dlsym(gfx, "glXGetProcAddressARB"))("glXSwapBuffers");
  swap2 *glfw = (swap2 *)dlsym(gfx, "glfwSwapBuffers");
  swap2 *destroy = (swap2 *)dlsym(gfx, "glXDestroyWindow");
  *lower = (void *)0x200002;
  glx((void *)7, *lower);
  for (int i = 0; i < n; i++) glfw((void *)0x5000, NULL);
  destroy((void *)7, *lower);
  *lower = (void *)0x200004;
  for (int i = 0; i < n; i++) glfw((void *)0x5000, NULL);
  report(gfx);
}

/* A present that is left by longjmp must not make all that follow it nested. */
static jmp_buf out;
static int leave_it;
static void inside(void)
{
  if (leave_it) longjmp(out, 1);
}
static void jumped(void)
{
  void *gfx = open_in("libfakegfx1.so", RTLD_NOW | RTLD_LOCAL);
  eglswap *swap = (eglswap *)dlsym(gfx, "eglSwapBuffers");
  swap2 *sdl = (swap2 *)dlsym(gfx, "SDL_GL_SwapWindow");
  *(void (**)(void))dlsym(gfx, "fake_inside") = inside;
  for (volatile int i = 0; i < n; i++) {
    leave_it = i == 3 || i == 7;
    if (setjmp(out) == 0) i == 7 ? sdl((void *)2, NULL) : (void)swap((void *)1, (void *)2);
  }
  report(gfx);
}

static const struct {
  const char *name;
  void (*run)(void);
} modes[] = {
  {"dlsym", by_dlsym},
  {"dlvsym", by_version},
  {"two", two},
  {"plugin", plugin},
  {"plugin_tail", plugin_tail},
  {"plugin_default", plugin_default},
  {"known_name", known_name},
  {"egl_proc", egl_proc},
  {"egl_proc_default", egl_proc_default},
  {"egl_proc_handle", egl_proc_handle},
  {"egl_proc_main", egl_proc_main},
  {"glx_proc", glx_proc},
  {"glx_proc_arb", glx_proc_arb},
  {"sdl_proc", sdl_proc},
  {"glfw_proc", glfw_proc},
  {"missing", missing},
  {"many", many},
  {"failing", failing},
  {"window_library", window_library},
  {"jumped", jumped},
};

int main(int argc, char **argv)
{
  static char path[4096];
  snprintf(path, sizeof path, "%s", argv[0]);
  char *slash = strrchr(path, '/');
  if (!slash || argc < 2) return 2;
  *slash = 0;
  folder = path;
  if (argc > 2) n = atoi(argv[2]);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(argv[1], modes[i].name) == 0) return modes[i].run(), 0;
  return 2;
}
