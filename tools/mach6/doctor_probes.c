/* doctor_probes.c - what `mach6 doctor` tries: one table of features, each with a function that uses it for real and
 * lets go of it. Features are tried, never inferred from a version.
 * Calls the kernel side (collector/kernel_*.h) and libbpf.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../collector/kernel_counters.h"
#include "../../collector/kernel_faults.h"
#include "../../collector/kernel_object.h"
#include "../../collector/kernel_place.h"
#include "../../collector/kernel_probe.h"
#include "doctor.h"

pid_t doctor_other = 1;

/* ---- programs and maps ------------------------------------------------------------------------------------------ */

static int map_of(enum bpf_map_type type, uint32_t key, uint32_t value, uint32_t entries, uint32_t flags)
{
  struct bpf_map_create_opts o = {.sz = sizeof o, .map_flags = flags};
  int fd = bpf_map_create(type, "m6_doctor", key, value, entries, &o);
  return fd < 0 ? -errno : fd;
}
static int only_create(int fd)
{
  if (fd < 0) return -fd;
  close(fd);
  return 0;
}

static int try_mapped_array(enum m6_area *area)
{
  (void)area;
  M6_AUTO_FD fd = map_of(BPF_MAP_TYPE_ARRAY, 4, 64, 64, BPF_F_MMAPABLE);
  if (fd < 0) return -fd;
  void *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return errno;
  munmap(at, 4096);
  return 0;
}
static int try_hash_batch(enum m6_area *area)
{
  (void)area;
  M6_AUTO_FD fd = map_of(BPF_MAP_TYPE_HASH, 4, 8, 16, 0);
  if (fd < 0) return -fd;
  uint32_t key = 1, next, n = 16, keys[16];
  uint64_t value = 1, values[16];
  if (bpf_map_update_elem(fd, &key, &value, BPF_ANY) != 0) return errno;
  struct bpf_map_batch_opts o = {.sz = sizeof o, .flags = 0};
  if (bpf_map_lookup_batch(fd, NULL, &next, keys, values, &n, &o) != 0 && errno != ENOENT) return errno;
  return n == 1 && values[0] == 1 ? 0 : EIO;
}
static int try_ring(enum m6_area *area)
{
  (void)area;
  return only_create(map_of(BPF_MAP_TYPE_RINGBUF, 0, 0, 4 << 20, 0));
}
static int try_stacks(enum m6_area *area)
{
  (void)area;
  return only_create(map_of(BPF_MAP_TYPE_STACK_TRACE, 4, 127 * 8, 1024, 0));
}

static const struct bpf_insn return_zero[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
                                              {.code = BPF_JMP | BPF_EXIT}};

/* A program of nothing on one of the kernel's own types: its descriptor or -errno. */
static int program_on(enum bpf_attach_type attach, const char *name, enum m6_area *area)
{
  int id = libbpf_find_vmlinux_btf_id(name, attach);
  if (id <= 0) {
    *area = M6_AREA_BTF;
    return id == 0 || id == -ESRCH ? -ENOENT : id;
  }
  struct bpf_prog_load_opts o = {.sz = sizeof o, .expected_attach_type = attach, .attach_btf_id = (uint32_t)id};
  int fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "m6_doctor", "Dual MIT/GPL", return_zero, 2, &o);
  return fd < 0 ? -errno : fd;
}
static int try_iterator(enum m6_area *area)
{
  M6_AUTO_FD program = program_on(BPF_TRACE_ITER, "task", area);
  if (program < 0) return -program;
  M6_AUTO_FD link = bpf_link_create(program, 0, BPF_TRACE_ITER, NULL);
  if (link < 0) return errno;
  return only_create(bpf_iter_create(link));
}
static int try_fentry(enum m6_area *area)
{
  M6_AUTO_FD program = program_on(BPF_TRACE_FENTRY, "do_nanosleep", area);
  if (program < 0) return -program;
  M6_AUTO_FD link = bpf_raw_tracepoint_open(NULL, program);
  return link < 0 ? errno : 0;
}
static int try_types(enum m6_area *area)
{
  (void)area;
  int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
  return fd < 0 ? errno : only_create(fd);
}

/* ---- what mach6 really does with them --------------------------------------------------------------------------- */

