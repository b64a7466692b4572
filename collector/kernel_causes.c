/* kernel_causes.c - why a thread is off its CPU, by the syscall that it is in: one table of numbers, one of words.
 * Pure. */
#include "kernel_frames.h"

#include <stddef.h>
#include <sys/syscall.h>

static const char *const names[M6_OFF_CAUSES] = {
  [M6_OFF_LOCK] = "lock",     [M6_OFF_SLEEP] = "sleep",      [M6_OFF_POLL] = "poll",     [M6_OFF_IO] = "I/O",
  [M6_OFF_DRIVER] = "driver", [M6_OFF_FAULT] = "page fault", [M6_OFF_STOLEN] = "stolen", [M6_OFF_OTHER] = "other"};

/* One table: numbers of the machine that this was built for. Those from 424 on are the same on every machine, and
 * written as numbers because older headers lack them. What only some machines have comes last. */
static const struct {
  short number, cause;
} calls[] = {
  {SYS_futex, M6_OFF_LOCK},
  {449 /* futex_waitv */, M6_OFF_LOCK},
  {455 /* futex_wait */, M6_OFF_LOCK},
  {SYS_nanosleep, M6_OFF_SLEEP},
  {SYS_clock_nanosleep, M6_OFF_SLEEP},
  {SYS_ppoll, M6_OFF_POLL},
  {SYS_pselect6, M6_OFF_POLL},
  {SYS_epoll_pwait, M6_OFF_POLL},
  {441 /* epoll_pwait2 */, M6_OFF_POLL},
  {SYS_ioctl, M6_OFF_DRIVER},
  {SYS_read, M6_OFF_IO},
  {SYS_write, M6_OFF_IO},
  {SYS_readv, M6_OFF_IO},
  {SYS_writev, M6_OFF_IO},
  {SYS_pread64, M6_OFF_IO},
  {SYS_pwrite64, M6_OFF_IO},
  {SYS_preadv, M6_OFF_IO},
  {SYS_pwritev, M6_OFF_IO},
  {SYS_preadv2, M6_OFF_IO},
  {SYS_pwritev2, M6_OFF_IO},
  {SYS_sendfile, M6_OFF_IO},
  {SYS_splice, M6_OFF_IO},
  {SYS_tee, M6_OFF_IO},
  {SYS_vmsplice, M6_OFF_IO},
  {SYS_copy_file_range, M6_OFF_IO},
  {SYS_fsync, M6_OFF_IO},
  {SYS_fdatasync, M6_OFF_IO},
  {SYS_sync, M6_OFF_IO},
  {SYS_syncfs, M6_OFF_IO},
  {SYS_sync_file_range, M6_OFF_IO},
  {SYS_msync, M6_OFF_IO},
  {SYS_fallocate, M6_OFF_IO},
  {SYS_ftruncate, M6_OFF_IO},
  {SYS_truncate, M6_OFF_IO},
  {SYS_readahead, M6_OFF_IO},
  {SYS_fadvise64, M6_OFF_IO},
  {SYS_openat, M6_OFF_IO},
  {437 /* openat2 */, M6_OFF_IO},
  {SYS_close, M6_OFF_IO},
  {SYS_newfstatat, M6_OFF_IO},
  {SYS_fstat, M6_OFF_IO},
  {SYS_statx, M6_OFF_IO},
  {SYS_getdents64, M6_OFF_IO},
  {SYS_faccessat, M6_OFF_IO},
  {SYS_readlinkat, M6_OFF_IO},
  {SYS_renameat2, M6_OFF_IO},
  {SYS_unlinkat, M6_OFF_IO},
  {SYS_mkdirat, M6_OFF_IO},
  {SYS_accept, M6_OFF_IO},
  {SYS_accept4, M6_OFF_IO},
  {SYS_connect, M6_OFF_IO},
  {SYS_sendto, M6_OFF_IO},
  {SYS_recvfrom, M6_OFF_IO},
  {SYS_sendmsg, M6_OFF_IO},
  {SYS_recvmsg, M6_OFF_IO},
  {SYS_sendmmsg, M6_OFF_IO},
  {SYS_recvmmsg, M6_OFF_IO},
  {SYS_io_getevents, M6_OFF_IO},
  {SYS_io_submit, M6_OFF_IO},
  {426 /* io_uring_enter */, M6_OFF_IO},
#ifdef SYS_poll
  {SYS_poll, M6_OFF_POLL},
  {SYS_select, M6_OFF_POLL},
  {SYS_epoll_wait, M6_OFF_POLL},
  {SYS_open, M6_OFF_IO},
  {SYS_creat, M6_OFF_IO},
  {SYS_stat, M6_OFF_IO},
  {SYS_lstat, M6_OFF_IO},
  {SYS_access, M6_OFF_IO},
  {SYS_getdents, M6_OFF_IO},
  {SYS_readlink, M6_OFF_IO},
  {SYS_rename, M6_OFF_IO},
  {SYS_unlink, M6_OFF_IO},
  {SYS_mkdir, M6_OFF_IO},
  {SYS_rmdir, M6_OFF_IO},
#endif
};

const char *m6_off_cause_name(enum m6_off_cause cause) { return (unsigned)cause < M6_OFF_CAUSES ? names[cause] : "?"; }

enum m6_off_cause m6_off_cause_of(long number)
{
  if (number == -1) return M6_OFF_FAULT;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (calls[i].number == number) return (enum m6_off_cause)calls[i].cause;
  return M6_OFF_OTHER;
}
