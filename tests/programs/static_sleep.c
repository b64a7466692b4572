/* static_sleep - a statically linked program that sleeps: what no preload reaches. */
/* flags: -static */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
  return 0;
}
