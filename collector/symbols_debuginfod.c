/* symbols_debuginfod.c - see symbols_debuginfod.h. May call symbols_debug.h, elfutils (libdw, to find dwz's file),
 * libdebuginfod, libc. */
#include "symbols_debuginfod.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uthash.h>

#include "../shm/clock.h"
#include "../shm/order.h"
#include "hash_free.h"
#include "symbols_debug.h"

#define NICE 5
#define FOREVER UINT64_MAX

struct wanted {
  char build_id[M6_BUILD_ID_TEXT];
  int pending;
  char *path; /* NULL: nobody has it */
  struct wanted *next;
  UT_hash_handle hh;
};
struct client; /* debuginfod.h's; its functions' types as they are there, as the header need not be installed */
static struct {
  void *(*begin)(void);
  void (*end)(struct client *c);
  int (*find)(struct client *c, const unsigned char *build_id, int bytes, char **path);
  void (*watch)(struct client *c, int (*progress)(struct client *c, long a, long b));
} library;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, news = PTHREAD_COND_INITIALIZER;
static struct { /* under the lock */
  struct wanted *all, *first, *last;
  uint32_t pending, missed;
  int running, stopped, error;
  uint64_t until_ns;
  pthread_t thread;
} state = {.until_ns = FOREVER};
static int stop; /* as state.stopped, for the thread while it downloads */
static struct {  /* the thread's own: the download at hand */
  long at;
  uint64_t heard_ns;
  int silent;
} download;

int m6_debuginfod_on(void)
{
  static int known; /* 1: no, 2: yes */
  if (!m6_peek(&known)) {
    const char *urls = getenv("DEBUGINFOD_URLS");
    m6_poke(&known, urls && *urls ? 2 : 1);
  }
  return m6_peek(&known) == 2;
}

/* ---- the thread
 * --------------------------------------------------------------------------------------------------------- */

static int load(void)
{
  static const struct {
    const char *name;
    void *to;
  } functions[] = {{"debuginfod_begin", &library.begin},
                   {"debuginfod_end", &library.end},
                   {"debuginfod_find_debuginfo", &library.find},
                   {"debuginfod_set_progressfn", &library.watch}};
  void *file = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!file) return ELIBACC;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (!(*(void **)functions[i].to = dlsym(file, functions[i].name))) return ELIBBAD;
  return 0;
}

/* Called about once a second, more often while bytes arrive. Until a server has answered `a` counts the calls and b is
 * 0; then a is bytes, of b, where the server tells that. Not 0: give it up. */
static int progress(struct client *c, long a, long b)
{
  (void)c;
  uint64_t now = m6_monotonic_ns();
  if (a > download.at + 1 || (b > 0 && a != download.at)) download.heard_ns = now;
  download.at = a;
  download.silent = now - download.heard_ns > M6_DEBUGINFOD_SILENT_MS * 1000000ull;
  return download.silent || m6_observe(&stop);
}

/* 0 and the path, or an errno: ENOENT when the servers do not have it. */
static int fetch(struct client *c, const char *build_id, char **path)
{
  download.at = 0, download.silent = 0;
  download.heard_ns = m6_monotonic_ns();
  *path = NULL;
  int fd = library.find(c, (const unsigned char *)build_id, 0, path);
  if (fd < 0) return download.silent ? ETIMEDOUT : -fd;
  close(fd);
  return *path ? 0 : ENOMEM;
}

/* The build-id of the file that dwz put common parts into; "" when there is none, or it is here. */
static void shared_part(const char *path, char build_id[M6_BUILD_ID_TEXT])
{
  FILE *f = fopen(path, "re");
  Dwarf *dwarf = f ? dwarf_begin(fileno(f), DWARF_C_READ) : NULL;
  const char *name;
  const void *bits = NULL;
  ssize_t n = dwarf ? dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &bits) : -1;
  m6_debug_hex(bits, n, build_id);
  char *found;
  int fd = *build_id ? m6_debug_local(&(struct m6_debug_of){.path = "", .root = "", .build_id = build_id}, &found) : -1;
  if (fd >= 0) {
    close(fd);
    free(found);
    *build_id = 0;
  }
  if (dwarf) dwarf_end(dwarf);
  if (f) fclose(f);
}

/* Finds or makes it; under the lock. NULL when nobody will be asked. */
static struct wanted *wanted_of(const char *build_id)
{
  struct wanted *w;
  HASH_FIND_STR(state.all, build_id, w);
  if (w || state.stopped || !(w = calloc(1, sizeof *w))) return w;
  snprintf(w->build_id, sizeof w->build_id, "%s", build_id);
  HASH_ADD_STR(state.all, build_id, w);
  return w;
}

