/* kernel_side_hold.c - what of the kernel's side runs at a level: detaches when the governor leaves one, attaches when
 * it comes back. See kernel_side.h.
 *
 * Below level full nothing is counted at system calls; below lite nothing at all, and the books rest where they were.
 * Detaching waits for programs that run, and the probe of a frame for longer; before attaching, /proc of each thread is
 * read: a thread does both, and until it is done the counters are not read.
 */
#include <errno.h>

#include "kernel_side.h"
#include "say.h"
#include "stats_words.h"

static void *change(void *arg)
{
  struct m6_kernel_side *k = arg;
  struct m6_kernel_change *x = &k->change;
  struct m6_counters *c = k->counters;
  int calls = x->to == M6_LEVEL_FULL;
  if (x->to == M6_LEVEL_MEMORY) m6_counters_pause(c);
  else if (k->held == M6_LEVEL_MEMORY) x->err = m6_counters_resume(c, calls, &x->fault);
  else if (calls) x->err = m6_counters_calls_resume(c, &x->fault);
  else m6_counters_calls_stop(c);
  m6_publish(&x->done, 1);
  return NULL;
}

/* What is not a program is switched at once. */
static void rest(struct m6_kernel_side *k)
{
  if (k->samples) m6_samples_rest(k->samples, 1);
  k->paused = 1;
  m6_kernel_switches_rest(k);
  k->resting = 1;
  k->rested_ns = m6_monotonic_ns();
}
static void wake(struct m6_kernel_side *k)
{
  k->resting = 0;
  m6_kernel_switches_wake(k);
  if (k->samples) m6_samples_rest(k->samples, 0);
  k->looks = 0;
  m6_kernel_changed(k); /* what it has mapped since */
  k->due = 1;
}

static void begin(struct m6_kernel_side *k, uint32_t level)
{
  struct m6_kernel_change *x = &k->change;
  if (k->held == M6_LEVEL_MEMORY) wake(k);
  *x = (struct m6_kernel_change){.running = 1, .to = level, .done = k->counters == NULL};
  if (k->counters) x->threaded = pthread_create(&x->thread, NULL, change, k) == 0;
  if (k->counters && !x->threaded) change(k);
  if (level == M6_LEVEL_MEMORY) rest(k);
}

void m6_kernel_settled(struct m6_kernel_side *k, int wait)
{
  struct m6_kernel_change *x = &k->change;
  char why[700];
  if (!x->running || (!wait && !m6_observe(&x->done))) return;
  if (x->threaded) pthread_join(x->thread, NULL);
  x->running = 0;
  if (x->err == ESRCH) { /* it has ended, and so does the session */
    if (k->held == M6_LEVEL_MEMORY) rest(k);
  } else if (x->err) {
    m6_say(M6_VERBOSE, "level %s does not come back: %s", m6_level_name(x->to),
           m6_fault_text(&x->fault, why, sizeof why));
    m6_kernel_refuse(k, M6_KERNEL_PART_COUNTERS, &x->fault);
    k->most = k->held;
    if (k->held == M6_LEVEL_MEMORY) rest(k);
  } else k->held = x->to;
  if (k->held == M6_LEVEL_MEMORY) m6_kernel_read(k, 1);
  else k->due = 1; /* rows and what they cost go together */
}

uint32_t m6_kernel_hold(struct m6_kernel_side *k, uint32_t level)
{
  m6_kernel_settled(k, 0);
  if (level > k->most) level = k->most;
  if (!k->change.running && level != k->held) begin(k, level);
  return k->most;
}
