/* kernel_fault.c - the kernel's refusals as text. One table says which setting closes what, and what opens it. */
#include "kernel_fault.h"

#include "kernel_confine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int m6_fault_set(struct m6_fault *f, int err, enum m6_area area, const char *tried, const char *on_format, ...)
{
  if (err < 0) err = -err;
  if (err == 0) err = EIO;
  if (!f) return err;
  f->err = err;
  f->area = area;
  f->tried = tried;
  va_list args;
  va_start(args, on_format);
  vsnprintf(f->on, sizeof f->on, on_format, args); // NOLINT(clang-analyzer-valist.Uninitialized)
  va_end(args);
  return err;
}

/* ---- which setting ---------------------------------------------------------------------------------------------- */

/* A sysctl's value, or `otherwise` when it is not to be read. */
static long sysctl_value(const char *path, long otherwise)
{
  long value = otherwise;
  FILE *f = fopen(path, "re");
  if (!f) return otherwise;
  if (fscanf(f, "%ld", &value) != 1) value = otherwise;
  fclose(f);
  return value;
}

#define ENOTSUPP 524 /* the kernel's own number, which reaches user space here */
enum {
  SYS_ADMIN = M6_CAP_ADMIN,
  SYS_PTRACE = M6_CAP_PTRACE,
  PERFMON = M6_CAP_PERFMON,
  BPF = M6_CAP_BPF,
  NOTHING = M6_CAP_NONE
};
#define PARANOID "/proc/sys/kernel/perf_event_paranoid"
#define GIVE_BOTH "setcap cap_bpf,cap_perfmon+ep $(command -v mach6) $(command -v mach6-collector)"
#define GIVE_ADMIN "run it as root"
#define REBUILD "a kernel that was built with it"

/* First row that fits wins: area, errno (0 = any), a capability that must be lacking (NOTHING = whatever), a sysctl
 * that is shown with its value where that lies above `over` (or, after a '!', a file that must be missing), the
 * setting, the command: how to open it where nothing confines this process (kernel_confine.h knows the rest). */
