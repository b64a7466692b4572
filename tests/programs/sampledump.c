/* sampledump.c - samples a running process and prints what was found: the tests' view of kernel_samples, symbols and profile.
 *   sampledump [--hz N | --ms N] [--no-bpf] [--no-kernel] [--unwind] [--retained N] [--poll-ms N] [--rows N] [--folded FILE] [--join FILE] [--modules]
 *              [--tsv] [--samples N] [--cycles N] [--steps] PID SECONDS
 * Ends early when the process does, or with --samples N when it has that many. --cycles N: starts and stops N times first, and prints
 * descriptors and resident KiB before and after. --programs: prints how many sampling programs the kernel holds, and ends.
 * Lines: "# key value" and the table; --tsv prints rows as self, total, function, module, file:line.
 * --steps: half-way to --samples N it goes on as the governor does at half the interval, with every other 200 ms.
 * --join: "tid time_ns function" of each retained sample, in the order in which it was handed out. */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf -liberty */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "collector/kernel_samples.h"
#include "collector/profile.h"

static struct m6_samples *samples;
static struct m6_symbols *symbols;
static struct m6_profile *profile;
static FILE *join;
static int uncovered;
static uint64_t polled;

static uint64_t now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Of the whole machine, by name; -1 when the kernel does not say. */
static int programs(void)
{
  int n = 0;
  for (uint32_t id = 0; !bpf_prog_get_next_id(id, &id);) {
    struct bpf_prog_info info = {0};
    uint32_t bytes = sizeof info;
    int fd = bpf_prog_get_fd_by_id(id);
    if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &bytes) && !strcmp(info.name, "m6_cpu_sample")) n++;
    if (fd >= 0) close(fd);
  }
  return errno == ENOENT ? n : -1;
}

