/* kernel_frames.c - attaches the probes of frame boundaries, and hands out what they recorded. */
#include "kernel_frames.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "hash_free.h"
#include "kernel_counters_parts.h"
#include "kernel_probe.h"

#define SHIM "libmach6.so"

/* One table: the program's name without its ending, when it is used, and the shim's place (preload/frame_probe.S). The
 * correction's comes first: nothing is told before it can be put right. */
static const struct {
  const char *program;
  enum m6_frames_by by;
  const char *symbol;
} probes[] = {{"m6_frame_correct", M6_FRAMES_SHIM, "mach6_probe_corrected"},
              {"m6_frame_entry", M6_FRAMES_SHIM, "mach6_probe_entered"},
              {"m6_frame_place", M6_FRAMES_PLACE, NULL}};
#define PROBES (sizeof probes / sizeof *probes)

/* ---- places ----------------------------------------------------------------------------------------------------- */

int m6_frames_find(struct m6_counters_frames *f, const struct m6_counters_options *o, struct m6_fault *fault)
{
  char why[600];
  f->by = o->frames;
  f->pid = o->tgids[0];
  for (int i = 0; i < M6_FRAMES_PLACES; i++) f->links[i] = f->events[i] = -1;
  for (size_t i = 0; i < PROBES; i++) {
    if (probes[i].by != f->by) continue;
    struct m6_place *p = &f->place[f->places++];
    int err = EINVAL;
    snprintf(why, sizeof why, "no place was given");
    if (probes[i].symbol && o->shim) {
      char text[PATH_MAX + 64];
      snprintf(text, sizeof text, "%s:%s", o->shim, probes[i].symbol);
      err = m6_place_find(text, p, why, sizeof why);
    } else if (probes[i].symbol) err = m6_place_in_process(f->pid, SHIM, probes[i].symbol, p, why, sizeof why);
    else if (o->frame_place) err = m6_place_find(o->frame_place, p, why, sizeof why);
    if (!err && p->pid && p->pid != f->pid) {
      snprintf(why, sizeof why, "%s is in process %d, the target is %d", o->frame_place, (int)p->pid, (int)f->pid);
      err = EINVAL;
    }
    if (err) return m6_fault_set(fault, err, M6_AREA_NONE, "find where a frame ends:", "%s", why);
  }
  return 0;
}

static struct bpf_program *program(struct bpf_object *object, size_t i, const char *ending)
{
  char name[64];
  snprintf(name, sizeof name, "%s_%s", probes[i].program, ending);
  return bpf_object__find_program_by_name(object, name);
}

int m6_frames_choose(struct m6_counters_frames *f, struct bpf_object *object, enum m6_uprobe_kind kind,
                     const char *ending, struct m6_fault *fault)
{
  if (f->by == M6_FRAMES_NONE) {
    struct bpf_map *ring = bpf_object__find_map_by_name(object, "m6_frames");
    if (ring) bpf_map__set_max_entries(ring, (uint32_t)sysconf(_SC_PAGESIZE));
    return 0;
  }
  for (size_t i = 0; i < PROBES; i++) {
    if (probes[i].by != f->by) continue;
    struct bpf_program *p = program(object, i, ending);
    if (!p) return m6_fault_set(fault, EINVAL, M6_AREA_BPF, "find", "program %s_%s", probes[i].program, ending);
    bpf_program__set_autoload(p, true);
    if (kind == M6_UPROBE_MULTI)
      bpf_program__set_expected_attach_type(p, (enum bpf_attach_type)M6_BPF_TRACE_UPROBE_MULTI);
  }
  return 0;
}

static int hear(void *arg, void *data, size_t size);

int m6_frames_attach(struct m6_counters_frames *f, struct bpf_object *object, enum m6_uprobe_kind kind,
                     const char *ending, struct m6_fault *fault)
{
  if (f->by == M6_FRAMES_NONE) return 0;
  f->stopped = 0;
  if (!f->ring) f->ring = ring_buffer__new(m6_object_map(object, "m6_frames"), hear, f, NULL);
  if (!f->ring) return m6_fault_set(fault, errno, M6_AREA_BPF, "map", "the ring of frames");
  /* Where a link with a process reaches one thread alone, everybody's hits come, and the program takes the target's. */
  pid_t pid = kind == M6_UPROBE_MULTI && m6_probe_is_one_thread() ? 0 : f->pid;
  unsigned n = 0;
  for (size_t i = 0; i < PROBES; i++) {
    if (probes[i].by != f->by) continue;
    int fd = bpf_program__fd(program(object, i, ending)), err;
    const struct m6_place *p = &f->place[n];
    if (kind == M6_UPROBE_MULTI) err = m6_uprobe_multi(fd, p->path, p->offset, pid, &f->links[n], fault);
    else err = m6_uprobe_pmu(fd, p->path, p->offset, pid, &f->links[n], &f->events[n], fault);
    if (err) {
      m6_frames_detach(f);
      return err;
    }
    n++;
  }
  return 0;
}

void m6_frames_detach(struct m6_counters_frames *f)
{
  if (f->by == M6_FRAMES_NONE) return;
  f->stopped = 1;
  for (int i = 0; i < M6_FRAMES_PLACES; i++) {
    m6_close_fd(&f->links[i]);
    m6_close_fd(&f->events[i]);
  }
}

/* ---- what was told ---------------------------------------------------------------------------------------------- */

/* The kernel divides a thread's time for good when it is switched out. What was read before that, in the middle of a
 * run, can say a little more of one kind (on CPU, when an interrupt took some of it) than what is read later. So that
 * no reading goes back, such a lack is taken from what the other kinds have gained meanwhile: the sum stays, and the
 * next reading has it right. */
