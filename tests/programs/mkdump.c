/* mkdump.c - dumps of games that never ran, and the collector's writer put through its paces.
 *
 *   mkdump plain OUT [KEY=VALUE...]            the objects, written by hand
 *   mkdump write[-thread] OUT [KEY=VALUE...]   by the collector's writer, with io_uring or without; says how it went; status 1 when it failed
 *   mkdump forever[-thread] OUT [KEY=VALUE...] again and again, from another seed each time, a line for each, until it is killed
 *   mkdump give-up[-thread] OUT [KEY=VALUE...] begins, and gives up after some turns
 * Keys: seed, frames, scopes, slow, slower, spread, leak, most (bytes), scene=hostile (labels), scene=sites (and
 *   CPU samples), scene=names (the same, with names that break formats),
 *   dropped=1 (with scene=sites: every allocation is a sample, and one is missing),
 *   stacks=N (as many different ones of CPU samples, of one sample each; with scene=sites).
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
static int hostile, sites, names, dropped;
static uint32_t stacks;

static void parse(const char *word)
{
  double v;
  if (!strcmp(word, "scene=hostile")) hostile = 1;
  if (!strcmp(word, "scene=sites")) sites = 1;
  if (!strcmp(word, "dropped=1")) dropped = 1;
  if (!strcmp(word, "scene=names")) sites = names = 1;
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
  if (sscanf(word, "stacks=%lf", &v) == 1) stacks = (uint32_t)v;
}

/* ---- sites and CPU samples -------------------------------------------------------------------------------------------- */

static struct m6_snap_amount amount(double bytes, double blocks, double half)
{
  return (struct m6_snap_amount){bytes, bytes - half, bytes + half, blocks, 40};
}

