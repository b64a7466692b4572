/* links: collector/budgets.c collector/frame.c collector/books.c collector/histogram.c collector/verdict.c collector/reservoir.c */
/* links: collector/tree.c collector/clock.c collector/heap.c collector/heap_maps.c collector/governor.c collector/lifecycle.c collector/trend.c collector/stats_proc.c -lm */
/* sanitizers: address */
/* test_budgets - each budget by its name: it is enforced where it should be, its overruns are counted, an option lowers it and none raises it.
 * Retained buffers and dumps: test_retained, test_dump. What the shim enforces (rings, slots, streams) is in e2e/limits and e2e/budgets; clients of the socket in e2e/drive. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "collector/budgets.h"
#include "collector/frame.h"
#include "collector/governor.h"
#include "collector/heap.h"
#include "collector/heap_maps.h"
#include "collector/lifecycle.h"
#include "collector/tree.h"
#include "collector/trend.h"
#include "shm/order.h"

#define S 1000000000ull

static const struct m6_snap_budget *row(const char *name)
{
  static struct m6_snap_budget rows[M6_SNAP_BUDGETS];
  uint32_t n = m6_budget_snap(rows);
  for (uint32_t i = 0; i < n; i++)
    if (!strcmp(rows[i].name, name)) return &rows[i];
  fail_msg("no budget is named %s", name);
  return NULL;
}
static int option(const char *text)
{
  char why[512] = "";
  int e = !strncmp(text, "dashboard.", 10) ? m6_budget_option_dashboard(text, why, sizeof why)
          : !strncmp(text, "analysis.", 9) ? m6_budget_option_analyze(text, why, sizeof why)
                                           : m6_budget_option(text, why, sizeof why);
  assert_true((e != 0) == (why[0] != 0));
  return e;
}

/* ---- the table ------------------------------------------------------------------------------------------------------ */

