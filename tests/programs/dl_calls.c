/* dl_calls - what a program may expect of dlopen, dlmopen, dlsym and dlerror, one line each. `dl_calls PATH-OF-LIBORIGIN`
 *
 * Its output with and without the shim is compared. Its own run path is empty: only liborigin's finds the sibling. It also calls
 * dlsym and dlopen by the symbol versions of old binaries.
 */
/* needs: liborigin.so */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
extern void *old_dlsym(void *, const char *);
extern void *old_dlopen(const char *, int);
__asm__(".symver old_dlsym, dlsym@GLIBC_2.2.5\n.symver old_dlopen, dlopen@GLIBC_2.2.5");
#else
#define old_dlsym dlsym
#define old_dlopen dlopen
#endif

static const char *error(void)
{
  const char *e = dlerror();
  return e ? strrchr(e, ':') ? strrchr(e, ':') + 1 : e : "none";
}

static void show(const char *what, const void *answer) { printf("%s: %s %s\n", what, answer ? "yes" : "no", error()); }

/* The caller's stack must be as it was, and arguments in every register: vector code around the calls would notice. */
static double around(void *handle)
{
  volatile double a = 1.5;
  double sum = 0;
  for (int i = 0; i < 1000; i++) sum += a * (dlsym(handle, i & 1 ? "origin_answer" : "nothing") != NULL);
  return sum;
}

static void *looker(void *handle)
{
  for (int i = 0; i < 2000; i++)
    if (!dlsym(handle, "origin_answer") || dlsym(handle, "glXSwapBuffers")) return handle;
  return NULL;
}

int main(int argc, char **argv)
{
  (void)argc;
  printf("at the start: %s\n", error());
  show("bare name", dlopen("libsibling.so", RTLD_NOW));
  void *origin = dlopen(argv[1], RTLD_NOW);
  show("origin", origin);
  int (*answer)(void) = (int (*)(void))dlsym(origin, "origin_answer");
  printf("sibling by $ORIGIN: %d\n", answer ? answer() : -2);
  show("missing", dlsym(origin, "nothing"));
  show("missing swap", dlsym(origin, "glXSwapBuffers"));
  show("missing swap, by default", dlsym(RTLD_DEFAULT, "eglSwapBuffers"));
  show("missing swap, next", dlsym(RTLD_NEXT, "SDL_Flip"));
  show("missing swap, in all", dlsym(dlopen(NULL, RTLD_NOW), "SDL_Flip"));
  show("empty name", dlsym(origin, ""));
  errno = 777;
  show("next malloc", dlsym(RTLD_NEXT, "malloc"));
  show("default free", dlsym(RTLD_DEFAULT, "free"));
  printf("errno: %d\n", errno);
  show("again", dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == origin ? origin : NULL);
  show("not loaded", dlopen("libnothing.so.9", RTLD_NOW | RTLD_NOLOAD));
  show("no such", dlopen("libnothing.so.9", RTLD_NOW));
  printf("around: %g\n", around(origin));
  printf("old versions: %d %d\n", old_dlsym(origin, "origin_answer") == (void *)answer,
         old_dlopen(argv[1], RTLD_NOW) == origin);
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, looker, origin);
  for (int i = 0; i < 4; i++) {
    void *bad;
    pthread_join(t[i], &bad);
    printf("thread: %s\n", bad ? "wrong" : "right");
  }
  void *deep = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND), *apart = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
  int (*there)(void) = apart ? (int (*)(void))dlsym(apart, "origin_answer") : NULL;
  printf("deep: %d apart: %d answer: %d\n", deep == origin, apart && apart != origin, there ? there() : -2);
  return 0;
}
