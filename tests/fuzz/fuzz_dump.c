/* links: collector/stats_check_kernel.c collector/stats_kernel.c collector/payload_kernel.c collector/payload_govern.c collector/payload_seconds.c */
/* links: collector/dump_table.c collector/dump_encode.c collector/dump_read.c collector/dump_skim.c collector/stats.c collector/stats_check.c */
/* links: collector/stats_words.c collector/payload.c collector/payload_encode.c collector/payload_report.c collector/payload_sites.c collector/stats_sites.c */
/* links: tools/mach6/export_tables.c tools/mach6/export_trace.c tools/mach6/export_stacks.c tools/mach6/export_profiles.c tools/mach6/export_pprof.c tools/mach6/export_flame.c tools/mach6/text.c collector/utf8.c tools/mach6/compare.c tools/mach6/rank.c */
/* links: tools/mach6/summary.c tools/mach6/report.c tools/mach6/report_govern.c tools/mach6/report_kernel.c tools/mach6/report_sites.c tools/mach6/tree.c tools/mach6/picture.c collector/stats_load.c -ljansson -lmsgpackc -lz -lm */
/* fuzz_dump - any bytes as a dump: the reader ends, within its memory; what it lets through, every output can show.
 *
 * Beside faults that the sanitizers see it is an error when a block that was read is not what stats_check.c accepts, or does not come
 * back the same from a dump of its own.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/dump.h"
#include "collector/utf8.h"
#include "tools/mach6/compare.h"
#include "tools/mach6/dumpfile.h"
#include "tools/mach6/export.h"
#include "tools/mach6/summary.h"

/* dumpfile.c's other half is of files and messages. */
char *node_path(const mach6_node *n)
{
  char *path = malloc(16);
  if (path) snprintf(path, 16, "%u", (unsigned)(n - n->of->nodes));
  return path;
}

static void must(int what, const char *why)
{
  if (what) return;
  fprintf(stderr, "fuzz_dump: %s\n", why);
  abort();
}

/* A dump of what was read reads as the same. */
static void comes_back(const struct m6_snapshot *s)
{
  struct m6_encoder *e = m6_dump_encoder(s, 0, 0);
  struct mach6_dump_info info;
  struct m6_snapshot *again;
  const char *object;
  char *all = NULL;
  size_t n = 0;
  for (ssize_t got; (got = m6_dump_next(e, &object)) > 0; n += (size_t)got) {
    all = realloc(all, n + (size_t)got);
    memcpy(all + n, object, (size_t)got);
  }
  m6_dump_encoder_free(e);
  must(m6_dump_read(all, n, &again, &info) == 0 && !info.broke_why, "what was read cannot be written and read again");
  must(again->node_count == s->node_count && again->frame_count == s->frame_count &&
         again->sample_count == s->sample_count && again->text_bytes == s->text_bytes &&
         again->stall_count == s->stall_count && again->kernel.second_count == s->kernel.second_count &&
         again->sites.second_count == s->sites.second_count,
       "it came back as another");
  free(again);
  free(all);
}

/* Every format of everything that has stacks. */
static void export_all_stacks(const mach6_stats *s, FILE *to)
{
  static int (*const formats[])(const struct export_stacks *, FILE *) = {
    export_folded, export_speedscope, export_stacks_json, export_pprof, export_flame};
  unsigned count;
  const struct export_measure *m = export_measures(&count);
  for (unsigned i = 0; i < count; i++)
    for (unsigned flags = 0; flags < 8; flags += 7) {
      struct export_stacks *x;
      if (export_stacks_new(s, &m[i], flags, &x) != 0) continue;
      for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        must(formats[k](x, to) == 0, "stacks that cannot be written");
      export_stacks_free(x);
    }
}

/* A summary of it keeps its promises. */
static void sum_up(const mach6_stats *s, uint64_t most)
{
  struct summary x;
  char *clean = malloc(most);
  int replaced = 0;
  must(clean && summary_make(&(struct page){NULL, 0, 1, 100}, s, "fuzz", NULL, most, &x) == 0, "no summary");
  must(x.n > 0 && x.n <= most && x.text[x.n - 1] == '\n', "a summary beyond its bytes, or not of whole lines");
  must(m6_utf8_clean(x.text, x.n, clean, most, &replaced) == x.n && !replaced, "a summary that is not UTF-8");
  free(clean);
  free(x.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct mach6_dump_info info;
  struct m6_snapshot *block = NULL;
  int error = m6_dump_read(data, size, &block, &info);
  must(info.broke_at <= size && info.bytes <= size, "an offset outside of the file");
  must(!error == (block != NULL), "a block and an error");
  if (error) return 0;
  must(m6_snapshot_check(block, block->bytes) == 0, "a block that is none");
  comes_back(block);
  mach6_stats *s = calloc(1, sizeof *s);
  s->fd = -1;
  s->from_dump = 1;
  s->dump = info;
  if (m6_stats_adopt(s, block, block->bytes) == 0) {
    static FILE *null;
    struct comparison c;
    if (!null) null = fopen("/dev/null", "w"), setlocale(LC_CTYPE, "C.UTF-8");
    export_json(s, null);
    export_csv(s, null, "nodes");
    export_chrome(s, null);
    export_all_stacks(s, null);
    sum_up(s, size & 1 ? 24000 : 2000);
    if (compare(s, s, &(struct compare_options){0.01, 0.01}, &c) == 0) compare_free(&c);
  }
  mach6_stats_close(s);
  return 0;
}