static void every_row_has_a_name_of_its_own_a_cap_and_words(void **state)
{
  (void)state;
  for (int i = 0; i < M6_BUDGET_COUNT; i++) {
    const struct m6_budget_row *r = &m6_budget_rows[i];
    assert_true(strlen(r->name) < sizeof row(r->name)->name && strchr(r->name, '.') && strlen(r->what) > 8);
    assert_int_equal(row(r->name)->cap, r->cap);
    assert_true(r->cap > 0);
    for (int k = 0; k < i; k++) assert_string_not_equal(r->name, m6_budget_rows[k].name);
  }
}
static void the_designs_numbers(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    uint64_t cap;
  } want[] = {{"session.ttl", 300000},     {"frames.retained", 32768},
              {"frames.median", 120},      {"frames.median_min", 10},
              {"heap.interval", 30000},    {"heap.pending", 1},
              {"rings.bytes", 4194304},    {"retained.buckets", 300},
              {"retained.growth", 300},    {"retained.stalls", 512},
              {"samples.retained", 10000}, {"dump.bytes", 52428800},
              {"samples.lite", 49},        {"samples.full", 99},
              {"samples.period", 10},      {"kernel.ring", 4194304},
              {"probe.ttl", 300000},       {"dump.object", 1048576},
              {"dashboard.clients", 4},    {"dashboard.requests", 8},
              {"dashboard.ttl", 300000},   {"dashboard.stored", 209715200},
              {"overhead.memory", 5000},   {"overhead.lite", 10000},
              {"overhead.full", 30000},    {"analysis.summary", 24000},
              {"analysis.answer", 262144}, {"analysis.time", 15000}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) assert_int_equal(row(want[i].name)->cap, want[i].cap);
}
static void an_option_lowers_and_none_raises(void **state)
{
  (void)state;
  char text[64];
  for (int i = 0; i < M6_BUDGET_COUNT; i++) {
    const struct m6_budget_row *r = &m6_budget_rows[i];
    static const char *const unit[] = {"", "B", "ms", "%", "Hz"};
    double f = r->unit == M6_UNIT_PPM ? 1e4 : 1;
    int floor = r->kind == M6_BUDGET_FLOOR;
    snprintf(text, sizeof text, "%s=%.6f%s", r->name, (double)r->cap / f * (floor ? 0.5 : 2), unit[r->unit]);
    assert_int_equal(option(text), -1); /* beyond the cap */
    assert_int_equal(row(r->name)->cap, r->cap);
    snprintf(text, sizeof text, "%s=%.6f%s", r->name, (double)r->cap / f * (floor ? 2 : 0.5), unit[r->unit]);
    assert_int_equal(option(text), r->kind == M6_BUDGET_FIXED ? -1 : 0);
    if (r->kind != M6_BUDGET_FIXED)
      assert_int_equal(row(r->name)->cap, (uint64_t)llround((double)r->cap * (floor ? 2 : 0.5)));
    snprintf(text, sizeof text, "%s=%.6f%s", r->name, (double)r->cap / f, unit[r->unit]);
    assert_int_equal(option(text), r->kind == M6_BUDGET_FIXED ? -1 : 0); /* the constant itself is no raise */
  }
}
/* The dashboard lowers its own, an analysis its own, a session its own; each says to whom the others are said. */
static void what_another_process_uses_is_lowered_there(void **state)
{
  (void)state;
  static int (*const ask[])(const char *text, char *why, size_t room) = {m6_budget_option, m6_budget_option_dashboard,
                                                                         m6_budget_option_analyze};
  static const struct {
    const char *word, *say_to;
  } of[] = {{"session.", "bounds a session: say it to mach6-collector"},
            {"dashboard.", "bounds no session: say it to mach6 dashboard"},
            {"analysis.", "bounds no session: say it to mach6 analyze"}};
  char text[64], why[512];
  for (int i = 0; i < M6_BUDGET_COUNT; i++) {
    const struct m6_budget_row *r = &m6_budget_rows[i];
    static const char *const unit[] = {"", "B", "ms", "%", "Hz"};
    int whose = r->kind == M6_BUDGET_DASHBOARD ? 1 : r->kind == M6_BUDGET_ANALYZE ? 2 : 0;
    for (int k = 1; k < 3; k++) assert_int_equal(whose == k, !strncmp(r->name, of[k].word, strlen(of[k].word)));
    assert_int_equal(row(r->name)->used == M6_BUDGET_ELSEWHERE, whose != 0);
    snprintf(text, sizeof text, "%s=%.6f%s", r->name, (double)r->cap / (r->unit == M6_UNIT_PPM ? 1e4 : 1),
             unit[r->unit]);
    if (r->kind == M6_BUDGET_FIXED) continue;
    for (int k = 0; k < 3; k++) {
      assert_int_equal(ask[k](text, why, sizeof why), k == whose ? 0 : -1);
      if (k != whose) assert_non_null(strstr(why, of[whose].say_to));
    }
  }
  for (int k = 0; k < 3; k++) { /* the names that each offers are its own */
    assert_int_equal(ask[k]("x", why, sizeof why), -1);
    for (int other = 0; other < 3; other++) {
      snprintf(text, sizeof text, " %s", of[other].word);
      assert_int_equal(strstr(why, text) != NULL, other == k);
    }
  }
  assert_int_equal(m6_budget_option_dashboard("dashboard.ttl=500ms", why, sizeof why), -1);
  assert_int_equal(m6_budget_option_analyze("analysis.summary=1999B", why, sizeof why), -1);
  assert_int_equal(m6_budget_option_analyze("analysis.time=5s", why, sizeof why), 0);
  assert_int_equal(m6_budget_cap(M6_BUDGET_ANALYSIS_TIME), 5000);
  assert_int_equal(m6_budget_option_analyze("analysis.time=15s", why, sizeof why), 0);
}
static void what_an_option_does_not_take(void **state)
{
  (void)state;
  static const char *const bad[] = {"",
                                    "session.ttl",
                                    "session.ttl=",
                                    "session.ttl=5",
                                    "session.ttl=5x",
                                    "session.ttl=-5s",
                                    "session.ttl=0s",
                                    "session.ttl=nans",
                                    "session.ttl=infs",
                                    "session.ttl=1e300s",
                                    "session=5s",
                                    "=5s",
                                    "overhead.memory=0.1",
                                    "frames.retained=5s",
                                    "rings.bytes=1MiB",
                                    "kernel.ring=1MiB",
                                    "samples.lite=10",
                                    "samples.lite=50Hz",
                                    "samples.period=5ms",
                                    "samples.period=2s",
                                    "session.ttl=500ms",
                                    "frames.median_min=9",
                                    "frames.median_min=121",
                                    "dump.object=63KiB",
                                    "heap.pending=1",
                                    "dump.bytes=51MiB",
                                    "session.ttl=5s "};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(option(bad[i]), -1);
  /* What is fixed says why, each its own reason: only the segment's layout is what the game was started with. */
  for (int i = 0; i < M6_BUDGET_COUNT; i++) {
    char text[64], why[512];
    if (m6_budget_rows[i].kind != M6_BUDGET_FIXED) continue;
    snprintf(text, sizeof text, "%s=1", m6_budget_rows[i].name);
    assert_int_equal(m6_budget_option(text, why, sizeof why), -1);
    int layout = i == M6_BUDGET_RING_BYTES || i == M6_BUDGET_RINGS || i == M6_BUDGET_SLOTS || i == M6_BUDGET_STREAMS;
    assert_true(strstr(why, "is fixed: ") && !strstr(why, "null") && !!strstr(why, "layout") == layout);
    assert_true(layout || i == M6_BUDGET_KERNEL_RING || i == M6_BUDGET_HEAP_PENDING);
  }
  assert_int_equal(option("session.ttl=2.5s"), 0);
  assert_int_equal(row("session.ttl")->cap, 2500);
  assert_int_equal(option("overhead.memory=0.25%"), 0);
  assert_int_equal(row("overhead.memory")->cap, 2500);
  assert_int_equal(option("session.ttl=300s"), 0);
  assert_int_equal(option("overhead.memory=0.5%"), 0);
}
static void a_session_begins_with_nothing_used_and_keeps_its_caps(void **state)
{
  (void)state;
  assert_int_equal(option("frames.retained=100"), 0);
  m6_budget_use(M6_BUDGET_FRAMES, 7);
  m6_budget_overran(M6_BUDGET_FRAMES);
  m6_budget_most(M6_BUDGET_CLIENTS, 3);
  m6_budget_most(M6_BUDGET_CLIENTS, 2);
  assert_int_equal(row("control.clients")->used, 3);
  assert_int_equal(row("frames.retained")->overruns, 1);
  m6_budget_begin();
  assert_int_equal(row("frames.retained")->used, 0);
  assert_int_equal(row("frames.retained")->overruns, 0);
  assert_int_equal(row("control.clients")->used, 0);
  assert_int_equal(row("frames.retained")->cap, 100);
  assert_int_equal(option("frames.retained=32768"), 0);
}

