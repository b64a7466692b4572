/* usable - every byte that malloc_usable_size promises may be used, and survives a realloc up and down. */
/* flags: -fno-builtin */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
  unsigned long sum = 0, bad = 0;
  for (size_t n = 1; n <= 4096; n++) {
    unsigned char *p = malloc(n);
    size_t u = malloc_usable_size(p);
    sum += u;
    memset(p, (int)(n & 0xff), u);
    p = realloc(p, u * 2);
    for (size_t i = 0; i < u; i++) bad += p[i] != (n & 0xff);
    sum += malloc_usable_size(p);
    p = realloc(p, u / 2 + 1);
    for (size_t i = 0; i < u / 2; i++) bad += p[i] != (n & 0xff);
    sum += malloc_usable_size(p);
    free(p);
  }
  printf("usable bytes in all %lu\nbad %lu\n", sum, bad);
  return bad != 0;
}
