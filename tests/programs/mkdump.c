/* mkdump.c - dumps of games that never ran, and the collector's writer put through its paces.
 *
 *   mkdump plain OUT [KEY=VALUE...]            the objects, written by hand
 *   mkdump write[-thread] OUT [KEY=VALUE...]   by the collector's writer, with io_uring or without; says how it went; status 1 when it failed
 *   mkdump forever[-thread] OUT [KEY=VALUE...] again and again, from another seed each time, a line for each, until it is killed
 *   mkdump give-up[-thread] OUT [KEY=VALUE...] begins, and gives up after some turns
 * Keys: seed, frames, scopes, slow, slower, spread, leak, most (bytes), scene=hostile (labels).
 */
/* links: collector/dump_table.c collector/dump_encode.c collector/dump_write.c collector/dump_io.c collector/reservoir.c */
/* links: -luring -lmsgpackc -lm */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "collector/dump_write.h"
#include "tests/unit/dump_fixture.h"

static struct dump_game game = {.seed = 1, .frames = 600, .scopes = 8};
static uint64_t most;
static int hostile;

static void parse(const char *word)
{
  double v;
  if (!strcmp(word, "scene=hostile")) hostile = 1;
#define KEY(name, member, type)                                                                                        \
  if (sscanf(word, name "=%lf", &v) == 1) game.member = (type)v;
  KEY("seed", seed, uint64_t)
  KEY("frames", frames, uint32_t)
  KEY("scopes", scopes, uint32_t)
  KEY("slow", slow, uint32_t)
  KEY("slower", slower, double)
  KEY("spread", spread, double)
  KEY("leak", leak, int64_t)
  if (sscanf(word, "most=%lf", &v) == 1) most = (uint64_t)v;
}

static struct m6_snapshot *make(void)
{
  static const char *const labels[] = {FX_HOSTILE, "a/b"};
  struct fx f;
  size_t bytes;
  dg_make(&f, &game);
  for (size_t i = 0; hostile && i < sizeof labels / sizeof *labels; i++) {
    uint32_t n = fx_node(&f, 1, M6_NODE_SCOPE, labels[i]);
    fx_fill(&f, n, 100 + i, 10 * (double)(i + 1), 900, (int64_t)i * 100 - 500, i);
    f.nodes[n].reservoir = 0;
  }
  struct m6_snapshot *b = fx_block(&f, &bytes);
  b->ending_known = 1;
  fx_free(&f);
  return b;
}

static int write_it(const char *how, const char *path)
{
  struct m6_snapshot *b = make();
  struct m6_dump *d;
  const char *tried;
  int thread = strstr(how, "-thread") != NULL, give_up = !strncmp(how, "give-up", 7);
  int e = m6_dump_begin(b, &(struct m6_dump_options){.path = path, .most = most, .plain = thread}, &d);
  if (e) {
    printf("begin: %s\n", strerror(e));
    free(b);
    return 1;
  }
  unsigned turns = 0;
  enum m6_dump_state s = M6_DUMP_BUSY;
  while (s == M6_DUMP_BUSY && !(give_up && turns == 4)) {
    s = m6_dump_poll(d);
    turns++;
    if (s == M6_DUMP_BUSY) usleep(50);
  }
  e = m6_dump_error(d, &tried);
  if (s == M6_DUMP_DONE)
    printf("done %llu left %llu refused %d\n", (unsigned long long)m6_dump_bytes(d),
           (unsigned long long)m6_dump_lacking(d), m6_dump_refused(d));
  else printf("%s: %s\n", s == M6_DUMP_BUSY ? "given up" : tried, strerror(e));
  fflush(stdout);
  m6_dump_end(d);
  free(b);
  return s != M6_DUMP_DONE;
}

int main(int argc, char **argv)
{
  if (argc < 3) return 2;
  signal(SIGXFSZ, SIG_IGN);
  for (int i = 3; i < argc; i++) parse(argv[i]);
  if (!strncmp(argv[1], "forever", 7))
    for (;; game.seed++)
      if (write_it(argv[1], argv[2])) return 1;
  if (strcmp(argv[1], "plain") != 0) return write_it(argv[1], argv[2]);
  struct m6_snapshot *b = make();
  size_t n;
  char *dump = dg_encode(b, most, &n);
  FILE *f = fopen(argv[2], "w");
  int failed = !f || fwrite(dump, 1, n, f) != n || fclose(f);
  free(dump);
  free(b);
  return failed;
}