/* Three sites of a game, one of them a leak, one without a stack, and one that found no row: amounts that a test can add up. */
static void put_sites(struct fx *f)
{
  static struct m6_snap_site row[3];
  static const char *const stacks[] = {
    "operator new(unsigned long)\tlibstdc++.so.6\t\n"
    "^std::vector<Body, std::allocator<Body> >::push_back\tgame\t/usr/include/c++/12/bits/stl_vector.h:1287\n"
    "Solver<float>::step\tgame\tsrc/solver.cc:42\nmain\tgame\tsrc/main.cc:7\n_start\tgame\t",
    "keep\tgame\tsrc/keep.c:12\nmain\tgame\tsrc/main.cc:9\n_start\tgame\t",
    "",
  };
  static const char *const bad[] = {
    "std::map<a&b, \"c\">::operator<\t</title><script>alert(1)</script>\tC:\\x;y:z:18446744073709551616\n"
    "^\t\t\n^a;b c\x01\x1b[31m\xe2\x80\xae\xef\xbf\xbf]]>\tm\t:5\n\n\t\t\t\tmain\tx",
    "libgame.so+0x1234\tlibgame.so\t\n日本語\t日本\tä.c:1",
    "\n\n\n",
  };
  struct m6_snap_sites *h = &f->head.sites;
  for (int i = 0; i < 3; i++) {
    const char *stack = names ? bad[i] : stacks[i];
    row[i] = (struct m6_snap_site){.made = amount(3e6 / (i + 1), 3000 / (i + 1), 1e5),
                                   .in_frames = amount(2e6, 2000, 1e5),
                                   .live = amount(i == 1 ? 4e5 : 0, i == 1 ? 400 : 0, i == 1 ? 1e4 : 0),
                                   .same_frame = amount(i ? 0 : 2e6, i ? 0 : 2000, 0),
                                   .peak = 5e5,
                                   .peak_low = 4e5,
                                   .peak_high = 6e5,
                                   .growth = i == 1 ? 700 : 0,
                                   .growth_error = 50,
                                   .age = 3,
                                   .suspect = i == 1};
    row[i].stack_offset = fx_text(f, stack, strlen(stack));
    row[i].stack_bytes = (uint32_t)strlen(stack);
    const char *scope = names ? "<&\"'>;\x02" : "physics";
    if (i) continue;
    row[i].scope_offset = fx_text(f, scope, strlen(scope));
    row[i].scope_bytes = (uint32_t)strlen(scope);
  }
  f->sites = row;
  f->maps = &row[1]; /* one, of 1.5 MB in 1500 calls, of which 0.4 MB are left */
  *h = (struct m6_snap_sites){.interval = dropped ? 1 : 4096,
                              .dropped = dropped ? 1 : 0,
                              .dropped_bytes = dropped ? 9000 : 0,
                              .row_count = 3,
                              .sites = 4,
                              .made = amount(6e6, 6000, 2e5),
                              .in_frames = amount(6e6, 6000, 2e5),
                              .live = amount(4e5, 400, 1e4),
                              .exact_bytes = 6010000,
                              .exact_count = 6011,
                              .exact_live = 401000,
                              .same_frame = amount(2e6, 2000, 5e4),
                              .peak = 1e6,
                              .peak_low = 9e5,
                              .peak_high = 12e5,
                              .samples = 160,
                              .map_count = 1,
                              .map_sites = 2,
                              .maps = 1601,
                              .maps_dropped = 1,
                              .maps_made = 1600000,
                              .maps_live = 400000,
                              .stacks = 3,
                              .stacks_whole = 2,
                              .second_count = 2,
                              .price_ns = NAN};
  f->site_seconds[0] = (struct m6_snap_site_second){.samples = 90, .dropped = h->dropped, .maps = 1600};
  f->site_seconds[1] = (struct m6_snap_site_second){.second = 7, .samples = 70, .maps = 1, .maps_dropped = 1};
  fx_module(f, "/usr/lib/libGL.so.1", "b1d0000000000000000000000000000000000001", 0x7f0000001000);
  fx_module(f, "/opt/game/plugins/../sample-game", "b1d0000000000000000000000000000000000002", 0x555555555000);
  /* One name, two files: whose functions are meant is not known. */
  fx_module(f, "/opt/a/game", "b1d0000000000000000000000000000000000003", 0x7f1000001000);
  fx_module(f, names ? "/opt/b/\xef\xbf\xbd<game>" : "/opt/b/game",
            names ? "" : "b1d0000000000000000000000000000000000004", 0x7f2000001000);
  fx_kernel(f);
  f->head.kernel.refusal_count = f->head.kernel.thread_count = f->head.kernel.call_count = 0;
  f->head.kernel.frames = 0;
  f->folded = names ? "t<&>\x01;<b>&amp;\"\xe2\x80\xae;std::operator<< <char>;sys<x>_[k] 7\nno number\n;;; 3\nx "
                      "99999999999999999999999\n"
                    : "game;main;physics_step 400\ngame;main;draw_bubbles(std::vector<bubble>) 250\n"
                      "game;main;physics_step;do_syscall_[k] 50\nworker;start_thread;libGL.so.1+0x9bae0 100\n";
}

/* Some 60 bytes each. */
static char *many_stacks(uint32_t n)
{
  char *text = malloc((size_t)n * 600 + 1), *at = text;
  for (uint32_t i = 0; i < n; i++) {
    at += sprintf(at, "game;main");
    for (uint32_t k = i, d = 0; d < 4 + i % 3; d++, k = k * 2654435761u + 12345) at += sprintf(at, ";f%x<T&>", k >> 22);
    at += sprintf(at, ";g%u 1\n", i);
  }
  *at = 0;
  return text;
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
  char *many = stacks ? many_stacks(stacks) : NULL;
  if (sites) put_sites(&f);
  if (many) f.folded = many;
  struct m6_snapshot *b = fx_block(&f, &bytes);
  b->ending_known = 1;
  fx_free(&f);
  free(many);
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
