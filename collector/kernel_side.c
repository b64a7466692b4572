/* kernel_side.c - opening, polling, closing. See kernel_side.h. */
#include "budgets.h"
#include "kernel_side.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats_proc.h"

#define SLOW_NS 1000000000ull        /* what costs system calls a thread is read so often */
#define REFRESH_FIRST_NS 50000000ull /* a program that has just begun maps more soon; each further look comes later */
#define NAME_LOOKS 3                 /* threads get their names late, and seldom another */

void m6_kernel_refuse(struct m6_kernel_side *k, enum m6_kernel_part part, const struct m6_fault *fault)
{
  for (uint32_t i = 0; i < k->refused_count; i++)
    if (k->refused[i].part == part && k->refused[i].error == fault->err) return; /* one reason each */
  if (k->refused_count == M6_KERNEL_REFUSALS_MAX) return;
  struct m6_kernel_refusal *r = &k->refused[k->refused_count++];
  *r = (struct m6_kernel_refusal){.part = part, .error = fault->err};
  snprintf(r->what, sizeof r->what, "%s %s", fault->tried, fault->on);
  r->hint = m6_fault_hint(fault->area, fault->err);
}

static void open_symbols(struct m6_kernel_side *k)
{
  int e = m6_symbols_open(k->pid, &k->symbols);
  struct m6_fault fault;
  if (e == 0) return;
  k->symbols = NULL;
  m6_fault_set(&fault, e, M6_AREA_PROC, "read", "what process %d has mapped", (int)k->pid);
  m6_kernel_refuse(k, M6_KERNEL_PART_SYMBOLS, &fault);
}

static int refresh(struct m6_kernel_side *k, uint64_t now);

/* A stack that ends in code which is not known may go on where that was mapped since: then, and seldom, it is looked at
 * again. */
static uint32_t unwind(void *arg, const struct m6_user_state *state, uint64_t *ip, uint32_t most)
{
  struct m6_kernel_side *k = arg;
  uint32_t n = m6_symbols_unwind(k->symbols, state, ip, most);
  if (n == 0 || m6_symbols_covers(k->symbols, ip[n - 1])) return n;
  k->uncovered = 1;
  return refresh(k, m6_monotonic_ns()) ? m6_symbols_unwind(k->symbols, state, ip, most) : n;
}

static void open_samples(struct m6_kernel_side *k)
{
  int full = k->level == M6_LEVEL_FULL;
  struct m6_samples_options o = {.pid = k->pid, .period_us = m6_kernel_period(full)};
  o.retained = (uint32_t)m6_budget_cap(M6_BUDGET_SAMPLES);
  if (k->symbols) o.unwind = unwind, o.unwind_arg = k;
  int e = m6_samples_open(&o, &k->samples, &k->sampling);
  for (uint32_t i = 0; i < k->sampling.refusals && i < M6_REFUSALS; i++) {
    const struct m6_refusal *r = &k->sampling.refused[i];
    struct m6_fault fault;
    m6_fault_set(&fault, r->error, r->area, r->what, "of process %d", (int)k->pid);
    if (r->error) m6_kernel_refuse(k, M6_KERNEL_PART_SAMPLES, &fault);
  }
  if (e == 0) return;
  k->samples = NULL;
  struct m6_fault fault;
  m6_fault_set(&fault, e, M6_AREA_PERF_SELF, "sample", "process %d", (int)k->pid);
  m6_kernel_refuse(k, M6_KERNEL_PART_SAMPLES, &fault);
}

static void open_counters(struct m6_kernel_side *k)
{
  struct m6_fault fault;
  struct m6_counters_options o = {.tgids = &k->pid,
                                  .count = 1,
                                  .syscalls = k->level == M6_LEVEL_FULL,
                                  .frames = k->frame_place ? M6_FRAMES_PLACE : M6_FRAMES_SHIM,
                                  .frame_place = k->frame_place,
                                  .shim = k->shim};
  if (m6_counters_open(&k->counters, &o, &fault) == 0) {
    k->have_frames = 1;
    return;
  }
  struct m6_fault frames = fault;
  o.frames = M6_FRAMES_NONE;
  if (m6_counters_open(&k->counters, &o, &fault) == 0) { /* so it was the frames alone that could not be had */
    m6_kernel_refuse(k, M6_KERNEL_PART_FRAMES, &frames);
    return;
  }
  k->counters = NULL;
  m6_kernel_refuse(k, M6_KERNEL_PART_COUNTERS, &fault);
  k->proc = m6_proc_threads_open();
  m6_kernel_switches_open(k);
  if (m6_faults_open(&k->faults, k->pid, &fault) == 0) k->have_faults = 1;
  else m6_kernel_refuse(k, M6_KERNEL_PART_FAULTS, &fault);
}