#define KINDS (2 + M6_OFF_CAUSES) /* on_ns, wait_ns, off_ns[], in that order */
_Static_assert(offsetof(struct m6_kernel_reading, off_ns) == offsetof(struct m6_kernel_reading, on_ns) + 16,
               "one array");

struct m6_frames_told {
  uint32_t own_tid;
  uint64_t first_ns; /* when the thread's readings began: another beginning is another thread */
  struct m6_kernel_reading last;
  struct m6_kernel_frame begun; /* a present that may yet be corrected; number 0: none */
  UT_hash_handle hh;
};

static uint64_t *kinds(struct m6_kernel_reading *r) { return (uint64_t *)(void *)&r->on_ns; }

static void keep_rising(struct m6_frames_told *told, struct m6_kernel_reading *r)
{
  static const unsigned char give[KINDS] = {
    2 + M6_OFF_STOLEN, 2 + M6_OFF_OTHER, 1, 0, 2 + M6_OFF_LOCK, 2 + M6_OFF_SLEEP, 2 + M6_OFF_POLL, 2 + M6_OFF_IO,
    2 + M6_OFF_DRIVER, 2 + M6_OFF_FAULT};
  uint64_t *now = kinds(r), *last = kinds(&told->last), first = r->time_ns, lack = 0;
  for (int i = 0; i < KINDS; i++) first -= now[i];
  if (told->first_ns == first) {
    for (int i = 0; i < KINDS; i++)
      if (now[i] < last[i]) {
        lack += last[i] - now[i];
        now[i] = last[i];
      }
    for (int k = 0; k < KINDS && lack; k++) {
      int i = give[k];
      uint64_t part = now[i] - last[i] < lack ? now[i] - last[i] : lack;
      now[i] -= part;
      lack -= part;
    }
    if (r->call_ns > told->last.call_ns + (r->on_ns - told->last.on_ns))
      r->call_ns = told->last.call_ns + (r->on_ns - told->last.on_ns);
    if (r->call_ns < told->last.call_ns) r->call_ns = told->last.call_ns;
  }
  told->first_ns = first;
  told->last = *r;
}

static void hand_out(struct m6_counters_frames *f, const struct m6_kernel_frame *frame)
{
  if (frame->number == 0) return;
  f->handed++;
  if (f->each) f->each(frame, f->arg);
}

/* The present that began is what it was said to be: nothing else came before the thread's next one, or it is the last.
 * */
static void stands(struct m6_counters_frames *f, struct m6_frames_told *told)
{
  hand_out(f, &told->begun);
  told->begun.number = 0;
}

static struct m6_frames_told *told_of(struct m6_counters_frames *f, uint32_t own_tid)
{
  struct m6_frames_told *told;
  HASH_FIND(hh, f->told, &own_tid, sizeof own_tid, told);
  if (told) return told;
  if (HASH_COUNT(f->told) > M6_COUNTERS_THREADS) { /* more than have entries: most are gone */
    for (told = f->told; told; told = told->hh.next) stands(f, told);
    M6_HASH_FREE(f->told, free);
  }
  if ((told = calloc(1, sizeof *told)) == NULL) return NULL;
  told->own_tid = own_tid;
  HASH_ADD(hh, f->told, own_tid, sizeof told->own_tid, told);
  return told;
}

static int hear(void *arg, void *data, size_t size)
{
  struct m6_counters_frames *f = arg;
  struct m6_frame_record r;
  if (size < sizeof r) return 0;
  memcpy(&r, data, sizeof r);
  struct m6_frames_told *told = told_of(f, r.frame.own_tid);
  if (told == NULL) {
    if (r.told != M6_FRAME_CORRECTED) hand_out(f, &r.frame);
    return 0;
  }
  struct m6_kernel_frame *begun = &told->begun;
  if (r.told == M6_FRAME_CORRECTED) {
    if (begun->number == 0) return 0; /* its beginning was not told */
    begun->stream = r.frame.stream;
    begun->number = r.frame.number;
    stands(f, told);
    return 0;
  }
  /* One that never returned, or whose correction found no room, gave its number to the next. */
  if (r.told == M6_FRAME_BEGAN && begun->stream == r.frame.stream && begun->number == r.frame.number) begun->number = 0;
  stands(f, told);
  keep_rising(told, &r.frame.entry);
  if (r.told == M6_FRAME_BEGAN) *begun = r.frame;
  else hand_out(f, &r.frame);
  return 0;
}

int m6_counters_frames(struct m6_counters *c, void (*each)(const struct m6_kernel_frame *, void *), void *arg)
{
  struct m6_counters_frames *f = &c->inside->frames;
  if (!f->ring) return 0;
  f->each = each;
  f->arg = arg;
  f->handed = 0;
  int err = ring_buffer__consume(f->ring);
  if (f->stopped)
    for (struct m6_frames_told *told = f->told; told; told = told->hh.next) stands(f, told);
  return err < 0 ? err : f->handed;
}

uint64_t m6_counters_frames_lost(const struct m6_counters *c)
{
  struct m6_counters_inside *in = c->inside;
  uint32_t what = M6_LOST_FRAMES;
  uint64_t by_cpu[in->cpus], sum = 0;
  if (bpf_map_lookup_elem(in->losses_fd, &what, by_cpu) != 0) return 0;
  for (int i = 0; i < in->cpus; i++) sum += by_cpu[i];
  return sum;
}

void m6_frames_close(struct m6_counters_frames *f)
{
  m6_frames_detach(f);
  ring_buffer__free(f->ring); /* NULL is fine */
  f->ring = NULL;
  M6_HASH_FREE(f->told, free);
}