/* ---- each where it is enforced ------------------------------------------------------------------------------------- */

static void session_ttl(void **state)
{
  (void)state;
  struct m6_lifecycle l;
  m6_lifecycle_init(&l, m6_budget_cap(M6_BUDGET_SESSION_TTL) * 1000000ull);
  m6_lifecycle_grant(&l, 1, 0);
  m6_lifecycle_event(&l, M6_EVENT_ON, 0);
  m6_lifecycle_event(&l, M6_EVENT_STARTED, 0);
  assert_int_equal(m6_lifecycle_tick(&l, 300 * S - 1), 0);
  assert_int_not_equal(m6_lifecycle_tick(&l, 300 * S), 0);
  assert_int_equal(l.end, M6_END_TTL);
}

static const struct m6_rate rate = {0, M6_CLOCK_MONOTONIC};
static void frame(struct m6_frames *f, uint64_t n, uint64_t ns)
{
  static const struct m6_cause none[M6_CAUSES];
  struct m6_ended e = {.number = n, .frames = 1, .interval = ns, .cause = none};
  m6_frames_add(f, &e, rate, 0);
}
static void frames_retained_median_and_spikes(void **state)
{
  (void)state;
  static struct m6_frames f;
  assert_int_equal(m6_frames_init(&f, 0), 0);
  for (uint64_t n = 1; n < 10; n++) frame(&f, n, 1000 * 1000);
  frame(&f, 10, 900 * 1000 * 1000); /* the median has 9: no spike can be told yet */
  assert_int_equal(f.spikes_total, 0);
  for (uint64_t n = 11; n <= 40000; n++) frame(&f, n, n % 500 == 0 ? (10 + n / 500) * 1000 * 1000 : 1000 * 1000);
  assert_int_equal(f.median.count, M6_SPIKE_WINDOW);
  assert_int_equal(f.spikes_total, 80);
  assert_int_equal(f.spike_count, M6_SPIKES_RETAINED);
  assert_int_equal(f.retained_total, 40000);
  assert_int_equal(f.retained[(40000 - 1) % M6_FRAMES_RETAINED].present,
                   40000); /* the latest is there, the first is not */
  assert_int_equal(f.retained[0].present, 32769);
  m6_frames_free(&f);
  /* lowered */
  assert_int_equal(m6_frames_init(&f, 0), 0);
  f.retained_most = 100;
  f.spikes_most = 4;
  for (uint64_t n = 1; n <= 1000; n++) frame(&f, n, n > 20 && n % 100 == 0 ? n * 1000 * 1000 : 1000 * 1000);
  assert_int_equal(f.spike_count, 4);
  for (uint32_t i = 0; i < 4; i++) assert_true(f.spikes[i].time >= 700 * 1000 * 1000ull); /* the worst stay */
  for (uint32_t i = 0; i < 100; i++) assert_true(f.retained[i].present > 900);
  /* The first spike is told later where a budget says so. */
  m6_frames_free(&f);
  assert_int_equal(m6_frames_init(&f, 0), 0);
  f.median_min = 30;
  f.retained_most = 100;
  for (uint64_t n = 1; n < 30; n++) frame(&f, n, 1000 * 1000);
  frame(&f, 30, 900 * 1000 * 1000);
  assert_int_equal(f.spikes_total, 0);
  frame(&f, 31, 900 * 1000 * 1000);
  assert_int_equal(f.spikes_total, 1);
  assert_int_equal(f.retained[100].present, 0); /* nothing is written beyond the lowered cap */
  m6_frames_free(&f);
}

