/* doctor.c - `mach6 doctor`: what of the kernel side works on this machine, at which tier, and what opens the rest.
 *
 * Each tier is a child that has become it (root; two capabilities; nothing) and tries every feature there, for real. A
 * child that hangs or dies costs the answers that it had not given. Tiers above one's own cannot be tried, and are said
 * to be so. Calls doctor_probes.c, collector/kernel_fault.h, jansson.
 */
#include <argp.h>
#include <errno.h>
#include <grp.h>
#include <jansson.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../collector/kernel_confine.h"
#include "doctor.h"
#include "tool.h"

#define NOBODY 65534
#define CHILD_SECONDS 60

enum tier { ROOT, CAPABLE, NOTHING, TIERS };
static const struct {
  const char *name, *heading, *who, *means;
} tiers[TIERS] = {
  [ROOT] = {"root", "root", "root", "root"},
  [CAPABLE] = {"capabilities", "caps", "a user with the two capabilities",
               "a user whose mach6-collector has CAP_BPF and CAP_PERFMON"},
  [NOTHING] = {"nothing", "user", "a user without capabilities", "one without capabilities"},
};

struct answer {
  int asked; /* 0: the tier was not tried, or its child did not get there */
  int err;
  struct m6_hint hint;
};
struct examination {
  int tried[TIERS];
  struct answer answers[TIERS][DOCTOR_FEATURES_MAX];
};

/* ---- becoming a tier -------------------------------------------------------------------------------------------- */

#define BIT(cap) (1ull << (cap))
#define TWO_CAPABILITIES (BIT(CAP_BPF) | BIT(CAP_PERFMON))

static int set_capabilities(uint64_t set)
{
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {0};
  data[0].effective = data[0].permitted = (uint32_t)set;
  data[1].effective = data[1].permitted = (uint32_t)(set >> 32);
  return (int)syscall(SYS_capset, &header, data);
}
static uint64_t permitted(void)
{
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {0};
  if (syscall(SYS_capget, &header, data) != 0) return 0;
  return (uint64_t)data[1].permitted << 32 | data[0].permitted;
}

/* In a child: 0 when this process now is of that tier. */
static int become(enum tier tier)
{
  if (tier == ROOT) return geteuid() == 0 ? 0 : EPERM;
  uint64_t keep = tier == CAPABLE ? TWO_CAPABILITIES : 0;
  if ((permitted() & keep) != keep) return EPERM;
  if (geteuid() == 0) {
    if (prctl(PR_SET_KEEPCAPS, 1) != 0 || setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) != 0)
      return errno;
  }
  if (set_capabilities(keep) != 0) return errno;
  /* A process that changed its user may not read its own /proc; one that was started by that user may. */
  prctl(PR_SET_DUMPABLE, 1);
  return 0;
}

static void examine_in_child(enum tier tier, int out)
{
  int refused = become(tier);
  if (write(out, &refused, sizeof refused) != sizeof refused || refused) _exit(0);
  for (size_t i = 0; i < doctor_feature_count; i++) {
    struct answer a = {.asked = 1};
    enum m6_area area = doctor_features[i].area;
    alarm(CHILD_SECONDS / 3);
    a.err = doctor_features[i].attempt(&area);
    if (a.err) a.hint = m6_fault_hint(area, a.err);
    if (write(out, &a, sizeof a) != sizeof a) break;
  }
  _exit(0);
}

static int read_whole(int fd, void *into, size_t size)
{
  size_t have = 0;
  for (ssize_t n; have < size && (n = read(fd, (char *)into + have, size - have)) > 0;) have += (size_t)n;
  return have == size;
}

static void examine(struct examination *e, enum tier tier)
{
  int way[2], refused;
  if (pipe(way) != 0) return;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    close(way[0]);
    signal(SIGALRM, SIG_DFL);
    examine_in_child(tier, way[1]);
  }
  close(way[1]);
  if (child > 0 && read_whole(way[0], &refused, sizeof refused) && !refused) {
    e->tried[tier] = 1;
    for (size_t i = 0; i < doctor_feature_count; i++)
      if (!read_whole(way[0], &e->answers[tier][i], sizeof(struct answer))) break;
  }
  close(way[0]);
  if (child > 0) waitpid(child, NULL, 0);
}

