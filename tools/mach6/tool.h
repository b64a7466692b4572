/* tool.h - what the commands of mach6 share: the table of commands, exit statuses, messages.
 *
 *   main.c     finds the command; say.c says things
 *   ps.c stat.c run.c drive.c (on, off, dump) dashboard.c  one command each; run.c is helped by program.c (what is this file?),
 *              launch.c (processes) and save.c (files)
 *   report_file.c export.c diff.c gate.c  commands on dumps, by dumpfile.c (loading) and dump_options.c; export_*.c are
 *              formats; compare.c, compare_runs.c and rank.c the statistics behind diff and diff_runs.c
 *   explain.c  why a process cannot be captured or shown; ps_words.c what a list says of one; reach.c speaks to its collector
 *   doctor.c probe.c  commands on the kernel side; doctor_probes.c has what doctor tries
 *   report.c report_*.c tree.c picture.c  a snapshot for people; text.c writes numbers, labels and colours
 *   analyze.c  a command on dumps, helped by analysis.c: summary.c (a snapshot in few bytes) and answer.c (asks a command)
 * May use the library for inspectors (collector/stats*.h) and shm/; knows no code of the shim or the collector.
 */
#ifndef M6_TOOL_H
#define M6_TOOL_H

#include <stddef.h>
#include <sys/types.h>

#include "../../collector/stats_refuse.h"

/* One table of exit statuses; the manual page mach6(1) repeats it. 1 to 9 are mach6-collector's, whose words they come
 * with. */
enum m6_status {
  EXIT_FINE = 0,
  EXIT_OTHER = M6_EXIT_OTHER,           /* ps, stat: anything that has no number of its own */
  EXIT_USAGE = M6_EXIT_USAGE,           /* wrong use, but for run's; a dump that is not there */
  EXIT_NO_PROCESS = M6_EXIT_NO_TARGET,  /* no such process, or none of that name */
  EXIT_NOT_LOADED = M6_EXIT_NOT_LOADED, /* it lives, but the shim is not in it */
  EXIT_DENIED = M6_EXIT_NOT_PERMITTED,  /* another user's, or it grants nothing */
  EXIT_VERSION = M6_EXIT_VERSION,       /* another version of mach6 */
  EXIT_DAMAGED = M6_EXIT_INVALID, /* not what a shim or a collector writes; of a dump, what could be saved was used */
  EXIT_UNREACHED = M6_EXIT_UNATTACHABLE, /* a program that no preload reaches */
  EXIT_NO_CAPTURE = 10,                  /* the shim is in it, but nobody captures it */
  EXIT_RUN_FAILED = 125, /* run: mach6 itself failed, wrong use included; else it is the program's own status */
  EXIT_LATE = 124,       /* analyze: its command took too long */
  EXIT_NOT_EXECUTABLE = 126,
  EXIT_NOT_FOUND = 127,
};

int m6_ps(int argc, char **argv);
int m6_stat(int argc, char **argv);
int m6_dashboard(int argc, char **argv);
int m6_run(int argc, char **argv);
int m6_on(int argc, char **argv);
int m6_off(int argc, char **argv);
int m6_dump(int argc, char **argv);
/* On dumps: report_file.c, export.c, diff.c, gate.c, analyze.c. */
int m6_report(int argc, char **argv);
int m6_export(int argc, char **argv);
int m6_diff(int argc, char **argv);
int m6_gate(int argc, char **argv);
int m6_analyze(int argc, char **argv);
/* The kernel side: doctor.c, probe.c. */
int m6_doctor(int argc, char **argv);
int m6_probe(int argc, char **argv);

/* "mach6: ..." on stderr, with what was tried and what to do about it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* explain.c, each with a message when its status is not 0: the newest image of a process; that nobody captures this
 * one; why its live stats cannot be had (enum mach6_error). Those named why_ give the words, and say nothing. */
int explain_find(pid_t pid, struct m6_target *out);
int explain_no_capture(const struct m6_target *t);
int explain_stats(pid_t pid, int error);
int why_no_capture(const struct m6_target *t, char *why, size_t room);
int why_no_stats(const char *command, pid_t pid, int error, char *why, size_t room);

/* Makes /proc/self/cmdline empty, in a process that shall not be found by the command's name. */
void tool_hide_arguments(void);

#endif
