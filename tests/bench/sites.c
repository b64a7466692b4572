/* links: -ljansson -lm */
/* sites NAME PAIRS SECONDS OUT MACH6 GOAL OPTION COMMAND... - what --sites adds to a program that runs under mach6: CPU time of the program
 * for a frame, all its threads together, by `mach6 run OPTION` beside `mach6 run`, in turns. COMMAND is ended by SIGTERM after SECONDS, and
 * not before its first hundred frames (a game may hang that is ended while it starts); 0: it ends by itself. OUT is a folder for the reports.
 *
 * A pair of runs, one with, one without, gives a ratio; printed are the median ratio and its 95 % interval from a bootstrap over the pairs
 * (Efron 1979). GOAL is in percent; met or missed when all of the interval is, else that stays open (null). `cost` is what mach6 itself
 * takes the samples to have cost the program, in percent, and `collector` how much more of a core the collector took.
 * NAME pair: COMMAND prints bench.h's lines, and what is compared is their value, in ns a pair, by difference. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { PAIRS_MAX = 256, RESAMPLES = 2000 };
static double value[2][PAIRS_MAX], cost[PAIRS_MAX], beside[2][PAIRS_MAX], samples[PAIRS_MAX];
static int by_difference;

static double number(const json_t *root, const char *a, const char *b)
{
  const json_t *v = json_object_get(root, a);
  return json_number_value(b ? json_object_get(v, b) : v);
}

static json_t *read_json(const char *path)
{
  json_error_t e;
  json_t *root = json_load_file(path, JSON_DISABLE_EOF_CHECK, &e);
  if (!root) {
    fprintf(stderr, "sites: %s: %s\n", path, e.text);
    exit(1);
  }
  return root;
}

/* How many frames the game under this `mach6 run` has made, as `mach6 stat` tells; and its pid. */
static double frames_of(pid_t run, const char *mach6, const char *folder, pid_t *game)
{
  char path[4096], command[3 * 4096];
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", run, run);
  FILE *f = fopen(path, "r");
  int n = f ? fscanf(f, "%d", game) : 0;
  if (f) fclose(f);
  if (n != 1) return 0;
  snprintf(path, sizeof path, "%s/stat.json", folder);
  snprintf(command, sizeof command, "'%s' stat %d --json >'%s' 2>/dev/null", mach6, *game, path);
  if (system(command)) return 0;
  json_t *root = read_json(path);
  double frames = number(root, "presents", NULL);
  json_decref(root);
  return frames;
}

static void end_game(pid_t run, char **argv, unsigned seconds)
{
  pid_t game = 0;
  int status;
  bench_pause_ms(seconds * 1000);
  for (int i = 0; i < 120 && frames_of(run, argv[5], argv[4], &game) < 100; i++) bench_pause_ms(500);
  kill(run, SIGTERM); /* mach6 run hands it on */
  for (int i = 0; i < 600; i++) {
    if (waitpid(run, &status, WNOHANG) != 0) return;
    bench_pause_ms(100);
  }
  if (game) kill(game, SIGKILL);
  waitpid(run, &status, 0);
  fprintf(stderr, "sites: %s did not end on SIGTERM\n", argv[8]);
  exit(1);
}

static void play(char **argv, int with, unsigned pair)
{
  char report[4096], out[4096];
  const char *mach6 = argv[5];
  snprintf(report, sizeof report, "%s/report.json", argv[4]);
  snprintf(out, sizeof out, "%s/out", argv[4]);
  unlink(report);
  pid_t child = fork();
  if (child == 0) {
    const char *run[64] = {mach6, "run", "--quiet", "--json", report};
    int n = 5;
    if (with) run[n++] = argv[7];
    run[n++] = "--";
    for (char **a = argv + 8; *a && n < 63; a++) run[n++] = *a;
    int to = open(out, O_CREAT | O_TRUNC | O_WRONLY, 0600), null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(to, 1);
    dup2(null, 2);
    execv(mach6, (char **)run);
    _exit(127);
  }
  unsigned seconds = (unsigned)atoi(argv[3]);
  int status = -1;
  if (child > 0 && seconds) {
    end_game(child, argv, seconds);
  } else if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
    fprintf(stderr, "sites: a run of %s failed (status %d)\n", argv[8], status);
    exit(1);
  }
  json_t *root = read_json(report);
  double cpu = number(root, "overhead", "target_cpu_s"), frames = number(root, "presents", NULL);
  if (by_difference) {
    json_t *line = read_json(out);
    value[with][pair] = number(line, "value", NULL);
    json_decref(line);
  } else if (frames < 10) {
    fprintf(stderr, "sites: %s made no frames\n", argv[8]);
    exit(1);
  } else {
    value[with][pair] = 1e6 * cpu / frames;
  }
  beside[with][pair] = 100 * number(root, "overhead", "collector_share_of_a_core");
  if (with) {
    samples[pair] = number(json_object_get(root, "sites"), "samples", NULL);
    cost[pair] = cpu > 0 ? 100 * number(json_object_get(root, "sites"), "cost_s", NULL) / cpu : 0;
  }
  json_decref(root);
}

static double compared(unsigned pairs, const unsigned *chosen)
{
  double x[PAIRS_MAX];
  for (unsigned i = 0; i < pairs; i++) {
    double with = value[1][chosen[i]], without = value[0][chosen[i]];
    x[i] = by_difference ? with - without : 100 * (with / without - 1);
  }
  return bench_spread_of(x, pairs).median;
}

int main(int argc, char **argv)
{
  static double again[RESAMPLES];
  unsigned chosen[PAIRS_MAX], pairs = argc > 8 ? (unsigned)atoi(argv[2]) : 0;
  if (argc < 9 || pairs < 2 || pairs > PAIRS_MAX) return 2;
  double goal = atof(argv[6]), more[PAIRS_MAX];
  by_difference = !strcmp(argv[1], "pair");
  for (unsigned p = 0; p < pairs; p++) {
    play(argv, p & 1, p);
    play(argv, !(p & 1), p);
    chosen[p] = p;
    more[p] = beside[1][p] - beside[0][p];
  }
  double median = compared(pairs, chosen);
  srandom(1);
  for (unsigned r = 0; r < RESAMPLES; r++) {
    for (unsigned p = 0; p < pairs; p++) chosen[p] = (unsigned)random() % pairs;
    again[r] = compared(pairs, chosen);
  }
  qsort(again, RESAMPLES, sizeof *again, bench_less);
  double low = again[RESAMPLES / 40], high = again[RESAMPLES - 1 - RESAMPLES / 40];
  double base = bench_spread_of(value[0], pairs).median;
  printf("{\"name\": \"sites-%s\", \"value\": %.4g, \"unit\": \"%s\", \"ci95_low\": %.4g, \"ci95_high\": %.4g, "
         "\"comparison\": \"%s\", "
         "\"comparison_value\": %.5g, \"ratio\": %.5g, \"option\": \"%s\", \"samples\": %.4g, \"cost\": %.3g, "
         "\"collector\": %.3g, "
         "\"goal\": \"at most %g\", \"met\": %s, \"pairs\": %u}\n",
         argv[1], median, by_difference ? "ns more a malloc+free pair" : "% more CPU time a frame", low, high,
         by_difference ? "the pair, counted only, ns added" : "the same under mach6 without sites, us a frame", base,
         by_difference ? (base + median) / base : 1 + median / 100, argv[7], bench_spread_of(samples, pairs).median,
         bench_spread_of(cost, pairs).median, bench_spread_of(more, pairs).median, goal,
         high <= goal ? "true"
         : low > goal ? "false"
                      : "null",
         pairs);
  return 0;
}
