/* site_names.c - see site_names.h. A queue of stack numbers with one taker; what is known is published by one pointer
 * each. */
#include "site_names.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../shm/clock.h"
#include "../shm/order.h"
#include "symbols_debuginfod.h"

#define NAMES 48         /* functions of one stack */
#define STACK_TEXT 3800u /* bytes of its text */
#define NICE 5
#define AGAIN_MS 50
#define KINDS 2
#define OF_KIND(kind, stack) ((stack)*KINDS + (kind))

struct m6_site_names {
  const struct m6_site_stacks *stacks;
  struct m6_symbols *symbols;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t more, idle;
  uint32_t *queue; /* of OF_KIND: each stack is asked for once a kind */
  uint32_t asked, done;
  int stop;
  char **text; /* by OF_KIND. A text stays where it is: who asked may be reading it */
  uint8_t *wanted;
};

/* ---- text
 * ------------------------------------------------------------------------------------------------------------------------
 * */

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

static char *text_of(struct m6_symbols *symbols, const struct m6_site_stacked *k, enum m6_site_naming kind)
{
  int (*names_of)(struct m6_symbols *, struct m6_sym_place, struct m6_sym_name *,
                  int) = kind == M6_NAMES_WHOLE ? m6_symbols_place_names : m6_symbols_place_brief;
  struct m6_sym_name names[M6_SYM_INLINE_MAX];
  char text[STACK_TEXT + 64];
  size_t whole = 0;
  int lines = 0;
  for (uint32_t i = 0; i < k->count && lines < NAMES; i++) {
    int n = names_of(symbols, k->place[i], names, M6_SYM_INLINE_MAX);
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

/* ---- the thread
 * -------------------------------------------------------------------------------------------------------------------
 * */

static struct timespec after_ms(unsigned ms)
{
  uint64_t ns = m6_monotonic_ns() + ms * 1000000ull;
  return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* In a while; at once when it is to stop. Under the lock. */
static void look_again(struct m6_site_names *n)
{
  struct timespec until = after_ms(AGAIN_MS);
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
    uint32_t at = n->queue[n->done];
    const struct m6_site_stacked *k = n->stacks->list[at / KINDS];
    struct m6_symbols *symbols = n->symbols;
    pthread_mutex_unlock(&n->lock);
    int later = is_pending(symbols, k);
    char *text = later ? NULL : text_of(symbols, k, at % KINDS);
    if (text) m6_publish(&n->text[at], text);
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
  n->queue = malloc(KINDS * M6_SITE_STACKS_MAX * sizeof *n->queue);
  n->text = calloc(KINDS * M6_SITE_STACKS_MAX, sizeof *n->text);
  n->wanted = calloc(KINDS * M6_SITE_STACKS_MAX, 1);
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
  for (uint32_t i = 0; i < KINDS * M6_SITE_STACKS_MAX; i++) free(n->text[i]);
  free(n->queue);
  free(n->text);
  free(n->wanted);
  pthread_mutex_destroy(&n->lock);
  pthread_cond_destroy(&n->more);
  pthread_cond_destroy(&n->idle);
  free(n);
}

void m6_site_names_ask(struct m6_site_names *n, struct m6_symbols *symbols, uint32_t stack, enum m6_site_naming kind)
{
  if (!n || stack >= M6_SITE_STACKS_MAX) return;
  if (n->wanted[OF_KIND(kind, stack)] || n->wanted[OF_KIND(M6_NAMES_WHOLE, stack)]) return;
  n->wanted[OF_KIND(kind, stack)] = 1;
  pthread_mutex_lock(&n->lock);
  n->symbols = symbols;
  n->queue[n->asked++] = OF_KIND(kind, stack);
  pthread_cond_signal(&n->more);
  pthread_mutex_unlock(&n->lock);
}

const char *m6_site_names_text(struct m6_site_names *n, uint32_t stack)
{
  if (!n || stack >= M6_SITE_STACKS_MAX) return NULL;
  const char *whole = m6_observe(&n->text[OF_KIND(M6_NAMES_WHOLE, stack)]);
  return whole ? whole : m6_observe(&n->text[OF_KIND(M6_NAMES_BRIEF, stack)]);
}

int m6_site_names_wait(struct m6_site_names *n, unsigned ms)
{
  struct timespec until = after_ms(ms);
  int e = 0;
  if (!n) return 1;
  pthread_mutex_lock(&n->lock);
  while (n->done != n->asked && e != ETIMEDOUT)
    e = ms ? pthread_cond_clockwait(&n->idle, &n->lock, CLOCK_MONOTONIC, &until) : ETIMEDOUT;
  int all = n->done == n->asked;
  pthread_mutex_unlock(&n->lock);
  return all;
}
