/* kernel_tap.h - TAP for tests of the kernel side, where a skip must say which errno closed the way.
 *
 * check(condition, name, ...) is one test. When the machine refuses BPF, skip_rest(names, why) skips by name. Ends with
 * `return tap_done();`.
 */
#ifndef KERNEL_TAP_H
#define KERNEL_TAP_H

#include <errno.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 2, 3))) static inline int check(int good, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  printf("%sok %d - ", good ? "" : "not ", ++tap_count);
  vprintf(format, args);
  printf("\n");
  fflush(stdout);
  va_end(args);
  tap_failed += !good;
  return good;
}
__attribute__((format(printf, 1, 2))) static inline void diag(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  printf("# ");
  vprintf(format, args);
  printf("\n");
  fflush(stdout);
  va_end(args);
}
static inline void skip_named(const char *name, const char *why)
{
  printf("ok %d - %s # SKIP %s\n", ++tap_count, name, why);
  fflush(stdout);
}
static inline int tap_done(void)
{
  printf("1..%d\n", tap_count);
  return tap_failed != 0;
}

/* Is `part` within per_cent of `whole`, or within `floor`? */
static inline int within(double part, double whole, double per_cent, double floor)
{
  double d = part > whole ? part - whole : whole - part;
  return d <= floor || d <= whole * per_cent / 100;
}

/* This process's open descriptors: all of them, and those whose link says one of bpf's or perf's kinds. */
static inline int tap_fds(const char *kind)
{
  DIR *d = opendir("/proc/self/fd");
  char path[300], link[128];
  int count = 0;
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.' || atoi(e->d_name) == dirfd(d)) continue;
    snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
    ssize_t n = readlink(path, link, sizeof link - 1);
    link[n < 0 ? 0 : n] = 0;
    count += !kind || strstr(link, kind) != NULL;
  }
  if (d) closedir(d);
  return count;
}

#endif
