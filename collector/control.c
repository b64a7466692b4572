/* control.c - see control.h. */
#include "control.h"

#include "kernel_side.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../shm/sites.h"
#include "bounds.h"
#include "site_side.h"

struct call {
  struct m6_image *i;
  struct m6_control *control;
  struct m6_drained *got;
  uint32_t level, sites;
  int flag, error;
};

static void read_control(void *arg)
{
  struct call *c = arg;
  const struct m6_header *h = m6_segment_header(c->i->segment);
  c->control->state = m6_observe(&h->state);
  c->control->end_reason = m6_peek(&h->end_reason);
  c->control->rings_used = m6_peek(&h->rings_used);
  c->control->sites_used = m6_peek(&h->sites_used);
  c->control->site_interval = m6_peek(&h->site_interval);
  c->control->sessions_started = m6_peek(&h->sessions_started);
  c->control->sessions_allowed = m6_peek(&h->sessions_allowed);
}
int m6_control_read(struct m6_image *i, struct m6_control *out)
{
  struct call c = {.i = i, .control = out};
  return m6_image_guarded(i, read_control, &c);
}

static void turn_on(void *arg)
{
  struct call *c = arg;
  struct m6_image *i = c->i;
  struct m6_header *h = m6_segment_header(i->segment);
  m6_poke(&h->collector_pid, (uint32_t)getpid());
  m6_poke(&h->heartbeat_ns, m6_monotonic_ns());
  m6_poke(&h->level, c->level);
  m6_poke(&h->site_interval, i->site_interval);
  m6_poke(&h->site_stack, i->site_interval == 1 ? M6_SITE_STACK_BYTES_EVERY : M6_SITE_STACK_BYTES);
  int running = m6_observe(&h->state) == M6_COLLECTING;
  uint32_t started = m6_peek(&h->sessions_started);
  uint64_t start_clock = m6_peek(&h->start_clock);
  if (!running || started > 1) {
    m6_totals_read(i->segment,
                   &i->base); /* of an inert target: exact. Else what a collector that died had counted is its own */
    for (uint32_t s = 0; s < M6_STREAMS; s++)
      if (!running || m6_peek(&h->streams[s].first_clock) < start_clock)
        i->base_presents[s] = m6_peek(&h->streams[s].presents);
  }
  i->session = m6_peek(&h->session);
  if (!running) {
    for (uint32_t r = 0; r < M6_RINGS && r < m6_peek(&h->rings_used); r++) {
      struct m6_ring_head *head = m6_segment_ring(i->segment, r);
      m6_ring_release(head, m6_observe(&head->claimed));
    }
    if (m6_observe(&h->sites_used)) {
      struct m6_ring_head *maps = &m6_site_head(i->segment)->maps_ring;
      m6_ring_release(maps, m6_observe(&maps->claimed));
    }
    if (++i->session == 0) i->session = 1;
    m6_poke(&h->session, i->session);
  }
  m6_publish(&h->want, M6_WANT_ON);
}
int m6_control_on(struct m6_image *i, uint32_t level)
{
  struct call c = {.i = i, .level = level};
  return m6_image_guarded(i, turn_on, &c);
}

static void beat(void *arg)
{
  struct call *c = arg;
  m6_poke(&m6_segment_header(c->i->segment)->heartbeat_ns, m6_monotonic_ns());
}
int m6_control_beat(struct m6_image *i)
{
  struct call c = {.i = i};
  return m6_image_guarded(i, beat, &c);
}

static void next_session(void *arg)
{
  struct call *c = arg;
  if (++c->i->session == 0) c->i->session = 1;
  m6_poke(&m6_segment_header(c->i->segment)->session, c->i->session);
}
int m6_control_next(struct m6_image *i)
{
  struct call c = {.i = i};
  return m6_image_guarded(i, next_session, &c);
}

static void set_level(void *arg)
{
  struct call *c = arg;
  m6_poke(&m6_segment_header(c->i->segment)->level, c->level);
  if (c->i->site_interval) m6_poke(&m6_segment_header(c->i->segment)->site_interval, c->sites);
}
int m6_control_level(struct m6_image *i, uint32_t level, uint32_t sites)
{
  struct call c = {.i = i, .level = level, .sites = sites};
  return m6_image_guarded(i, set_level, &c);
}

