/* kernel_uprobe.c - the two ways to attach a uprobe without leaving anything in the file system. */
#include "kernel_uprobe.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_object.h"

/* bpf(BPF_LINK_CREATE) for uprobe_multi: the part of union bpf_attr that Linux 6.6 added, which older headers lack. */
struct link_create_multi {
  uint32_t program, target;
  uint32_t attach_type, flags;
  uint64_t path, offsets, reference_counters, cookies;
  uint32_t count, multi_flags, pid, end;
};
_Static_assert(sizeof(struct link_create_multi) == 64, "as the kernel has it");

int m6_uprobe_multi(int program, const char *path, uint64_t offset, pid_t pid, int *link, struct m6_fault *fault)
{
  struct link_create_multi attr = {
    .program = (uint32_t)program,
    .attach_type = M6_BPF_TRACE_UPROBE_MULTI,
    .path = (uintptr_t)path,
    .offsets = (uintptr_t)&offset,
    .count = 1,
    .pid = (uint32_t)pid,
  };
  long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
  *link = (int)fd;
  if (fd >= 0) return 0;
  return m6_fault_set(fault, errno, M6_AREA_MULTI, "attach a uprobe_multi link to", "%s+0x%llx", path,
                      (unsigned long long)offset);
}

static int pmu_type(uint32_t *type)
{
  FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
  if (!f) return errno;
  int got = fscanf(f, "%u", type);
  fclose(f);
  return got == 1 ? 0 : EINVAL;
}

int m6_uprobe_pmu(int program, const char *path, uint64_t offset, pid_t pid, int *link, int *event,
                  struct m6_fault *fault)
{
  struct perf_event_attr attr = {.size = sizeof attr};
  *link = *event = -1;
  int err = pmu_type(&attr.type);
  if (err) return m6_fault_set(fault, err, M6_AREA_PMU_UPROBE, "find", "the kernel's uprobe events");
  attr.config1 = (uintptr_t)path;
  attr.config2 = offset;
  /* On a task the filter is its address space, so that all its threads hit; on a CPU it is everybody, on every CPU. */
  M6_AUTO_FD fd = (int)syscall(SYS_perf_event_open, &attr, pid ? pid : -1, pid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0)
    return m6_fault_set(fault, errno, M6_AREA_PMU_UPROBE, "open a uprobe event on", "%s+0x%llx", path,
                        (unsigned long long)offset);
  M6_AUTO_FD tie = bpf_link_create(program, fd, BPF_PERF_EVENT, NULL);
  if (tie < 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) != 0)
    return m6_fault_set(fault, errno, M6_AREA_PMU_UPROBE, "tie the program to the event on", "%s", path);
  if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0)
    return m6_fault_set(fault, errno, M6_AREA_PMU_UPROBE, "enable the event on", "%s", path);
  *link = m6_keep_fd(&tie);
  *event = m6_keep_fd(&fd);
  return 0;
}
