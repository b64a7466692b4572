/* main.c - the sample game: options, the loop, the end.
 *
 *   mach6-sample                                a window, until it is closed
 *   mach6-sample --headless --frames 600        the same work without a display
 *
 * Prints one line on stdout when it ends: frames, checksum, what was caught, how many bubbles there were. It depends on
 * the seed, the sizes and the number of frames alone.
 */
#include <SDL.h>
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload/mach6.h"
#include "sample.h"

const char *argp_program_version = "mach6-sample " MACH6_VERSION;

enum {
  O_FRAMES = 256,
  O_SECONDS,
  O_SEED,
  O_THREADS,
  O_FISH,
  O_FPS,
  O_WINDOW,
  O_HEADLESS,
  O_TIMES,
  O_LEAK,
  O_STORM,
  O_STALL,
  O_LOCK,
  O_NEIGHBOUR,
  O_COLD,
  O_CALLS
};
static const struct argp_option option_table[] = {
  {"frames", O_FRAMES, "N", 0, "End after N frames", 1},
  {"seconds", O_SECONDS, "S", 0, "End after S seconds", 1},
  {"seed", O_SEED, "N", 0, "What the world is made from (default 1)", 1},
  {"threads", O_THREADS, "N", 0, "Worker threads beside the main one (default: the CPUs, at most 8, less one)", 1},
  {"fish", O_FISH, "N", 0, "How large the school is (default 2000)", 1},
  {"fps", O_FPS, "CAP", 0, "Frames a second at most; 0 = as many as can be (default 60)", 1},
  {"window", O_WINDOW, "WxH", 0, "Size of the window (default 1280x720)", 1},
  {"headless", O_HEADLESS, NULL, 0, "No display: SDL's dummy video driver, software renderer", 1},
  {"times", O_TIMES, "FILE", 0,
   "Write how long each frame took and what CPU time it cost, in ns, one a line; needs --frames", 1},
  {"leak", O_LEAK, "BYTES", 0, "Planted fault: lose BYTES a frame, in scope \"particles\"", 2},
  {"storm", O_STORM, "N", 0, "Planted fault: N more malloc/free pairs a frame, in scope \"storm\"", 2},
  {"stall", O_STALL, "MS[@EVERY]", 0, "Planted fault: each EVERYth frame (default 300) is MS late, in scope \"load\"",
   2},
  {"lock-ms", O_LOCK, "MS[@EVERY]", 0, "Planted cause: each EVERYth frame (default 60) waits for a lock for MS", 3},
  {"neighbour", O_NEIGHBOUR, "MS[@EVERY]", 0, "Planted cause: another process computes on the same CPU for MS", 3},
  {"cold", O_COLD, "MIB[@EVERY]", 0, "Planted cause: a file mapping that is not in memory is touched", 3},
  {"storm-calls", O_CALLS, "N[@EVERY]", 0, "Planted cause: N system calls", 3},
  {0},
};

static unsigned long long number(struct argp_state *state, const char *text, unsigned long long low,
                                 unsigned long long high)
{
  char *end;
  errno = 0;
  unsigned long long n = strtoull(text, &end, 10);
  if (errno || end == text || *end || *text == '-' || n < low || n > high)
    argp_error(state, "%s: a number from %llu to %llu is wanted", text, low, high);
  return n;
}

