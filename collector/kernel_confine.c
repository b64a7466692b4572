/* kernel_confine.c - see kernel_confine.h. */
#include "kernel_confine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/linux/proc_ns.h: the initial namespaces' inodes are part of the kernel's interface. */
#define FIRST_USER_NAMESPACE 0xEFFFFFFDu
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

static int in_namespace_other_than(const char *path, unsigned long first)
{
  char text[64] = "", *at;
  ssize_t n = readlink(path, text, sizeof text - 1);
  if (n <= 0 || !(at = strchr(text, '['))) return 0;
  return strtoul(at + 1, NULL, 10) != first;
}

void m6_confinement_read(struct m6_confinement *c)
{
  char line[256];
  unsigned long long v;
  *c = (struct m6_confinement){.bounding = UINT64_MAX, .effective = geteuid() == 0 ? UINT64_MAX : 0};
  c->user_namespace = in_namespace_other_than("/proc/self/ns/user", FIRST_USER_NAMESPACE);
  c->pid_namespace = in_namespace_other_than("/proc/self/ns/pid", FIRST_PID_NAMESPACE);
  FILE *f = fopen("/proc/self/status", "re");
  while (f && fgets(line, sizeof line, f)) {
    if (sscanf(line, "CapEff: %llx", &v) == 1) c->effective = v;
    if (sscanf(line, "CapBnd: %llx", &v) == 1) c->bounding = v;
    if (sscanf(line, "NoNewPrivs: %llu", &v) == 1) c->no_new_privs = v != 0;
    if (sscanf(line, "Seccomp: %llu", &v) == 1) c->seccomp = v != 0;
  }
  if (f) fclose(f);
}

int m6_confinement_has(const struct m6_confinement *c, unsigned capability)
{
  return !c->user_namespace && capability < 64 && c->effective >> capability & 1;
}

/* ---- who refuses --------------------------------------------------------------------------------------------------
 * */

enum call { NO_CALL, BPF_CALL, PERF_CALL, URING_CALL };
static enum call call_of(enum m6_area area)
{
  switch (area) {
  case M6_AREA_BPF:
  case M6_AREA_MULTI:
  case M6_AREA_TRAMPOLINE: return BPF_CALL;
  case M6_AREA_PMU_UPROBE:
  case M6_AREA_KPROBE:
  case M6_AREA_PERF_SELF:
  case M6_AREA_PERF_KERNEL:
  case M6_AREA_PERF_CPU:
  case M6_AREA_PERF_OTHER:
  case M6_AREA_PERF_HARDWARE: return PERF_CALL;
  case M6_AREA_IO_URING: return URING_CALL;
  default: return NO_CALL;
  }
}

/* The kernel says EINVAL to flags and commands that do not exist, and EFAULT to memory that does not. Kernels before
 * 5.8 ask for bpf's right first: then it is not known. */
static int filtered(const struct m6_confinement *c, enum call call)
{
  if (!c->seccomp) return 0;
  long got = 0;
  if (call == BPF_CALL) got = syscall(SYS_bpf, 0x7fffffff, NULL, 0);
  else if (call == PERF_CALL) got = syscall(SYS_perf_event_open, NULL, 0, -1, -1, ~0ul);
  else if (call == URING_CALL) got = syscall(SYS_io_uring_setup, 0, NULL);
  else return 0;
  if (got >= 0 || errno == EINVAL || errno == EFAULT) return 0;
  return call == PERF_CALL || m6_confinement_has(c, M6_CAP_BPF) || errno == ENOSYS;
}

/* "none [integrity] confidentiality" */
static int is_confidential(void)
{
  char text[128] = "";
  FILE *f = fopen("/sys/kernel/security/lockdown", "re");
  if (!f) return 0;
  size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = 0;
  return strstr(text, "[confidentiality]") != NULL;
}

int m6_confinement_hint(const struct m6_confinement *c, enum m6_area area, int err, struct m6_hint *hint)
{
  enum call call = call_of(area);
  static const char *const names[] = {"", "bpf", "perf_event_open", "io_uring_setup"};
  if (call == NO_CALL || (err != EPERM && err != EACCES && err != ENOSYS)) return 0;
  if (filtered(c, call)) {
    snprintf(hint->setting, sizeof hint->setting, "a seccomp filter refuses %s: the container's or service's profile",
             names[call]);
    if (call == URING_CALL)
      snprintf(hint->command, sizeof hint->command,
               "docker|podman run --security-opt seccomp=PROFILE, one that allows %s", names[call]);
    else
      snprintf(
        hint->command, sizeof hint->command,
        "docker|podman run --cap-add BPF --cap-add PERFMON; or --security-opt seccomp=PROFILE, one that allows %s",
        names[call]);
    return 1;
  }
  if (call == BPF_CALL && err == EPERM && m6_confinement_has(c, M6_CAP_BPF) && m6_confinement_has(c, M6_CAP_PERFMON) &&
      is_confidential()) {
    snprintf(hint->setting, sizeof hint->setting, "kernel lockdown is at confidentiality");
    snprintf(hint->command, sizeof hint->command, "boot with lockdown=integrity, or without secure boot");
    return 1;
  }
  return 0;
}

/* ---- how to get a capability ---------------------------------------------------------------------------------------
 * */

static void add(char *out, size_t size, const char *text)
{
  size_t n = strlen(out);
  snprintf(out + n, size - n, "%s", text);
}

void m6_confinement_open(const struct m6_confinement *c, unsigned capability, const char *usual, struct m6_hint *hint)
{
  static const struct {
    unsigned capability;
    const char *option;
  } options[] = {{M6_CAP_BPF, "--cap-add BPF --cap-add PERFMON"},
                 {M6_CAP_PERFMON, "--cap-add BPF --cap-add PERFMON"},
                 {M6_CAP_ADMIN, "--cap-add SYS_ADMIN"},
                 {M6_CAP_PTRACE, "--cap-add SYS_PTRACE"}};
  const char *option = "--privileged";
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    if (options[i].capability == capability) option = options[i].option;
  if (strncmp(usual, "sysctl", 6) == 0) { /* the machine's, whoever asks */
    int inside = c->user_namespace || c->pid_namespace;
    snprintf(hint->command, sizeof hint->command, "%s%s", inside ? "on the host: " : "", usual);
    return;
  }
  if (c->user_namespace) {
    add(hint->setting, sizeof hint->setting, "; those of a user namespace do not count");
    snprintf(hint->command, sizeof hint->command,
             "run it outside of the namespace; sudo docker|podman run %s: a container that root starts", option);
  } else if (capability < 64 && !(c->bounding >> capability & 1)) {
    add(hint->setting, sizeof hint->setting, ", and can't be had here: the bounding set is without it");
    snprintf(hint->command, sizeof hint->command, "docker|podman run %s; in a service: CapabilityBoundingSet=", option);
  } else if (c->no_new_privs && strncmp(usual, "setcap", 6) == 0) {
    add(hint->setting, sizeof hint->setting, "; no_new_privs is set, so files give none");
    snprintf(
      hint->command, sizeof hint->command,
      "start it as root; docker|podman run --security-opt no-new-privileges=false; in a service: NoNewPrivileges=no");
  } else {
    snprintf(hint->command, sizeof hint->command, "%s", usual);
  }
}