/* ---- what is printed -------------------------------------------------------------------------------------------- */

static const char *short_name(int err)
{
  static char number[16];
  const char *name = strerrorname_np(err);
  if (name) return name;
  if (err == 524) return "ENOTSUPP";
  snprintf(number, sizeof number, "%d", err);
  return number;
}

static const char *cell(const struct examination *e, enum tier t, size_t feature)
{
  const struct answer *a = &e->answers[t][feature];
  if (!e->tried[t]) return "?";
  if (!a->asked) return "silent";
  return a->err ? short_name(a->err) : "works";
}

/* What stands between this process and the kernel, whoever it is: words for each. */
static unsigned confined_by(const char *words[4])
{
  struct m6_confinement c;
  unsigned n = 0;
  m6_confinement_read(&c);
  if (c.user_namespace) words[n++] = "a user namespace (its root is not the machine's)";
  if (c.pid_namespace) words[n++] = "a pid namespace";
  if (c.seccomp) words[n++] = "a seccomp filter";
  if (c.no_new_privs) words[n++] = "no_new_privs";
  return n;
}

/* In 80 columns; what goes on stands under what it belongs to. A command stays on its line, to be copied: `ways` to
 * open something are a line each. */
static void print_hint(const char *what, const char *text, int ways)
{
  int column = printf("      %s:", what);
  while (*text) {
    int n = (int)strcspn(text, ways ? ";" : " ");
    if (column > 17 && (ways || column + 1 + n > 80)) column = printf("\n%16s", "") - 1;
    column += printf(" %.*s", n, text);
    text += n;
    while (*text == ' ' || (ways && *text == ';')) text++;
  }
  printf("\n");
}

/* What is closed, once for each reason: the features, the errno, the setting, the command. */
static void print_reasons(const struct examination *e, enum tier t)
{
  char done[DOCTOR_FEATURES_MAX] = {0};
  int first = 1;
  for (size_t i = 0; i < doctor_feature_count; i++) {
    const struct answer *a = &e->answers[t][i];
    if (done[i] || !a->asked || !a->err) continue;
    if (first) printf("\nClosed to %s:\n", tiers[t].who);
    first = 0;
    printf("  ");
    int column = 2;
    const char *comma = "";
    for (size_t k = i; k < doctor_feature_count; k++) {
      const struct answer *b = &e->answers[t][k];
      if (!b->asked || b->err != a->err || strcmp(b->hint.setting, a->hint.setting) != 0 ||
          strcmp(b->hint.command, a->hint.command) != 0)
        continue;
      done[k] = 1;
      if (column > 60) {
        printf(",\n  ");
        column = 2;
        comma = "";
      }
      column += printf("%s%s", comma, doctor_features[k].id);
      comma = ", ";
    }
    printf(": %s\n", short_name(a->err));
    print_hint("closed by", a->hint.setting[0] ? a->hint.setting : "nothing that is known here", 0);
    if (a->hint.command[0]) print_hint("opened by", a->hint.command, 1);
  }
}

static void print_table(const struct examination *e)
{
  struct utsname u;
  uname(&u);
  printf("mach6 doctor: Linux %s, %s\n", u.release, u.machine);
  const char *words[4], *group = "";
  unsigned confined = confined_by(words);
  for (unsigned i = 0; i < confined; i++)
    printf("%s%s%s", i ? ", " : "inside of ", words[i], i + 1 == confined ? "\n" : "");
  for (size_t i = 0; i < doctor_feature_count; i++) {
    const struct doctor_feature *f = &doctor_features[i];
    if (strcmp(group, f->group) != 0) {
      printf("\n%-52s", f->group);
      for (int t = 0; t < TIERS; t++) printf(" %-*s", t + 1 < TIERS ? 8 : 0, tiers[t].heading);
      printf("\n");
    }
    group = f->group;
    printf("  %-19s %-30s", f->id, f->what);
    for (int t = 0; t < TIERS; t++) printf(" %-*s", t + 1 < TIERS ? 8 : 0, cell(e, (enum tier)t, i));
    printf("\n");
  }
  for (int t = 0; t < TIERS; t++)
    if (e->tried[t]) print_reasons(e, (enum tier)t);
  printf("\ncaps: %s;\nuser: %s.\n", tiers[CAPABLE].means, tiers[NOTHING].means);
  for (int t = 0; t < TIERS; t++)
    if (!e->tried[t]) printf("?: %s: not tried; as root of the machine, mach6 doctor tries all.\n", tiers[t].heading);
}

