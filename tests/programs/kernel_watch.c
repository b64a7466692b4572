/* kernel_watch.c - what the kernel side says of one process, from wherever this runs.
 *
 *   kernel_watch PID FUNCTION   counts PID's threads and syscalls, each entry of FUNCTION being a frame, or "-": what its shim calls one; says "up", and after a line
 *                               on stdin: "thread TID OWN TGID" each, "call TID NUMBER COUNT" each ("call32" for one of the 32-bit table), "frames TID OWN COUNT" each
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
#include <stdio.h>
#include <stdlib.h>

#include "collector/kernel_frames.h"

#define MAX 16
static struct {
  unsigned tid, own, count;
} presenters[MAX];

static void each(const struct m6_kernel_frame *f, void *arg)
{
  (void)arg;
  for (int i = 0; i < MAX; i++) {
    if (presenters[i].count && (presenters[i].tid != f->tid || presenters[i].own != f->own_tid)) continue;
    presenters[i].tid = f->tid;
    presenters[i].own = f->own_tid;
    presenters[i].count++;
    return;
  }
}

int main(int argc, char **argv)
{
  struct m6_fault fault = {0};
  struct m6_counters *c;
  char text[900], place[300];
  if (argc != 3) return 2;
  pid_t pid = atoi(argv[1]);
  snprintf(place, sizeof place, "%d:%s", (int)pid, argv[2]);
  int shim = argv[2][0] == '-';
  struct m6_counters_options o = {.tgids = &pid,
                                  .count = 1,
                                  .syscalls = 1,
                                  .frames = shim ? M6_FRAMES_SHIM : M6_FRAMES_PLACE,
                                  .frame_place = shim ? NULL : place};
  if (m6_counters_open(&c, &o, &fault) != 0) {
    fprintf(stderr, "kernel_watch: %s\n", m6_fault_text(&fault, text, sizeof text));
    return 1;
  }
  puts("up");
  fflush(stdout);
  if (getchar() == EOF) return 1;
  m6_counters_stop(c);
  m6_counters_read(c, 1, &fault);
  m6_counters_frames(c, each, NULL);
  for (unsigned i = 0; i < c->thread_count; i++)
    printf("thread %d %d %d\n", (int)c->threads[i].tid, (int)c->threads[i].own_tid, (int)c->threads[i].tgid);
  for (unsigned i = 0; i < c->call_count; i++)
    printf("call%s %d %u %llu\n", c->calls[i].is_32bit ? "32" : "", (int)c->calls[i].tid, c->calls[i].number,
           (unsigned long long)c->calls[i].count);
  for (int i = 0; i < MAX && presenters[i].count; i++)
    printf("frames %u %u %u\n", presenters[i].tid, presenters[i].own, presenters[i].count);
  m6_counters_close(c);
  return 0;
}
