/* tool.h - what the commands of mach6 share: the table of commands, exit statuses, messages.
 *
 *   main.c     finds the command
 *   ps.c stat.c run.c drive.c (on, off, dump)  one command each; run.c is helped by program.c (what is this file?),
 *              launch.c (processes) and save.c (files)
 *   report_file.c export.c diff.c gate.c  commands on dumps, by dumpfile.c (loading) and dump_options.c; export_*.c are
 *              formats; compare.c, compare_runs.c and rank.c the statistics behind diff and diff_runs.c
 *   doctor.c probe.c  commands on the kernel side; doctor_probes.c has what doctor tries
 *   report.c tree.c picture.c  a snapshot for people; text.c writes numbers, labels and colours
 * May use the library for inspectors (collector/stats*.h) and shm/; knows no code of the shim or the collector.
 */
#ifndef M6_TOOL_H
#define M6_TOOL_H

#include <stddef.h>
#include <sys/types.h>

/* One table of exit statuses; the manual page mach6(1) repeats it. 1 to 9 mean what they mean for mach6-collector. */
enum m6_status {
  EXIT_FINE = 0,
  EXIT_OTHER = 1,        /* ps, stat: anything that has no number of its own */
  EXIT_USAGE = 2,        /* wrong use, but for run's; a dump that is not there */
  EXIT_NO_PROCESS = 3,   /* no such process, or none of that name */
  EXIT_NOT_LOADED = 4,   /* it lives, but the shim is not in it */
  EXIT_DENIED = 5,       /* another user's */
  EXIT_VERSION = 6,      /* another version of mach6 */
  EXIT_DAMAGED = 7,      /* not what a collector writes; of a dump, what could be saved was used */
  EXIT_NO_CAPTURE = 10,  /* the shim is in it, but nobody captures it */
  EXIT_RUN_FAILED = 125, /* run: mach6 itself failed, wrong use included; else it is the program's own status */
  EXIT_NOT_EXECUTABLE = 126,
  EXIT_NOT_FOUND = 127,
};

int m6_ps(int argc, char **argv);
int m6_stat(int argc, char **argv);
int m6_run(int argc, char **argv);
int m6_on(int argc, char **argv);
int m6_off(int argc, char **argv);
int m6_dump(int argc, char **argv);
/* On dumps: report_file.c, export.c, diff.c, gate.c. */
int m6_report(int argc, char **argv);
int m6_export(int argc, char **argv);
int m6_diff(int argc, char **argv);
int m6_gate(int argc, char **argv);
/* The kernel side: doctor.c, probe.c. */
int m6_doctor(int argc, char **argv);
int m6_probe(int argc, char **argv);

/* "mach6: ..." on stderr, with what was tried and what to do about it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes /proc/self/cmdline empty, in a process that shall not be found by the command's name. */
void tool_hide_arguments(void);

#endif
