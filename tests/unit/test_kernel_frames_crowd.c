/* test_kernel_frames_crowd.c - frame boundaries of many threads at once, which sleep, compute and push each other off the CPU: each one
 * comes, once, numbered, and each thread's readings add up to its time and never go back.
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
/* sanitizers: none */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "kernel_frames_kept.h"

static struct shared {
  int phase, arrived;
} * shared;

/* Threads that all call the function, while they sleep, compute and push each other off the CPU. */
#define CROWD 6
#define CROWD_FRAMES 1500
static void *member(void *arg)
{
  unsigned seed = (unsigned)(uintptr_t)arg;
  for (int i = 0; i < CROWD_FRAMES; i++) {
    struct timespec t = {0, rand_r(&seed) % 100000};
    if (i % 7 == 0) nanosleep(&t, NULL);
    for (volatile int k = rand_r(&seed) % 3000; k > 0; k--) {}
    if (i % 5 == 0) sched_yield();
    frame_tick();
  }
  return NULL;
}
static void child_main(void)
{
  pthread_t t[CROWD];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  advance(&shared->arrived, 1);
  await(&shared->phase, 1);
  for (uintptr_t i = 0; i < CROWD; i++) pthread_create(&t[i], NULL, member, (void *)(i + 1));
  for (int i = 0; i < CROWD; i++) pthread_join(t[i], NULL);
  advance(&shared->arrived, 2);
  await(&shared->phase, 2);
  _exit(0);
}

static pid_t start_child(void)
{
  pid_t child = fork();
  if (child == 0) child_main();
  return child;
}
static void end_child(pid_t child)
{
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

static void run(void)
{
  char place[64], text[900];
  struct m6_fault fault = {0};
  struct m6_counters *c;
  pid_t child = start_child();
  frame_count = 0;
  if (!check(arrive(child, &shared->arrived, 1), "a crowd: the child is up")) return end_child(child);
  snprintf(place, sizeof place, "%d:frame_tick", (int)child);
  struct m6_counters_options o = {.tgids = &child, .count = 1, .frames = M6_FRAMES_PLACE, .frame_place = place};
  if (m6_counters_open(&c, &o, &fault) != 0) {
    end_child(child);
    check(0, "a crowd: opens: %s", m6_fault_text(&fault, text, sizeof text));
    return;
  }
  advance(&shared->phase, 1);
  for (int i = 0; i < 6000 && __atomic_load_n(&shared->arrived, __ATOMIC_ACQUIRE) < 2; i++, usleep(10000))
    m6_counters_frames(c, keep, NULL);
  m6_counters_frames(c, keep, NULL);
  /* Each thread's own record before this one. */
  struct {
    uint32_t tid;
    unsigned last, count;
  } threads[CROWD] = {{0}};
  static unsigned char numbered[CROWD * CROWD_FRAMES + 1];
  unsigned open = 0, back = 0, twice = 0, strangers = 0;
  for (unsigned i = 0; i < frame_count; i++) {
    const struct m6_kernel_reading *r = &frames[i].entry, *before;
    int t = 0;
    while (t < CROWD && threads[t].count && threads[t].tid != frames[i].tid) t++;
    if (t == CROWD || frames[i].number > CROWD * CROWD_FRAMES) {
      strangers++;
      continue;
    }
    twice += numbered[frames[i].number]++;
    if (threads[t].count++) {
      before = &frames[threads[t].last].entry;
      open += r->on_ns - before->on_ns + r->wait_ns - before->wait_ns + off_sum(r) - off_sum(before) !=
              r->time_ns - before->time_ns;
      back += (unsigned)fell(before, r);
    }
    threads[t].tid = frames[i].tid;
    threads[t].last = i;
  }
  unsigned whole = 0;
  for (int t = 0; t < CROWD; t++) whole += threads[t].count == CROWD_FRAMES;
  check(frame_count == CROWD * CROWD_FRAMES && whole == CROWD && !strangers && m6_counters_frames_lost(c) == 0,
        "a crowd: %u of %d boundaries came, as many from each of %d threads", frame_count, CROWD * CROWD_FRAMES, CROWD);
  check(twice == 0, "a crowd: each has a number of its own");
  check(open == 0, "a crowd: on, waiting and off add up to the time in each interval of a thread (%u do not)", open);
  check(back == 0, "a crowd: no thread's reading goes back (%u do)", back);
  m6_counters_close(c);
  end_child(child);
}

int main(int argc, char **argv)
{
  (void)argc;
  if (!measuring()) return measured_again(argv);
  struct m6_fault fault = {0};
  struct m6_counters *c;
  char text[900], place[64];
  pid_t self = getpid();
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  keep_most(CROWD * CROWD_FRAMES + 100);
  snprintf(place, sizeof place, "%d:frame_tick", (int)self);
  struct m6_counters_options o = {.tgids = &self, .count = 1, .frames = M6_FRAMES_PLACE, .frame_place = place};
  if (m6_counters_open(&c, &o, &fault) != 0) {
    skip_named("frames of many threads", m6_fault_text(&fault, text, sizeof text));
    return tap_done();
  }
  m6_counters_close(c);
  run();
  return tap_done();
}