static int descriptors(void)
{
  int n = 0;
  DIR *d = opendir("/proc/self/fd");
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n - 3; /* two dots, and the folder itself */
}
static long resident_kib(void)
{
  long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%*d %ld", &pages) != 1) pages = -1;
  if (f) fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
static void cycle(const struct m6_samples_options *o, int n)
{
  for (int i = 0; i < n; i++) {
    struct m6_samples *s;
    struct m6_symbols *y;
    int e = m6_samples_open(o, &s, NULL);
    if (!e) e = m6_symbols_open(o->pid, &y);
    if (e) {
      printf("# error %s in cycle %d\n", strerrorname_np(e), i);
      exit(1);
    }
    if (i % 2) usleep(15000);
    m6_samples_poll(s, NULL, NULL);
    m6_samples_close(s);
    m6_symbols_close(y);
    if (i == 4 || i == n - 1) printf("# cycle %d fds %d rss_kib %ld\n", i, descriptors(), resident_kib());
  }
}

static void each(void *arg, const struct m6_sample *s)
{
  (void)arg;
  uint32_t n;
  const uint64_t *ip = m6_samples_stack(samples, s->user, &n);
  polled++;
  if (n && !m6_symbols_covers(symbols, ip[0])) uncovered = 1;
  if (!join) return;
  struct m6_sym_name names[M6_SYM_INLINE_MAX];
  int k = n ? m6_symbols_names(symbols, ip[0], 0, names, M6_SYM_INLINE_MAX) : 0;
  fprintf(join, "%u %" PRIu64 " %s\n", s->tid, s->time_ns, k ? names[k - 1].function : "-");
}

static void total(void *arg, const struct m6_sample_total *t)
{
  uint64_t *sum = arg;
  uint32_t n, k;
  const uint64_t *user = m6_samples_stack(samples, t->user, &n), *kernel = m6_samples_stack(samples, t->kernel, &k);
  m6_profile_add(profile, m6_samples_thread(samples, t->tid), user, n, kernel, k, t->count);
  *sum += t->count;
}

static void module(void *arg, const struct m6_sym_module *m)
{
  (void)arg;
  printf("# module %s %s %s%s%s%s\n", *m->build_id ? m->build_id : "-", m6_sym_source_name(m->source), m->path,
         m->error ? " " : "", m->error ? strerror(m->error) : "", m->debug_file ? " +debug" : "");
}

static void step(uint64_t now)
{
  static uint64_t looked, looks;
  if (looks == 0) m6_samples_weight(samples, 2);
  if (now - looked < 200) return;
  looked = now;
  m6_samples_pause(samples, looks++ & 1);
}

int main(int argc, char **argv)
{
  static const struct option options[] = {
    {"hz", 1, NULL, 'z'},      {"ms", 1, NULL, 'm'},     {"no-bpf", 0, NULL, 'b'},   {"no-kernel", 0, NULL, 'k'},
    {"rows", 1, NULL, 'r'},    {"folded", 1, NULL, 'f'}, {"join", 1, NULL, 'j'},     {"modules", 0, NULL, 'M'},
    {"tsv", 0, NULL, 't'},     {"unwind", 0, NULL, 'u'}, {"retained", 1, NULL, 'R'}, {"poll-ms", 1, NULL, 'P'},
    {"samples", 1, NULL, 'n'}, {"cycles", 1, NULL, 'c'}, {"programs", 0, NULL, 'p'}, {"steps", 0, NULL, 's'},
    {NULL, 0, NULL, 0}};
  struct m6_samples_options o = {.period_us = m6_samples_period(M6_SAMPLES_HZ_FULL)};
  struct m6_samples_status st;
  const char *folded = NULL;
  uint32_t rows = 20;
  int modules = 0, tsv = 0, cycles = 0, steps = 0;
  uint64_t enough = UINT64_MAX;
  useconds_t poll_us = 20000;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (c) {
    case 'z': o.period_us = m6_samples_period((uint32_t)atoi(optarg)); break;
    case 'm': o.period_us = (uint32_t)atoi(optarg) * 1000; break;
    case 'b': o.flags |= M6_SAMPLES_WITHOUT_BPF; break;
    case 'k': o.flags |= M6_SAMPLES_WITHOUT_KERNEL; break;
    case 'r': rows = (uint32_t)atoi(optarg); break;
    case 'f': folded = optarg; break;
    case 'j': join = fopen(optarg, "w"); break;
    case 'M': modules = 1; break;
    case 't': tsv = 1; break;
    case 'R': o.retained = (uint32_t)atoi(optarg); break;
    case 'P': poll_us = (useconds_t)atoi(optarg) * 1000; break;
    case 'u': o.unwind = m6_symbols_unwind; break;
    case 'n': enough = strtoull(optarg, NULL, 10); break;
    case 'c': cycles = atoi(optarg); break;
    case 's': steps = 1; break;
    case 'p': printf("%d\n", programs()); return 0;
    default: return 2;
    }
  }
  if (argc - optind != 2) return 2;
  o.pid = atoi(argv[optind]);
  double seconds = atof(argv[optind + 1]);

  if (cycles) cycle(&o, cycles);
  int e = m6_symbols_open(o.pid, &symbols);
  o.unwind_arg = symbols;
  if (!e) e = m6_samples_open(&o, &samples, &st);
  else printf("# refused the process's mappings: %s\n", strerror(e)), st = (struct m6_samples_status){0};
  for (uint32_t i = 0; i < st.refusals; i++) {
    const struct m6_refusal *r = &st.refused[i];
    printf("# refused %s: %s (%s), %u times; %s\n", r->what, strerrorname_np(r->error), strerror(r->error), r->times,
           m6_fault_hint(r->area, r->error).setting);
  }
  if (e) {
    printf("# error %s\n", strerrorname_np(e));
    return 1;
  }
  printf("# started\n");
  fflush(stdout);
  for (uint64_t begun = now_ms(), refreshed = begun, now = begun;
       (double)(now - begun) < seconds * 1000 && polled < enough; now = now_ms()) {
    usleep(poll_us);
    m6_samples_poll(samples, each, NULL);
    if (steps && polled >= enough / 2) step(now);
    if (uncovered && now - refreshed >= 1000) {
      m6_symbols_refresh(symbols);
      uncovered = 0, refreshed = now;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", o.pid);
    if (access(path, F_OK)) break;
  }
  m6_samples_stop(samples);
  m6_samples_poll(samples, each, NULL);
  m6_symbols_refresh(symbols);
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  profile = m6_profile_new(symbols);
  uint64_t sum = 0;
  e = m6_samples_totals(samples, total, &sum);
  m6_samples_status(samples, &st);
  struct m6_profile_sum ps = m6_profile_sum(profile);
  printf("# tier %s\n# kernel_mode %d\n# threads %u\n# period_us %u\n# samples %" PRIu64 "\n# lost %" PRIu64
         "\n# periods %" PRIu64 "\n# lost_stacks %" PRIu64 "\n# lost_retained %" PRIu64 "\n# throttled %" PRIu64
         "\n# polled %" PRIu64 "\n# sum %" PRIu64 "\n# in_kernel %" PRIu64 "\n# cut %" PRIu64 "\n# bare %" PRIu64 "\n",
         m6_samples_tier_name(st.tier), st.kernel_mode, st.threads, st.period_us, st.samples, st.lost, st.periods,
         st.lost_stacks, st.lost_retained, st.throttled, polled, sum, ps.kernel, ps.cut, ps.bare);
  printf("# cpu_ns %" PRIu64 "\n# expected %.1f\n", st.cpu_ns, (double)st.cpu_ns / (st.period_us * 1000.0));
  if (e) printf("# totals %s\n", strerror(e));
  if (tsv) {
    uint32_t n;
    const struct m6_profile_row *r = m6_profile_rows(profile, &n);
    for (uint32_t i = 0; i < n && i < rows; i++)
      printf("%" PRIu64 "\t%" PRIu64 "\t%s\t%s\t%s:%u\t%d\n", r[i].self, r[i].total, r[i].function, r[i].module,
             r[i].file ? r[i].file : "", r[i].line, r[i].inlined);
  } else {
    m6_profile_print(profile, stdout, rows);
  }
  if (modules) m6_symbols_modules(symbols, module, NULL);
  if (folded) {
    FILE *f = fopen(folded, "w");
    if (!f || (e = m6_profile_folded(profile, f))) printf("# folded %s\n", strerror(f ? e : errno));
    if (f) fclose(f);
  }
  getrusage(RUSAGE_SELF, &after);
  printf("# naming_ms %ld\n", (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000 +
                                (after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1000);
  if (join) fclose(join);
  m6_profile_free(profile);
  m6_samples_close(samples);
  m6_symbols_close(symbols);
  return 0;
}