static void tree_nodes(void **state)
{
  (void)state;
  static struct m6_tree t;
  assert_int_equal(m6_tree_init(&t), 0);
  t.limit = 50;
  uint32_t made = 0;
  for (uint32_t l = 1; l < 200; l++) made += m6_tree_child_slow(&t, t.frame, l) != t.other;
  assert_true(t.settled <= 50 && made < 50 && made > 30);
  assert_int_equal(t.refused, 199 - made);
  m6_tree_free(&t);
}

static int measured, hold;
static void fake(pid_t pid, struct m6_heap_measured *out)
{
  (void)pid;
  while (m6_observe(&hold)) usleep(1000);
  measured++;
  out->rss = 5000;
}
static void wait_ready(struct m6_heap *h)
{
  for (int i = 0; i < 10000 && !m6_observe(&h->ready); i++) usleep(1000);
}
static void heap_interval_and_pending(void **state)
{
  (void)state;
  static struct m6_heap h;
  m6_heap_begin(&h, m6_budget_cap(M6_BUDGET_HEAP) * 1000000ull, 1000 * S);
  h.measure = fake;
  measured = 0;
  for (uint64_t t = 0; t < 300; t++) { /* five minutes, asked each second: ten, no more */
    m6_heap_poll(&h, 1, 77, (1000 + t) * S, 1000 * S);
    if (h.pending) wait_ready(&h);
  }
  m6_heap_poll(&h, 1, 77, 1299 * S, 1000 * S);
  assert_int_equal(measured, 10);
  assert_int_equal(h.last.count, 10);
  assert_int_equal(h.last.rss, 5000);
  assert_int_equal(h.last.live, 77);
  assert_int_equal(h.last.at_ns, 275 * S);
  assert_int_equal(h.last.missed, 0);
  m6_publish(&hold, 1); /* one that takes long: none beside it, and it is counted */
  m6_heap_poll(&h, 1, 0, 1305 * S, 1000 * S);
  assert_int_equal(h.pending, 1);
  m6_heap_poll(&h, 1, 0, 1335 * S, 1000 * S);
  m6_heap_poll(&h, 1, 0, 1365 * S, 1000 * S);
  assert_int_equal(h.last.missed, 2);
  m6_publish(&hold, 0);
  m6_heap_end(&h, 1000 * S);
  assert_int_equal(measured, 11);
}
static void fails(pid_t pid, struct m6_heap_measured *out)
{
  (void)pid;
  out->error = ESRCH;
}
static void begin(struct m6_heap *h, uint64_t now)
{
  m6_heap_begin(h, m6_budget_cap(M6_BUDGET_HEAP) * 1000000ull, now * S);
  h->measure = fake;
}
static void heap_at_the_end_of_a_session(void **state)
{
  (void)state;
  static struct m6_heap h;
  begin(&h, 2000);
  measured = 0;
  m6_heap_poll(&h, 1, 10, 2004 * S, 2000 * S); /* the first seconds are free of it */
  assert_int_equal(h.pending, 0);
  assert_int_equal(m6_heap_last(&h, 1, 20, 2004 * S, 2000 * S),
                   1); /* a session shorter than that has its own at its end */
  assert_int_equal(measured, 1);
  assert_int_equal(h.last.count, 1);
  assert_int_equal(h.last.live, 20);
  assert_int_equal(h.last.at_ns, 4 * S);
  /* Sessions that follow at once wait for the interval, their ends, too. */
  begin(&h, 2010);
  m6_heap_poll(&h, 1, 30, 2020 * S, 2010 * S);
  assert_int_equal(m6_heap_last(&h, 1, 30, 2020 * S, 2010 * S), 0);
  assert_int_equal(measured, 1);
  assert_int_equal(h.last.count, 0);
  begin(&h, 2021);
  m6_heap_poll(&h, 1, 30, 2033 * S, 2021 * S);
  assert_int_equal(h.pending, 0);
  m6_heap_poll(&h, 1, 30, 2034 * S, 2021 * S);
  assert_int_equal(m6_heap_last(&h, 1, 40, 2035 * S, 2021 * S), 1); /* the one under way is taken, and is the last */
  assert_int_equal(measured, 2);
  assert_int_equal(h.last.live, 30);
  assert_int_equal(h.last.at_ns, 13 * S);
  assert_int_equal(m6_heap_last(&h, 1, 40, 2064 * S - 1, 2021 * S), 0);
  assert_int_equal(m6_heap_last(&h, 1, 40, 2064 * S, 2021 * S), 1);
  assert_int_equal(measured, 3);
  assert_int_equal(h.last.live, 40);
  h.measure = fails; /* it ended in that moment: the last one stands */
  m6_heap_last(&h, 1, 50, 2100 * S, 2021 * S);
  assert_int_equal(h.last.count, 2);
  assert_int_equal(h.last.error, 0);
  assert_int_equal(h.last.rss, 5000);
  assert_int_equal(h.last.live, 40);
}
static void heap_text(void **state)
{
  (void)state;
  struct m6_heap_measured m;
  static const char good[] =
    "55d0-7ffe ---p 00000000 00:00 0   [rollup]\nRss:    4321 kB\nPss:   1200 kB\nPss_Dirty: 9 kB\nAnonymous:   64 kB\n"
    "Swap:    0 kB\nSwapPss: 7 kB\n";
  assert_int_equal(m6_heap_parse(good, &m), 0);
  assert_int_equal(m.rss, 4321 * 1024);
  assert_int_equal(m.pss, 1200 * 1024);
  assert_int_equal(m.anonymous, 64 * 1024);
  assert_int_equal(m.swap, 0);
  char cut[sizeof good];
  for (size_t n = 0; n < sizeof good - 20; n++) { /* cut anywhere before the last line it needs */
    memcpy(cut, good, n);
    cut[n] = 0;
    m6_heap_parse(cut, &m);
  }
  assert_int_equal(m6_heap_parse("", &m), -1);
  assert_int_equal(m6_heap_parse("x\nRss: 18446744073709551615 kB\nPss: 1 kB\nAnonymous: 1 kB\nSwap: 1 kB\n", &m), -1);
}