static const struct row {
  enum m6_area area;
  int err;
  int lacks;
  const char *sysctl;
  long over;
  const char *setting, *command;
} rows[] = {
  {M6_AREA_BPF, EPERM, BPF, "/proc/sys/kernel/unprivileged_bpf_disabled", 0, "CAP_BPF is lacking", GIVE_BOTH},
  {M6_AREA_BPF, EPERM, PERFMON, NULL, 0, "CAP_PERFMON is lacking", GIVE_BOTH},
  {M6_AREA_BPF, EACCES, PERFMON, NULL, 0, "CAP_PERFMON is lacking", GIVE_BOTH},
  {M6_AREA_BPF, EPERM, NOTHING, NULL, 0, "refused with the capabilities there: a security module",
   "journalctl -k -g denied; cat /sys/kernel/security/lsm"},
  {M6_AREA_BPF, ENOSYS, NOTHING, NULL, 0, "CONFIG_BPF_SYSCALL is not set", REBUILD},
  {M6_AREA_BPF, ENOMEM, NOTHING, NULL, 0, "memory, or RLIMIT_MEMLOCK on kernels before 5.11", "ulimit -l unlimited"},
  {M6_AREA_BTF, ENOENT, NOTHING, "!/sys/kernel/notes", 0, "/sys is not mounted here",
   "mount -t sysfs sysfs /sys; docker|podman run -v /sys/kernel/btf:/sys/kernel/btf:ro"},
  {M6_AREA_BTF, 0, NOTHING, NULL, 0, "CONFIG_DEBUG_INFO_BTF is not set", REBUILD},
  {M6_AREA_MULTI, EPERM, BPF, NULL, 0, "CAP_BPF or CAP_PERFMON is lacking", GIVE_BOTH},
  {M6_AREA_MULTI, EPERM, PERFMON, NULL, 0, "CAP_PERFMON is lacking", GIVE_BOTH},
  {M6_AREA_MULTI, EPERM, NOTHING, NULL, 0, "refused with the capabilities there: a security module",
   "journalctl -k -g denied; cat /sys/kernel/security/lsm"},
  {M6_AREA_MULTI, EINVAL, NOTHING, NULL, 0, "this kernel has no uprobe_multi links (they came with 6.6)", GIVE_ADMIN},
  {M6_AREA_MULTI, ESRCH, NOTHING, NULL, 0, "the process has ended", ""},
  {M6_AREA_PMU_UPROBE, EACCES, SYS_ADMIN, NULL, 0, "CAP_SYS_ADMIN is lacking", GIVE_ADMIN},
  {M6_AREA_PMU_UPROBE, EPERM, SYS_ADMIN, NULL, 0, "CAP_SYS_ADMIN is lacking", GIVE_ADMIN},
  {M6_AREA_PMU_UPROBE, ENOENT, NOTHING, NULL, 0, "CONFIG_UPROBE_EVENTS is not set", REBUILD},
  {M6_AREA_KPROBE, ENOENT, NOTHING, NULL, 0, "CONFIG_KPROBES is not set", REBUILD},
  {M6_AREA_KPROBE, EPERM, SYS_ADMIN, NULL, 0, "CAP_SYS_ADMIN is lacking", GIVE_ADMIN},
  {M6_AREA_KPROBE, EACCES, SYS_ADMIN, NULL, 0, "CAP_SYS_ADMIN is lacking", GIVE_ADMIN},
  {M6_AREA_TRAMPOLINE, EPERM, BPF, NULL, 0, "CAP_BPF is lacking", GIVE_BOTH},
  {M6_AREA_TRAMPOLINE, EPERM, PERFMON, NULL, 0, "CAP_PERFMON is lacking", GIVE_BOTH},
  {M6_AREA_TRAMPOLINE, EPERM, NOTHING, NULL, 0,
   "refused with the capabilities there: no trampolines in this kernel, or a security module", ""},
  {M6_AREA_TRAMPOLINE, ENOTSUPP, NOTHING, NULL, 0, "functions have no room for a trampoline (CONFIG_FUNCTION_TRACER)",
   REBUILD},
  {M6_AREA_TRAMPOLINE, EBUSY, NOTHING, NULL, 0, "functions have no room for a trampoline (CONFIG_FUNCTION_TRACER)",
   REBUILD},
  {M6_AREA_TRACEFS, ENOENT, NOTHING, NULL, 0, "tracefs is not mounted",
   "mount -t tracefs tracefs /sys/kernel/tracing; docker|podman run -v /sys/kernel/tracing:/sys/kernel/tracing"},
  {M6_AREA_TRACEFS, EACCES, SYS_ADMIN, NULL, 0, "tracefs is root's", GIVE_ADMIN},
  {M6_AREA_PERF_SELF, EACCES, PERFMON, PARANOID, 2, "CAP_PERFMON is lacking", "sysctl kernel.perf_event_paranoid=2"},
  {M6_AREA_PERF_KERNEL, EACCES, PERFMON, PARANOID, 1, "CAP_PERFMON is lacking", "sysctl kernel.perf_event_paranoid=1"},
  {M6_AREA_PERF_CPU, EACCES, PERFMON, PARANOID, 0, "CAP_PERFMON is lacking", "sysctl kernel.perf_event_paranoid=0"},
  {M6_AREA_PERF_SELF, ENOSYS, NOTHING, NULL, 0, "CONFIG_PERF_EVENTS is not set", REBUILD},
  {M6_AREA_PERF_SELF, EPERM, NOTHING, NULL, 0, "a security module", "journalctl -k -g denied"},
  {M6_AREA_PERF_OTHER, ESRCH, NOTHING, NULL, 0, "no other user's process can be seen here", ""},
  {M6_AREA_PERF_OTHER, EACCES, PERFMON, NULL, 0, "CAP_PERFMON is lacking, and the process is another user's",
   GIVE_BOTH},
  {M6_AREA_PERF_OTHER, EPERM, PERFMON, NULL, 0, "CAP_PERFMON is lacking, and the process is another user's", GIVE_BOTH},
  {M6_AREA_PERF_HARDWARE, ENOENT, NOTHING, NULL, 0, "this (virtual) machine shows no hardware counters", ""},
  {M6_AREA_PERF_HARDWARE, EOPNOTSUPP, NOTHING, NULL, 0, "this (virtual) machine shows no hardware counters", ""},
  {M6_AREA_SHM, 0, NOTHING, NULL, 0, "/dev/shm is full, or not for everybody",
   "df /dev/shm; mount -o remount,size=64M,mode=1777 /dev/shm"},
  {M6_AREA_PROC, EACCES, SYS_PTRACE, NULL, 0, "the process is another user's, or not dumpable", GIVE_ADMIN},
  {M6_AREA_PROC, EPERM, SYS_PTRACE, NULL, 0, "the process is another user's, or not dumpable", GIVE_ADMIN},
  {M6_AREA_NAMESPACE, 0, NOTHING, NULL, 0,
   "inside a pid namespace the kernel's numbers are found by a walk over all tasks (Linux 5.8, BTF)",
   "docker|podman run --pid=host"},
  {M6_AREA_IO_URING, EPERM, NOTHING, "/proc/sys/kernel/io_uring_disabled", 0, "io_uring is switched off",
   "sysctl kernel.io_uring_disabled=0"},
  {M6_AREA_IO_URING, ENOSYS, NOTHING, NULL, 0, "CONFIG_IO_URING is not set", REBUILD},
};

struct m6_hint m6_fault_hint(enum m6_area area, int err)
{
  struct m6_hint hint = {"", ""};
  struct m6_confinement c;
  m6_confinement_read(&c);
  if (m6_confinement_hint(&c, area, err, &hint)) return hint;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct row *r = &rows[i];
    if (r->area != area || (r->err && r->err != err)) continue;
    if (r->lacks != NOTHING && m6_confinement_has(&c, (unsigned)r->lacks)) continue;
    if (r->sysctl && r->sysctl[0] == '!' && access(r->sysctl + 1, F_OK) == 0) continue;
    long value = r->sysctl && r->sysctl[0] == '/' ? sysctl_value(r->sysctl, -100) : -100;
    if (r->sysctl && value > r->over) {
      const char *name = strrchr(r->sysctl, '/') + 1;
      snprintf(hint.setting, sizeof hint.setting, "kernel.%s = %ld and %s", name, value, r->setting);
    } else snprintf(hint.setting, sizeof hint.setting, "%s", r->setting);
    if (r->lacks != NOTHING) m6_confinement_open(&c, (unsigned)r->lacks, r->command, &hint);
    else snprintf(hint.command, sizeof hint.command, "%s", r->command);
    return hint;
  }
  return hint;
}

const char *m6_fault_text(const struct m6_fault *f, char *out, size_t size)
{
  struct m6_hint hint = m6_fault_hint(f->area, f->err);
  const char *name = strerrorname_np(f->err);
  int n = snprintf(out, size, "cannot %s %s: %s (%s)", f->tried, f->on, strerror(f->err), name ? name : "?");
  if (n > 0 && (size_t)n < size && hint.setting[0])
    n += snprintf(out + n, size - (size_t)n, "; closed by: %s", hint.setting);
  if (n > 0 && (size_t)n < size && hint.command[0])
    snprintf(out + n, size - (size_t)n, "; opened by: %s", hint.command);
  return out;
}