static int counters(int raw, int syscalls, enum m6_area *area)
{
  struct m6_counters *c;
  struct m6_fault fault;
  pid_t self = getpid();
  struct m6_counters_options o = {.tgids = &self, .count = 1, .raw = raw, .syscalls = syscalls};
  int err = m6_counters_open(&c, &o, &fault);
  if (!err && !raw && c->raw) err = EOPNOTSUPP; /* it had to take the other way */
  else if (err) *area = fault.area;
  m6_counters_close(c);
  return err;
}
static int try_counters(enum m6_area *area) { return counters(0, 0, area); }
static int try_counters_raw(enum m6_area *area) { return counters(1, 0, area); }
static int try_counters_syscalls(enum m6_area *area) { return counters(0, 1, area); }

int m6_doctor_probed(int x);
__attribute__((noinline)) int m6_doctor_probed(int x)
{
  __asm__ volatile("" : "+r"(x));
  return x;
}
/* Where this program's own function is, as an offset in its file. */
static int place_of_own(struct m6_place *place)
{
  char why[512];
  return m6_place_find("/proc/self/exe:m6_doctor_probed", place, why, sizeof why);
}
static int uprobe(enum m6_uprobe_kind kind, enum m6_area *area)
{
  struct m6_place place;
  struct m6_fault fault;
  struct m6_probe p;
  int err = place_of_own(&place);
  if (err) return err;
  err = m6_probe_open_as(&p, kind, place.path, place.offset, getpid(), &fault);
  if (err) {
    *area = fault.area;
    return err;
  }
  m6_doctor_probed(1);
  uint64_t hits = m6_probe_read(&p, NULL);
  m6_probe_close(&p);
  return hits == 1 ? 0 : EIO;
}
static int try_multi(enum m6_area *area) { return uprobe(M6_UPROBE_MULTI, area); }
static int try_pmu_uprobe(enum m6_area *area) { return uprobe(M6_UPROBE_PMU, area); }
static int try_kprobe(enum m6_area *area)
{
  (void)area;
  unsigned type;
  FILE *f = fopen("/sys/bus/event_source/devices/kprobe/type", "re");
  if (!f) return errno;
  int got = fscanf(f, "%u", &type);
  fclose(f);
  if (got != 1) return EINVAL;
  struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config1 = (uintptr_t) "do_nanosleep"};
  int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? errno : only_create(fd);
}
static int try_tracefs(enum m6_area *area)
{
  (void)area;
  int fd = open("/sys/kernel/tracing/events/sched/sched_switch/id", O_RDONLY | O_CLOEXEC);
  return fd < 0 ? errno : only_create(fd);
}

/* ---- perf events ------------------------------------------------------------------------------------------------ */

