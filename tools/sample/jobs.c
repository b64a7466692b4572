/* jobs.c - a small job queue: a list of parts under one lock, workers that take from it, a caller that helps.
 *
 * Promise: jobs_run returns when every part has run, once. Each part is one allocation, taken from the list by whoever
 * comes first.
 * Thread-safety: one caller at a time.
 */
#include <pthread.h>
#include <stdlib.h>

#include "preload/mach6.h"
#include "sample.h"

struct job {
  struct job *next;
  const char *label;
  job_fn *fn;
  void *context;
  unsigned part;
};

struct jobs {
  pthread_mutex_t lock;
  pthread_cond_t work, idle;
  struct job *first, *last;
  unsigned unfinished;
  int stopping;
  unsigned threads;
  pthread_t thread[];
};

/* Runs the first job of the list; the lock is held before and after. */
static void run_one(struct jobs *j)
{
  struct job *job = j->first;
  j->first = job->next;
  if (!j->first) j->last = NULL;
  pthread_mutex_unlock(&j->lock);
  mach6_mark(job->label);
  job->fn(job->context, job->part);
  mach6_done();
  free(job);
  pthread_mutex_lock(&j->lock);
  if (--j->unfinished == 0) pthread_cond_signal(&j->idle);
}

static void *worker(void *arg)
{
  struct jobs *j = arg;
  pthread_mutex_lock(&j->lock);
  for (;;) {
    if (j->first) run_one(j);
    else if (j->stopping) break;
    else pthread_cond_wait(&j->work, &j->lock);
  }
  pthread_mutex_unlock(&j->lock);
  return NULL;
}

struct jobs *jobs_start(unsigned threads)
{
  struct jobs *j = calloc(1, sizeof *j + threads * sizeof j->thread[0]);
  if (!j) return NULL;
  pthread_mutex_init(&j->lock, NULL);
  pthread_cond_init(&j->work, NULL);
  pthread_cond_init(&j->idle, NULL);
  for (; j->threads < threads; j->threads++)
    if (pthread_create(&j->thread[j->threads], NULL, worker, j)) {
      jobs_stop(j);
      return NULL;
    }
  return j;
}

void jobs_run(struct jobs *j, const char *label, job_fn *fn, void *context, unsigned parts)
{
  mach6_mark("jobs");
  for (unsigned part = 0; part < parts; part++) {
    struct job *job = malloc(sizeof *job);
    if (!job) abort();
    *job = (struct job){.label = label, .fn = fn, .context = context, .part = part};
    pthread_mutex_lock(&j->lock);
    if (j->last) j->last->next = job;
    else j->first = job;
    j->last = job;
    j->unfinished++;
    pthread_mutex_unlock(&j->lock);
    pthread_cond_signal(&j->work);
  }
  pthread_mutex_lock(&j->lock);
  while (j->first) run_one(j);
  while (j->unfinished) pthread_cond_wait(&j->idle, &j->lock);
  pthread_mutex_unlock(&j->lock);
  mach6_done();
}

void jobs_stop(struct jobs *j)
{
  pthread_mutex_lock(&j->lock);
  j->stopping = 1;
  pthread_cond_broadcast(&j->work);
  pthread_mutex_unlock(&j->lock);
  for (unsigned i = 0; i < j->threads; i++) pthread_join(j->thread[i], NULL);
  pthread_cond_destroy(&j->idle);
  pthread_cond_destroy(&j->work);
  pthread_mutex_destroy(&j->lock);
  free(j);
}
