/* usable_of - the usable size of a block of so many bytes, as this machine's malloc makes them: usable_of BYTES. */
/* flags: -fno-builtin */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
  void *p = malloc(argc > 1 ? (size_t)atol(argv[1]) : 64);
  printf("%zu\n", malloc_usable_size(p));
  free(p);
  return 0;
}