static json_t *json_answer(const struct examination *e, int t, size_t i)
{
  const struct answer *a = &e->answers[t][i];
  if (!e->tried[t] || !a->asked) return json_null();
  if (!a->err) return json_pack("{s:b}", "works", 1);
  return json_pack("{s:b,s:s,s:i,s:s,s:s,s:s}", "works", 0, "errno", short_name(a->err), "number", a->err, "text",
                   strerror(a->err), "setting", a->hint.setting, "command", a->hint.command);
}

static int print_json(const struct examination *e)
{
  struct utsname u;
  uname(&u);
  json_t *features = json_array(), *names = json_array(), *confined = json_array();
  const char *words[4];
  unsigned n = confined_by(words);
  for (unsigned i = 0; i < n; i++) json_array_append_new(confined, json_string(words[i]));
  for (int t = 0; t < TIERS; t++)
    json_array_append_new(
      names, json_pack("{s:s,s:s,s:b}", "name", tiers[t].name, "means", tiers[t].means, "tried", e->tried[t]));
  for (size_t i = 0; i < doctor_feature_count; i++) {
    const struct doctor_feature *f = &doctor_features[i];
    json_t *by_tier = json_object();
    for (int t = 0; t < TIERS; t++) json_object_set_new(by_tier, tiers[t].name, json_answer(e, t, i));
    json_array_append_new(features, json_pack("{s:s,s:s,s:s,s:s,s:o}", "id", f->id, "group", f->group, "what", f->what,
                                              "used_for", f->used, "tiers", by_tier));
  }
  json_t *whole = json_pack("{s:s,s:s,s:o,s:o,s:o}", "kernel", u.release, "machine", u.machine, "inside_of", confined,
                            "tiers", names, "features", features);
  int bad = !whole || json_dumpf(whole, stdout, JSON_INDENT(2)) != 0;
  putchar('\n');
  json_decref(whole);
  return bad;
}

/* A process of another user than any tier's, that one may examine: a child of our own when we are root, else init. */
static pid_t start_other(void)
{
  int way[2];
  char became = 0;
  if (geteuid() != 0 || pipe(way) != 0) return 0;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setgroups(0, NULL) != 0 || setresgid(NOBODY - 1, NOBODY - 1, NOBODY - 1) != 0 ||
        setresuid(NOBODY - 1, NOBODY - 1, NOBODY - 1) != 0 || write(way[1], "", 1) != 1)
      _exit(1);
    for (;;) pause();
  }
  close(way[1]);
  int none = child < 0 || read(way[0], &became, 1) != 1; /* a user namespace may know one user alone */
  close(way[0]);
  if (none && child > 0) waitpid(child, NULL, 0);
  return none ? 0 : child;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  switch (key) {
  case 'j': *(int *)state->input = 1; break;
  case ARGP_KEY_ARG: argp_error(state, "doctor takes no names ('%s')", arg); break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

int m6_doctor(int argc, char **argv)
{
  static const struct argp_option table[] = {{"json", 'j', 0, 0, "One JSON object", 0}, {0}};
  static const struct argp argp = {table,
                                   parse,
                                   NULL,
                                   "Try what mach6 can ask of the kernel, as root, with CAP_BPF and CAP_PERFMON, and "
                                   "with nothing, and say what closes "
                                   "what does not work, and which command opens it. As root it can try every tier.",
                                   NULL,
                                   NULL,
                                   NULL};
  int json = 0;
  argv[0] = (char *)"mach6 doctor";
  argp_err_exit_status = EXIT_USAGE;
  argp_parse(&argp, argc, argv, 0, NULL, &json);
  static struct examination e;
  pid_t other = start_other();
  if (other > 0) doctor_other = other;
  for (int t = 0; t < TIERS; t++) examine(&e, (enum tier)t);
  if (other > 0) {
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
  }
  if (json) return print_json(&e);
  print_table(&e);
  return 0;
}
