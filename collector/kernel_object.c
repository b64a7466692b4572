/* kernel_object.c - opens and loads embedded kernel programs; keeps what libbpf says for the fault's text instead of
 * stderr. */
#include "kernel_object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The last lines that libbpf said at warning level, by thread: an object is opened and loaded on one thread. */
static __thread char said[160];

static int hear(enum libbpf_print_level level, const char *format, va_list args)
{
  if (level != LIBBPF_WARN) return 0;
  char line[512];
  vsnprintf(line, sizeof line, format, args);
  /* The first warning names the cause, those that follow its consequences. The verifier's log is many lines: its last
   * but one says what is wrong; it is shown whole on request. */
  if (getenv("MACH6_VERBOSE")) fprintf(stderr, "libbpf: %s", line);
  if (!said[0]) snprintf(said, sizeof said, "%.*s", (int)strcspn(line, "\n"), line);
  return 0;
}

int m6_object_open(const char *name, const void *bytes, size_t size, struct bpf_object **object, struct m6_fault *fault)
{
  libbpf_set_print(hear);
  said[0] = 0;
  struct bpf_object_open_opts options = {.sz = sizeof options, .object_name = name};
  *object = bpf_object__open_mem(bytes, size, &options);
  if (!*object) return m6_fault_set(fault, errno, M6_AREA_BPF, "open", "the kernel programs of %s (%s)", name, said);
  return 0;
}

int m6_object_load(const char *name, struct bpf_object *object, struct m6_fault *fault)
{
  said[0] = 0;
  int err = bpf_object__load(object);
  if (!err) return 0;
  enum m6_area area = access("/sys/kernel/btf/vmlinux", R_OK) != 0 && -err == ESRCH ? M6_AREA_BTF : M6_AREA_BPF;
  return m6_fault_set(fault, err, area, "load", "the kernel programs of %s (%s)", name, said);
}

int m6_object_configure(struct bpf_object *object, const void *config, size_t size)
{
  struct bpf_map *map;
  for (map = bpf_object__next_map(object, NULL); map; map = bpf_object__next_map(object, map))
    if (bpf_map__is_internal(map) && strstr(bpf_map__name(map), ".rodata")) {
      size_t have = 0;
      if (!bpf_map__initial_value(map, &have) || have != size) return EINVAL;
      return -bpf_map__set_initial_value(map, config, size);
    }
  return ENOENT;
}

int m6_object_map(struct bpf_object *object, const char *name)
{
  struct bpf_map *map = bpf_object__find_map_by_name(object, name);
  return map ? bpf_map__fd(map) : -1;
}

int m6_possible_cpus(void) { return libbpf_num_possible_cpus(); }

#define INITIAL_PIDNS 0xeffffffcu /* inode of the initial pid namespace, fixed by the kernel */
int m6_pids_are_global(void)
{
  struct stat ns;
  return stat("/proc/self/ns/pid", &ns) != 0 || ns.st_ino == INITIAL_PIDNS;
}
