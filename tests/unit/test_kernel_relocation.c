/* test_kernel_relocation.c - the kernel programs take the layout of the kernel that they are loaded into, and nothing of the machine that
 * built them: given types whose fields lie elsewhere, the same object reads elsewhere.
 *
 * The types are made here: seven structs with offsets that no kernel has. The raw tracepoint programs are loaded with them, which the
 * verifier allows because they read by a helper; they are not attached.
 */
/* links: build/libmach6kernel.a -lbpf -ldw -lelf */
/* sanitizers: none */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <fcntl.h>
#include <linux/bpf.h>

#include "bpf/counters.h"
#include "collector/kernel_object.h"
#include "kernel_tap.h"

M6_BLOB(counters);

/* Fields of task_struct that the programs read, and where the made-up kernel has them. Odd multiples, as no struct would. */
static const struct {
  const char *name;
  unsigned offset, bytes;
} fields[] = {{"__state", 7004, 4}, {"pid", 7116, 4},        {"tgid", 7228, 4},
              {"nvcsw", 7336, 8},   {"nivcsw", 7448, 8},     {"min_flt", 7560, 8},
              {"maj_flt", 7672, 8}, {"start_time", 7784, 8}, {"thread_pid", 7896, 8}};
#define SE 8008
#define SE_RUNTIME 104
#define SE_MIGRATIONS 216
#define INFO 8808
#define FLAGS 9208 /* struct thread_info */
#define FLAGS_STATUS 44
#define PID_LEVEL 1052
#define PID_NUMBERS 1164
#define INFO_COUNT 56
#define INFO_DELAY 72
#define INFO_ARRIVAL 20

static int write_types(const char *path)
{
  struct btf *btf = btf__new_empty();
  int u32 = btf__add_int(btf, "unsigned int", 4, 0), u64 = btf__add_int(btf, "long long unsigned int", 8, 0);
  int se = btf__add_struct(btf, "sched_entity", 400);
  btf__add_field(btf, "sum_exec_runtime", u64, SE_RUNTIME * 8, 0);
  btf__add_field(btf, "nr_migrations", u64, SE_MIGRATIONS * 8, 0);
  int info = btf__add_struct(btf, "sched_info", 96);
  btf__add_field(btf, "pcount", u64, INFO_COUNT * 8, 0);
  btf__add_field(btf, "run_delay", u64, INFO_DELAY * 8, 0);
  btf__add_field(btf, "last_arrival", u64, INFO_ARRIVAL * 8, 0);
  int flags = btf__add_struct(btf, "thread_info", 96);
  btf__add_field(btf, "status", u32, FLAGS_STATUS * 8, 0);
  int upid = btf__add_struct(btf, "upid", 72);
  btf__add_field(btf, "nr", u32, 36 * 8, 0);
  int array = btf__add_array(btf, u32, upid, 1);
  int pid = btf__add_struct(btf, "pid", 1264);
  btf__add_field(btf, "level", u32, PID_LEVEL * 8, 0);
  btf__add_field(btf, "numbers", array, PID_NUMBERS * 8, 0);
  int to_pid = btf__add_ptr(btf, pid);
  btf__add_struct(btf, "task_struct", 9600);
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
    btf__add_field(btf, fields[i].name,
                   strcmp(fields[i].name, "thread_pid") == 0 ? to_pid
                   : fields[i].bytes == 4                    ? u32
                                                             : u64,
                   fields[i].offset * 8, 0);
  btf__add_field(btf, "se", se, SE * 8, 0);
  btf__add_field(btf, "sched_info", info, INFO * 8, 0);
  btf__add_field(btf, "thread_info", flags, FLAGS * 8, 0);
  uint32_t size = 0;
  const void *raw = btf__raw_data(btf, &size);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  int good = raw && write(fd, raw, size) == (ssize_t)size;
  close(fd);
  btf__free(btf);
  return good;
}

static int load(const char *types, struct bpf_object **object)
{
  struct bpf_object_open_opts o = {.sz = sizeof o, .object_name = "counters", .btf_custom_path = types};
  struct m6_counters_config config = {.tgid = {1}, .targets = 1};
  *object = bpf_object__open_mem(m6_blob_counters, m6_blob_counters_size, &o);
  if (!*object) return errno;
  for (struct bpf_program *p = bpf_object__next_program(*object, NULL); p; p = bpf_object__next_program(*object, p))
    bpf_program__set_autoload(p, strstr(bpf_program__name(p), "_raw") != NULL);
  if (m6_object_configure(*object, &config, sizeof config) != 0) return EINVAL;
  return -bpf_object__load(*object);
}

/* Has any program an instruction with this constant? */
static int uses(struct bpf_object *object, int constant)
{
  for (struct bpf_program *p = bpf_object__next_program(object, NULL); p; p = bpf_object__next_program(object, p)) {
    if (!bpf_program__autoload(p)) continue;
    const struct bpf_insn *insns = bpf_program__insns(p);
    for (size_t i = 0; i < bpf_program__insn_cnt(p); i++)
      if (insns[i].imm == constant) return 1;
  }
  return 0;
}
static int used(struct bpf_object *object)
{
  int n = 0;
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) n += uses(object, (int)fields[i].offset);
  return n + uses(object, SE + SE_RUNTIME) + uses(object, SE + SE_MIGRATIONS) + uses(object, INFO + INFO_COUNT) +
         uses(object, INFO + INFO_DELAY) + uses(object, INFO + INFO_ARRIVAL) + uses(object, FLAGS + FLAGS_STATUS) +
         uses(object, PID_LEVEL) + uses(object, PID_NUMBERS);
}

int main(void)
{
  char path[4096], why[160];
  const char *dir = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/mach6-types.%d", dir ? dir : "/tmp", (int)getpid());
  struct bpf_object *object = NULL;
  struct m6_fault fault;
  m6_open_blob(counters, &object, &fault); /* quiets libbpf */
  bpf_object__close(object);
  if (!check(write_types(path), "types of a kernel that does not exist are made")) return tap_done();
  int err = load(path, &object);
  if (err == EPERM) {
    snprintf(why, sizeof why, "bpf: %s", strerrorname_np(err));
    skip_named("fields are read where the running kernel has them", why);
  } else {
    check(err == 0, "the object loads with them%s%s", err ? ": " : "", err ? strerror(err) : "");
    check(err == 0 && used(object) == 17, "all 17 fields are read where they have them");
    bpf_object__close(object);
    err = load(NULL, &object);
    check(err == 0 && used(object) == 0, "with the running kernel's types none is");
  }
  bpf_object__close(object);
  unlink(path);
  return tap_done();
}
