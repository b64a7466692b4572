/* control - writes the control line of its own segment, as a collector would, and says what the shim makes of it.
 * /dev/shm/mach6.PID.*; without a shim it says so and ends. */
/* flags: -fno-builtin */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "preload/mach6.h"
#include "shm/clock.h"
#include "shm/layout.h"
#include "shm/order.h"

static struct m6_header *h;
static struct m6_header *segment(void)
{
  char prefix[64], path[300];
  void *at = NULL;
  DIR *d = opendir("/dev/shm");
  snprintf(prefix, sizeof prefix, "mach6.%d.", getpid());
  for (struct dirent *e; d && (e = readdir(d));) {
    if (strncmp(e->d_name, prefix, strlen(prefix))) continue;
    snprintf(path, sizeof path, "/dev/shm/%s", e->d_name);
    int fd = open(path, O_RDWR);
    at = mmap(NULL, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
  }
  if (d) closedir(d);
  return at;
}
static uint64_t allocs(void)
{
  struct m6_slot *s = (struct m6_slot *)((char *)h + M6_OFF_SLOTS);
  uint64_t n = 0;
  for (int i = 0; i < M6_SLOTS; i++) n += m6_peek(&s[i].allocs);
  return n;
}
static void beat(void) { m6_poke(&h->heartbeat_ns, m6_monotonic_ns()); }
static void want(uint32_t what, uint32_t session)
{
  m6_poke(&h->session, session);
  m6_publish(&h->want, what);
}
static void say(const char *what)
{
  uint64_t before = allocs();
  free(malloc(100));
  printf("%s: state %u started %u reason %u counted %d\n", what, h->state, h->sessions_started, h->end_reason,
         (int)(allocs() - before));
}
static void *other_thread(void *arg)
{
  mach6_mark("other");
  mach6_done();
  return arg;
}

int main(void)
{
  h = segment();
  if (!h) return puts("no segment"), 0;
  say("loaded");
  mach6_frame();
  say("nobody wants anything");
  want(M6_WANT_ON, 1);
  want(M6_WANT_OFF, 1);
  mach6_frame();
  say("off while a start was pending");
  m6_poke(&h->heartbeat_ns, 1);
  want(M6_WANT_ON, 2);
  mach6_frame();
  say("a collector that died before the start");
  beat();
  want(M6_WANT_ON, 3);
  say("on, not looked at yet");
  mach6_mark("first mark"); /* looks, and starts; itself it is not of the session */
  say("on, after a mark");
  mach6_done(); /* a done without a mark in this session */
  mach6_mark("second mark");
  mach6_done();
  pthread_t t;
  pthread_create(&t, NULL, other_thread, NULL);
  pthread_join(t, NULL);
  pid_t p = fork();
  if (p == 0) {
    mach6_mark("child");
    uint64_t before = allocs();
    free(malloc(100));
    mach6_frame();
    _exit(allocs() != before);
  }
  int status;
  waitpid(p, &status, 0);
  printf("child was inert %d\n", status == 0);
  want(M6_WANT_OFF, 3);
  mach6_frame();
  say("off");
  want(M6_WANT_ON, 4);
  mach6_frame();
  say("on again");
  mach6_mark("second session");
  mach6_done();
  m6_poke(&h->heartbeat_ns, m6_monotonic_ns() - 2 * M6_HEARTBEAT_LOST_MS * 1000000ull);
  for (int i = 0; i < 500 && h->state == M6_COLLECTING; i++) { /* it is looked for now and then, by time that passes */
    usleep(10000);
    mach6_frame();
  }
  say("its collector fell silent");
  beat();
  mach6_frame();
  say("and was back, too late");
  printf("underflows %d\n", (int)h->underflows);
  return 0;
}
