/* game PAIRS FRAMES OUT MACH6 SAMPLE - the sample game's frame time with mach6 and without, in turns.
 *
 * Each run plays the same frames: frame i is the same work in all. So a frame's time is the median over the runs, which
 * takes out what else the machine did, and what is compared is the sum over the frames. The interval of 95 % comes from a
 * bootstrap over the pairs of runs (Efron 1979). As many frames a second as can be; OUT is a folder for the runs' files.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { PAIRS_MAX = 64, RESAMPLES = 1000 };
static unsigned pairs, frames;
static double *times[2][PAIRS_MAX]; /* [with][pair][frame] */

static void play(char **argv, int with, unsigned pair)
{
  char path[4096], n[16];
  const char *out = argv[3], *mach6 = argv[4], *sample = argv[5];
  snprintf(path, sizeof path, "%s/times", out);
  snprintf(n, sizeof n, "%u", frames);
  pid_t child = fork();
  if (child == 0) {
    int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    dup2(null, 2);
    const char *run[] = {mach6, "run",      "--quiet", "--",      sample, "--headless", "--fps",
                         "0",   "--frames", n,         "--times", path,   NULL};
    execv(with ? mach6 : sample, (char **)(with ? run : run + 4));
    _exit(127);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
    fprintf(stderr, "game: a run %s mach6 failed (status %d)\n", with ? "with" : "without", status);
    exit(1);
  }
  FILE *f = fopen(path, "r");
  times[with][pair] = calloc(frames, sizeof(double));
  for (unsigned i = 0; i < frames; i++)
    if (!f || fscanf(f, "%lf", &times[with][pair][i]) != 1) {
      fprintf(stderr, "game: %s is short\n", path);
      exit(1);
    }
  fclose(f);
}

/* Sum over frames of the median over the chosen runs, in ms a frame. */
static double frame_ms(int with, const unsigned *chosen)
{
  double sum = 0, column[PAIRS_MAX];
  for (unsigned i = 0; i < frames; i++) {
    for (unsigned p = 0; p < pairs; p++) column[p] = times[with][chosen[p]][i];
    sum += bench_spread_of(column, pairs).median;
  }
  return sum / frames / 1e6;
}

int main(int argc, char **argv)
{
  unsigned chosen[PAIRS_MAX];
  static double percent[RESAMPLES];
  if (argc != 6) return 2;
  pairs = (unsigned)atoi(argv[1]);
  frames = (unsigned)atoi(argv[2]);
  if (pairs < 2 || pairs > PAIRS_MAX || frames < 2) return 2;
  for (unsigned p = 0; p < pairs; p++) {
    play(argv, p & 1, p);
    play(argv, !(p & 1), p);
    chosen[p] = p;
  }
  double without = frame_ms(0, chosen), with = frame_ms(1, chosen);
  srandom(1);
  for (unsigned r = 0; r < RESAMPLES; r++) {
    for (unsigned p = 0; p < pairs; p++) chosen[p] = (unsigned)random() % pairs;
    percent[r] = 100 * (frame_ms(1, chosen) / frame_ms(0, chosen) - 1);
  }
  qsort(percent, RESAMPLES, sizeof *percent, bench_less);
  double value = 100 * (with / without - 1);
  printf("{\"name\": \"sample-frame-time\", \"value\": %.3f, \"unit\": \"%% of the frame\", \"ci95_low\": %.3f, "
         "\"ci95_high\": %.3f, \"comparison\": \"the same frames without mach6, ms\", \"comparison_value\": %.4f, "
         "\"ratio\": "
         "%.5f, \"goal\": \"at most 0.5\", \"met\": %s, \"pairs\": %u, \"frames\": %u}\n",
         value, percent[RESAMPLES / 40], percent[RESAMPLES - 1 - RESAMPLES / 40], without, with / without,
         value <= 0.5 ? "true" : "false", pairs, frames);
  return 0;
}
