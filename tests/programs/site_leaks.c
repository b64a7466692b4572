/* site_leaks - frames with known sites of allocation, for a second or more: site_leaks MILLISECONDS.
 *
 * Prints, for each site, "truth NAME COUNT BYTES", usable sizes, as it counted them itself:
 *   planted_leak    a block a frame that nobody frees
 *   cache           fills until half of the time is over, then stays
 *   frame_scratch   blocks that die in their frame, in scope "scratch"
 *   kept_a_while    blocks that live for 20 frames
 *   grows_by_realloc, and what fails to: realloc of a block that cannot grow keeps it
 *   plugin_leaks    in a library that is unloaded after every 100 ms, when another one takes its place
 * Presents are mach6_frame's. */
/* flags: -fomit-frame-pointer -fno-builtin -Wl,-rpath,'$ORIGIN' */
/* needs: libsiteplugin1.so libsiteplugin2.so */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "preload/mach6.h"
#include "site_leaks.h"

static struct truth leak, cached, scratch, kept, grown, plugins[2];

static uint64_t ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static APART void planted_leak(void) { *(void *volatile *)got(&leak, malloc(56)) = NULL; }
static APART void *cache(void) { return got(&cached, malloc(120)); }
static APART void frame_scratch(void)
{
  void *block[10];
  MACH6_SCOPE("scratch");
  for (int i = 0; i < 10; i++) block[i] = got(&scratch, malloc(200));
  for (int i = 0; i < 10; i++) free(block[i]);
}
static APART void kept_a_while(unsigned frame)
{
  static void *block[20];
  free(block[frame % 20]);
  block[frame % 20] = got(&kept, calloc(1, 300));
}
static APART void grows_by_realloc(void)
{
  void *p = NULL;
  volatile size_t far = SIZE_MAX / 2;
  for (size_t n = 64; n <= 4096; n *= 2) {
    void *q = realloc(p, n);
    if (q) p = got(&grown, q);
    if (realloc(p, far)) abort();
  }
  free(p);
}

static void plugin_turn(uint64_t now, uint64_t start)
{
  static void *handle;
  static void *(*call)(struct truth *);
  static unsigned turn = ~0u;
  static const char *const file[] = {"libsiteplugin1.so", "libsiteplugin2.so"};
  unsigned at = (unsigned)((now - start) / 100);
  if (at != turn) {
    if (handle) dlclose(handle);
    handle = dlopen(file[at % 2], RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      fprintf(stderr, "%s\n", dlerror());
      exit(1);
    }
    call = (void *(*)(struct truth *))dlsym(handle, "plugin");
    turn = at;
  }
  call(&plugins[turn % 2]);
}

static void say(const char *name, const struct truth *t)
{
  printf("truth %s %" PRIu64 " %" PRIu64 "\n", name, t->count, t->bytes);
}

int main(int argc, char **argv)
{
  uint64_t span = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000, start = ms(), now = start;
  unsigned frame = 0;
  static void *held[1 << 20];
  unsigned holds = 0;
  mach6_frame();
  for (; now - start < span; now = ms()) {
    planted_leak();
    if (now - start < span / 2 && holds < sizeof held / sizeof *held) held[holds++] = cache();
    frame_scratch();
    kept_a_while(frame);
    if (frame % 4 == 0) grows_by_realloc();
    plugin_turn(now, start);
    frame++;
    mach6_frame();
    nanosleep(&(struct timespec){0, 500000}, NULL);
  }
  printf("frames %u\n", frame);
  say("planted_leak", &leak);
  say("cache", &cached);
  say("frame_scratch", &scratch);
  say("kept_a_while", &kept);
  say("grows_by_realloc", &grown);
  say("plugin_leaks", &plugins[0]);
  say("plugin_churns", &plugins[1]);
  return 0;
}