static void *open_all(void *arg)
{
  struct m6_kernel_side *k = arg;
  open_symbols(k);
  open_samples(k);
  open_counters(k);
  k->opened_ns = k->counters ? k->counters->open_ns : m6_monotonic_ns();
  m6_publish(&k->ready, 1);
  return NULL;
}

/* Is all of it there? Joins the thread when it has done its work, or at once when it is to be waited for. */
static int is_open(struct m6_kernel_side *k, int wait)
{
  if (!k->opening) return 1;
  if (!wait && !m6_observe(&k->ready)) return 0;
  pthread_join(k->opener, NULL);
  k->opening = 0;
  return 1;
}

struct m6_kernel_side *m6_kernel_open(const struct m6_kernel_options *o)
{
  if (o->level == M6_LEVEL_MEMORY) return NULL;
  struct m6_kernel_side *k = calloc(1, sizeof *k);
  if (k == NULL) return NULL;
  k->pid = o->pid;
  k->level = k->level_now = k->held = k->most = o->level;
  k->duty = 1;
  k->frame_place = o->frame_place;
  k->shim = o->shim;
  k->join = m6_join_new();
  k->names.places = calloc(M6_KERNEL_PLACES, sizeof *k->names.places);
  k->seen.places = calloc(M6_KERNEL_PLACES, sizeof *k->seen.places);
  k->opening = pthread_create(&k->opener, NULL, open_all, k) == 0;
  if (!k->opening) open_all(k);
  if (o->now) is_open(k, 1);
  return k;
}

void m6_kernel_changed(struct m6_kernel_side *k)
{
  if (k == NULL || !is_open(k, 0)) return;
  k->uncovered = 1;
  k->refreshes = 0;
  k->refreshed_ns = 0;
}

void m6_kernel_modules(struct m6_kernel_side *k, void (*each)(void *, const struct m6_sym_module *), void *arg)
{
  if (k && is_open(k, 0) && k->symbols) m6_symbols_met(k->symbols, each, arg);
}

/* ---- polling ----------------------------------------------------------------------------------------------------- */

/* Soon at first, once a second in the long run; a process that has ended leaves the old map. */
static int refresh(struct m6_kernel_side *k, uint64_t now)
{
  uint64_t wait = REFRESH_FIRST_NS << (k->refreshes < 5 ? k->refreshes : 5);
  if (wait > SLOW_NS) wait = SLOW_NS;
  if (!k->uncovered || k->symbols == NULL || now - k->refreshed_ns < wait) return 0;
  m6_symbols_refresh(k->symbols);
  k->uncovered = 0;
  k->refreshes++;
  k->refreshed_ns = now;
  return 1;
}

/* Its place, or the free one where it would be. Half of them stay free. */
static struct m6_kernel_thread *place_of(struct m6_kernel_thread *table, uint32_t tid)
{
  uint32_t at = tid * 0x9e3779b1u % M6_KERNEL_PLACES;
  while (table[at].tid != 0 && table[at].tid != tid) at = (at + 1) % M6_KERNEL_PLACES;
  return &table[at];
}
/* The same, made when it is new; NULL when there is no room. */
static struct m6_kernel_thread *take_place(struct m6_kernel_table *t, uint32_t tid)
{
  if (tid == 0 || t->places == NULL) return NULL;
  struct m6_kernel_thread *n = place_of(t->places, tid);
  if (n->tid == tid) return n;
  if (t->used == M6_KERNEL_PLACES / 2) return NULL;
  t->used++;
  n->tid = tid;
  return n;
}

