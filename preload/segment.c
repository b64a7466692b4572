/* segment.c - the target's shared memory, the control line, and the one reason on stderr.
 *
 * Promise: nothing of the segment is written before it was populated, so a full /dev/shm is an error code here and
 * never a SIGBUS. No descriptor stays open. A session starts and stops by one compare-and-swap each; nobody waits for
 * anybody.
 * May call: system calls (none of these is a cancellation point) and plain libc calls that neither allocate nor lock.
 * errno is kept by everything that hooks call.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "internal.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct m6_header *m6_seg;
uint32_t m6_clock_kind = M6_CLOCK_MONOTONIC;
uint32_t m6_session_seen;
uint32_t m6_mark_key;

static char path[80];
static uint32_t switching; /* 1: somebody starts or stops a session */
static uint64_t checked;   /* clock of the last look for a heartbeat; of all threads, roughly */
static const uintptr_t *current_break;

/* ---- text without stdio ----------------------------------------------------------------------------------------- */

struct text {
  char *at, *end;
};
static void put(struct text *t, const char *s)
{
  while (*s && t->at < t->end) *t->at++ = *s++;
}
static void put_number(struct text *t, uint64_t v, unsigned base)
{
  char digits[24], *d = digits + sizeof digits;
  *--d = 0;
  do *--d = "0123456789abcdef"[v % base];
  while (v /= base);
  put(t, d);
}

/* A line on stderr may be a signal: SIGPIPE for a pipe that nobody reads, SIGXFSZ for a file at its limit. Both are
 * this thread's, so they are taken back before anyone sees them, unless one was pending already. */
static void write_line(const char *line, size_t bytes)
{
  uint64_t old[2], before = 0;
  m6_signals_off(old);
  syscall(SYS_rt_sigpending, &before, sizeof before);
  if (syscall(SYS_write, 2, line, bytes) < 0 && (errno == EPIPE || errno == EFBIG)) {
    static const struct timespec now = {0, 0};
    uint64_t mine = (1ull << (SIGPIPE - 1) | 1ull << (SIGXFSZ - 1)) & ~before;
    syscall(SYS_rt_sigtimedwait, &mine, NULL, &now, sizeof mine);
  }
  m6_signals_back(old);
}

void m6_reason(int asked_for, const char *what, int err)
{
  static const struct {
    int e;
    const char *text;
  } known[] = {
    {EACCES, "permission denied"},   {EPERM, "not permitted"},        {ENOENT, "no such file or directory"},
    {ENOSPC, "no space left"},       {ENOMEM, "out of memory"},       {ELIBACC, "no library that is loaded defines it"},
    {EMFILE, "too many open files"}, {ENFILE, "too many open files"}, {EROFS, "read-only file system"},
    {EINVAL, "not supported"},       {EFBIG, "file size limit"},      {ENOTDIR, "not a directory"}};
  static uint32_t said;
  if (!asked_for && !m6_options.verbose) return;
  uint32_t never = 0;
  if (!m6_claim(&said, &never, 1)) return;
  int e = errno;
  char line[256];
  struct text t = {line, line + sizeof line - 1};
  put(&t, "mach6: ");
  put(&t, what);
  if (err) {
    const char *word = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
      if (known[i].e == err) word = known[i].text;
    put(&t, ": ");
    if (word) put(&t, word);
    else {
      put(&t, "errno ");
      put_number(&t, (unsigned)err, 10);
    }
  }
  *t.at++ = '\n';
  write_line(line, (size_t)(t.at - line));
  errno = e;
}

/* ---- reserving -------------------------------------------------------------------------------------------------- */

#define PAGES (M6_SEGMENT_BYTES / M6_PAGE)
static uint64_t present_pages[(PAGES + 63) / 64]; /* shared or: a page that is reserved stays so */

static int page_there(uint32_t page) { return !!(m6_observe(&present_pages[page / 64]) & 1ull << page % 64); }
int m6_there(uint32_t offset) { return page_there(offset / M6_PAGE); }

int m6_populate(uint32_t offset, uint32_t bytes)
{
  uint32_t first = offset / M6_PAGE, last = (offset + bytes - 1) / M6_PAGE;
  int keep = errno, e = 0;
  if (syscall(SYS_madvise, (char *)m6_seg + (size_t)first * M6_PAGE, (size_t)(last - first + 1) * M6_PAGE,
              MADV_POPULATE_WRITE)) {
    e = errno;
    if (e == EFAULT) e = ENOSPC;
  } else {
    for (uint32_t p = first; p <= last; p++) m6_shared_or(&present_pages[p / 64], 1ull << p % 64);
  }
  errno = keep;
  return e;
}

