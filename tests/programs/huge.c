/* huge - ten blocks of 2 GiB that nobody touches; five are given back. */
/* flags: -fno-builtin */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
  void *p[10];
  int got = 0;
  for (int i = 0; i < 10; i++) got += (p[i] = malloc((size_t)2 << 30)) != NULL;
  for (int i = 0; i < 5; i++) free(p[i]);
  for (int i = 5; i < 10; i++) p[i] = realloc(p[i], (size_t)3 << 30);
  printf("blocks %d\n", got);
  return p[9] == NULL;
}