const char *m6_kernel_name(const struct m6_kernel_side *k, uint32_t tid)
{
  return k->names.places && tid ? place_of(k->names.places, tid)->name : "";
}
uint64_t m6_kernel_samples(const struct m6_kernel_side *k, uint32_t own_tid)
{
  return k->seen.places && own_tid ? place_of(k->seen.places, own_tid)->samples : 0;
}

static void sampled(void *arg, const struct m6_sample *s)
{
  struct m6_kernel_side *k = arg;
  uint32_t n;
  const uint64_t *ip = m6_samples_stack(k->samples, s->user, &n);
  if (n && k->symbols && !k->uncovered && !m6_symbols_covers(k->symbols, ip[0])) k->uncovered = 1;
  if (k->symbols) m6_symbols_ask(k->symbols, ip, n); /* names come at the end */
  if (k->join) m6_join_add(k->join, s);
  struct m6_kernel_thread *t = take_place(&k->seen, s->tid);
  if (t) t->samples += s->weight;
}

static void learn_name(struct m6_kernel_side *k, uint32_t tid)
{
  char name[64];
  struct m6_kernel_thread *n = take_place(&k->names, tid);
  if (n == NULL || n->looked >= NAME_LOOKS) return;
  n->looked++;
  if (m6_proc_thread_name(k->pid, (pid_t)tid, name, sizeof name) >= 0)
    snprintf(n->name, sizeof n->name, "%.*s", (int)sizeof n->name - 1, name);
}

void m6_kernel_read(struct m6_kernel_side *k, int last)
{
  k->slow_ns = m6_monotonic_ns();
  uint32_t count = 0;
  const struct m6_thread_counters *rows = NULL;
  if (k->counters) {
    struct m6_fault fault;
    int e = m6_counters_read(k->counters, last, &fault);
    if (e && e != EAGAIN) m6_kernel_refuse(k, M6_KERNEL_PART_COUNTERS, &fault);
    rows = k->counters->threads;
    count = k->counters->thread_count;
  } else if (k->proc) {
    m6_proc_threads_read(k->proc, k->pid);
    rows = m6_proc_threads_rows(k->proc, &count);
  }
  for (uint32_t i = 0; i < count; i++) learn_name(k, (uint32_t)rows[i].tid);
  if (k->have_faults) m6_faults_read(&k->faults, &k->minor, &k->major);
}

void m6_kernel_poll(struct m6_kernel_side *k)
{
  if (k == NULL || k->stopped || !is_open(k, 0)) return;
  uint64_t now = m6_monotonic_ns();
  if (k->samples) m6_samples_poll(k->samples, sampled, k);
  if (k->have_frames) m6_counters_frames(k->counters, m6_kernel_boundary, k);
  m6_kernel_switches_poll(k);
  refresh(k, now);
  if (k->resting || k->change.running || (!k->due && now - k->slow_ns < SLOW_NS)) return;
  k->due = 0;
  m6_kernel_read(k, 0);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

void m6_kernel_stop(struct m6_kernel_side *k)
{
  if (k == NULL || k->stopped) return;
  is_open(k, 1);
  m6_kernel_settled(k, 1);
  if (k->counters) m6_counters_stop(k->counters);
  if (k->have_frames) m6_counters_frames(k->counters, m6_kernel_boundary, k);
  m6_kernel_switches_stop(k);
  if (k->samples) {
    m6_samples_stop(k->samples);
    m6_samples_poll(k->samples, sampled, k);
  }
  if (k->uncovered && k->symbols) m6_symbols_refresh(k->symbols);
  m6_kernel_read(k, 1);
  k->stopped = 1;
}

void m6_kernel_close(struct m6_kernel_side *k)
{
  if (k == NULL) return;
  is_open(k, 1);
  m6_kernel_settled(k, 1);
  m6_kernel_view_free(k->view);
  m6_profile_free(k->profile);
  m6_counters_close(k->counters);
  if (k->have_faults) m6_faults_close(&k->faults);
  m6_proc_threads_close(k->proc);
  m6_kernel_switches_close(k);
  m6_samples_close(k->samples);
  if (k->symbols) m6_symbols_close(k->symbols);
  m6_join_free(k->join);
  free(k->names.places);
  free(k->seen.places);
  free(k->frames);
  free(k);
}
