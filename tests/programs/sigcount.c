/* sigcount.c - counts the signals that it gets, until TERM and a little longer, or for ten seconds; prints the counts.
 *
 *   sigcount FILE     FILE is made when it listens; "TERM 1 USR1 2 ..." on stdout at the end
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int counts[65], value;

static void note(int s, siginfo_t *i, void *c)
{
  counts[s]++;
  if (i->si_code == SI_QUEUE) value = i->si_value.sival_int;
}

int main(int argc, char **argv)
{
  static const int watched[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGALRM, SIGWINCH, SIGCONT};
  struct sigaction a = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART};
  for (unsigned i = 0; i < sizeof watched / sizeof *watched; i++) sigaction(watched[i], &a, NULL);
  sigaction(SIGRTMIN + 3, &a, NULL);
  if (argc > 1) fclose(fopen(argv[1], "w"));
  for (int i = 0; i < 1000 && !counts[SIGTERM]; i++) nanosleep(&(struct timespec){0, 10000000}, NULL);
  for (int i = 0; i < 50; i++) nanosleep(&(struct timespec){0, 10000000}, NULL);
  for (unsigned i = 0; i < sizeof watched / sizeof *watched; i++)
    if (counts[watched[i]]) printf("%s %d ", sigabbrev_np(watched[i]), counts[watched[i]]);
  if (counts[SIGRTMIN + 3]) printf("RT3 %d ", counts[SIGRTMIN + 3]);
  if (value) printf("value %d ", value);
  printf("\n");
  return 0;
}
