/* site_names.c - see site_names.h. A queue of stack numbers with one taker; what is known is published by one pointer each. */
#include "site_names.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../shm/order.h"
#include "symbols_debuginfod.h"

#define NAMES 48         /* functions of one stack */
#define STACK_TEXT 3800u /* bytes of its text */
#define NICE 5
#define AGAIN_MS 50

struct m6_site_names {
  const struct m6_site_stacks *stacks;
  struct m6_symbols *symbols;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t more, idle;
  uint32_t *queue; /* M6_SITE_STACKS_MAX: each stack is asked for once */
  uint32_t asked, done;
  int stop;
  char **text; /* by stack */
  uint8_t *wanted;
};

/* ---- text ------------------------------------------------------------------------------------------------------------------------ */

static size_t put(char *text, size_t at, const char *from)
{
  for (; *from && at < STACK_TEXT; from++) text[at++] = (unsigned char)*from < 32 || *from == 127 ? '?' : *from;
  return at;
}

static size_t line_of(const struct m6_sym_name *name, char *text, size_t at)
{
  char line[24];
  if (at) text[at++] = '\n';
  if (name->inlined) text[at++] = '^';
  at = put(text, at, name->function);
  text[at++] = '\t';
  at = put(text, at, name->module);
  text[at++] = '\t';
  if (!name->file) return at;
  snprintf(line, sizeof line, ":%u", name->line);
  return put(text, put(text, at, name->file), line);
}

static char *text_of(struct m6_symbols *symbols, const struct m6_site_stacked *k)
{
  struct m6_sym_name names[M6_SYM_INLINE_MAX];
  char text[STACK_TEXT + 64];
  size_t whole = 0;
  int lines = 0;
  for (uint32_t i = 0; i < k->count && lines < NAMES; i++) {
    int n = m6_symbols_place_names(symbols, k->place[i], names, M6_SYM_INLINE_MAX);
    for (int j = 0; j < n && lines < NAMES; j++, lines++) {
      size_t at = line_of(&names[j], text, whole);
      if (at >= STACK_TEXT) return strndup(text, whole); /* without this line */
      whole = at;
    }
  }
  return strndup(text, whole);
}

/* Is a file of it still to come from debuginfod? All of them are asked for. */
static int is_pending(struct m6_symbols *symbols, const struct m6_site_stacked *k)
{
  int pending = 0;
  for (uint32_t i = 0; i < k->count; i++) pending |= m6_symbols_place_pending(symbols, k->place[i]);
  return pending;
}

/* ---- the thread ------------------------------------------------------------------------------------------------------------------- */

/* In a while; at once when it is to stop. Under the lock. */
static void look_again(struct m6_site_names *n)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += AGAIN_MS * 1000000;
  if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
  if (!n->stop) pthread_cond_clockwait(&n->more, &n->lock, CLOCK_MONOTONIC, &until);
}

static void *work(void *arg)
{
  struct m6_site_names *n = arg;
  setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
  m6_debuginfod_hasty();
  pthread_mutex_lock(&n->lock);
  while (!n->stop) {
    if (n->done == n->asked) {
      pthread_cond_broadcast(&n->idle);
      pthread_cond_wait(&n->more, &n->lock);
      continue;
    }
    uint32_t stack = n->queue[n->done];
    struct m6_symbols *symbols = n->symbols;
    pthread_mutex_unlock(&n->lock);
    int later = is_pending(symbols, n->stacks->list[stack]);
    char *text = later ? NULL : text_of(symbols, n->stacks->list[stack]);
    if (text) m6_publish(&n->text[stack], text);
    pthread_mutex_lock(&n->lock);
    if (later) look_again(n);
    else n->done++;
  }
  pthread_mutex_unlock(&n->lock);
  return NULL;
}

struct m6_site_names *m6_site_names_open(const struct m6_site_stacks *stacks)
{
  struct m6_site_names *n = calloc(1, sizeof *n);
  if (!n) return NULL;
  n->stacks = stacks;
  n->queue = malloc(M6_SITE_STACKS_MAX * sizeof *n->queue);
  n->text = calloc(M6_SITE_STACKS_MAX, sizeof *n->text);
  n->wanted = calloc(M6_SITE_STACKS_MAX, 1);
  pthread_mutex_init(&n->lock, NULL);
  pthread_cond_init(&n->more, NULL);
  pthread_cond_init(&n->idle, NULL);
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the loop's */
  int e = n->queue && n->text && n->wanted ? pthread_create(&n->thread, NULL, work, n) : -1;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (!e) return n;
  free(n->queue);
  free(n->text);
  free(n->wanted);
  free(n);
  return NULL;
}

void m6_site_names_close(struct m6_site_names *n)
{
  if (!n) return;
  pthread_mutex_lock(&n->lock);
  n->stop = 1;
  pthread_cond_broadcast(&n->more);
  pthread_mutex_unlock(&n->lock);
  pthread_join(n->thread, NULL);
  for (uint32_t i = 0; i < M6_SITE_STACKS_MAX; i++) free(n->text[i]);
  free(n->queue);
  free(n->text);
  free(n->wanted);
  pthread_mutex_destroy(&n->lock);
  pthread_cond_destroy(&n->more);
  pthread_cond_destroy(&n->idle);
  free(n);
}

const char *m6_site_names_text(struct m6_site_names *n, struct m6_symbols *symbols, uint32_t stack)
{
  if (!n || stack >= M6_SITE_STACKS_MAX) return NULL;
  if (n->wanted[stack]) return m6_observe(&n->text[stack]);
  n->wanted[stack] = 1;
  pthread_mutex_lock(&n->lock);
  n->symbols = symbols;
  n->queue[n->asked++] = stack;
  pthread_cond_signal(&n->more);
  pthread_mutex_unlock(&n->lock);
  return NULL;
}

void m6_site_names_wait(struct m6_site_names *n)
{
  if (!n) return;
  pthread_mutex_lock(&n->lock);
  while (n->done != n->asked) pthread_cond_wait(&n->idle, &n->lock);
  pthread_mutex_unlock(&n->lock);
}