static int perf(uint32_t type, uint64_t what, pid_t pid, int cpu, int user_only, int sample)
{
  struct perf_event_attr attr = {
    .type = type, .size = sizeof attr, .config = what, .exclude_kernel = (uint64_t)user_only, .exclude_hv = 1};
  if (sample) {
    attr.freq = 1;
    attr.sample_freq = 49;
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN;
    attr.exclude_callchain_kernel = (uint64_t)user_only;
  }
  if (sample == 2) {
    attr.freq = 0;
    attr.sample_freq = 0;
    attr.context_switch = 1;
  }
  int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return errno;
  int err = 0;
  if (sample) {
    /* A ring of one page: the records must have somewhere to go. */
    void *at = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) err = errno;
    else munmap(at, 2 * 4096);
  }
  close(fd);
  return err;
}
static int try_faults(enum m6_area *area)
{
  struct m6_faults f;
  struct m6_fault fault;
  int err = m6_faults_open(&f, getpid(), &fault);
  if (err) *area = fault.area;
  else m6_faults_close(&f);
  return err;
}
static int try_faults_kernel(enum m6_area *area)
{
  (void)area;
  return perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 0, -1, 0, 0);
}
static int try_samples(enum m6_area *area)
{
  (void)area;
  return perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0, -1, 1, 1);
}
static int try_samples_kernel(enum m6_area *area)
{
  (void)area;
  return perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0, -1, 0, 1);
}
static int try_switch_records(enum m6_area *area)
{
  (void)area;
  return perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0, -1, 1, 2);
}
static int try_perf_cpu(enum m6_area *area)
{
  (void)area;
  return perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1, 0, 0, 1);
}
static int try_perf_other(enum m6_area *area)
{
  (void)area;
  return perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, doctor_other, -1, 1, 1);
}
static int try_hardware(enum m6_area *area)
{
  (void)area;
  return perf(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1, 1, 0);
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

static int try_proc_other(enum m6_area *area)
{
  (void)area;
  char byte, path[64];
  snprintf(path, sizeof path, "/proc/%d/maps", (int)doctor_other);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  ssize_t n = read(fd, &byte, 1);
  int err = n < 0 ? errno : 0;
  close(fd);
  return err;
}
static int try_io_uring(enum m6_area *area)
{
  (void)area;
  struct io_uring_params p = {0};
  int fd = (int)syscall(SYS_io_uring_setup, 4, &p);
  return fd < 0 ? errno : only_create(fd);
}
static int try_shm(enum m6_area *area)
{
  (void)area;
  M6_AUTO_FD fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  return posix_fallocate(fd, 0, 5 << 20);
}

#define SHIM "In the game, without the kernel"
#define OWN "Of one's own processes"
#define COUNT "Counted in the kernel"
#define PROBES "Probes"
#define REST "Other"
const struct doctor_feature doctor_features[] = {
  {"shm", SHIM, "shared memory for the shim", "frames, scopes, allocations", M6_AREA_SHM, try_shm},
  {"perf-samples", OWN, "CPU samples, user space", "where time goes", M6_AREA_PERF_SELF, try_samples},
  {"perf-faults", OWN, "page faults counted", "faults a process", M6_AREA_PERF_SELF, try_faults},
  {"perf-switches", OWN, "context-switch records", "waits, without BPF", M6_AREA_PERF_SELF, try_switch_records},
  {"perf-samples-kernel", OWN, "CPU samples, kernel included", "what a syscall does", M6_AREA_PERF_KERNEL,
   try_samples_kernel},
  {"perf-faults-kernel", OWN, "page faults, kernel's included", "faults taken in syscalls", M6_AREA_PERF_KERNEL,
   try_faults_kernel},
  {"perf-hardware", OWN, "hardware counters", "not used yet", M6_AREA_PERF_HARDWARE, try_hardware},
  {"btf", COUNT, "the kernel's types (BTF)", "programs that fit any kernel", M6_AREA_BTF, try_types},
  {"bpf-array", COUNT, "counters that are mapped", "reading without a syscall", M6_AREA_BPF, try_mapped_array},
  {"bpf-hash", COUNT, "tables, read in one call", "totals by thread", M6_AREA_BPF, try_hash_batch},
  {"bpf-ring", COUNT, "a ring buffer of 4 MiB", "frames' records", M6_AREA_BPF, try_ring},
  {"bpf-stacks", COUNT, "stacks", "CPU samples by stack", M6_AREA_BPF, try_stacks},
  {"threads", COUNT, "threads by tp_btf", "on and off CPU, waits, switches", M6_AREA_BPF, try_counters},
  {"threads-raw", COUNT, "threads by raw tracepoints", "the same, when there is no tp_btf", M6_AREA_BPF,
   try_counters_raw},
  {"syscalls", COUNT, "syscalls by thread", "level full", M6_AREA_BPF, try_counters_syscalls},
  {"task-iterator", COUNT, "a walk over all tasks", "pid namespaces", M6_AREA_BPF, try_iterator},
  {"uprobe-multi", PROBES, "functions by uprobe_multi", "mach6 probe", M6_AREA_MULTI, try_multi},
  {"uprobe-perf", PROBES, "functions by perf events", "mach6 probe, else", M6_AREA_PMU_UPROBE, try_pmu_uprobe},
  {"kprobe", PROBES, "kernel functions by kprobe", "not used", M6_AREA_KPROBE, try_kprobe},
  {"fentry", PROBES, "kernel functions by fentry", "not used", M6_AREA_TRAMPOLINE, try_fentry},
  {"tracefs", PROBES, "classic tracepoints", "not used", M6_AREA_TRACEFS, try_tracefs},
  {"perf-other", REST, "samples of another's process", "another user's game", M6_AREA_PERF_OTHER, try_perf_other},
  {"perf-cpu", REST, "CPU samples of the machine", "not used", M6_AREA_PERF_CPU, try_perf_cpu},
  {"proc-other", REST, "another's mappings", "symbols of another user's game", M6_AREA_PROC, try_proc_other},
  {"io-uring", REST, "io_uring", "dumps that do not block", M6_AREA_IO_URING, try_io_uring},
};
const size_t doctor_feature_count = sizeof doctor_features / sizeof doctor_features[0];
_Static_assert(sizeof doctor_features / sizeof doctor_features[0] <= DOCTOR_FEATURES_MAX, "doctor.c has room for all");
