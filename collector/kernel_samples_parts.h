/* kernel_samples_parts.h - what the three files of the sampler share: kernel_samples.c (threads, stacks, the
 * interface), kernel_samples_bpf.c and kernel_samples_perf.c (the tiers); and kernel_switches.c, whose events and rings
 * are of the same kind. Nobody else includes it.
 */
#ifndef M6_KERNEL_SAMPLES_PARTS_H
#define M6_KERNEL_SAMPLES_PARTS_H

#include <linux/perf_event.h>
#include <time.h>
#include <uthash.h>

#include "kernel_samples.h"

struct m6_known_stack {
  uint64_t id;
  uint32_t frames;
  UT_hash_handle hh;
  uint64_t ip[];
};
struct m6_known_thread {
  uint32_t tid, seen_tid; /* as the target counts; as the caller's namespace counts */
  char name[16];
  UT_hash_handle hh, hh_seen;
};
struct m6_known_count {
  struct m6_bpf_count_key key;
  uint64_t count;
  UT_hash_handle hh;
};

struct m6_events { /* descriptors of perf events */
  int *fd;
  uint32_t n, room;
};

struct m6_perf_ring {
  struct perf_event_mmap_page *page; /* NULL: this CPU has none */
  size_t bytes;                      /* of the data, a power of two */
  int fd;                            /* the event that it belongs to */
  int cpu;
};

struct m6_samples {
  struct m6_samples_options o;
  struct m6_samples_status st;
  struct m6_events events;
  int stopped;
  struct m6_sample_weights weights;
  clockid_t clock;                /* the target's CPU time */
  uint64_t cpu_begun, cpu_rested; /* rested: what the clock was when its rest began; 0: it does not */
  uint32_t polls;
  char name[16]; /* the answer of m6_samples_thread */
  struct m6_known_stack *stacks;
  struct m6_known_thread *threads, *seen; /* the same ones, by both numbers */

  /* M6_SAMPLES_BPF */
  struct bpf_object *object;
  int program, counts_fd, stacks_fd, threads_fd;
  volatile struct m6_bpf_samples_state *state;
  volatile struct m6_bpf_sample *ring;
  size_t state_bytes, ring_bytes;
  uint64_t read; /* number of the next sample to hand out */

  /* M6_SAMPLES_PERF */
  struct m6_known_count *counts;
  struct m6_perf_ring *rings;
  uint32_t ring_count;
  uint64_t *record;        /* one record, copied out */
  struct m6_sample *batch; /* of one poll, to be brought into the order of time */
  uint32_t batch_count, batch_room;
};

void m6_samples_refuse(struct m6_samples *s, const char *what, enum m6_area area, int error, uint32_t tid);
/* Opens an event for each thread; open_one gives 0 or an errno. 0 when one thread at least has one. */
int m6_samples_attach(struct m6_samples *s, int (*open_one)(struct m6_samples *s, pid_t tid));
void m6_samples_detach(struct m6_samples *s);
int m6_samples_add_event(struct m6_samples *s, int fd);
void m6_samples_attr(const struct m6_samples *s, struct perf_event_attr *attr);
int m6_perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu, int group);
struct m6_known_stack *m6_samples_keep(struct m6_samples *s, uint64_t id, const uint64_t *ip, uint32_t frames);
void m6_samples_pidns(pid_t pid, uint64_t *dev, uint64_t *ino);

int m6_samples_bpf_open(struct m6_samples *s);
uint32_t m6_samples_bpf_poll(struct m6_samples *s, void (*each)(void *, const struct m6_sample *), void *arg);
int m6_samples_bpf_totals(struct m6_samples *s, void (*each)(void *, const struct m6_sample_total *), void *arg);
struct m6_known_stack *m6_samples_bpf_stack(struct m6_samples *s, uint64_t id);
void m6_samples_bpf_status(const struct m6_samples *s, struct m6_samples_status *out);
int m6_samples_bpf_thread(struct m6_samples *s, uint32_t tid, char name[16]);
void m6_samples_bpf_close(struct m6_samples *s);

int m6_samples_perf_open(struct m6_samples *s);
uint32_t m6_samples_perf_poll(struct m6_samples *s, void (*each)(void *, const struct m6_sample *), void *arg);
int m6_samples_perf_totals(struct m6_samples *s, void (*each)(void *, const struct m6_sample_total *), void *arg);
void m6_samples_perf_close(struct m6_samples *s);

/* What perf's rings are to whoever has events of a kind of their own in them; s->o.pid and s->events as above. Closed
 * by m6_samples_perf_close. */
typedef void m6_perf_take(struct m6_samples *s, const struct perf_event_header *h, const uint64_t *words, uint32_t n);
int m6_perf_begin(struct m6_samples *s); /* 0 or ENOMEM */
/* One event for this thread and each CPU, into that CPU's ring: what m6_samples_attach asks for. 0 or an errno. */
int m6_perf_open_thread(struct m6_samples *s, pid_t tid, struct perf_event_attr *attr);
void m6_perf_drain(struct m6_samples *s, struct m6_perf_ring *r, m6_perf_take *each);
/* The number that the target itself knows the thread by. */
uint32_t m6_samples_own_number(const struct m6_samples *s, uint32_t tid);

#endif