int m6_ensure(uint32_t offset, uint32_t bytes)
{
  for (uint32_t p = offset / M6_PAGE; p <= (offset + bytes - 1) / M6_PAGE; p++)
    if (!page_there(p)) return m6_populate(offset, bytes);
  return 0;
}

/* ---- creating --------------------------------------------------------------------------------------------------- */

static uint64_t boot_time_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t pid_namespace(void)
{
  struct stat s;
  return stat("/proc/self/ns/pid", &s) == 0 ? (uint64_t)s.st_ino : 0;
}

static void forget_file(void *at, int nameless)
{
  m6_seg = NULL;
  memset(present_pages, 0, sizeof present_pages);
  if (at != MAP_FAILED) syscall(SYS_munmap, at, M6_SEGMENT_BYTES);
  if (!nameless) syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* Opens, sizes and maps the file, and reserves what is written first. Gives an errno, and what could not be done; *file
 * is open then and m6_seg there, or neither. */
static int make_file(const char **what, int nameless, int *file)
{
  int e = 0, fd;
  struct rlimit limit;
  *what = "cannot create a segment in " M6_SEGMENT_DIR;
  *file = -1;
  /* Growing a file beyond RLIMIT_FSIZE is a signal, not an error. */
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < M6_SEGMENT_BYTES) return EFBIG;
  if (nameless) fd = (int)syscall(SYS_openat, AT_FDCWD, M6_SEGMENT_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  else fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return nameless ? EOPNOTSUPP : errno;
  if (syscall(SYS_fchmod, fd, 0600) || ftruncate(fd, M6_SEGMENT_BYTES)) e = errno; /* umask 0777 has made it mode 0 */
  void *at = MAP_FAILED;
  if (!e) {
    *what = "cannot map a segment";
    at = m6_sys_mmap(NULL, M6_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) e = errno;
  }
  if (!e) {
    *what = "cannot reserve memory in " M6_SEGMENT_DIR;
    m6_seg = at;
    e = m6_populate(0, M6_OFF_SLOTS + M6_PAGE);
    if (!e) e = m6_populate(M6_OFF_LABELS, M6_PAGE);
    /* A kernel before 5.14 does not know the advice: reserve all of it the old way. */
    if (e == EINVAL && (e = posix_fallocate(fd, 0, M6_SEGMENT_BYTES)) == 0)
      memset(present_pages, 0xff, sizeof present_pages);
  }
  if (!e) {
    *file = fd;
    return 0;
  }
  syscall(SYS_close, fd);
  forget_file(at, nameless);
  return e;
}

/* Does a file hold this word? It is read once, 255 bytes at most. */
static int file_says(const char *file, const char *word)
{
  char line[256];
  int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  long n = syscall(SYS_read, fd, line, sizeof line - 1);
  syscall(SYS_close, fd);
  line[n > 0 ? n : 0] = 0;
  return strstr(line, word) != NULL;
}

/* The time-stamp counter is good where the kernel would use it itself, or, under a hypervisor whose clock the kernel
 * prefers, where the processor says that it never stops nor changes pace. */
static uint32_t choose_clock(void)
{
#if defined(__x86_64__) || defined(__i386__)
#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/"
  unsigned a, b, c, d;
  if (file_says(CLOCKSOURCE "available_clocksource", "tsc")) return M6_CLOCK_TSC;
  if (file_says(CLOCKSOURCE "current_clocksource", "kvm-clock") && __get_cpuid(0x80000007, &a, &b, &c, &d) &&
      d & 1u << 8)
    return M6_CLOCK_TSC;
#endif
  return M6_CLOCK_MONOTONIC;
}

/* An exec keeps the pid and leaves the former image's segment behind, and nobody's: it is removed here. By identity:
 * same pid in the same namespace, same user, and no collector or run has to do with it. */
static void remove_former(const char *own_name, size_t prefix, uint64_t namespace)
{
  struct entry {
    uint64_t inode, offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
  };
  char names[1024] __attribute__((aligned(8)));
  long n;
  int dir = (int)syscall(SYS_openat, AT_FDCWD, M6_SEGMENT_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (dir >= 0 && (n = syscall(SYS_getdents64, dir, names, sizeof names)) > 0)
    for (long at = 0; at < n; at += ((struct entry *)(names + at))->bytes) {
      const char *name = ((struct entry *)(names + at))->name;
      struct m6_header h;
      struct stat s;
      if (strncmp(name, own_name, prefix) || !strcmp(name, own_name)) continue;
      int fd = (int)syscall(SYS_openat, dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
      if (fd < 0) continue;
      size_t head = offsetof(struct m6_header, labels_refused);
      int former = fstat(fd, &s) == 0 && s.st_uid == geteuid() && syscall(SYS_read, fd, &h, head) == (long)head &&
                   h.magic == M6_SEGMENT_MAGIC && h.pidns == namespace && h.run_token == 0 && h.heartbeat_ns == 0;
      syscall(SYS_close, fd);
      if (former) syscall(SYS_unlinkat, dir, name, 0);
    }
  if (dir >= 0) syscall(SYS_close, dir);
}

static void fill_header(int pid, uint64_t load, uint64_t namespace)
{
  struct m6_header *h = m6_seg;
  h->version = M6_LAYOUT_VERSION;
  h->pointer_bits = sizeof(void *) * 8;
  h->size = M6_SEGMENT_BYTES;
  h->pid = (uint32_t)pid;
  h->uid = geteuid();
  h->load_ns = load;
  m6_mark_key = (uint32_t)load | 1;
  h->run_token = m6_options.run_token;
  h->pidns = namespace;
  h->header_bytes = sizeof *h;
  h->record_bytes = sizeof(struct m6_record);
  h->clock_kind = m6_clock_kind = choose_clock(); /* now: later there may be a filter on system calls */
  h->sessions_allowed = m6_options.sessions;
  h->slots_used = 1;
  h->site_interval = m6_options.sites; /* until a collector says otherwise */
  h->site_stack = m6_options.sites == 1 ? M6_SITE_STACK_BYTES_EVERY : M6_SITE_STACK_BYTES;
  if (program_invocation_short_name) strncpy(h->name, program_invocation_short_name, sizeof h->name - 1);
  current_break = (const uintptr_t *)m6_next("__curbrk");
  m6_publish(&h->magic, M6_SEGMENT_MAGIC);
}

int m6_segment_create(void)
{
  struct text t = {path, path + sizeof path - 1};
  uint64_t load = boot_time_ns();
  const char *what;
  int e, pid = (int)syscall(SYS_getpid);
  put(&t, M6_SEGMENT_DIR "/" M6_SEGMENT_PREFIX);
  put_number(&t, (unsigned)pid, 10);
  put(&t, ".");
  char *own_name = path + sizeof M6_SEGMENT_DIR;
  uint64_t namespace = pid_namespace();
  size_t prefix = (size_t)(t.at - own_name);
  put_number(&t, load, 16);
  if (namespace) remove_former(own_name, prefix, namespace);
  /* It gets its name when it is whole, so that of a target which is killed before that nothing stays. Where a nameless
   * file cannot be had, or not be named (no /proc), it has its name from the beginning. */
  int fd;
  e = make_file(&what, 1, &fd);
  if (!e) {
    char self[32] = "/proc/self/fd/";
    struct text s = {self + strlen(self), self + sizeof self - 1};
    put_number(&s, (unsigned)fd, 10);
    fill_header(pid, load, namespace);
    if (syscall(SYS_linkat, AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW)) {
      syscall(SYS_close, fd);
      forget_file(m6_seg, 1);
      e = EOPNOTSUPP;
    }
  }
  if (e == EOPNOTSUPP && (e = make_file(&what, 0, &fd)) == 0) fill_header(pid, load, namespace);
  if (e) {
    m6_reason(m6_options.run, what, e);
    return e;
  }
  syscall(SYS_close, fd);
  return 0;
}

/* ---- sessions --------------------------------------------------------------------------------------------------- */

/* libc keeps the break in a variable; reading it is no system call. 0 where there is none, and before libc's first
 * brk. */
uint64_t m6_break_now(void) { return current_break ? m6_peek(current_break) : 0; }
static uint64_t break_at_start(void)
{
  uint64_t now = m6_break_now();
  return now || !current_break ? now : (uint64_t)syscall(SYS_brk, 0);
}

static void look_at_break(void)
{
  uint64_t now = m6_break_now();
  if (now && m6_peek(&m6_seg->brk_now) != now) m6_poke(&m6_seg->brk_now, now);
}

static void start(int64_t live)
{
  struct m6_header *h = m6_seg;
  m6_site_forget();
  h->start_live = live;
  h->start_mono_ns = m6_monotonic_ns();
  h->start_clock = m6_now();
  h->brk_start = h->brk_now = break_at_start();
  h->end_reason = M6_END_NONE;
  uint32_t ordinal = h->sessions_started + 1;
  m6_poke(&h->sessions_started, ordinal);
  m6_publish(&h->state, M6_COLLECTING);
  if (!(m6_peek(&h->unseen) & M6_UNSEEN_MALLOC_NOT_FIRST)) m6_publish(&m6_gate.counting, ordinal);
  m6_publish(&m6_gate.collecting, ordinal);
}

static void stop(uint32_t reason)
{
  m6_poke(&m6_gate.counting, 0);
  m6_poke(&m6_gate.collecting, 0);
  m6_poke(&m6_session_seen, m6_peek(&m6_seg->session));
  look_at_break();
  m6_poke(&m6_seg->end_reason, reason);
  m6_publish(&m6_seg->state, M6_ENDED);
}

void m6_segment_start(void)
{
  if (m6_options.sessions == 0) {
    m6_reason(1, "MACH6_SESSIONS=0 refuses every session; nothing is collected", 0);
    return;
  }
  m6_poke(&m6_session_seen, m6_peek(&m6_seg->session)); /* a collector that was here first asks for this very one */
  start(0);
}

static int heartbeat_lost(uint64_t now)
{
  uint64_t beat = m6_peek(&m6_seg->heartbeat_ns);
  if (beat == 0) return 0;
  if (!now) now = m6_monotonic_ns();
  return now > beat && now - beat > M6_HEARTBEAT_LOST_MS * 1000000ull;
}

/* Time for another look at the heartbeat? In ticks of whatever clock there is, so that it costs no more than reading
 * that: a tenth of a second on a time-stamp counter, a quarter on a clock in nanoseconds. */
#define CHECK_TICKS (1ull << 28)
static int check_due(void)
{
  uint64_t ticks = m6_now();
  if (ticks - m6_peek(&checked) < CHECK_TICKS) return 0;
  m6_poke(&checked, ticks);
  return 1;
}

void m6_poll_control(uint64_t now)
{
  struct m6_header *h = m6_seg;
  if (!h || !m6_peek(&m6_gate.alive)) return;
  uint32_t want = m6_observe(&h->want), session = m6_peek(&h->session), end = M6_END_NONE;
  int open = m6_peek(&m6_gate.collecting) != 0, next = 0;
  if (open) {
    look_at_break();
    if (want == M6_WANT_OFF) end = M6_END_OFF;
    else if ((now || check_due()) && heartbeat_lost(now)) end = M6_END_COLLECTOR_LOST;
    else if (want == M6_WANT_ON && session != m6_peek(&m6_session_seen)) next = 1;
    else return;
  } else if (want != M6_WANT_ON || session == m6_peek(&m6_session_seen)) {
    return;
  }
  uint32_t nobody = 0;
  int cancel;
  /* A cancellation in here would leave `switching` set for ever. No system call, not even to turn signals off: the
   * program may have forbidden itself all but a few since. */
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  if (!m6_claim(&switching, &nobody, 1)) {
    pthread_setcancelstate(cancel, NULL);
    return;
  }
  if (open == (m6_peek(&m6_gate.collecting) != 0)) { /* nobody else was faster */
    if (next) { /* counting goes on: the collector opens the next one's books with the readings that close this one's */
      m6_poke(&m6_session_seen, session);
      if (h->sessions_started < h->sessions_allowed) m6_poke(&h->sessions_started, h->sessions_started + 1);
    } else if (open) {
      stop(end);
    } else {
      m6_poke(&m6_session_seen, session);
      if (h->sessions_started < h->sessions_allowed && !heartbeat_lost(0)) start((int64_t)m6_process_reading().live);
    }
  }
  m6_publish(&switching, 0);
  pthread_setcancelstate(cancel, NULL);
}

/* The shim's destructor. What a collector watches is the collector's to remove; one that ended its session in order has
 * taken its heartbeat back, and one that died has none. */
void m6_segment_exit(void)
{
  struct m6_header *h = m6_seg;
  int e = errno;
  if (!h) return;
  look_at_break();
  m6_poke(&h->exited_clock, m6_now());
  int collector_to_come = m6_peek(&h->heartbeat_ns) != 0 && !heartbeat_lost(0);
  if (h->run_token == 0 && !collector_to_come && m6_peek(&h->state) != M6_COLLECTING)
    syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  errno = e;
}
