/* links: -ljansson -lm */
/* game PAIRS FRAMES OUT MACH6 SAMPLE [LEVEL [--OPTION]] - the sample game's frames with mach6 (at level memory, or another; with
 * an option of `mach6 run`, or none) and without, in turns: their time, and the CPU time that they cost the game, all threads together, which a busy machine
 * disturbs less.
 *
 * Each run plays the same frames: frame i is the same work in all. So a frame's time is the tenth percentile over the
 * runs, which takes out what else the machine did, and what is compared is the sum over the frames. The interval of 95 % comes from
 * a bootstrap over the pairs of runs (Efron 1979); a goal is met or missed when all of it is, else that stays open (null).
 * As many frames a second as can be; OUT is a folder for the runs' files.
 *
 * That leaves out what falls on other frames in each run, as the collector's wake-ups do. So a third line says what mach6 took by its own
 * account, the game's part and the collector's CPU time beside it, of a core or of the game's CPU time where that is more: what its
 * governor holds the budget against, over the whole session.
 */
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { PAIRS_MAX = 256, RESAMPLES = 1000 };
static unsigned pairs, frames;
static const char *level = "memory", *option;
static int first;         /* the game may go before all others, so that what else the machine does disturbs it less */
static double goal = 0.5; /* percent: the budget of that level */
enum kind { WALL, CPU };
static double *times[2][2][PAIRS_MAX]; /* [kind][with][pair][frame] */
static double overhead[PAIRS_MAX], beside[PAIRS_MAX];

/* Percent: all that mach6 took; the collector's part of it. */
static void read_overhead(const char *path, unsigned pair)
{
  json_error_t e;
  json_t *root = json_load_file(path, 0, &e), *o = json_object_get(root, "overhead");
  double wall = json_number_value(json_object_get(json_object_get(root, "session"), "elapsed_s"));
  double cpu = json_number_value(json_object_get(o, "target_cpu_s")), base = cpu > wall ? cpu : wall;
  double collector = json_number_value(json_object_get(o, "collector_s"));
  double game = json_number_value(json_object_get(o, "shim_s")) + json_number_value(json_object_get(o, "kernel_s"));
  if (!(base > 0 && collector > 0)) {
    fprintf(stderr, "game: %s says nothing of what mach6 took\n", path);
    exit(1);
  }
  overhead[pair] = 100 * (game + collector) / base;
  beside[pair] = 100 * collector / base;
  json_decref(root);
}

static void play(char **argv, int with, unsigned pair)
{
  char path[4096], report[4096], n[16];
  const char *out = argv[3], *mach6 = argv[4], *sample = argv[5];
  snprintf(path, sizeof path, "%s/times", out);
  snprintf(report, sizeof report, "%s/report.json", out);
  snprintf(n, sizeof n, "%u", frames);
  pid_t child = fork();
  if (child == 0) {
    int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    dup2(null, 2);
    const char *run[24] = {mach6, "run", "--quiet", "--level", level, "--json", report};
    int n_run = 7;
    if (option) run[n_run++] = option;
    run[n_run++] = "--";
    int game = n_run;
    if (first) run[n_run++] = "nice", run[n_run++] = "-n", run[n_run++] = "-20";
    const char *rest[] = {sample, "--headless", "--fps", "0", "--frames", n, "--times", path, NULL};
    memcpy(run + n_run, rest, sizeof rest);
    execvp(with ? mach6 : run[game], (char **)(with ? run : run + game));
    _exit(127);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
    fprintf(stderr, "game: a run %s mach6 failed (status %d)\n", with ? "with" : "without", status);
    exit(1);
  }
  if (with) read_overhead(report, pair);
  FILE *f = fopen(path, "r");
  double *wall = times[WALL][with][pair] = calloc(frames, sizeof *wall);
  double *cpu = times[CPU][with][pair] = calloc(frames, sizeof *cpu);
  for (unsigned i = 0; i < frames; i++)
    if (!f || !wall || !cpu || fscanf(f, "%lf %lf", &wall[i], &cpu[i]) != 2) {
      fprintf(stderr, "game: %s is short\n", path);
      exit(1);
    }
  fclose(f);
}

