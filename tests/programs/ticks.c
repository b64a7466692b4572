/* ticks.c - a server: ticks COUNT US [WAIT]: calls server_tick COUNT times, US apart; each 50th one sleeps 40 ms longer. WAIT: seconds
 * before the first. Statically linked, so that no shim can be in it. Prints how many ticks it made. */
/* flags: -static */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void nap(long us) { nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL); }

__attribute__((noinline)) void server_tick(int n)
{
  volatile unsigned x = 1;
  for (int i = 0; i < 100000; i++) x = x * 3 + (unsigned)n;
}

int main(int argc, char **argv)
{
  if (argc < 3) return 2;
  int count = atoi(argv[1]);
  if (argc > 3) nap(atoi(argv[3]) * 1000000l);
  for (int n = 1; n <= count; n++) {
    server_tick(n);
    nap(atol(argv[2]) + (n % 50 == 0 ? 40000 : 0));
  }
  printf("ticks %d\n", count);
  return 0;
}