static const char smaps[] =
  "55d0c000-55d0d000 rw-p 00001000 08:01 77   /usr/bin/game\nAnonymous:   4 kB\nSwap:   0 kB\n"
  "55d0d000-55d10000 rw-p 00000000 00:00 0\nAnonymous:   8 kB\n" /* its .bss */
  "55d20000-55d40000 rw-p 00000000 00:00 0    [heap]\nRss:   99 kB\nAnonymous:   100 kB\nSwap:   3 kB\n"
  "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \nAnonymous:   50 kB\n" /* an arena, and the rest of it */
  "7f0000021000-7f0004000000 ---p 00000000 00:00 0 \nAnonymous:   0 kB\n"
  "7f0004000000-7f0004021000 rw-p 00000000 00:00 0 \nAnonymous:   7 kB\n" /* another right behind it */
  "7f0010000000-7f0010001000 ---p 00000000 00:00 0 \nAnonymous:   0 kB\n"
  "7f0010001000-7f0010801000 rw-p 00000000 00:00 0 \nAnonymous:   1000 kB\n" /* a thread's stack */
  "7f0020000000-7f0020100000 rw-p 00000000 00:00 0 \nAnonymous:   200 kB\n"  /* a large block */
  "7f0030000000-7f0030100000 r--p 00000000 00:00 0 \nAnonymous:   20 kB\n"
  "7f0040000000-7f0040100000 rw-s 00000000 00:01 9 /memfd:x (deleted)\nAnonymous:   30 kB\n"
  "7f0050000000-7f0050100000 rw-p 00000000 00:00 0    [anon: glibc: malloc arena]\nAnonymous:   11 kB\n"
  "7ffd0000000-7ffd0021000 rw-p 00000000 00:00 0    [stack]\nAnonymous:   60 kB\n";
