/* kernel_hold.c - starts and stops everything that the kernel side has on a process.
 *
 *   kernel_hold cycles PID N PLACE   N times; status 1 when a start fails or a descriptor is left
 *   kernel_hold hold PID PLACE       starts it, says "up", and reads once a second until it is killed
 *   kernel_hold code PID PLACE       is the code in memory that of the file? "same" or "differs"
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
#include <fcntl.h>
#include <inttypes.h>

#include "../unit/kernel_tap.h"
#include "collector/kernel_frames.h"
#include "collector/kernel_faults.h"
#include "collector/kernel_place.h"
#include "collector/kernel_probe.h"

struct all {
  struct m6_counters *counters;
  struct m6_faults faults;
  struct m6_probe probe;
};

static int start(struct all *a, pid_t pid, const struct m6_place *place, const char *text_of_place)
{
  struct m6_fault fault;
  struct m6_counters_options o = {
    .tgids = &pid, .count = 1, .syscalls = 1, .frames = M6_FRAMES_PLACE, .frame_place = text_of_place};
  char text[900];
  int err = m6_counters_open(&a->counters, &o, &fault);
  if (!err) err = m6_faults_open(&a->faults, pid, &fault);
  if (!err) err = m6_probe_open(&a->probe, place->path, place->offset, pid, &fault);
  if (err) fprintf(stderr, "kernel_hold: %s\n", m6_fault_text(&fault, text, sizeof text));
  return err;
}
static void stop(struct all *a)
{
  m6_probe_close(&a->probe);
  m6_faults_close(&a->faults);
  m6_counters_close(a->counters);
}

/* Compares the 16 bytes at the place in the file with those that the process runs. */
static int same_code(pid_t pid, const struct m6_place *place)
{
  char path[64], line[4096], file[16], memory[16];
  snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
  FILE *f = fopen(path, "r");
  uint64_t from, to, offset, at = 0;
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64, &from, &to, &offset) == 3 && strstr(line, place->file) &&
        place->offset >= offset && place->offset < offset + (to - from))
      at = from + place->offset - offset;
  if (f) fclose(f);
  snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
  int of = open(place->path, O_RDONLY), om = open(path, O_RDONLY);
  int good = at && pread(of, file, 16, (off_t)place->offset) == 16 && pread(om, memory, 16, (off_t)at) == 16;
  close(of);
  close(om);
  if (!good) return -1;
  return memcmp(file, memory, 16) == 0;
}

int main(int argc, char **argv)
{
  if (argc < 4) return 2;
  pid_t pid = atoi(argv[2]);
  struct m6_place place;
  char why[1024];
  if (m6_place_find(argv[argc - 1], &place, why, sizeof why)) return fprintf(stderr, "kernel_hold: %s\n", why), 1;
  if (strcmp(argv[1], "code") == 0) {
    int same = same_code(pid, &place);
    puts(same < 0 ? "unknown" : same ? "same" : "differs");
    return same < 0;
  }
  struct all a = {0};
  if (strcmp(argv[1], "hold") == 0) {
    struct m6_fault fault;
    if (start(&a, pid, &place, argv[argc - 1])) return 1;
    puts("up");
    fflush(stdout);
    for (;;) {
      sleep(1);
      m6_counters_read(a.counters, 0, &fault);
      m6_counters_frames(a.counters, NULL, NULL);
    }
  }
  int before = -1, leaked = 0;
  for (int i = 0; i < atoi(argv[3]); i++) {
    if (start(&a, pid, &place, argv[argc - 1])) return 1;
    stop(&a);
    if (before < 0) before = tap_fds(NULL); /* the first start loads what stays */
    leaked += tap_fds(NULL) != before;
  }
  printf("%d\n", leaked);
  return leaked != 0;
}