static void *work(void *arg)
{
  struct client *c = NULL;
  char shared_id[M6_BUILD_ID_TEXT];
  setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
  int error = load();
  if (!error && !(c = library.begin())) error = ENOMEM;
  if (c) library.watch(c, progress);
  pthread_mutex_lock(&lock);
  while (!state.stopped) {
    struct wanted *w = state.first;
    if (!w) {
      pthread_cond_wait(&more, &lock);
      continue;
    }
    pthread_mutex_unlock(&lock);
    char *path = NULL, *shared = NULL;
    int e = error ? error : fetch(c, w->build_id, &path);
    if (!e) shared_part(path, shared_id);
    int shared_error = !e && *shared_id ? fetch(c, shared_id, &shared) : 0;
    pthread_mutex_lock(&lock);
    if (state.stopped && !path) break;                                  /* it had not come */
    struct wanted *of = !e && *shared_id ? wanted_of(shared_id) : NULL; /* also when nobody has it */
    if (of && !of->path) of->path = shared;
    else free(shared);
    if (!(state.first = w->next)) state.last = NULL;
    free(w->path);
    w->path = path;
    w->pending = 0;
    state.pending--;
    /* What one file alone is refused for is no reason to ask for no other. */
    int last = e ? e : shared_error;
    if (last && last != ENOENT && last != EFBIG && !state.stopped) {
      state.error = error = last;
      state.missed++;
    }
    pthread_cond_broadcast(&news);
  }
  pthread_mutex_unlock(&lock);
  if (c) library.end(c);
  return arg;
}

/* Under the lock. Signals are the loop's. */
static void start(void)
{
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int e = pthread_create(&state.thread, NULL, work, NULL);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  state.running = !e;
  if (e) state.error = e, state.stopped = 1;
}

/* ---- asked from outside
 * -------------------------------------------------------------------------------------------------- */

static struct wanted *ask(const char *build_id)
{
  struct wanted *w;
  HASH_FIND_STR(state.all, build_id, w);
  if (w) return w;
  if (!state.running && !state.stopped) start();
  if (!(w = wanted_of(build_id))) return NULL;
  w->pending = 1;
  state.pending++;
  if (state.last) state.last->next = w;
  else state.first = w;
  state.last = w;
  pthread_cond_signal(&more);
  return w;
}

static int worth_waiting(void) { return state.until_ns == FOREVER || m6_monotonic_ns() < state.until_ns; }

static void wait_news(void)
{
  if (state.until_ns == FOREVER) {
    pthread_cond_wait(&news, &lock);
    return;
  }
  struct timespec until = {(time_t)(state.until_ns / 1000000000u), (long)(state.until_ns % 1000000000u)};
  pthread_cond_clockwait(&news, &lock, CLOCK_MONOTONIC, &until);
}

int m6_debuginfod_pending(const char *build_id)
{
  if (!m6_debuginfod_on() || !*build_id) return 0;
  pthread_mutex_lock(&lock);
  const struct wanted *w = ask(build_id);
  int is = w && w->pending && worth_waiting();
  pthread_mutex_unlock(&lock);
  return is;
}

static __thread int hasty;
void m6_debuginfod_hasty(void) { hasty = 1; }

int m6_debuginfod_path(const char *build_id, char *path, size_t room)
{
  if (!m6_debuginfod_on() || !*build_id) return 0;
  pthread_mutex_lock(&lock);
  const struct wanted *w = ask(build_id);
  while (w && w->pending && !hasty && worth_waiting()) wait_news();
  int there = w && w->path;
  if (there) snprintf(path, room, "%s", w->path);
  pthread_mutex_unlock(&lock);
  return there;
}

void m6_debuginfod_patience(int ms)
{
  if (!m6_debuginfod_on()) return;
  pthread_mutex_lock(&lock);
  state.until_ns = ms < 0 ? FOREVER : m6_monotonic_ns() + (uint64_t)ms * 1000000u;
  pthread_cond_broadcast(&news);
  pthread_mutex_unlock(&lock);
}

void m6_debuginfod_settle(void)
{
  if (!m6_debuginfod_on()) return;
  pthread_mutex_lock(&lock);
  while (state.pending && worth_waiting()) wait_news();
  pthread_mutex_unlock(&lock);
}

static void free_wanted(struct wanted *w)
{
  free(w->path);
  free(w);
}

uint32_t m6_debuginfod_close(int *error)
{
  *error = 0;
  if (!m6_debuginfod_on()) return 0;
  pthread_mutex_lock(&lock);
  state.stopped = 1;
  m6_publish(&stop, 1);
  pthread_cond_broadcast(&more);
  pthread_mutex_unlock(&lock);
  if (state.running) pthread_join(state.thread, NULL);
  uint32_t missed = state.missed + state.pending;
  *error = state.error;
  M6_HASH_FREE(state.all, free_wanted);
  state.first = state.last = NULL;
  state.pending = 0;
  state.running = 0;
  return missed;
}