static void heap_mappings(void **state)
{
  (void)state;
  struct m6_heap_maps m = {0};
  char line[256];
  for (const char *at = smaps; *at; at += strcspn(at, "\n") + 1) {
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n") + 1, at);
    m6_heap_maps_line(&m, line);
  }
  assert_int_equal(m.held, (100 + 3 + 50 + 7 + 200 + 11) * 1024);
  assert_int_equal(m.anonymous, (4 + 8 + 100 + 50 + 7 + 1000 + 200 + 20 + 30 + 11 + 60) * 1024);
  assert_int_equal(m.swap, 3 * 1024);
  assert_int_equal(m.rss, 99 * 1024);
  m6_heap_maps_line(&m, "Anonymous: 18446744073709551615 kB");
  m6_heap_maps_line(&m, "");
  m6_heap_maps_line(&m, "7ffd0000000-7ffd0021000 rw-p\n");
}

static void overhead_by_level(void **state)
{
  (void)state;
  static const enum m6_budget_id id[3] = {M6_BUDGET_OVERHEAD_MEMORY, M6_BUDGET_OVERHEAD_LITE, M6_BUDGET_OVERHEAD_FULL};
  for (int level = 0; level < 3; level++) {
    static struct m6_governor g;
    double budget[3];
    for (int l = 0; l < 3; l++) budget[l] = (double)m6_budget_cap(id[l]) / 1e6;
    for (int over = 0; over < 2; over++) {
      struct m6_spent s = {.now = 0};
      m6_governor_begin(&g, (enum m6_level)level, budget, 0, 0);
      int stepped = 0;
      for (int i = 0; i < 40; i++) {
        s.now += S / 2;
        s.collector += (uint64_t)(0.5e9 * budget[level] * (over ? 1.02 : 0.98));
        stepped += m6_governor_look(&g, &s) != M6_GOVERNOR_STAY;
      }
      assert_int_equal(stepped != 0, over);
      assert_int_equal(g.overs[level] != 0, over);
    }
  }
}
static void session_chain(void **state)
{
  (void)state;
  assert_int_equal(row("session.chain")->cap, M6_SNAP_LINKS);
  double x[M6_TREND_MAX + 1], y[M6_TREND_MAX + 1];
  for (int i = 0; i <= (int)M6_TREND_MAX; i++) x[i] = i, y[i] = 3 * i;
  assert_true(fabs(m6_trend_of(x, y, M6_TREND_MAX, 1).slope - 3) < 1e-9);
  assert_true(isnan(m6_trend_of(x, y, M6_TREND_MAX + 1, 1).slope));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_row_has_a_name_of_its_own_a_cap_and_words),
    cmocka_unit_test(the_designs_numbers),
    cmocka_unit_test(an_option_lowers_and_none_raises),
    cmocka_unit_test(what_another_process_uses_is_lowered_there),
    cmocka_unit_test(what_an_option_does_not_take),
    cmocka_unit_test(a_session_begins_with_nothing_used_and_keeps_its_caps),
    cmocka_unit_test(session_ttl),
    cmocka_unit_test(frames_retained_median_and_spikes),
    cmocka_unit_test(tree_nodes),
    cmocka_unit_test(heap_interval_and_pending),
    cmocka_unit_test(heap_at_the_end_of_a_session),
    cmocka_unit_test(heap_text),
    cmocka_unit_test(heap_mappings),
    cmocka_unit_test(overhead_by_level),
    cmocka_unit_test(session_chain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
