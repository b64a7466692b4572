/* test_kernel_churn.c - threads that come and go by the thousand: totals stay exact while ended threads are folded to make
 * room, memory stays bounded, and what finds no room is counted.
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
/* sanitizers: none */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "collector/kernel_counters.h"
#include "kernel_tap.h"

#define CALLS 3
#define BATCH 2500
#define BATCHES 3

static int *asked, *made; /* shared with the child: threads to have made, threads made */

static void *thread_main(void *arg)
{
  for (int i = 0; i < CALLS; i++) syscall(SYS_getppid);
  return arg;
}
static void child_main(void)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {
    if (__atomic_load_n(asked, __ATOMIC_SEQ_CST) <= __atomic_load_n(made, __ATOMIC_SEQ_CST)) {
      usleep(1000);
      continue;
    }
    pthread_t t;
    if (pthread_create(&t, NULL, thread_main, NULL) != 0) _exit(1);
    pthread_join(t, NULL);
    __atomic_fetch_add(made, 1, __ATOMIC_SEQ_CST);
  }
}
static void have_made(int n)
{
  __atomic_store_n(asked, n, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(made, __ATOMIC_SEQ_CST) < n) usleep(1000);
  usleep(20000); /* the last one is switched out for good */
}

static uint64_t calls_of(const struct m6_counters *c, unsigned number)
{
  uint64_t sum = 0;
  for (unsigned i = 0; i < c->call_count; i++)
    if (c->calls[i].number == number) sum += c->calls[i].count;
  return sum;
}
static int has_row(const struct m6_counters *c, pid_t tid)
{
  for (unsigned i = 0; i < c->thread_count; i++)
    if (c->threads[i].tid == tid) return 1;
  return 0;
}

static struct m6_counters *start(pid_t *child, struct m6_fault *fault)
{
  struct m6_counters *c;
  *asked = *made = 0;
  *child = fork();
  if (*child == 0) child_main();
  struct m6_counters_options o = {.tgids = child, .count = 1, .syscalls = 1};
  if (m6_counters_open(&c, &o, fault) == 0) return c;
  kill(*child, SIGKILL);
  waitpid(*child, NULL, 0);
  return NULL;
}
static void end(struct m6_counters *c, pid_t child)
{
  m6_counters_close(c);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

#define SLEEPERS 8
#define OPENINGS 60
static void *sleeper_main(void *arg)
{
  for (;;) usleep(300);
  return arg;
}
static void sleepers_main(void)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 1; i < SLEEPERS; i++) {
    pthread_t t;
    if (pthread_create(&t, NULL, sleeper_main, NULL) != 0) _exit(1);
  }
  __atomic_fetch_add(made, 1, __ATOMIC_SEQ_CST);
  sleeper_main(NULL);
}

/* Threads that wake up while the counters are opened: user space and a program can make an entry of one thread at the same time.
 * At this pace that was so in one opening of 27. */
static void seed_beside_events(void)
{
  struct m6_fault fault;
  *made = 0;
  pid_t child = fork();
  if (child == 0) sleepers_main();
  while (!__atomic_load_n(made, __ATOMIC_SEQ_CST)) usleep(1000);
  int opened = 0, wrong = 0;
  for (int i = 0; i < OPENINGS; i++) {
    struct m6_counters *c;
    struct m6_counters_options o = {.tgids = &child, .count = 1};
    if (m6_counters_open(&c, &o, &fault) != 0) continue;
    opened++;
    m6_counters_read(c, 1, &fault);
    wrong += m6_counters_total(c, child).lives != SLEEPERS;
    m6_counters_close(c);
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  check(opened == OPENINGS && wrong == 0, "each thread is counted once in %d openings (not in %d)", opened, wrong);
}

int main(void)
{
  struct m6_fault fault;
  pid_t child;
  asked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  made = asked + 16;
  struct m6_counters *c = start(&child, &fault);
  if (!c) {
    char text[900];
    skip_named("threads by the thousand", m6_fault_text(&fault, text, sizeof text));
    return tap_done();
  }
  int reads = 0, most = 0, falls = 0;
  uint64_t on = 0, switches = 0;
  for (int b = 1; b <= BATCHES; b++) {
    have_made(b * BATCH);
    reads += m6_counters_read(c, 0, &fault) == 0;
    if ((int)c->thread_count > most) most = (int)c->thread_count;
    struct m6_thread_counters t = m6_counters_total(c, child);
    falls += t.on_ns < on || t.counted[M6_VOLUNTARY] < switches;
    on = t.on_ns;
    switches = t.counted[M6_VOLUNTARY];
    usleep(M6_COUNTERS_READ_MS * 1000);
  }
  m6_counters_read(c, 1, &fault);
  struct m6_thread_counters total = m6_counters_total(c, child);
  int made_all = BATCH * BATCHES;
  check(reads == BATCHES, "%d reads", reads);
  check(total.lives == (uint32_t)made_all + 1, "%u threads of %d and the main one", total.lives, made_all);
  check(calls_of(c, SYS_getppid) == (uint64_t)made_all * CALLS, "%llu of %d calls, the folded threads' among them",
        (unsigned long long)calls_of(c, SYS_getppid), made_all * CALLS);
  check(total.counted[M6_VOLUNTARY] >= (uint64_t)made_all, "each was switched out for good (%llu)",
        (unsigned long long)total.counted[M6_VOLUNTARY]);
  check(total.on_ns + total.off_ns + total.wait_ns == total.elapsed_ns, "the books close");
  check(falls == 0, "no total ever fell");
  check(has_row(c, 0) && has_row(c, child) && most < made_all,
        "ended threads were folded (%d rows at most), the live one was not", most);
  check(c->lost[M6_LOST_THREADS] == 0 && c->lost[M6_LOST_CALLS] == 0, "nothing was lost");
  end(c, child);

  /* More than there is room for, and no read in between. */
  c = start(&child, &fault);
  have_made(M6_COUNTERS_THREADS + 1000);
  m6_counters_read(c, 1, &fault);
  total = m6_counters_total(c, child);
  check(total.lives <= M6_COUNTERS_THREADS && c->lost[M6_LOST_THREADS] >= M6_COUNTERS_THREADS + 1001 - total.lives,
        "what found no room is counted (%u threads in, %llu refusals)", total.lives,
        (unsigned long long)c->lost[M6_LOST_THREADS]);
  usleep(M6_COUNTERS_READ_MS * 1000);
  uint64_t before = c->lost[M6_LOST_THREADS];
  m6_counters_read(c, 0, &fault);
  have_made(*made + 500);
  m6_counters_read(c, 1, &fault);
  check(c->lost[M6_LOST_THREADS] == before, "and after a read there is room again");
  end(c, child);
  seed_beside_events();
  return tap_done();
}