static void turn_off(void *arg)
{
  struct call *c = arg;
  struct m6_header *h = m6_segment_header(c->i->segment);
  m6_publish(&h->want, M6_WANT_OFF);
  if (!c->flag) return;
  m6_poke(&h->collector_pid, 0);
  m6_poke(&h->heartbeat_ns, 0); /* nobody waits for this target's end any more: its shim may clean up after itself */
}
int m6_control_off(struct m6_image *i, int let_go)
{
  struct call c = {.i = i, .flag = let_go};
  return m6_image_guarded(i, turn_off, &c);
}

static void here(void *arg)
{
  struct call *c = arg;
  m6_poke(&m6_segment_header(c->i->segment)->collector_pid, (uint32_t)getpid());
  beat(arg);
}
int m6_control_here(struct m6_image *i)
{
  struct call c = {.i = i};
  return m6_image_guarded(i, here, &c);
}

static void open_capture(void *arg)
{
  struct call *c = arg;
  c->error = m6_capture_open(c->i->capture, c->i->segment, c->i->who.pid, &c->i->base, c->i->base_presents);
}
int m6_image_capture(struct m6_image *i)
{
  if (i->capture) return 0;
  i->capture = calloc(1, sizeof *i->capture);
  if (i->capture == NULL) return ENOMEM;
  struct call c = {.i = i};
  int e = m6_image_guarded(i, open_capture, &c) == 0 ? c.error : EFAULT;
  if (e == 0) {
    m6_capture_bounds(i->capture);
    if (i->site_interval && (i->sites || (i->sites = m6_site_side_open(i->who.pid, i->site_interval)) != NULL))
      i->capture->sites = (struct m6_site_sink){i->sites, m6_site_side_record};
    return 0;
  }
  free(i->capture);
  i->capture = NULL;
  return e;
}

static void drain(void *arg)
{
  struct call *c = arg;
  *c->got = m6_capture_drain(c->i->capture, c->i->dead);
}
static void look_at_sites(void *arg)
{
  struct call *c = arg;
  m6_site_side_look(c->i->sites, c->i->capture, c->i->dead);
}
static uint64_t thread_cpu_ns(void)
{
  struct timespec t;
  return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec : 0;
}
int m6_image_drain(struct m6_image *i, struct m6_drained *got)
{
  *got = (struct m6_drained){0};
  struct m6_control now;
  m6_kernel_poll(i->kernel); /* before the rings: every record that a sample is compared with is there then */
  if (m6_control_read(i, &now) != 0) return -1;
  if (i->capture == NULL) {
    if (now.state == M6_INERT || (now.rings_used == 0 && now.sites_used == 0)) return 0;
    int e = m6_image_capture(i);
    if (e == EFAULT) return -1;
    if (e) return 0; /* no memory now: its rings fill up, and it is tried again */
  }
  struct call c = {.i = i, .got = got};
  m6_kernel_join(i->kernel, i->capture);
  int e = m6_image_guarded(i, drain, &c);
  m6_kernel_drained(i->kernel, i->capture);
  uint64_t from = i->sites ? thread_cpu_ns() : 0;
  int every = i->site_interval == 1 && now.site_interval == 1;
  uint32_t stacks = m6_site_side_work(i->sites, i->capture, every, got->records != 0);
  if (i->dead) m6_site_side_ended(i->sites, i->capture);
  if (i->sites) i->site_ns += thread_cpu_ns() - from;
  if (stacks > got->fullest) got->fullest = stacks;
  got->more = every && stacks == 100;
  if (e == 0 && i->sites) e = m6_image_guarded(i, look_at_sites, &c);
  return e;
}

static void sample(void *arg)
{
  struct call *c = arg;
  if (c->i->capture) {
    m6_capture_sample(c->i->capture, c->flag);
    c->i->now = c->i->capture->now;
  } else {
    m6_totals_read(c->i->segment, &c->i->now);
  }
}
int m6_image_sample(struct m6_image *i, int rest)
{
  struct call c = {.i = i, .flag = rest};
  return m6_image_guarded(i, sample, &c);
}