/* Sum over frames of the tenth percentile over the chosen runs, in ms a frame. */
static double frame_ms(enum kind kind, int with, const unsigned *chosen)
{
  double sum = 0, column[PAIRS_MAX];
  for (unsigned i = 0; i < frames; i++) {
    for (unsigned p = 0; p < pairs; p++) column[p] = times[kind][with][chosen[p]][i];
    sum += bench_spread_of(column, pairs).p10;
  }
  return sum / frames / 1e6;
}

static void line(enum kind kind, const char *name)
{
  static double percent[RESAMPLES];
  unsigned chosen[PAIRS_MAX];
  for (unsigned p = 0; p < pairs; p++) chosen[p] = p;
  double without = frame_ms(kind, 0, chosen), with = frame_ms(kind, 1, chosen), value = 100 * (with / without - 1);
  srandom(1);
  for (unsigned r = 0; r < RESAMPLES; r++) {
    for (unsigned p = 0; p < pairs; p++) chosen[p] = (unsigned)random() % pairs;
    percent[r] = 100 * (frame_ms(kind, 1, chosen) / frame_ms(kind, 0, chosen) - 1);
  }
  qsort(percent, RESAMPLES, sizeof *percent, bench_less);
  double low = percent[RESAMPLES / 40], high = percent[RESAMPLES - 1 - RESAMPLES / 40];
  printf(
    "{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%% more a frame\", \"ci95_low\": %.3f, \"ci95_high\": %.3f, "
    "\"comparison\": \"the same frames without mach6, ms\", \"comparison_value\": %.4f, \"ratio\": %.5f, \"goal\": "
    "\"at most %g\", \"met\": %s, \"pairs\": %u, \"frames\": %u}\n",
    name, value, low, high, without, with / without, goal,
    high <= goal ? "true"
    : low > goal ? "false"
                 : "null",
    pairs, frames);
}

int main(int argc, char **argv)
{
  if (argc < 6 || argc > 8) return 2;
  if (argc == 8) option = argv[7];
  if (argc > 6) level = argv[6], goal = !strcmp(level, "lite") ? 1 : !strcmp(level, "full") ? 3 : 0.5;
  pairs = (unsigned)atoi(argv[1]);
  frames = (unsigned)atoi(argv[2]);
  if (pairs < 2 || pairs > PAIRS_MAX || frames < 2) return 2;
  int was = getpriority(PRIO_PROCESS, 0);
  first = setpriority(PRIO_PROCESS, 0, -20) == 0;
  setpriority(PRIO_PROCESS, 0, was);
  for (unsigned p = 0; p < pairs; p++) {
    play(argv, p & 1, p);
    play(argv, !(p & 1), p);
  }
  int plain = !strcmp(level, "memory");
  char name[2][64];
  static const char *const measured[] = {"time", "cpu-time"};
  for (int kind = WALL; kind <= CPU; kind++)
    snprintf(name[kind], sizeof name[kind], "sample-frame-%s%s%s%s", measured[kind], plain ? "" : "-",
             plain ? "" : level, option ? option + 1 : "");
  line(WALL, name[WALL]);
  line(CPU, name[CPU]);
  snprintf(name[0], sizeof name[0], "sample-overhead%s%s%s", plain ? "" : "-", plain ? "" : level,
           option ? option + 1 : "");
  bench_line(name[0], bench_spread_of(overhead, pairs), "% by mach6's own account", "the collector's part",
             bench_spread_of(beside, pairs).median, 1 + bench_spread_of(overhead, pairs).median / 100, BENCH_AT_MOST,
             goal);
  return 0;
}