/* AMOUNT[@EVERY] */
static struct planted planted(struct argp_state *state, char *arg, unsigned most)
{
  struct planted p = {0, 60};
  char *at = strchr(arg, '@');
  if (at) {
    *at = 0;
    p.every = (unsigned)number(state, at + 1, 1, 1000000000);
  }
  p.amount = (unsigned)number(state, arg, 0, most);
  return p;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  struct options *o = state->input;
  char *end, more;
  switch (key) {
  case O_FRAMES: o->frames = number(state, arg, 1, UINT64_MAX / 2); break;
  case O_SECONDS:
    o->seconds = strtod(arg, &end);
    if (end == arg || *end || !(o->seconds > 0 && o->seconds < 1e9)) argp_error(state, "%s: seconds are wanted", arg);
    break;
  case O_SEED: o->seed = number(state, arg, 0, UINT64_MAX); break;
  case O_THREADS: o->threads = (unsigned)number(state, arg, 0, 256); break;
  case O_FISH: o->fish = (unsigned)number(state, arg, 1, 1000000); break;
  case O_FPS: o->fps = (unsigned)number(state, arg, 0, 100000); break;
  case O_WINDOW:
    if (sscanf(arg, "%ux%u%c", &o->width, &o->height, &more) != 2 || o->width < 64 || o->height < 64 ||
        o->width > 16384 || o->height > 16384)
      argp_error(state, "%s: a size such as 1280x720 is wanted", arg);
    break;
  case O_HEADLESS: o->headless = 1; break;
  case O_TIMES: o->times = arg; break;
  case O_LEAK: o->leak = (size_t)number(state, arg, 0, 1u << 30); break;
  case O_STORM: o->storm = (unsigned)number(state, arg, 0, 10000000); break;
  case O_STALL:
    if ((end = strchr(arg, '@'))) {
      *end = 0;
      o->stall_every = (unsigned)number(state, end + 1, 1, 1000000000);
    }
    o->stall_ms = (unsigned)number(state, arg, 0, 60000);
    break;
  case O_LOCK: o->lock = planted(state, arg, 60000); break;
  case O_NEIGHBOUR: o->neighbour = planted(state, arg, 60000); break;
  case O_COLD: o->cold = planted(state, arg, 1024); break;
  case O_CALLS: o->calls = planted(state, arg, 10000000); break;
  case ARGP_KEY_ARG: argp_usage(state); break;
  case ARGP_KEY_END:
    if (o->times && (!o->frames || o->frames > 1000000)) argp_error(state, "--times needs --frames, a million at most");
    break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static volatile sig_atomic_t stop;
static void on_signal(int sig)
{
  (void)sig;
  stop = 1;
}

static double seconds_of(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static double seconds_now(void) { return seconds_of(CLOCK_MONOTONIC); }
static void sleep_for(double s)
{
  struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
  if (s > 0) nanosleep(&t, NULL); /* a signal may cut it short: then the game ends */
}

static void input(void)
{
  SDL_Event e;
  mach6_mark("input");
  while (SDL_PollEvent(&e))
    if (e.type == SDL_QUIT || (e.type == SDL_KEYDOWN && e.key.keysym.sym == SDLK_ESCAPE)) stop = 1;
  mach6_done();
}

/* The planted faults that are not the world's. */
static void storm(const struct options *o, uint64_t frame)
{
  if (!o->storm) return;
  mach6_mark("storm");
  for (unsigned i = 0; i < o->storm; i++) {
    char *volatile block = malloc(16 + (i * 37u + (unsigned)frame) % 500);
    free(block);
  }
  mach6_done();
}
static void stall(const struct options *o, uint64_t frame)
{
  if (!o->stall_ms || (frame + 1) % o->stall_every) return;
  mach6_mark("load");
  sleep_for(o->stall_ms * 1e-3);
  mach6_done();
}

struct frame_time {
  double wall, cpu;
};
/* times: room for o->frames, or NULL. */
static void play(const struct options *o, struct world *w, struct jobs *j, struct picture *p, struct frame_time *times)
{
  double began = seconds_now(), last = began, due = began, frame_ms = 0, cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  while (!stop) {
    input();
    world_step(w, j, o);
    storm(o, w->frame - 1);
    stall(o, w->frame - 1);
    causes_frame(o, w->frame - 1);
    picture_draw(p, w, frame_ms);
    if (o->fps) { /* before the present, as a wait for the display would be: late frames are not made up for */
      mach6_mark("wait");
      due += 1.0 / o->fps;
      double now = seconds_now();
      if (due < now) due = now;
      else sleep_for(due - now);
      mach6_done();
    }
    picture_present(p);
    causes_after(o, w->frame - 1);
    double now = seconds_now();
    frame_ms = (now - last) * 1e3;
    if (times) {
      double cpu_now = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
      times[w->frame - 1] = (struct frame_time){now - last, cpu_now - cpu};
      cpu = cpu_now;
    }
    last = now;
    if (o->frames && w->frame >= o->frames) break;
    if (o->seconds > 0 && now - began >= o->seconds) break;
  }
}

static int write_times(const char *path, const struct frame_time *times, uint64_t n)
{
  FILE *f = fopen(path, "w");
  for (uint64_t i = 0; f && i < n; i++) fprintf(f, "%.0f %.0f\n", times[i].wall * 1e9, times[i].cpu * 1e9);
  if (f && fclose(f) == 0) return 0;
  fprintf(stderr, "mach6-sample: %s: %s\n", path, strerror(errno));
  return -1;
}

int main(int argc, char **argv)
{
  static const struct argp argp = {option_table, parse, NULL, "A small game to try mach6 on: a pond.",
                                   NULL,         NULL,  NULL};
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  struct options o = {.seed = 1, .fish = 2000, .fps = 60, .width = 1280, .height = 720, .stall_every = 300};
  o.threads = cpus > 8 ? 7 : cpus > 2 ? (unsigned)cpus - 1 : 1;
  argp_parse(&argp, argc, argv, 0, NULL, &o);

  struct sigaction act = {.sa_handler = on_signal};
  sigaction(SIGTERM, &act, NULL);
  sigaction(SIGINT, &act, NULL);

  if (causes_fork(&o)) return 1;
  struct picture *p = picture_open(&o);
  if (!p) return 1;
  struct world w;
  struct jobs *j = jobs_start(o.threads);
  struct frame_time *times = o.times ? calloc(o.frames, sizeof *times) : NULL;
  if (!j || (o.times && !times) || world_make(&w, &o)) {
    fprintf(stderr, "mach6-sample: no memory or no threads\n");
    if (j) jobs_stop(j);
    free(times);
    picture_close(p);
    return 1;
  }
  if (causes_start(&o)) return 3;
  play(&o, &w, j, p, times);
  printf("frames=%" PRIu64 " checksum=%016" PRIx64 " caught=%" PRIu64 " bubbles=%" PRIu64 "\n", w.frame,
         world_checksum(&w), w.caught, w.bubbles_ever);
  int status = o.times ? write_times(o.times, times, w.frame) : 0;
  free(times);
  causes_stop();
  jobs_stop(j);
  world_free(&w);
  picture_close(p);
  return fflush(stdout) || status ? 1 : 0;
}
